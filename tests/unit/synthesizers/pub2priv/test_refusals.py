"""What `pub2priv` refuses, and what it tells, before anything is spent."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.unit.synthesizers.pub2priv.panels import STEPS, fit, following, following_schema
from tests.unit.synthesizers.pub2priv.test_method import GUARANTEE, SMALL
from understudy.errors import InputError, MissingData
from understudy.privacy.budget import Guarantee
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema, shared_context
from understudy.synthesizers.pub2priv import Pub2Priv
from understudy.synthesizers.pub2priv.recipe import PAPER, Recipe


def test_no_context_is_a_choice_that_has_to_be_made() -> None:
    with pytest.raises(InputError, match="knowledge='none'"):
        Pub2Priv().plan(plain_schema(), GUARANTEE)
    Pub2Priv(knowledge="none").plan(plain_schema(), GUARANTEE)


def test_a_context_at_rest_is_refused_before_anything_is_spent() -> None:
    panel = make_panel(rich_schema())
    at_rest = replace(panel, context=np.broadcast_to(np.float32(0.5), panel.context.shape))  # type: ignore[union-attr]
    with pytest.raises(InputError, match="at least one channel that moves"):
        fit(Pub2Priv(knowledge="direct", recipe=SMALL), at_rest)
    fit(Pub2Priv(knowledge="none"), at_rest)


def test_a_context_of_another_length_or_with_holes_is_refused() -> None:
    release = fit(Pub2Priv(knowledge="direct", recipe=SMALL), following(60, 0.9))
    hole = np.linspace(0, 1, STEPS)[:, None]
    hole[STEPS // 2] = np.nan
    for wrong in (np.zeros((STEPS + 1, 1)), np.zeros((STEPS, 2)), np.full((STEPS, 1), np.nan), hole):
        with pytest.raises(InputError, match=f"{STEPS} steps, 1 channels"):
            release.sample(3, context=wrong)


def test_a_context_beyond_the_range_is_told(recwarn: pytest.WarningsRecorder) -> None:
    release = fit(Pub2Priv(knowledge="direct", recipe=SMALL), make_panel(rich_schema()))
    context = shared_context(release.schema)
    release.sample(3, context=context)
    assert not len(recwarn)
    with pytest.warns(UserWarning, match="price leaves the range seen during the fit"):
        release.sample(3, context=context * [1.0, 3.0])


def test_without_a_context_to_sample_for_a_series_has_none_to_follow() -> None:
    release = fit(Pub2Priv(knowledge="direct", recipe=SMALL), following(60, 0.9))
    with pytest.raises(InputError, match="context"):
        release.sample(3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"knowledge": "some"}, "knowledge: one of"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Pub2Priv(**options)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"model": "large"}, "model: one of"),
        ({"iterations": 0}, "iterations: a number above 0"),
        ({"learning_rate": -1.0}, "learning_rate: a number above 0"),
        ({"layers": 0}, "layers: a number above 0"),
        ({"heads": 3}, "width: a multiple of heads"),
        ({"ema": 1.0}, "ema"),
    ],
)
def test_recipes_that_make_no_sense_are_refused(numbers: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Recipe(**numbers)


def test_missing_files_are_told_before_anything_is_spent(tmp_path: Path) -> None:
    for option in ("pack", "public_context"):
        options = {option: str(tmp_path / "none.safetensors")}
        with pytest.raises(MissingData, match="is not there"):
            Pub2Priv(recipe=PAPER, **options).plan(following_schema(100), GUARANTEE)


def test_the_outlook_says_when_most_is_noise_and_when_context_teaches_nothing() -> None:
    words = {"diffusion": "mostly noise is learned", "regression": "little will be learned from context"}
    for model, word in words.items():
        chosen = Pub2Priv(recipe=replace(SMALL, model=model, batch=1_000))
        few, many = (chosen.outlook(following_schema(size), Guarantee(1.0, 1e-6))[0] for size in (30, 100_000))
        assert word in few
        assert word not in many
    shared = rich_schema()
    assert any("Cut windows" in told for told in Pub2Priv().outlook(shared, GUARANTEE))
