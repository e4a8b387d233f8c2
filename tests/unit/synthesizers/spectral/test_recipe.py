"""`spectral` in vertical form: who counts what, with which noise, and who has to be trusted."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from tests.unit.synthesizers.spectral.recording import MUCH, Tape, tape_of
from tests.unit.synthesizers.spectral.test_learning import UNITS, append_unit, lean_schema
from understudy.data import Continuous, Panel, Population, Schema
from understudy.privacy.border import WIDENING
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.contract.panels import make_panel, plain_schema
from understudy.synthesizers.spectral import Spectral
from understudy.synthesizers.spectral.recipe import held_columns, parties_of

GRID, ROOF = "marginals of grid", "marginals of roof"
FALSE_ALARM = 1e-9
TENTH = 0.1  # error of the standard deviation that has to be seen


def vertical(schema: Schema) -> Schema:
    """Every other column at each of two parties."""
    channels = tuple(
        replace(channel, party=("grid", "roof")[place % 2]) for place, channel in enumerate(schema.channels)
    )
    static = tuple(replace(column, party=("roof", "grid")[place % 2]) for place, column in enumerate(schema.static))
    return replace(schema, channels=channels, static=static)


@pytest.fixture(scope="module")
def run() -> tuple[Panel, Tape]:
    panel = make_panel(vertical(lean_schema()), 150)
    return panel, tape_of(panel)


def test_every_party_counts_its_own_columns_under_a_charge_of_its_own(run: tuple[Panel, Tape]) -> None:
    panel, tape = run
    held = held_columns(panel.schema)
    assert held == {GRID: [0, 2, 4, 5, 7], ROOF: [1, 3, 6]}  # the label is counted with the kinds
    assert [entry.label for entry in Spectral().plan(panel.schema, MUCH).entries][:2] == [GRID, ROOF]
    for label, places in held.items():
        assert 0.9 * np.sqrt(len(places)) < tape.sums[label].reach <= np.sqrt(len(places)) * WIDENING
    assert "marginals" not in tape.sums


def test_a_party_alone_and_columns_of_nobody_are_counted_in_one_place() -> None:
    schema = lean_schema()
    named = tuple(replace(channel, party="grid") for channel in schema.channels)
    assert parties_of(replace(schema, channels=named)) == ("grid",)
    for same in (schema, replace(schema, channels=named)):
        assert list(held_columns(same)) == ["marginals"]
    mixed = (*(replace(channel, party=f"p{place}") for place, channel in enumerate(schema.channels[:2])), *named[2:])
    left = replace(schema, channels=(*mixed[:-1], replace(mixed[-1], party=None)), static=(), label=None)
    assert held_columns(left) == {
        "marginals of p0": [0],
        "marginals of p1": [1],
        "marginals of grid": [2, 3],
        "marginals": [4],
    }


def test_counts_of_a_party_depend_on_its_own_columns_only(run: tuple[Panel, Tape]) -> None:
    panel, before = run
    values = np.array(panel.values)
    roof = [place for place, channel in enumerate(panel.schema.channels) if channel.party == "roof"]
    values[:, :, roof] = values[::-1, :, roof] * 0.5
    values[np.arange(panel.num_steps) >= panel.lengths[:, None]] = np.nan
    after = tape_of(panel.with_values(values), frozen=before)
    assert np.array_equal(before.sums[GRID].value, after.sums[GRID].value)
    assert not np.array_equal(before.sums[ROOF].value, after.sums[ROOF].value)


@pytest.mark.parametrize("unit", UNITS)
def test_one_unit_moves_every_partys_statistics_by_at_most_their_bounds(unit: str, run: tuple[Panel, Tape]) -> None:
    panel, before = run
    values = UNITS[unit](panel.schema)
    static = np.array([[0, np.nan, 1, 9], [2, 300, 0, 1], [1, 10, 1, 5]])[: len(values)]
    lengths = np.full(len(values), 3) if unit.endswith("short") else np.full(len(values), 8)
    after = tape_of(append_unit(panel, values, lengths, static), frozen=before)
    assert {GRID, ROOF} < set(after.sums)
    for label in after.sums:
        assert after.distance(before, label) <= 1 + 1e-6, label


def test_all_counts_get_the_same_noise_and_together_they_cost_what_one_release_would() -> None:
    """Whoever holds more columns gets more of the budget: noise on a count does not tell who made it."""
    schema = vertical(lean_schema())
    for guarantee in (Guarantee(0.5, 1e-6), Guarantee(10.0, 1e-6)):
        apart, joined = (Spectral().plan(one, guarantee) for one in (schema, lean_schema()))
        noise = [
            apart.event(label).noise_multiplier * np.sqrt(len(places)) for label, places in held_columns(schema).items()
        ]
        whole = joined.event("marginals").noise_multiplier * np.sqrt(8)
        np.testing.assert_allclose(noise, whole, rtol=1e-4)
        assert 0.999 * guarantee.epsilon < apart.epsilon() <= guarantee.epsilon


def test_noise_of_one_adds_the_charged_multiple_of_the_bound_everywhere(run: tuple[Panel, Tape]) -> None:
    panel, silent = run
    loud = tape_of(panel, noise=1.0, frozen=silent)
    plan = Spectral().plan(panel.schema, MUCH)
    for label in silent.sums:
        scale = plan.event(label).noise_multiplier * silent.sums[label].reach
        np.testing.assert_allclose(loud.answers[label] - silent.answers[label], scale * WIDENING, rtol=1e-4, atol=0)


def test_the_released_marginals_are_a_function_of_the_answers_alone(run: tuple[Panel, Tape]) -> None:
    """Given the same answers, other people's values end in the same distributions, whoever counted them."""
    panel, before = run
    other = tape_of(panel.take_units(np.arange(40, 90)), frozen=before)
    assert not np.array_equal(before.sums[ROOF].value, other.sums[ROOF].value)
    assert np.array_equal(before.arrays["cumulative"], other.arrays["cumulative"])


def noise_is_as_charged(error: np.ndarray, scale: float) -> bool:
    """χ² of squared errors against the charged scale; a correct one is refused with probability 1e-9."""
    low, high = chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], error.size)
    return bool(low <= ((error / scale) ** 2).sum() <= high)


def test_noise_of_real_runs_is_as_charged_and_a_tenth_more_or_less_would_be_seen(run: tuple[Panel, Tape]) -> None:
    """Of each party's counts and of the second moments across parties; secure noise.

    5,000 coordinates or more a label: the limits are 6.1 standard errors √(2/N) = 0.02 of the mean square away from 1,
    and a standard deviation off by a tenth moves it by 0.19 or 0.21.
    """
    panel, silent = run
    plan = Spectral().plan(panel.schema, MUCH)
    errors: dict[str, list[np.ndarray]] = {GRID: [], ROOF: [], "dependence": []}
    while min(sum(map(np.size, own)) for own in errors.values()) < 5000:
        real = tape_of(panel, noise=None, frozen=silent)
        for label, own in errors.items():
            own.append((real.answers[label] - real.sums[label].value).ravel())
    for label, own in errors.items():
        error = np.concatenate(own)
        scale = plan.event(label).noise_multiplier * silent.sums[label].reach
        assert noise_is_as_charged(error, scale), label
        assert not noise_is_as_charged((1 - TENTH) * error, scale), label
        assert not noise_is_as_charged((1 + TENTH) * error, scale), label


def test_columns_of_different_parties_belong_together_in_samples() -> None:
    channels = (Continuous("price", 0.0, 1.0, party="bank"), Continuous("paid", 0.0, 1.0, party="shop"))
    schema = plain_schema(channels=channels, population=Population(4000))
    rng = np.random.default_rng(0)
    level = np.clip(rng.normal(0.5, 0.12, (4000, 1, 1)) + rng.normal(0, 0.02, (4000, 8, 2)), 0, 1)
    few = make_panel(schema, 4000)
    release = Spectral().fit(few.with_values(level), Ledger.in_memory(Guarantee(2.0, 1e-6)))
    price, paid = np.moveaxis(release.sample(2000, rng=rng).values.mean(axis=1), -1, 0)
    assert np.corrcoef(price, paid)[0, 1] > 0.9
    assert np.corrcoef(price, rng.permutation(paid))[0, 1] < 0.1  # what parties that never met would give


def test_the_certificate_says_who_is_trusted_with_what() -> None:
    schema = vertical(lean_schema())
    plan = Spectral().plan(schema, MUCH)
    told = " ".join(Spectral().trust(schema, plan))
    assert "Columns of 2 organisations" in told
    assert "Not protected against the aggregator, which is trusted" in told
    assert "aligned" in told
    assert Spectral().trust(lean_schema(), plan) == ()
