"""One unit moves every answer of a baseline by no more than was charged, whatever it holds and however often.

Answers are followed through whole fits without noise, later ones under the same earlier ones, so nothing here is left
to chance: a bound that is too small by any factor the panel reaches fails.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from understudy_bench.audit.canaries import Neighbours, reach_of
from understudy_bench.baselines import gs_wgan, pate_gan
from understudy_bench.baselines.aim import Aim
from understudy_bench.baselines.dp_gan import DpGan, Recipe
from understudy_bench.baselines.gem import Gem
from understudy_bench.baselines.gs_wgan import SLOPES, GsWgan
from understudy_bench.baselines.pate_gan import VOTES, PateGan
from understudy_bench.baselines.private_gsd import PrivateGsd
from understudy_bench.baselines.shards import shards

from understudy.data import Panel, PrivacyUnit, Schema, Time
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian
from understudy.privacy.noise import NoiseSource
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.contract.panels import make_panel, rich_schema

METHODS: dict[str, Synthesizer] = {
    "aim": Aim(coefficients=1),
    "aim, segments": Aim(cut="segments"),
    "gem": Gem(coefficients=1, rounds=2, chosen=3, rows=16, updates=2, width=8),
    "private-gsd": PrivateGsd(coefficients=1, rows=40, generations=20),
    "pate-gan": PateGan(teachers=3, rounds=2, questions=4, updates=1, width=8),
    "gs-wgan": GsWgan(critics=3, iterations=2, questions=4, updates=1, width=8),
}
COUNTING = ("aim", "aim, segments", "gem", "private-gsd")  # whose bounds are of single series
USUAL = Guarantee(1.0, 1e-6)
LOUD = Guarantee(50.0, 1e-6)  # what is charged does not matter here


def few_channels(**changes: Any) -> Schema:
    """A number and a category with gaps, a coin, and every kind of column that stands still."""
    kept = ("load", "state", "alarm")
    channels = tuple(channel for channel in rich_schema().channels if channel.name in kept)
    return rich_schema(channels=channels, constraints=(), **changes)


def neighbours(method: Synthesizer, seed: int = 5) -> Neighbours:
    """Twelve units and one more, whose series are at the upper bounds."""
    schema = few_channels(unit=PrivacyUnit(column="home", max_series=3))
    panel = make_panel(schema, 13, seed=seed)
    loud = (panel.unit == 12)[:, None, None] & ~np.isnan(panel.values)
    values = np.where(loud, [channel.bounds[1] for channel in schema.channels], panel.values)
    present = panel.with_values(values.astype(np.float32))
    return Neighbours(method=method, absent=present.take_units(np.arange(12)), present=present, guarantee=LOUD)


@pytest.mark.parametrize("name", METHODS)
def test_one_unit_moves_every_answer_by_at_most_what_was_charged(name: str) -> None:
    pair = neighbours(METHODS[name])
    charged = {entry.label: entry.event for entry in pair.method.spending_plan(pair.present.schema, LOUD).entries}
    reach = reach_of(pair)
    assert (pair.present.unit == 12).sum() > 1
    for label in reach.moved:
        event = charged[label.rstrip(" 0123456789")]
        assert isinstance(event, Gaussian)
        assert reach.mu(label) <= (1 + 1e-6) / event.noise_multiplier, label
    assert {label.rstrip(" 0123456789") for label in reach.moved} == set(charged)
    assert reach.mu() > 0


@pytest.mark.parametrize("name", COUNTING)
def test_a_unit_that_is_an_event_may_move_as_many_windows_as_it_touches(name: str) -> None:
    """For events every bound grows with the windows that one of them touches, so noise does."""
    method, plain = replace(METHODS[name], window_steps=4), few_channels(time=Time(column="when", steps=8))
    event = replace(plain, unit=PrivacyUnit(column="home", kind="event", event_steps=2))
    quiet, loud = (neighbours_noise(method, schema) for schema in (plain, event))
    assert method.influence(event) > 1
    for label, noise in quiet.items():
        assert loud[label] >= 0.999 * method.influence(event) * noise, label


def neighbours_noise(method: Synthesizer, schema: Schema) -> dict[str, float]:
    """Returns the deviation of the noise on the first coordinate of every answer."""
    panel = make_panel(schema, 9)
    pair = Neighbours(method=method, absent=panel, present=panel, guarantee=LOUD)
    told = pair.fit(panel).answers
    silent, loud = (pair.fit(panel, NoiseSource.constant(size), told).answers for size in (0.0, 1.0))
    return {label: float((loud[label] - silent[label]).ravel()[0]) for label in silent}


TRAINED = DpGan(recipe=Recipe(iterations=3, batch=500, rounds=1, width=8))


@pytest.mark.parametrize("name", [*METHODS, "dp-gan"])
def test_what_is_released_follows_from_the_noisy_answers_alone(name: str) -> None:
    """Told the same answers, a fit releases the same with and without the unit: all the rest is post-processing."""
    pair = replace(neighbours(METHODS.get(name, TRAINED)), guarantee=USUAL)
    told = pair.fit(pair.absent).answers
    absent, present = (pair.fit(panel, told=told).arrays for panel in (pair.absent, pair.present))
    other = pair.fit(pair.absent).arrays
    for label in absent:
        np.testing.assert_array_equal(absent[label], present[label], label)
    assert any(not np.array_equal(absent[label], other[label]) for label in absent)  # and other answers show


@pytest.mark.parametrize("name", [*METHODS, "dp-gan"])
def test_a_plan_spends_what_it_is_given_and_no_more(name: str) -> None:
    spent = METHODS.get(name, TRAINED).spending_plan(few_channels(), USUAL).epsilon()
    assert 0.99 < spent <= 1.0


def test_a_shard_that_turns_every_vote_moves_them_by_what_was_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worst a unit can do to its teacher: from no vote to all of them."""
    pair = neighbours(METHODS["pate-gan"])
    sizes = {len(own) for own in _shards_of(pair.absent)}

    def votes(own: np.ndarray, beside: np.ndarray, asked: np.ndarray) -> np.ndarray:
        return np.full(len(asked), float(len(own) not in sizes))

    monkeypatch.setattr(pate_gan, "votes_of", votes)
    _expect_exactly_what_was_charged(pair, VOTES)


def test_a_shard_that_turns_every_slope_moves_them_by_what_was_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worst a unit can do to its critic: every slope turned round."""
    pair = neighbours(METHODS["gs-wgan"])
    number = pair.present.num_series

    def slopes(bench: gs_wgan.Bench, fake: Any, classes: Any) -> np.ndarray:
        found = np.zeros((3, *fake.shape))
        found[0, :, 0] = 1.0 if sum(len(shard["row"]) for shard in bench._shards) < number else -1.0
        return found

    monkeypatch.setattr(gs_wgan.Bench, "slopes", slopes)
    _expect_exactly_what_was_charged(pair, SLOPES)


def _shards_of(panel: Panel) -> list[np.ndarray]:
    return shards(PrivateSeries.of(panel, panel.num_units), 3)


def _expect_exactly_what_was_charged(pair: Neighbours, label: str) -> None:
    event = pair.method.spending_plan(pair.present.schema, LOUD).event(label)
    assert isinstance(event, Gaussian)
    assert reach_of(pair).mu(label) == pytest.approx(1 / event.noise_multiplier, rel=2e-3)
