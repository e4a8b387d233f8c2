import numpy as np
import pytest

from understudy.errors import InputError
from understudy.privacy.noise import NoiseSource, PoissonSampler


def test_every_iteration_yields_a_batch_even_if_it_is_empty():
    batches = list(PoissonSampler(1e-9, 5).draw(10, NoiseSource.secure()))
    assert [len(batch) for batch in batches] == [0] * 5


def test_resuming_draws_only_what_is_left():
    assert len(list(PoissonSampler(0.5, 5).draw(10, NoiseSource.secure(), done=3))) == 2


def test_a_rate_of_one_takes_everybody():
    (batch,) = PoissonSampler(1.0, 1).draw(1000, NoiseSource.secure())
    assert np.array_equal(batch, np.arange(1000))


def test_every_batch_is_drawn_at_exactly_the_rate_of_the_sampler():
    """No statistics: the same coins, thrown at that rate."""
    coins = NoiseSource.seeded(7)
    for batch in PoissonSampler(0.3, 4).draw(1000, NoiseSource.seeded(7)):
        assert np.array_equal(batch, coins.poisson_selection(0.3, 1000))


@pytest.mark.parametrize(("rate", "iterations"), [(0.0, 1), (1.1, 1), (0.5, 0)])
def test_a_sampler_that_cannot_be_accounted_is_refused(rate, iterations):
    with pytest.raises(InputError):
        PoissonSampler(rate, iterations)
