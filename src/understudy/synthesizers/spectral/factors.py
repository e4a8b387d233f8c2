"""Step two: channels that move as one are turned into their common movement and what sets them apart.

The high and the low of one day's price differ by a hundredth of what both move. Noise that is small beside the
movement is large beside the difference, unless the difference is a coordinate of its own; every later step measures a
coordinate relative to its own size. Channels that hardly correlate are left alone: turning them into each other would
only blur their shapes.
"""

import numpy as np

from understudy.statistics.moments import num_pairs, symmetric, triangle

_SLACK = 1.5
_TOGETHER = 0.85  # correlation from which channels count as moving together
_SMALLEST = 0.05  # variance below which a factor is left at its own size


def clip_radius(num_channels: int) -> float:
    """Returns the most one series may weigh in `moments`; independent channels weigh √channels, equal ones √pairs."""
    return float(_SLACK * np.sqrt(num_pairs(num_channels)))


def moments(scores: np.ndarray) -> np.ndarray:
    """Returns [series, pair]: mean products of channels over the steps."""
    products = np.einsum("sti,stj->sij", scores, scores, optimize=True) / scores.shape[1]
    return triangle(products)


def fit_rotation(noisy_mean: np.ndarray, num_channels: int) -> np.ndarray:
    """Returns the matrix [channel, factor] that turns scores into factors of about unit size."""
    covariance = symmetric(noisy_mean[None], num_channels)[0]
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.1))
    correlation = covariance / np.outer(deviation, deviation)
    rotation = np.eye(num_channels)
    for group in _groups(np.abs(correlation) > _TOGETHER):
        inside = np.ix_(group, group)
        values, vectors = np.linalg.eigh(correlation[inside])
        rotation[inside] = vectors / np.sqrt(np.maximum(values, _SMALLEST))
    return rotation


def _groups(together: np.ndarray) -> list[list[int]]:
    """Returns the connected groups of two or more channels."""
    left, groups = set(range(len(together))), []
    while left:
        group, frontier = [], [left.pop()]
        while frontier:
            place = frontier.pop()
            group.append(place)
            near = {other for other in left if together[place, other]}
            left -= near
            frontier.extend(near)
        if len(group) > 1:
            groups.append(sorted(group))
    return groups
