"""Shards: a unit is in one, by itself, and moves nobody else."""

from typing import Any

import numpy as np
import pytest
from understudy_bench.baselines import gs_wgan, pate_gan
from understudy_bench.baselines.gs_wgan import GsWgan
from understudy_bench.baselines.pate_gan import PateGan
from understudy_bench.baselines.shards import shards, touched

from understudy.data import Panel, PrivacyUnit
from understudy.privacy.border import Statistic
from understudy.privacy.grant import Grant
from understudy.privacy.noise import NoiseSource
from understudy.privacy.private_series import Private, PrivateSeries
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.contract.checks import fit
from understudy.synthesizers.contract.panels import make_panel, plain_schema

NUMBER = 5
PANEL = make_panel(plain_schema(unit=PrivacyUnit(column="home", max_series=3)), 60)


def dealt(panel: Panel) -> list[bytes]:
    """What each shard holds."""
    private = PrivateSeries.of(panel, panel.num_units)
    return [panel.values[rows].tobytes() for rows in shards(private, NUMBER)]


def test_every_series_is_in_one_shard_and_a_units_series_together() -> None:
    found = shards(PrivateSeries.of(PANEL, 60), NUMBER)
    assert sorted(np.concatenate(found).tolist()) == list(range(PANEL.num_series))
    homes = [set(PANEL.unit[rows].tolist()) for rows in found]
    assert sum(map(len, homes)) == 60
    assert min(map(len, homes)) > 0


@pytest.mark.parametrize("unit", range(0, 60, 7))
def test_removing_a_unit_leaves_all_shards_but_one_bit_by_bit(unit: int) -> None:
    rest = PANEL.take_units([other for other in range(60) if other != unit])
    changed = [own != other for own, other in zip(dealt(PANEL), dealt(rest), strict=True)]
    assert sum(changed) == 1


def test_the_order_of_units_does_not_matter() -> None:
    assert dealt(PANEL) == dealt(PANEL.take_units(np.random.default_rng(0).permutation(60)))


def test_an_event_makes_its_owner_leave_one_shard_for_another_at_most() -> None:
    event = plain_schema(unit=PrivacyUnit(column="home", kind="event", event_steps=2))
    most = 0
    for series in range(20):
        values = np.array(PANEL.values)
        values[series, 2:4] = 0.0
        changed = [a != b for a, b in zip(dealt(PANEL), dealt(PANEL.with_values(values)), strict=True)]
        most = max(most, sum(changed))
    assert most == touched(event) == 2
    assert touched(PANEL.schema) == 1


def test_a_series_is_seen_by_one_teacher(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    genuine = pate_gan.votes_of

    def listening(own: np.ndarray, beside: np.ndarray, asked: np.ndarray) -> np.ndarray:
        seen.append(len(own))
        return genuine(own, beside, asked)

    monkeypatch.setattr(pate_gan, "votes_of", listening)
    fit(PateGan(teachers=4, rounds=1, questions=3, updates=1, width=8), PANEL)
    assert len(seen) == 4
    assert sum(seen) == PANEL.num_series


def test_a_series_is_seen_by_one_critic(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a critic learns from one unit hardly shows in slopes, so who sees whom is looked at itself."""
    seen: list[np.ndarray] = []
    genuine = gs_wgan.Bench.__init__

    def listening(bench: gs_wgan.Bench, *arguments: Any) -> None:
        genuine(bench, *arguments)
        seen.extend(shard["row"] for shard in bench._shards)

    monkeypatch.setattr(gs_wgan.Bench, "__init__", listening)
    quiet = NoiseSource.constant(0)  # noise in the scale could make two series look alike
    fit(GsWgan(critics=4, iterations=1, questions=3, updates=1, width=8), PANEL, quiet)
    rows = np.concatenate([shard[shard.any(axis=1)] for shard in seen])  # an empty shard holds a row of zeros
    assert len(seen) == 4
    assert len(rows) == PANEL.num_series
    assert len(np.unique(rows, axis=0)) == len(np.unique(rows.round(12), axis=0)) == PANEL.num_series


@pytest.mark.parametrize(
    ("method", "label"),
    [
        (PateGan(teachers=3, rounds=1, questions=4, updates=1, width=8), "votes"),
        (GsWgan(critics=3, iterations=1, questions=4, updates=1, width=8), "slopes"),
    ],
    ids=["pate-gan", "gs-wgan"],
)
def test_an_event_is_priced_by_the_shards_it_reaches(
    method: Synthesizer, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reach that noise is made for: twice that of an entity, which reaches one shard."""
    reaches: dict[str, float] = {}
    genuine = Grant.release

    def listening(grant: Grant, statistic: Statistic, private: Private) -> np.ndarray:
        reaches[statistic.label] = statistic.bound * private.reach
        return genuine(grant, statistic, private)

    monkeypatch.setattr(Grant, "release", listening)
    found = []
    for unit in (PrivacyUnit(column="home"), PrivacyUnit(column="home", kind="event", event_steps=1)):
        fit(method, make_panel(plain_schema(unit=unit)))
        found.append(reaches[label])
    assert found[1] == pytest.approx(2 * found[0])
