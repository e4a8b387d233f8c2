"""A model for every class: what it learns, what it may cost, and who is in which."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.unit.synthesizers.vflgan_ts.toy import panel, schema
from understudy.data import Categorical, Panel, PrivacyUnit
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.release import Release
from understudy.synthesizers.vflgan_ts.classes import KNOWN, among
from understudy.synthesizers.vflgan_ts.method import VflganTs
from understudy.synthesizers.vflgan_ts.recipe import Recipe

APART = Recipe(iterations=4, batch=16, widths=(4,), features=4, labels="apart")
GUARANTEE = Guarantee(200.0, 1e-7)  # so much that noise is found in closed form, which is quick


def labelled(num_units: int, share: float = 0.5) -> Panel:
    """Two classes with opposite levels; the shop holds the label."""
    data = panel(num_units)
    kind = (np.arange(num_units) >= share * num_units).astype(np.float32)[:, None]
    values = np.where(kind[:, :, None] > 0, 0.6, -0.6) + 0.1 * data.values
    label = Categorical("kind", ("low", "high"), party="shop")
    changed = replace(schema(), static=(label,), label="kind")
    return replace(data, schema=changed, values=values.astype(np.float32), static=kind)


def fit(data: Panel, mode: str, recipe: Recipe = APART) -> Release:
    guarantee = Guarantee(math.inf, 1e-5) if mode == "plain" else GUARANTEE
    return VflganTs(mode=mode, scale="bounds", recipe=recipe).fit(data, Ledger.in_memory(guarantee))  # type: ignore[arg-type]


def test_each_class_comes_out_at_its_own_level(tmp_path) -> None:
    recipe = replace(APART, iterations=100, batch=64, widths=(32, 16), features=32, learning_rate=2e-3, dropout=0.0)
    fit(labelled(200), "plain", recipe).save(tmp_path / "release")
    release = Release.load(tmp_path / "release")
    low, high = (release.sample(200, label=label).values.mean() for label in ("low", "high"))
    assert high - low > 0.6
    mixed = release.sample(400)
    assert mixed.label is not None
    assert mixed.values[mixed.label == 1].mean() - mixed.values[mixed.label == 0].mean() > 0.6


def test_a_unit_changes_no_model_but_that_of_its_class() -> None:
    """All randomness of `plain` is seeded: whoever took part in the other model would show in its bits."""
    before, after = (fit(labelled(number, share), "plain").arrays for number, share in ((60, 0.5), (61, 30 / 61)))
    for party in (0, 1):
        names = [name for name in before if name.startswith(f"party{party}.")]
        same = {name: np.array_equal(before[name], after[name]) for name in names}
        assert all(same[name] for name in names if ".classes.0." in name)
        assert not any(same[name] for name in names if name.endswith("classes.1.gates.weight"))


def test_draws_of_a_class_are_everybodys_coins_without_the_others() -> None:
    members = np.array([1, 4, 5])
    draws = among(lambda number: iter([torch.tensor([4, 0, 1]), torch.tensor([2, 3]), torch.tensor([5])]), members)
    assert [rows.tolist() for rows in draws(3)] == [[1, 0], [], [2]]


def test_all_models_of_a_private_run_are_one_charge() -> None:
    release = fit(labelled(60), "sound")
    certificate = release.certificate
    assert certificate.executed["training"] == APART.iterations
    assert certificate.epsilon <= GUARANTEE.epsilon
    assert KNOWN in certificate.threat_model
    assert KNOWN not in fit(labelled(60), "sound", replace(APART, labels="conditional")).certificate.threat_model
    assert np.isfinite(release.sample(7, label="high").values).all()


def test_a_class_that_nobody_has_is_trained_like_any_other() -> None:
    assert np.isfinite(fit(labelled(60, share=0.0), "sound").sample(5, label="low").values).all()


def test_units_that_may_have_several_classes_are_refused() -> None:
    data = labelled(60)
    several = replace(data.schema, unit=PrivacyUnit(column="customer", max_series=2))
    method = VflganTs(recipe=APART)
    with pytest.raises(InputError, match=r"unit\.max_series = 1 is expected, got 2"):
        method.plan(several, GUARANTEE)
    with pytest.raises(InputError, match="'local', which noises the classes"):
        VflganTs(mode="local", recipe=APART).plan(data.schema, GUARANTEE)


def test_without_a_label_there_is_nothing_to_tell_apart() -> None:
    release = VflganTs(scale="bounds", recipe=APART).fit(panel(), Ledger.in_memory(GUARANTEE))
    assert not any("classes" in name for name in release.arrays)
    with pytest.raises(InputError, match="labels: one of conditional, apart"):
        Recipe(labels="none")  # type: ignore[arg-type]
