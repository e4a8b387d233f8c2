"""What shown entries say about a hidden one: where the diffusion starts from, instead of knowing nothing.

Scores of a column are N(0, 1). Suppose that a series has a level of its own, movements that fade, and noise:

    x_t = level + movement_t + noise_t   with variances λ, κ, 1 − λ − κ   and   corr(movement_s, movement_t) = ρ^|s−t|

Then a hidden score, given the mean of what is shown and its nearest shown neighbours, is normal with a mean and a
variance that follow from (λ, κ, ρ) alone. The network is shown how far a score is from that mean, in that deviation:
untrained it draws from this picture, and it learns what is different. With zeros for (λ, κ, ρ), or with everything
hidden, this is the published diffusion.
"""

import numpy as np
import torch
from torch import Tensor

from understudy.privacy.grant import Grant
from understudy.privacy.mechanisms import Bounded
from understudy.synthesizers.base import PrivateSeries

LABEL, SHARE = "memory", 0.03  # of mu²
_MOST, _STRONGEST, _LEAST = 2.0, 0.98, 0.02  # what a series adds at most; the largest and the least share believed
_LEAST_DEVIATION = 0.1


def bridge(values: Tensor, shown: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
    """Returns mean and deviation [unit, step, column] of entries, given what is shown of their own series and column.

    Notation: l and r are the nearest shown entries before and after, at distances a and c; V = 1 − λ. k_l = κ ρ^a,
    k_r = κ ρ^c and k_lr = κ ρ^(a+c) are covariances, 0 where there is no such entry. The level is the mean of what is
    shown, shrunk by how sure it is.
    """
    level, smooth, pace = memory
    own = 1 - level
    left, right, k_left, k_right = _neighbours(values, shown, smooth, pace)
    k_both = k_left * k_right / smooth.clamp_min(1e-9)
    scale = (own.square() - k_both.square()).clamp_min(1e-6)
    w_left, w_right = (k_left * own - k_right * k_both) / scale, (k_right * own - k_left * k_both) / scale
    number = shown.sum(1, keepdim=True)
    sure = number / (own + 2 * smooth * pace / (1 - pace)).clamp_min(1e-6)  # 1 / variance of the mean of what moves
    weight = level * sure / (1 + level * sure)
    middle = weight * (values * shown).sum(1, keepdim=True) / number.clamp_min(1)
    mean = middle + w_left * (left - middle) + w_right * (right - middle)
    variance = own - w_left * k_left - w_right * k_right + level * (1 - weight) * (1 - w_left - w_right).square()
    return mean, variance.clamp_min(_LEAST_DEVIATION**2).sqrt()


def _neighbours(values: Tensor, shown: Tensor, smooth: Tensor, pace: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the nearest shown values before and after each entry, and their covariances with its movement."""
    num_steps = values.shape[1]
    step = torch.arange(num_steps, device=values.device)[None, :, None].expand(values.shape)
    before = torch.where(shown > 0, step, -1).cummax(1).values
    after = torch.where(shown > 0, step, num_steps).flip(1).cummin(1).values.flip(1)
    left, right = values.gather(1, before.clamp_min(0)), values.gather(1, after.clamp_max(num_steps - 1))
    k_left = torch.where(before >= 0, smooth * pace ** (step - before), 0.0)
    k_right = torch.where(after < num_steps, smooth * pace ** (after - step), 0.0)
    return left, right, k_left, k_right


def products(scores: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Returns [series, 4 · column], at most 2 in size: mean products of scores that mean something about each other.

    Of neighbours, of scores two steps apart, of the means of both halves, and of scores with themselves.
    """
    x, half = np.where(known, scores, 0.0).astype(np.float64), scores.shape[1] // 2
    parts = []
    for lag in (1, 2):
        both = known[:, lag:] & known[:, :-lag]
        parts.append(_mean(x[:, lag:] * x[:, :-lag], both))
    parts.append(_mean(x[:, :half], known[:, :half]) * _mean(x[:, half:], known[:, half:]))
    parts.append(_mean(x**2, known))
    return np.clip(np.concatenate(parts, axis=1), -_MOST, _MOST)


def _mean(values: np.ndarray, counted: np.ndarray) -> np.ndarray:
    return np.asarray(np.where(counted, values, 0.0).sum(axis=1) / np.maximum(counted.sum(axis=1), 1))


def shares_of(totals: np.ndarray) -> np.ndarray:
    """Returns (λ, κ, ρ) [3, column] from (noisy) totals of `products`; zeros where they say nothing."""
    next_one, next_but_one, halves, square = np.split(totals, 4)
    whole = np.where(square > 0, square, np.inf)
    level = np.clip(halves / whole, 0.0, _STRONGEST)
    near, far = next_one / whole - level, next_but_one / whole - level
    moves = near > _LEAST
    pace = np.clip(np.maximum(far / np.where(moves, near, 1.0), near / (1 - level)), 0.0, _STRONGEST)
    smooth = np.clip(near / np.maximum(pace, 1e-9), 0.0, 1 - level)
    return np.stack([level, np.where(moves, smooth, 0.0), np.where(moves, pace, 0.0)])


def buy(private: PrivateSeries, examples: dict[str, np.ndarray], grant: Grant) -> np.ndarray:
    """Returns a noisy (λ, κ, ρ) [3, column].

    Privacy: a sum over series of vectors with 4 · columns entries of at most 2, which a unit's series share: a unit
    moves it by at most 2 √(4 · columns).
    """
    own = products(examples["x"], examples["known"])
    bound = _MOST * np.sqrt(own.shape[1]) * private.influence
    return shares_of(grant.gaussian(LABEL, Bounded(private.weights @ own, float(bound))))
