"""What shown entries say about a hidden one: the normal distribution that the diffusion starts from.

Suppose that a series has a level of its own, movements that fade, and noise:

    x_t = level + movement_t + noise_t   with variances λ, κ, ω − κ   and   corr(movement_s, movement_t) = ρ^|s−t|

Then a hidden score, given the mean of what is shown and its nearest shown neighbours, is normal with a mean and a
variance that follow from (λ, ω, κ, ρ) alone (simple kriging); so is the difference to the day before, where that is
shown, with (ω, κ, ρ) of its own. The network is shown how far a score is from the mean, in standard deviations. With
`NO_AUTOCOVARIANCE`, or with everything hidden, this is the published diffusion.

The autocovariances are released; where noise is large, they are shrunk towards those of typical series.
"""

import numpy as np
import torch
from torch import Tensor

from understudy.privacy.border import Statistic
from understudy.privacy.contributions import Rows, shortened
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries

ROWS = ("level", "own", "moves", "pace", "daily own", "daily moves", "daily pace")  # λ, ω, κ, ρ; ω, κ, ρ
NO_AUTOCOVARIANCE = (0.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0)  # N(0, 1) whatever is shown; a difference of two has variance 2
_LEAST_DEVIATION = 0.05
LABEL, SHARE = "autocovariance", 0.2  # of mu²
_LEAST = 0.02  # the least variance believed
_PACES = 1 - np.geomspace(0.8, 0.005, 60)[:, None]
_EXPECTED = np.array([1.1, 1.0, 0.65, 1.2, 1.0, 0.6])[:, None]  # of `products`, where nothing is known
_SURE = 0.3  # standard deviation of that


def interpolate(values: Tensor, shown: Tensor, autocovariance: Tensor, season: int) -> tuple[Tensor, Tensor, Tensor]:
    """Returns (mean, deviation, level) of entries [unit, step, column], given what is shown of their own column.

    Args:
        autocovariance: [7, column] as `ROWS` says.
        season: Steps of a day; 0 where a window does not hold the day before.
    """
    level, own, moves, pace, *daily = autocovariance
    middle, unsure = _level(values, shown, level, own, moves, pace)
    apart, variance, kept = _between(values - middle, shown, own, moves, pace)
    mean, variance = middle + apart, variance + unsure * (1 - kept).square()
    if season:
        mean, variance = _by_the_day_before(values, shown, daily, season, mean, variance)
    return mean, variance.clamp_min(_LEAST_DEVIATION**2).sqrt(), middle


def _level(
    values: Tensor, shown: Tensor, level: Tensor, own: Tensor, moves: Tensor, pace: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns the mean of what is shown, shrunk by how sure it is, and the variance of the level given it."""
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

    The second answer errs by n − n′ where the first errs by s + n: n is what no day repeats, n′ the same of the day
    before, s what days repeat. So the best weight of the second, of variance v₁, is 1 − v₁/(2 v₀).
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


def products(scores: np.ndarray, known: np.ndarray, season: int) -> np.ndarray:
    """Returns [series, 1 + 6 · column]: a one, then mean products, shortened to a length of √(1 + 6 · column).

    Around the series' mean: of scores with themselves, with the next, and with one further on; of differences to the
    day before: the same three.
    """
    x = np.where(known, scores, 0.0).astype(np.float64)
    parts = _around(np.where(known, x - _mean(x, known)[:, None], 0.0), known)
    if season:
        both = known[:, season:] & known[:, :-season]
        parts += _around(np.where(both, x[:, season:] - x[:, :-season], 0.0), both)
    else:
        parts += [np.zeros(parts[0].shape)] * 3
    found = np.concatenate([np.ones((len(x), 1)), *parts], axis=1)
    return shortened(found, float(np.sqrt(found.shape[1])))


def _around(x: np.ndarray, known: np.ndarray) -> list[np.ndarray]:
    return [_mean(x**2, known)] + [
        _mean(x[:, lag:] * x[:, :-lag], known[:, lag:] & known[:, :-lag]) for lag in (1, far_lag(x.shape[1]))
    ]


def far_lag(num_steps: int) -> int:
    """Returns how far apart scores are by which the pace is told: about as far as half a gap."""
    return max(2, num_steps // 16)


def _mean(values: np.ndarray, counted: np.ndarray) -> np.ndarray:
    return np.asarray(np.where(counted, values, 0.0).sum(axis=1) / np.maximum(counted.sum(axis=1), 1))


def autocovariance_of(
    totals: np.ndarray, variances: np.ndarray, num_steps: int, season: int, noise: float = 0.0
) -> np.ndarray:
    """Returns the autocovariance [7, column] from totals of `products` and `variances` of all scores."""
    count = max(float(totals[0]), noise, 1e-9)
    found = totals[1:].reshape(6, -1) / count
    found = _EXPECTED + (found - _EXPECTED) / (1 + (noise / count / _SURE) ** 2)  # the mean given a normal prior
    own = _movement(found[:3], far_lag(num_steps))
    daily = (
        _movement(found[3:], far_lag(num_steps - season))
        if season
        else [np.full(len(own[0]), x) for x in NO_AUTOCOVARIANCE[4:]]
    )
    return np.stack([np.maximum(variances - own[0], _LEAST), *own, *daily])


def _movement(found: np.ndarray, lag: int) -> list[np.ndarray]:
    """Returns (ω, κ, ρ), κ ≤ ω, whose ω, κ ρ and κ ρ^lag are nearest to a variance and two covariances [3, column]."""
    own, near, far = np.maximum(found[0], _LEAST), found[1], found[2]
    first, second = _PACES, _PACES**lag  # [pace, 1]
    told, weight = first * near + second * far, first**2 + second**2
    free = np.maximum(told / weight, 0.0)
    moves = np.where(free <= own, free, np.maximum((own + told) / (1 + weight), 0.0))  # beyond, ω = κ
    whole = np.maximum(own, moves)
    misfit = (whole - own) ** 2 + (moves * first - near) ** 2 + (moves * second - far) ** 2
    best = misfit.argmin(axis=0)
    place = np.arange(len(own))
    return [whole[best, place], moves[best, place], _PACES[best, 0]]


def release_autocovariance(
    private: PrivateSeries, examples: dict[str, np.ndarray], variances: np.ndarray, season: int, grant: Grant
) -> np.ndarray:
    """Releases the autocovariances: a sum of one vector per series, clipped to the root of its number of entries."""
    own = products(examples["x"], examples["known"], season)
    bound = float(np.sqrt(own.shape[1]))
    statistic = Statistic(label=LABEL, shape=own.shape[1:], bound=bound)
    noisy = grant.release(statistic, private.given(Rows(own)))
    noise = grant.deviation(LABEL, bound * private.reach)
    return autocovariance_of(noisy, variances, examples["x"].shape[1], season, noise)
