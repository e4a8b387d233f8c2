"""The diffusion ends in pure noise and, with the true noise known, walks back to the data's distribution."""

import math

import pytest
import torch

from understudy.nn.diffusion import Diffusion

MEAN, SPREAD = 1.5, 0.4


@pytest.mark.parametrize("schedule", ["quadratic", "linear"])
def test_hardly_any_signal_is_left_at_the_end(schedule) -> None:
    assert Diffusion(schedule=schedule).signal()[-1] < 1e-5


def test_betas_are_those_of_the_paper_s_table() -> None:
    betas = Diffusion().betas()
    assert len(betas) == 400
    assert torch.allclose(betas[[0, -1]], torch.tensor([1e-4, 0.2], dtype=torch.float64), rtol=1e-5)


def test_noised_series_keep_the_stated_share_of_signal() -> None:
    diffusion, generator = Diffusion(steps=50), torch.Generator().manual_seed(0)
    x, noise = torch.randn(50, 3, 2, generator=generator), torch.randn(50, 3, 2, generator=generator)
    time = torch.arange(50)
    left = diffusion.signal().float()[:, None, None]
    assert torch.allclose(diffusion.noised(x, noise, time), left.sqrt() * x + (1 - left).sqrt() * noise)


def _true_noise(diffusion: Diffusion):
    """Returns E[noise | x_t] for data N(MEAN, SPREAD²), which is known in closed form."""

    def predict(x, time):
        left = diffusion.signal()[time].to(x)[:, None]
        variance = left * SPREAD**2 + 1 - left
        return (1 - left).sqrt() * (x - left.sqrt() * MEAN) / variance

    return predict


@pytest.mark.parametrize("walk", ["ancestral", "implicit"])
def test_the_walk_back_gives_the_data_s_distribution(walk) -> None:
    """20,000 draws: standard errors 0.0028 and 0.002; 0.03 is beyond ten of these. A wrong β would be off by 0.1."""
    diffusion, generator = Diffusion(steps=200), torch.Generator().manual_seed(1)
    start = torch.randn(20_000, 1, generator=generator)
    if walk == "ancestral":
        drawn = diffusion.ancestral(_true_noise(diffusion), start, generator)
    else:
        drawn = diffusion.implicit(_true_noise(diffusion), start, 100)
    assert math.isclose(float(drawn.mean()), MEAN, abs_tol=0.03)
    assert math.isclose(float(drawn.std()), SPREAD, abs_tol=0.03)


def test_a_predictor_that_sees_nothing_does_not_find_the_data() -> None:
    """Negative control of the test above."""
    drawn = Diffusion(steps=200).implicit(lambda x, time: torch.zeros_like(x), torch.randn(1_000, 1), 100)
    assert abs(float(drawn.std()) - SPREAD) > 1


def test_the_same_generator_gives_the_same_walk() -> None:
    diffusion, start = Diffusion(steps=20), torch.randn(5, 1)
    walks = [diffusion.ancestral(_true_noise(diffusion), start, torch.Generator().manual_seed(3)) for _ in range(2)]
    assert torch.equal(*walks)


@pytest.mark.parametrize("walk", ["ancestral", "implicit"])
def test_a_limit_keeps_draws_inside_whatever_is_predicted(walk) -> None:
    """A predictor that sees no noise: without a limit (the control) draws leave by far."""
    diffusion, start = Diffusion(steps=100), torch.randn(500, 1, generator=torch.Generator().manual_seed(1))

    def drawn(limit: float) -> torch.Tensor:
        if walk == "implicit":
            return diffusion.implicit(lambda x, time: torch.zeros_like(x), start, 50, limit)
        generator = torch.Generator().manual_seed(3)
        return diffusion.ancestral(lambda x, time: torch.zeros_like(x), start, generator, limit)

    assert drawn(4.0).abs().max() <= 4.0 + 1e-4
    assert drawn(math.inf).abs().max() > 40


def test_a_limit_beyond_the_data_changes_nothing_that_matters() -> None:
    diffusion, start = Diffusion(steps=100), torch.randn(2000, 1, generator=torch.Generator().manual_seed(1))
    walks = [diffusion.implicit(_true_noise(diffusion), start, 100, limit) for limit in (math.inf, 100.0)]
    assert torch.allclose(*walks, atol=1e-2)
