"""`ppem` spends what it says, hides what it was told to hide, and says what that does not protect."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.synthesizers.ppem.toy import SMALL, method, panel, schema
from understudy.data import Panel, write_panel
from understudy.errors import InputError, MissingData, ReleaseError
from understudy.privacy.budget import Guarantee
from understudy.privacy.certificate_page import to_markdown
from understudy.privacy.events import Gaussian, NonPrivate, PureDP, SubsampledGaussian
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers import Release
from understudy.synthesizers.ppem import Ppem, purchases
from understudy.synthesizers.ppem.learning import Rows, Run

GUARANTEE = Guarantee(2.0, 1e-6)
LARGE = {"population": 4000}  # so that a check can tell something
EVERYBODY = replace(SMALL, batch=4000)


def fit(synthesizer: Ppem, data: Panel, guarantee: Guarantee = GUARANTEE, noise: NoiseSource | None = None) -> Release:
    return synthesizer.fit(data, Ledger.in_memory(guarantee), noise=noise)


def test_everything_that_looks_at_private_data_is_in_the_plan() -> None:
    plan = method(sensitive=("region", "income"), effect=0.1, attempts=3, recipe=EVERYBODY).spending_plan(
        schema(**LARGE), GUARANTEE
    )
    kinds = {entry.label: type(entry.event) for entry in plan.entries}
    assert kinds == {
        "marginals": Gaussian,
        "sketch": Gaussian,
        "sketch dependence": Gaussian,
        "check": PureDP,
        "training": SubsampledGaussian,
        "training 2": SubsampledGaussian,
        "training 3": SubsampledGaussian,
    }
    assert 0.95 * GUARANTEE.epsilon < plan.epsilon() <= GUARANTEE.epsilon


def test_more_attempts_cost_more_noise() -> None:
    plans = [method(effect=0.1, attempts=n, recipe=EVERYBODY).spending_plan(schema(**LARGE), GUARANTEE) for n in (1, 3)]
    once, often = (plan.event("training") for plan in plans)
    assert isinstance(once, SubsampledGaussian)
    assert isinstance(often, SubsampledGaussian)
    assert often.noise_multiplier > once.noise_multiplier
    assert all(plan.epsilon() <= GUARANTEE.epsilon for plan in plans)


def test_private_columns_are_masked_where_distributions_are_bought() -> None:
    """What `purchases` counts holds none of x′: the same panel with other secrets gives the same bytes."""
    from understudy.privacy.private_series import PrivateSeries
    from understudy.synthesizers.ppem.attributes import parse

    sets = ("region", "segment", "mean(spending)")
    attributes = tuple(one for group in parse(schema(), sets) for one in group)
    data = panel(40)
    static, values = np.array(data.static), np.array(data.values)
    static[:, [0, 2]], values[:, :, 0] = 1 - static[:, [0, 2]] % 2, 10 - values[:, :, 0]
    other = replace(data, static=static, values=values)
    first, second = (purchases.masked(PrivateSeries.of(one, 40), attributes).panel for one in (data, other))
    assert np.array_equal(first.values, second.values)
    assert np.array_equal(first.static, second.static)
    assert not np.array_equal(first.static, data.static)


def test_a_release_does_not_hold_the_sketch_or_the_marginal_of_what_is_hidden() -> None:
    """Without noise, everything in a release but the generators is the same for panels that differ in x′ alone."""
    data = panel(200)
    static = np.array(data.static)
    static[:, 0] = 2 - static[:, 0]
    releases = [
        fit(method(sensitive="region", target="uniform"), one, noise=NoiseSource.constant(0)).arrays
        for one in (data, replace(data, static=static))
    ]
    for name in releases[0]:
        generated = name.startswith("generator.") or name in ("nodes", "obfuscation")
        assert generated or np.array_equal(releases[0][name], releases[1][name]), name
    sizes = {name: array.size for name, array in releases[0].items() if not name.startswith("generator.")}
    assert set(sizes) == {
        "cells", "cumulative", "column_cells", "label_share", "static_missing", "gap_model", "length_share",
        "nodes", "target", "obfuscation", "public_context",
    }  # fmt: skip


@pytest.mark.parametrize(
    "sensitive", ["region", "segment", "mean(spending)", "abroad", ("income+region", "last(spending)")]
)
def test_every_kind_of_attribute_can_be_hidden_and_drawn(sensitive: str) -> None:
    drawn = fit(method(sensitive=sensitive), panel()).sample(30, label="business")
    assert (drawn.static[:, 2] == 1).all()
    assert not np.isnan(drawn.values).any()


def test_a_table_is_a_panel_of_one_step() -> None:
    drawn = fit(method(sensitive="region+income"), panel(steps=1)).sample(20)
    assert drawn.values.shape == (20, 1, 2)


def test_a_stated_target_is_what_is_drawn() -> None:
    uniform = fit(method(target="uniform"), panel()).sample(3000, rng=np.random.default_rng(0))
    assert np.allclose(np.bincount(uniform.static[:, 0].astype(int)) / 3000, 1 / 3, atol=0.06)
    given = method(target={"region": ["south", "south", "east"]})
    drawn = fit(given, panel()).sample(3000, rng=np.random.default_rng(0))
    assert np.allclose(np.bincount(drawn.static[:, 0].astype(int)) / 3000, [0, 2 / 3, 1 / 3], atol=0.06)


def test_a_public_table_can_be_the_target(tmp_path) -> None:
    static = np.array(panel(150).static)
    static[:, 0] = 1
    write_panel(replace(panel(150), static=static, private=False), tmp_path / "public.parquet")
    asked = method(target=str(tmp_path / "public.parquet"))
    release = fit(asked, panel())
    assert (release.sample(50).static[:, 0] == 1).all()
    assert list(release.certificate.public_inputs) == ["ppem target"]


def test_a_marginal_that_is_far_enough_passes_the_check_and_the_certificate_says_so() -> None:
    """Without noise: nearly everybody lives in the north, and the target is uniform."""
    asked = method(target="uniform", effect=0.1, metric="wasserstein", recipe=EVERYBODY)
    release = fit(asked, panel(4000, **LARGE), Guarantee(10.0, 1e-6), noise=NoiseSource.constant(0))
    told = release.certificate.marginal_obfuscation
    assert any("at least 0.1 away (wasserstein)" in sentence for sentence in told)
    assert "no part of epsilon" in told[-1]
    assert "Marginal obfuscation" in to_markdown(release.certificate)


def test_an_effect_that_is_not_reached_releases_nothing_and_stays_charged() -> None:
    near = method(
        target={"region": ["north"] * 7 + ["south"] * 2 + ["east"]}, effect=0.2, metric="wasserstein", recipe=EVERYBODY
    )
    ledger = Ledger.in_memory(Guarantee(10.0, 1e-6))
    with pytest.raises(ReleaseError, match="nothing is released"):
        near.fit(panel(4000, **LARGE), ledger, noise=NoiseSource.constant(0))
    assert ledger.remaining().epsilon < 1e-6


def test_attempts_are_bounded_and_each_is_trained_anew(monkeypatch) -> None:
    from understudy.synthesizers.ppem import learning

    seen: list[int] = []
    trained = learning._Trial.trained

    def counted(self, number: int):
        seen.append(number)
        return trained(self, number)

    monkeypatch.setattr(learning._Trial, "trained", counted)
    asked = method(effect=0.9, attempts=3, recipe=replace(EVERYBODY, iterations=1))
    with pytest.raises(ReleaseError, match="3 attempts"):
        fit(asked, panel(300, **LARGE), Guarantee(10.0, 1e-6))
    assert seen == [0, 1, 2]


def test_an_effect_that_no_check_could_tell_is_refused_before_anything_is_spent() -> None:
    ledger = Ledger.in_memory(GUARANTEE)
    with pytest.raises(InputError, match="kept-out units"):
        method(effect=0.5).fit(panel(), ledger)
    assert not ledger.entries()


def test_kept_out_units_are_seen_by_the_check_alone(monkeypatch) -> None:
    """The rows of both sides together are the panel, and no row is on both."""
    sides: list[int] = []
    of = Rows.of

    def noted(private, partition):
        sides.append(private.panel.num_units)
        return of(private, partition)

    monkeypatch.setattr(Rows, "of", noted)
    asked = method(target="uniform", effect=0.1, metric="wasserstein", recipe=EVERYBODY)
    fit(asked, panel(4000, **LARGE), Guarantee(10.0, 1e-6), noise=NoiseSource.constant(0))
    assert sum(sides) == 4000
    assert 600 < sides[1] < 1000


@pytest.mark.parametrize("mode", ["lmdp", "marginal-dp"])
def test_modes_that_protect_nobody_say_so_and_need_an_infinite_budget(mode: str) -> None:
    asked = method(mode=mode)
    with pytest.raises(InputError, match="protects nobody"):
        asked.spending_plan(schema(), GUARANTEE)
    release = fit(asked, panel(), Guarantee(math.inf, 1e-6))
    assert release.certificate.status.startswith("not private")
    assert release.certificate.epsilon == math.inf
    plan = asked.spending_plan(schema(), Guarantee(math.inf, 1e-6))
    assert any(isinstance(event, NonPrivate) for event in plan.events)
    assert release.sample(5).num_series == 5


def test_what_the_paper_calls_differentially_private_is_refused() -> None:
    with pytest.raises(InputError, match="not differentially private"):
        method(mode="paper")


def test_obfuscation_is_never_added_to_epsilon() -> None:
    """The same charges with and without a target give the same epsilon; `dp` says nothing about a marginal."""
    releases = [fit(method(**options), panel()).certificate for options in ({}, {"mode": "dp"}, {"target": "uniform"})]
    assert releases[0].epsilon == releases[1].epsilon
    assert releases[1].marginal_obfuscation == ()
    assert "marginal_obfuscation" not in releases[1].to_json()
    assert releases[0].marginal_obfuscation
    assert releases[2].marginal_obfuscation


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"mode": "secret"}, "mode"),
        ({"mode": "dp", "effect": 0.1}, "hides no marginal"),
        ({"mode": "dp", "target": "uniform"}, "hides no marginal"),
        ({"effect": 2.0}, "effect"),
        ({"effect": -0.1}, "effect"),
        ({"attempts": 3}, "attempts"),
        ({"attempts": 3, "effect": 0.1, "target": "uniform"}, "attempts"),
        ({"metric": "feeling"}, "metric"),
        ({"scale": "data"}, "scale"),
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
        Ppem(recipe=SMALL).fit(panel(), ledger)
    assert not ledger.entries()


def test_the_outlook_says_what_noise_leaves() -> None:
    told = method(sensitive="spending", effect=0.1, recipe=EVERYBODY).outlook(schema(**LARGE), GUARANTEE)
    assert any("parameters of two energies" in sentence for sentence in told)
    assert any("check for 0.1 passes" in sentence for sentence in told)
    assert "Not private" in method(mode="lmdp").outlook(schema(), GUARANTEE)[0]


def test_the_run_is_charged_once_for_each_part() -> None:
    release = fit(method(sensitive=("region", "income")), panel())
    assert set(release.certificate.executed.values()) == {1, SMALL.iterations}
    assert Run.__doc__ is not None
    assert "Privacy" in Run.__doc__


def test_the_certificate_reads_the_same_whatever_probes_found_and_the_release_tells_it() -> None:
    first, second = (fit(method(sensitive="income"), panel(seed=seed)) for seed in (0, 1))
    assert first.certificate.marginal_obfuscation == second.certificate.marginal_obfuscation
    asked, arrays = method(sensitive="income"), {**first.arrays, "obfuscation": np.array([0.4, 1.0])}
    told = asked.findings(schema(), arrays)
    assert "income came out as the real distribution moved" in told[0]
    assert "40%" in told[1]
    assert "Caution" not in asked.findings(schema(), {"obfuscation": np.array([0.0, 0.0])})[0]
