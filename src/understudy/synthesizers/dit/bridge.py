"""What shown entries say about a hidden one: where the diffusion starts from, instead of knowing nothing.

Suppose that a series has a level of its own, movements that fade, and noise:

    x_t = level + movement_t + noise_t   with variances λ, κ, ω − κ   and   corr(movement_s, movement_t) = ρ^|s−t|

Then a hidden score, given the mean of what is shown and its nearest shown neighbours, is normal with a mean and a
variance that follow from (λ, ω, κ, ρ) alone. The same is true of the difference to the day before, where that is shown,
with (ω, κ, ρ) of its own; the two answers are weighed by their variances. The network is shown how far a score is from
the mean, in the deviation: untrained it draws from this picture, which beats straight lines and the day before, and it
learns what is different. With `NOTHING` for memory, or with everything hidden, this is the published diffusion.
"""

import torch
from torch import Tensor

ROWS = ("level", "own", "moves", "pace", "daily own", "daily moves", "daily pace")  # λ, ω, κ, ρ; ω, κ, ρ
NOTHING = (0.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0)  # N(0, 1) whatever is shown; a difference of two has variance 2
_LEAST_DEVIATION = 0.05


def bridge(values: Tensor, shown: Tensor, memory: Tensor, season: int) -> tuple[Tensor, Tensor, Tensor]:
    """Returns (mean, deviation, level) of entries [unit, step, column], given what is shown of their own column.

    Args:
        memory: [7, column] as `ROWS` says.
        season: Steps of a day; 0 where a window does not hold the day before.
    """
    level, own, moves, pace, *daily = memory
    middle, unsure = _level(values, shown, level, own, moves, pace)
    apart, variance, kept = _between(values - middle, shown, own, moves, pace)
    mean, variance = middle + apart, variance + unsure * (1 - kept).square()
    if season:
        mean, variance = _by_the_day_before(values, shown, daily, season, mean, variance)
    return mean, variance.clamp_min(_LEAST_DEVIATION**2).sqrt(), middle


def _level(
    values: Tensor, shown: Tensor, level: Tensor, own: Tensor, moves: Tensor, pace: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns the mean of what is shown, shrunk by how sure it is, and the variance of the level given it.

    Noise averages out; so do movements that fade fast. A slow one is known as far as the series is shown.
    """
    number, hidden = shown.sum(1, keepdim=True), 1 - shown.mean(1, keepdim=True)
    some = number.clamp_min(1)
    error = (own - moves) / some + moves * torch.minimum(hidden, 2 / ((1 - pace) * some))
    weight = torch.where(number > 0, level / (level + error).clamp_min(1e-6), 0.0)
    return weight * (values * shown).sum(1, keepdim=True) / some, level * (1 - weight)


def _between(values: Tensor, shown: Tensor, own: Tensor, moves: Tensor, pace: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns mean, variance and the sum of both weights, given the nearest shown entries before and after.

    Notation: they stand at distances a and c. k_l = κ ρ^a, k_r = κ ρ^c and k_lr = κ ρ^(a+c) are covariances, 0 where
    there is no such entry.
    """
    left, right, k_left, k_right = _neighbours(values, shown, moves, pace)
    k_both = k_left * k_right / moves.clamp_min(1e-9)
    scale = (own.square() - k_both.square()).clamp_min(1e-6)
    w_left, w_right = (k_left * own - k_right * k_both) / scale, (k_right * own - k_left * k_both) / scale
    return w_left * left + w_right * right, own - w_left * k_left - w_right * k_right, w_left + w_right


def _by_the_day_before(
    values: Tensor, shown: Tensor, daily: list[Tensor], season: int, mean: Tensor, variance: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns mean and variance given the day before too, where it is shown.

    What is new since the day before errs by n − n′ where the first answer errs by s + n: n is what no day repeats, n′
    the same of the day before, s what days repeat. So the errors have the covariance v₁/2, v₁ being the variance of
    the second, and the best weight of it is 1 − v₁/(2 v₀).
    """
    before, there = torch.zeros_like(values), torch.zeros_like(shown)
    before[:, season:], there[:, season:] = (values * shown)[:, :-season], shown[:, :-season]
    own, moves, pace = daily
    apart, second, _ = _between((values - before) * shown, shown * there, own, moves, pace)
    weight = there * (1 - second / (2 * variance)).clamp(0.0, 1.0)
    both = second * (1 - second / (4 * variance))
    return mean + weight * (before + apart - mean), torch.where(weight > 0, both, variance)


def _neighbours(values: Tensor, shown: Tensor, moves: Tensor, pace: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the nearest shown values before and after each entry, and their covariances with its movement."""
    num_steps = values.shape[1]
    step = torch.arange(num_steps, device=values.device)[None, :, None].expand(values.shape)
    before = torch.where(shown > 0, step, -1).cummax(1).values
    after = torch.where(shown > 0, step, num_steps).flip(1).cummin(1).values.flip(1)
    left, right = values.gather(1, before.clamp_min(0)), values.gather(1, after.clamp_max(num_steps - 1))
    k_left = torch.where(before >= 0, moves * pace ** (step - before), 0.0)
    k_right = torch.where(after < num_steps, moves * pace ** (after - step), 0.0)
    return left, right, k_left, k_right
