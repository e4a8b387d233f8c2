"""Dropout in the mode `sound`: nobody may know which numbers of whose row were dropped.

With one row more all later numbers of a stream shift by some places, so under a known stream everybody else's
gradient changes too, and the sum by more than one clipped gradient.
"""

import numpy as np
import torch

from tests.subjects import small_schema, vertical
from understudy.audit.fits import Neighbours, reach_of
from understudy.audit.panels import panel_scenes
from understudy.privacy.budget import Guarantee
from understudy.synthesizers.vflgan_ts.agreement import Agreement, seeded
from understudy.synthesizers.vflgan_ts.recipe import Recipe

MUCH = Guarantee(200.0, 1e-7)  # so much that noise is found in closed form


def first_numbers(mode: str) -> torch.Tensor:
    agreement = Agreement(small_schema(parties=True), Recipe(), mode, 0, 0)
    with seeded(0, "first"):
        return torch.randn(4, generator=agreement.randomness())


def test_no_seed_tells_the_masks_of_a_run_that_protects_somebody() -> None:
    assert not torch.equal(first_numbers("sound"), first_numbers("sound"))
    assert torch.equal(first_numbers("plain"), first_numbers("plain"))  # the control: reproduction needs the seed


def moved(dropout: float) -> float:
    """How far a unit among others moves one iteration's gradients, in clip norms, if the masks are known."""
    method = vertical(dropout=dropout, iterations=1)
    schema = small_schema(parties=True)
    absent, present = panel_scenes(schema, num_others=200, rng=np.random.default_rng(0))["ones, others ordinary"]
    present = present.take_units(np.roll(np.arange(present.num_units), 1))  # it stands before the others
    reach = reach_of(Neighbours(method=method, absent=absent, present=present, guarantee=MUCH))
    charged = method.plan(schema, MUCH).entries[-1].event
    gradients = [reach.mu(label) for label in reach.moved if label.startswith("gradients")]
    return float(np.linalg.norm(gradients)) * charged.noise_multiplier  # type: ignore[union-attr]


def test_known_masks_would_let_one_unit_move_the_sum_beyond_its_clip() -> None:
    """Why the masks are secret: audits know the stream. Without dropout there is nothing to know.

    A row before the others changes the order in which a float32 sum of two hundred rows is rounded: up to 1e-5.
    """
    assert moved(dropout=0.0) <= 1 + 1e-5
    assert moved(dropout=0.3) > 1.01
