"""A canary that differs from nobody but in x′: whoever reads a release learns no more about it than was promised.

First without statistics, so without false alarms, for every way to fit: how far the canary moves each noisy answer, and
that a release follows from these answers alone. Then with real noise, on the released generators, in a direction that
is fixed beforehand: what a run without noise moves between the two neighbours, over all weights of both generators.
Fits have the same seed, so that everything but privacy noise repeats itself.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tests.defects import noise_times
from tests.unit.synthesizers.ppem.toy import SMALL, method, panel
from understudy.audit.fits import Neighbours, reach_of
from understudy.audit.overhearing import GRADIENTS
from understudy.audit.scores import Scores, audit_scores
from understudy.data import Panel
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian, SubsampledGaussian
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.ppem import Ppem, donors, learning
from understudy.synthesizers.ppem.contest import Contest
from understudy.training import loop
from understudy.training.plan import TRAINING

UNITS, RUNS = 12, 50
CLAIMED = Guarantee(0.2, 1e-5)


@pytest.fixture(autouse=True)
def known_randomness(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random numbers of losses are known to whoever audits: the strongest reader there is."""
    monkeypatch.setattr(loop.secrets, "randbits", lambda bits: 7)


def neighbours() -> tuple[Panel, Panel]:
    """Everybody lives in the north and earns the same, but for one who has the same series and lives elsewhere."""
    everybody = panel(UNITS)
    static = np.array(everybody.static)
    static[:, 0] = 0
    without = replace(everybody, static=static)
    static = static.copy()
    static[0, :2] = 2, 4.0
    return without, replace(everybody, static=static)


def weights(synthesizer: Ppem, data: Panel, guarantee: Guarantee, noise: NoiseSource) -> np.ndarray:
    arrays = synthesizer.fit(data, Ledger.in_memory(guarantee), noise=noise).arrays
    return np.concatenate([array.ravel() for name, array in arrays.items() if name.startswith("generator.")])


def proved(synthesizer: Ppem, guarantee: Guarantee, runs: int, delta: float) -> float:
    """A lower bound on epsilon at confidence 1 − 1e-4, half of the runs to choose a threshold."""
    quiet = [weights(synthesizer, data, guarantee, NoiseSource.constant(0)) for data in neighbours()]
    direction = quiet[1] - quiet[0]
    source = NoiseSource.secure()
    arms = [
        np.array([weights(synthesizer, data, guarantee, source) @ direction for _ in range(runs)])
        for data in neighbours()
    ]
    return audit_scores({"generators": Scores(*arms)}, delta=delta, confidence=1 - 1e-4).evidence.epsilon(delta)


_GENUINE = learning._Trial._contest


def _published(self: learning._Trial, *arguments: Any, **options: Any) -> Contest:
    found = _GENUINE(self, *arguments, **options)
    found.references = torch.from_numpy(np.array(self.rows.sensitive))
    return found


SYNTHESIZER = method(sensitive="region+income", recipe=replace(SMALL, iterations=2, rounds=1))


@pytest.mark.slow
def test_a_canary_in_x_alone_is_not_seen_beyond_the_certificate() -> None:
    """One unit's x′ is exchanged, so twice what is claimed; a perfect attack with 50 runs an arm proves 0.7."""
    assert 2 * CLAIMED.epsilon < 0.5
    assert proved(SYNTHESIZER, CLAIMED, RUNS, CLAIMED.delta) <= 2 * CLAIMED.epsilon


@pytest.mark.slow
def test_the_same_reader_sees_it_where_generators_are_taught_with_real_attributes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Negative control: as published, the conditional generator is taught with real x′, outside of all noise."""
    monkeypatch.setattr(learning._Trial, "_contest", _published)
    assert proved(SYNTHESIZER, CLAIMED, RUNS, CLAIMED.delta) > 2 * CLAIMED.epsilon


TWO = replace(SMALL, iterations=2, rounds=1)
WAYS = {
    "energies": method(sensitive="region+income", recipe=TWO),
    "two sets": method(sensitive=("region", "income"), recipe=TWO),
    "stated": method(sensitive="region+income", recipe=TWO, target="uniform"),
    "convolutions": method(sensitive="region+income", recipe=replace(TWO, network="temporal")),
    "dp alone": method(sensitive="region+income", recipe=TWO, mode="dp"),
    "donors, stated": method(sensitive="region+income", conditional="spectral", target="uniform"),
    "donors, different": method(sensitive="region+income", recipe=TWO, conditional="spectral"),
}


@pytest.fixture
def small_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer donors, to be quick."""
    monkeypatch.setattr(donors, "_POOL", 1024)
    monkeypatch.setattr(donors, "_KEPT", 1024)


def exchanged(way: Ppem) -> Neighbours:
    absent, present = neighbours()
    return Neighbours(method=way, absent=absent, present=present, guarantee=Guarantee(20.0, 1e-6))


def excess(pair: Neighbours) -> dict[str, float]:
    """How far the canary moves each answer, in charges; 2 is allowed, because its x′ is exchanged, not added."""
    plan = pair.method.spending_plan(pair.absent.schema, pair.guarantee)
    reach, found = reach_of(pair), {}
    for label in reach.moved:
        event = plan.event(TRAINING if label.startswith(GRADIENTS) else label)
        assert isinstance(event, Gaussian | SubsampledGaussian)
        found[label] = reach.mu(label) * event.noise_multiplier
    return found


def same_release(pair: Neighbours) -> bool:
    """Whether both panels lead to the same release where the same was answered at the border."""
    told = pair.fit(pair.absent).answers
    silent = NoiseSource.constant(0.0)
    first, second = (pair.fit(panel, silent, told).arrays for panel in (pair.absent, pair.present))
    return set(first) == set(second) and all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("small_pool")
def test_a_canary_in_x_alone_moves_no_answer_by_more_than_was_charged(way: str) -> None:
    moved = excess(exchanged(WAYS[way]))
    assert max(moved.values()) <= 2 + 1e-6, moved
    assert max(moved.values()) > 0.1, moved  # the canary is seen at all


@pytest.mark.usefixtures("small_pool")
def test_a_tenth_of_the_noise_would_be_noticed() -> None:
    with noise_times(0.1):
        for way in ("energies", "donors, stated"):
            assert max(excess(exchanged(WAYS[way])).values()) > 2.5, way


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("small_pool")
def test_a_release_follows_from_noisy_answers_alone(way: str) -> None:
    assert same_release(exchanged(WAYS[way]))


@pytest.mark.usefixtures("small_pool")
def test_real_people_among_the_donors_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = donors.bought_pools

    def leaking(private: PrivateSeries, *arguments: Any) -> list[PrivateSeries]:
        pool, *others = genuine(private, *arguments)
        static = np.array(pool.panel.static)
        static[:UNITS] = private.panel.static
        return [PrivateSeries.of(replace(pool.panel, static=static), pool.population), *others]

    monkeypatch.setattr(donors, "bought_pools", leaking)
    assert not same_release(exchanged(WAYS["donors, different"]))


def test_generators_that_are_taught_with_real_attributes_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning._Trial, "_contest", _published)
    assert not same_release(exchanged(WAYS["energies"]))
