"""A canary that differs from nobody but in x′: a reader of a release learns no more about it than was promised.

Without statistics, so without false alarms: how far the canary moves each noisy answer, and that a release follows from
these answers alone. Fits have the same seed, so that everything but privacy noise repeats itself.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from understudy_bench.audit.canaries import Neighbours, reach_of

from tests.unit.synthesizers.ppem.toy import SMALL, method, panel
from understudy.data import Panel
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian
from understudy.privacy.noise import NoiseSource
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.ppem import PPEM, hot_deck
from understudy.synthesizers.ppem.attributes import Partition

UNITS = 12


@pytest.fixture(autouse=True)
def small_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer donors, to be quick."""
    monkeypatch.setattr(hot_deck, "_POOL", 1024)
    monkeypatch.setattr(hot_deck, "_KEPT", 1024)


def neighbours() -> tuple[Panel, Panel]:
    """Everybody lives in the north and earns the same, but for one who has the same series and lives elsewhere."""
    everybody = panel(UNITS)
    static = np.array(everybody.static)
    static[:, 0] = 0
    without = replace(everybody, static=static)
    static = static.copy()
    static[0, :2] = 2, 4.0
    return without, replace(everybody, static=static)


TWO = replace(SMALL, iterations=2, rounds=1)
WAYS = {
    "stated": method(sensitive="region+income", target="uniform"),
    "different": method(sensitive="region+income", recipe=TWO),
    "two sets": method(sensitive=("region", "income"), recipe=TWO),
}


def exchanged(way: PPEM) -> Neighbours:
    absent, present = neighbours()
    return Neighbours(method=way, absent=absent, present=present, guarantee=Guarantee(20.0, 1e-6))


def excess(pair: Neighbours) -> dict[str, float]:
    """How far the canary moves each answer, in charges; 2 is allowed, because its x′ is exchanged, not added."""
    plan = pair.method.spending_plan(pair.absent.schema, pair.guarantee)
    reach, found = reach_of(pair), {}
    for label in reach.moved:
        event = plan.event(label)
        assert isinstance(event, Gaussian)
        found[label] = reach.mu(label) * event.noise_multiplier
    return found


def same_release(pair: Neighbours) -> bool:
    """Whether both panels lead to the same release where the same was answered at the border."""
    told = pair.fit(pair.absent).answers
    silent = NoiseSource.constant(0.0)
    first, second = (pair.fit(panel, silent, told).arrays for panel in (pair.absent, pair.present))
    return set(first) == set(second) and all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("way", WAYS)
def test_a_canary_in_x_alone_moves_no_answer_by_more_than_was_charged(way: str) -> None:
    moved = excess(exchanged(WAYS[way]))
    assert max(moved.values()) <= 2 + 1e-6, moved
    assert max(moved.values()) > 0.1, moved  # the canary is seen at all


def test_a_tenth_of_the_noise_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = NoiseSource.discrete_gaussian
    monkeypatch.setattr(NoiseSource, "discrete_gaussian", lambda noise, scale, size: genuine(noise, scale / 10, size))
    assert max(excess(exchanged(WAYS["stated"])).values()) > 2.5


@pytest.mark.parametrize("way", WAYS)
def test_a_release_follows_from_noisy_answers_alone(way: str) -> None:
    assert same_release(exchanged(WAYS[way]))


def test_real_people_among_the_donors_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = hot_deck.released_pools

    def leaking(private: PrivateSeries, *arguments: Any) -> list[Panel]:
        pool, *others = genuine(private, *arguments)
        static = np.array(pool.static)
        static[:UNITS] = private.panel.static
        return [replace(pool, static=static), *others]

    monkeypatch.setattr(hot_deck, "released_pools", leaking)
    assert not same_release(exchanged(WAYS["different"]))


def test_generators_that_are_trained_on_real_attributes_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine, learn, seen = Partition.rows, hot_deck.released_pools, []

    def with_real_rows(private: PrivateSeries, *arguments: Any) -> list[Panel]:
        pools = learn(private, *arguments)
        seen.append(private.panel)
        return pools

    def rows(self: Partition, data: Panel) -> Any:
        found, own = genuine(self, data), genuine(self, seen[-1])
        sensitive = np.resize(own.sensitive, found.sensitive.shape)
        return replace(found, sensitive=sensitive)

    monkeypatch.setattr(hot_deck, "released_pools", with_real_rows)
    monkeypatch.setattr(Partition, "rows", rows)
    assert not same_release(exchanged(WAYS["different"]))
