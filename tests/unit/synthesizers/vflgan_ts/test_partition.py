"""Facts that parties buy apart are the facts that one place would buy: same bounds, same noise, same columns."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from understudy.data import Categorical, Continuous, Panel, Population, PrivacyUnit, Schema, Time
from understudy.privacy.border import Statistic
from understudy.privacy.budget import Guarantee
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.private_series import Private, PrivateSeries
from understudy.statistics import facts as bought
from understudy.statistics.encoding import linear_scales
from understudy.statistics.facts import Facts
from understudy.synthesizers.vflgan_ts import partition as parts
from understudy.synthesizers.vflgan_ts.method import VFLGANTS
from understudy.synthesizers.vflgan_ts.recipe import Recipe

STEPS, UNITS = 12, 150
PLAIN = VFLGANTS(mode="plain", recipe=Recipe(iterations=1))  # its facts are priced without an accountant


def schema() -> Schema:
    """Columns of two parties in turns, no two declared alike, with gaps, a static column and a label."""
    return Schema(
        name="joined",
        population=Population(UNITS),
        unit=PrivacyUnit(column="customer"),
        time=Time(column="when", steps=STEPS),
        channels=(
            Continuous("a", -1.0, 1.0, party="bank"),
            Continuous("b", -2.0, 2.0, party="shop", missing=True),
            Continuous("c", -3.0, 3.0, party="bank", missing=True),
            Continuous("d", -4.0, 4.0, party="shop"),
        ),
        static=(
            Continuous("size", 0.0, 1.0, party="shop"),
            Categorical("kind", ("x", "y", "z"), party="shop"),
            Continuous("age", 0.0, 2.0, party="bank"),
        ),
        label="kind",
    )


def panel() -> Panel:
    rng = np.random.default_rng(0)
    values = rng.uniform(-1, 1, (UNITS, STEPS, 4)).astype(np.float32) * np.array([1, 2, 3, 4], dtype=np.float32)
    values[:, 3:5, 1:3] = np.where(rng.random((UNITS, 2, 2)) < 0.3, np.nan, values[:, 3:5, 1:3])
    static = np.stack([rng.random(UNITS), rng.integers(0, 3, UNITS), 2 * rng.random(UNITS)], 1).astype(np.float32)
    return Panel(
        schema=schema(),
        values=values,
        lengths=np.full(UNITS, STEPS, dtype=np.int32),
        unit=np.arange(UNITS),
        static=static,
    )


def held(whole: Panel, party: str) -> Panel:
    own = parts.own_schema(whole.schema, party)
    channels = [whole.schema.channel_index(channel.name) for channel in own.channels]
    names = [column.name for column in whole.schema.static]
    static = [names.index(column.name) for column in own.static]
    return replace(whole, schema=own, values=whole.values[:, :, channels], static=whole.static[:, static])


def grant(noise: NoiseSource) -> Grant:
    infinite = Guarantee(float("inf"), 1e-6)
    return Ledger.in_memory(infinite).charge(PLAIN.plan(schema(), infinite), label="test", noise=noise)


def apart(noise: NoiseSource) -> Facts:
    own = {}
    for party in ("bank", "shop"):
        private = PrivateSeries.of(held(panel(), party), UNITS)
        own[party] = parts.buy_part(private, grant(noise), schema())
    return parts.joined_facts(schema(), own)


def together(noise: NoiseSource) -> Facts:
    return bought.buy(PrivateSeries.of(panel(), UNITS), grant(noise))


@pytest.mark.parametrize("constant", [0.0, 0.9])
def test_facts_bought_apart_are_those_bought_in_one_place(constant: float) -> None:
    """With noise 0 the columns are in their places; with noise 0.9 everywhere it is as large as in one place.

    With 1 the sum of nine empty cells would be three deviations of its noise, where rounding decides what is heard.
    """
    one, other = (
        facts.to_arrays() for facts in (apart(NoiseSource.constant(constant)), together(NoiseSource.constant(constant)))
    )
    assert set(one) == set(other)
    for facts in (one, other):
        facts["gap_model"] = facts["gap_model"][:, :-4]  # what links steps is found by drawing, all channels at once
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-9, atol=1e-12, err_msg=name)


def test_every_part_is_noised_for_the_bound_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    reaches: dict[str, set[float]] = {}
    genuine = Grant.release

    def heard(self: Grant, statistic: Statistic, private: Private) -> np.ndarray:
        reaches.setdefault(statistic.label, set()).add(round(statistic.bound * private.reach, 9))
        return genuine(self, statistic, private)

    monkeypatch.setattr(Grant, "release", heard)
    apart(NoiseSource.constant(0))
    assert reaches == {"marginals": {round(6**0.5, 9)}, "labels": {1.0}, "absence": {round(4.5**0.5, 9)}}


def test_one_unit_moves_all_parts_together_by_at_most_the_bound() -> None:
    """Removes a unit, adds up what that moves at both parties before noise: no more than the bound that is noised."""
    totals: dict[int, list[np.ndarray]] = {}
    for left_out in (None, *range(0, UNITS, 30)):
        taken: list[np.ndarray] = []
        for party in ("bank", "shop"):
            kept = [unit for unit in range(UNITS) if unit != left_out]
            private = PrivateSeries.of(held(panel(), party).take_units(kept), UNITS)
            own = grant(NoiseSource.constant(0))
            record = own.release

            def heard(statistic: Statistic, private: Private, record: Any = record, taken: Any = taken) -> np.ndarray:
                answer = record(statistic, private)
                if statistic.label == "marginals":
                    taken.append(answer)
                return answer

            own.release = heard  # type: ignore[method-assign]
            parts.buy_part(private, own, schema())
        totals[-1 if left_out is None else left_out] = taken
    whole = np.concatenate(totals.pop(-1))
    moved = [np.linalg.norm(np.concatenate(part) - whole) for part in totals.values()]
    assert 0 < max(moved) <= 6**0.5 + 1e-9


def test_a_party_without_a_label_buys_none() -> None:
    own = parts.own_schema(schema(), "bank")
    assert set(parts.parts_of(own, schema())) == {"marginals", "absence"}
    assert own.label is None
    assert [column.name for column in own.static] == ["age"]


def test_rows_of_parties_are_those_of_the_joined_table() -> None:
    from understudy.statistics.encoding import Encoding
    from understudy.synthesizers.vflgan_ts.partition import partition, rows_of

    facts = together(NoiseSource.constant(0))
    encoding = Encoding.of(schema(), facts.marginals, linear_scales(schema(), None))
    for columns in partition(schema()):
        private = PrivateSeries.of(held(panel(), columns.party), UNITS)
        own = parts.own_rows(private, parts.buy_part(private, grant(NoiseSource.constant(0)), schema()))
        expected = rows_of(columns, panel(), encoding)
        np.testing.assert_allclose(own.series.numpy(), expected.series.numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(own.label.numpy(), expected.label.numpy())


@pytest.mark.parametrize("num_steps", [1, 2, 7, 24])
def test_waves_say_all_that_steps_say(num_steps: int) -> None:
    series = np.random.default_rng(0).standard_normal((5, 3, num_steps)).astype(np.float32)
    waves = parts.to_waves(series, num_steps)
    assert waves.shape == series.shape
    np.testing.assert_allclose(parts.from_waves(waves, num_steps), series, atol=1e-5)


def test_fewer_waves_keep_what_is_slow() -> None:
    clock = np.arange(200) / 200
    slow, fast = np.cos(2 * np.pi * 3 * clock), np.cos(2 * np.pi * 80 * clock)
    series = (slow + fast)[None, None].astype(np.float32)
    kept = parts.from_waves(parts.to_waves(series, 64), 200)[0, 0]
    assert np.abs(kept - slow).mean() < 0.1
    assert np.abs(kept - slow - fast).mean() > 0.4


def test_a_row_of_waves_follows_from_its_own_series() -> None:
    series = np.random.default_rng(1).standard_normal((6, 2, 24)).astype(np.float32)
    alone = np.concatenate([parts.to_waves(series[[row]], 16) for row in range(6)])
    np.testing.assert_array_equal(parts.to_waves(series, 16), alone)
