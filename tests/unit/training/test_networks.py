"""The running average of iterates."""

import torch

from understudy.training.networks import ExponentialMovingAverage


def test_it_forgets_the_start_and_smooths_what_follows() -> None:
    torch.manual_seed(0)
    average = ExponentialMovingAverage(torch.full((1000,), 100.0), decay=0.99)
    for _ in range(2000):
        average.update(torch.randn(1000) + 3)
    assert abs(float(average.values.mean()) - 3) < 0.05
    assert float(average.values.std()) < 0.2  # a single iterate has 1.0


def test_it_does_not_share_memory_with_the_parameters() -> None:
    values = torch.ones(3)
    average = ExponentialMovingAverage(values, decay=0.9)
    values.zero_()
    assert average.values.tolist() == [1, 1, 1]
