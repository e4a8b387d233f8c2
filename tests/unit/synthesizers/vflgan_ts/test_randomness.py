"""Randomness of the mode `sound`: no public seed tells it, and one unit more changes no other unit's gradient.

Masks of dropout would shift with one row more, so that under a known stream everybody else's gradient would change,
too, and the sum by more than one clipped gradient. The mode has no dropout.
"""

import numpy as np
import pytest
import torch
from understudy_bench.audit.canaries import Neighbours, panel_scenes, reach_of

from tests.unit.synthesizers.vflgan_ts.toy import schema as toy_schema
from understudy.privacy.budget import Guarantee
from understudy.synthesizers.vflgan_ts.method import VFLGANTS
from understudy.synthesizers.vflgan_ts.protocol import RunConfig, seeded
from understudy.synthesizers.vflgan_ts.recipe import DROPOUT, Recipe

MUCH = Guarantee(200.0, 1e-7)  # so much that noise is found in closed form
POPULATION = 500


def first_numbers(mode: str) -> torch.Tensor:
    config = RunConfig(toy_schema(), Recipe(), mode, 0)
    with seeded(0, "first"):
        return torch.randn(4, generator=config.randomness())


def test_no_seed_tells_the_randomness_of_a_run_that_protects_somebody() -> None:
    assert not torch.equal(first_numbers("sound"), first_numbers("sound"))
    assert torch.equal(first_numbers("plain"), first_numbers("plain"))  # the control: reproduction needs the seed


def test_nothing_is_dropped_where_a_guarantee_is_claimed() -> None:
    found = {mode: RunConfig(toy_schema(), Recipe(), mode, 0).dropout for mode in ("sound", "local", "plain", "paper")}
    assert found == {"sound": 0.0, "local": 0.0, "plain": DROPOUT, "paper": DROPOUT}


def moved() -> float:
    """How far a unit among others moves one iteration's gradients, in clip norms, if all randomness is known."""
    schema = toy_schema(population=POPULATION)
    method = VFLGANTS(recipe=Recipe(iterations=1, batch=POPULATION, features=16, clipping_norm=0.1))
    absent, present = panel_scenes(schema, num_others=200, rng=np.random.default_rng(0))["ones, others ordinary"]
    present = present.take_units(np.roll(np.arange(present.num_units), 1))  # it stands before the others
    reach = reach_of(Neighbours(method=method, absent=absent, present=present, guarantee=MUCH))
    charged = method.plan(schema, MUCH).entries[-1].event
    gradients = [reach.mu(label) for label in reach.moved if label.startswith("gradients")]
    return float(np.linalg.norm(gradients)) * charged.noise_multiplier  # type: ignore[union-attr]


def test_one_unit_moves_the_sum_by_at_most_its_clip_whoever_knows_the_randomness() -> None:
    """A row before the others changes the order in which a float32 sum of two hundred rows is rounded: up to 1e-5."""
    assert 0.5 < moved() <= 1 + 1e-5


def test_known_masks_of_dropout_would_let_it_move_the_sum_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: why the mode has none."""
    monkeypatch.setattr(RunConfig, "dropout", property(lambda self: DROPOUT))
    assert moved() > 1.002
