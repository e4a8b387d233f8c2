"""`ppem` spends what it says, hides what it was told to hide, and says what that does not protect."""

import math
from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest

from tests.unit.synthesizers.ppem.toy import SMALL, method, panel, schema
from understudy.data import Panel, write_panel
from understudy.errors import InputError, MissingData, ReleaseError
from understudy.privacy.budget import Guarantee
from understudy.privacy.certificate_page import to_markdown
from understudy.privacy.events import NonPrivate
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers import Release
from understudy.synthesizers.ppem import PPEM, hot_deck
from understudy.synthesizers.ppem.attributes import Partition
from understudy.synthesizers.ppem.published import AdversarialTraining
from understudy.synthesizers.ppem.recipe import PAPER

GUARANTEE, NO_LIMIT = Guarantee(2.0, 1e-6), Guarantee(math.inf, 1e-6)
LARGE = {"population": 4000}  # so that a check can tell something


@pytest.fixture(autouse=True)
def small_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer donors, to be quick."""
    monkeypatch.setattr(hot_deck, "_POOL", 1024)
    monkeypatch.setattr(hot_deck, "_KEPT", 1024)


def fit(synthesizer: PPEM, data: Panel, guarantee: Guarantee = GUARANTEE, noise: NoiseSource | None = None) -> Release:
    return synthesizer.fit(data, Ledger.in_memory(guarantee), noise=noise)


def test_a_method_shows_at_most_eight_options() -> None:
    assert len({field.name for field in fields(PPEM)} - {"window_steps", "window_stride"}) <= 8


def test_recipes_are_records_and_presets_have_names() -> None:
    assert (method().recipe, PPEM.from_preset("paper", sensitive="region").recipe) == (SMALL, PAPER)
    with pytest.raises(InputError, match="--preset paper"):
        method(recipe="best")


@pytest.mark.parametrize(
    "sensitive", ["region", "segment", "mean(spending)", "abroad", ("income+region", "last(spending)")]
)
def test_the_published_modes_hide_and_sample_every_kind_of_attribute(sensitive: str) -> None:
    sampled = fit(method(sensitive=sensitive, mode="lmdp"), panel(), NO_LIMIT).sample(30, label="business")
    assert (sampled.static[:, 2] == 1).all()
    assert not np.isnan(sampled.values).any()


def test_a_published_release_holds_generators_and_no_scale_of_what_is_hidden() -> None:
    data = panel(200)
    static, values = np.array(data.static), np.array(data.values)
    static[:, 1], values[:, :, 0] = -static[:, 1], 10 - values[:, :, 0]
    asked = method(sensitive=("income", "mean(spending)"), mode="lmdp", target="uniform")
    releases = [fit(asked, one, NO_LIMIT).arrays for one in (data, replace(data, static=static, values=values))]
    assert np.array_equal(releases[0]["linear"], releases[1]["linear"])
    names = {name for name in releases[0] if not name.startswith("generator.")}
    assert names == {"linear", "target", "obfuscation", "public_context"}


def test_a_table_is_a_panel_of_one_step() -> None:
    for mode, guarantee in (("sound", GUARANTEE), ("lmdp", NO_LIMIT)):
        sampled = fit(method(sensitive="region+income", mode=mode), panel(steps=1), guarantee).sample(20)
        assert sampled.values.shape == (20, 1, 2)


@pytest.mark.parametrize(("mode", "guarantee"), [("sound", GUARANTEE), ("lmdp", NO_LIMIT)])
def test_a_stated_target_is_what_is_sampled(mode: str, guarantee: Guarantee) -> None:
    uniform = fit(method(target="uniform", mode=mode), panel(), guarantee).sample(1000, rng=np.random.default_rng(0))
    assert np.allclose(np.bincount(uniform.static[:, 0].astype(int)) / 1000, 1 / 3, atol=0.08)
    given = method(target={"region": ["south", "south", "east"]}, mode=mode)
    sampled = fit(given, panel(), guarantee).sample(1000, rng=np.random.default_rng(0))
    shares = np.bincount(sampled.static[:, 0].astype(int), minlength=3) / 1000
    assert np.allclose(shares, [0, 2 / 3, 1 / 3], atol=0.08)


def test_a_public_table_can_be_the_target(tmp_path) -> None:
    static = np.array(panel(150).static)
    static[:, 0] = 1
    write_panel(replace(panel(150), static=static, private=False), tmp_path / "public.parquet")
    asked = method(target=str(tmp_path / "public.parquet"))
    release = fit(asked, panel())
    assert (release.sample(50).static[:, 0] == 1).all()
    assert list(release.certificate.public_inputs) == ["ppem target"]


def test_a_marginal_that_is_far_enough_passes_the_check_and_the_certificate_says_so() -> None:
    """Without noise: most units live in the north, and the target is uniform."""
    asked = method(target="uniform", effect=0.1)
    release = fit(asked, panel(4000, **LARGE), Guarantee(10.0, 1e-6), noise=NoiseSource.constant(0))
    said = release.certificate.marginal_obfuscation
    assert any("at least 0.1 away (Wasserstein" in sentence for sentence in said)
    assert "no part of epsilon" in said[-1]
    assert "Marginal obfuscation" in to_markdown(release.certificate)


def test_an_effect_that_is_not_reached_releases_nothing_and_stays_charged() -> None:
    near = method(target={"region": ["north"] * 7 + ["south"] * 2 + ["east"]}, effect=0.2)
    ledger = Ledger.in_memory(Guarantee(10.0, 1e-6))
    with pytest.raises(ReleaseError, match="nothing is released"):
        near.fit(panel(4000, **LARGE), ledger, noise=NoiseSource.constant(0))
    assert ledger.remaining().epsilon < 1e-6


def test_attempts_are_bounded_and_each_is_trained_from_another_start(monkeypatch) -> None:
    seen: list[int] = []
    genuine = AdversarialTraining.run

    def counted(self: AdversarialTraining, reached: Callable[[float], None]) -> None:
        seen.append(self.seed)
        genuine(self, reached)

    monkeypatch.setattr(AdversarialTraining, "run", counted)
    asked = method(effect=0.7, attempts=3, recipe=replace(SMALL, iterations=1))
    with pytest.raises(ReleaseError, match="3 attempts"):
        fit(asked, panel(300, **LARGE), Guarantee(10.0, 1e-6))
    assert seen == [0, 1000, 2000]


def test_an_effect_that_no_check_could_tell_is_refused_before_anything_is_spent() -> None:
    ledger = Ledger.in_memory(GUARANTEE)
    with pytest.raises(InputError, match="held-out units"):
        method(effect=0.5).fit(panel(), ledger)
    assert not ledger.entries()


def test_held_out_units_are_seen_by_the_check_alone(monkeypatch) -> None:
    """In a published mode the rows of both sides together are the panel, and no row is on both."""
    sides: list[int] = []
    rows = Partition.rows

    def noted(self, data):
        sides.append(data.num_units)
        return rows(self, data)

    monkeypatch.setattr(Partition, "rows", noted)
    asked = method(target="uniform", effect=0.1, mode="lmdp")
    fit(asked, panel(4000, **LARGE), NO_LIMIT, noise=NoiseSource.constant(0))
    assert sum(sides) == 4000
    assert 600 < sides[1] < 1000


def test_the_mode_that_protects_no_unit_says_so_and_needs_an_infinite_budget() -> None:
    asked = method(mode="lmdp")
    with pytest.raises(InputError, match="protects no unit"):
        asked.spending_plan(schema(), GUARANTEE)
    release = fit(asked, panel(), NO_LIMIT)
    assert release.certificate.status.startswith("not private")
    assert release.certificate.epsilon == math.inf
    plan = asked.spending_plan(schema(), NO_LIMIT)
    assert any(isinstance(event, NonPrivate) for event in plan.events)
    assert release.sample(5).num_series == 5


def test_obfuscation_is_never_added_to_epsilon() -> None:
    """The charges are the same whatever the target."""
    releases = [fit(method(**options), panel()).certificate for options in ({}, {"target": "uniform"})]
    assert releases[0].epsilon == releases[1].epsilon
    assert releases[0].marginal_obfuscation


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"mode": "secret"}, "mode"),
        ({"mode": "paper"}, "sound, lmdp"),
        ({"effect": 2.0}, "effect"),
        ({"effect": -0.1}, "effect"),
        ({"attempts": 3}, "attempts"),
        ({"attempts": 3, "effect": 0.1, "target": "uniform"}, "attempts"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, object], word: str) -> None:
    with pytest.raises(InputError, match=word):
        method(**options)


@pytest.mark.parametrize("target", [{"region": ["west"]}, {"region": []}, {"income": [0.0]}, {"region": [7]}], ids=str)
def test_a_target_outside_what_is_declared_is_refused_before_anything_is_spent(target: dict[str, list[object]]) -> None:
    ledger = Ledger.in_memory(GUARANTEE)
    with pytest.raises(InputError, match="target"):
        method(target=target).fit(panel(), ledger)
    with pytest.raises(MissingData):
        method(target="nowhere.parquet").fit(panel(), ledger)
    with pytest.raises(InputError, match="numbers from"):
        method(sensitive="income", target={"income": [5.0]}).fit(panel(), ledger)
    assert not ledger.entries()


def test_fewer_than_a_hundred_units_are_refused() -> None:
    with pytest.raises(InputError, match="at least 100"):
        method().spending_plan(schema(population=99), GUARANTEE)
    method().spending_plan(schema(population=100), GUARANTEE)


def test_nothing_sensitive_named_is_refused_before_anything_is_spent() -> None:
    ledger = Ledger.in_memory(GUARANTEE)
    with pytest.raises(InputError, match="at least one"):
        PPEM(recipe=SMALL).fit(panel(), ledger)
    assert not ledger.entries()


def test_the_outlook_of_a_mode_that_protects_nobody_says_so() -> None:
    assert "Not private" in method(mode="lmdp").outlook(schema(), GUARANTEE)[0]


def test_the_certificate_reads_the_same_whatever_probes_found_and_the_release_says_it() -> None:
    first, second = (fit(method(sensitive="income"), panel(seed=seed)) for seed in (0, 1))
    assert first.certificate.marginal_obfuscation == second.certificate.marginal_obfuscation
    asked, arrays = method(sensitive="income"), {**first.arrays, "obfuscation": np.array([0.4, 1.0])}
    found = asked.findings(schema(), arrays)
    assert "income came out as the real distribution moved" in found[0]
    assert "40%" in found[1]
    assert "Caution" not in asked.findings(schema(), {"obfuscation": np.array([0.0, 0.0])})[0]
