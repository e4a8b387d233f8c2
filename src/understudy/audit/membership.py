"""Are the series of a run nearer to the release than other real series are? Two attacks without shadows.

They compare members of the run with series that it never saw. Both are descriptions of one release: areas with
intervals, and no bound on epsilon follows from them.
"""

from collections.abc import Mapping

import numpy as np

from understudy.audit.intervals import Interval, area_under_curve
from understudy.audit.records import Vectors, distances
from understudy.errors import InputError

_NEIGHBOURS = 5
_FEWEST = 20


def membership(
    members: Vectors, others: Vectors, synthetic: Vectors, confidence: float = 0.95
) -> Mapping[str, Interval]:
    """Returns areas under the curve: 0.5 is what guessing gets.

    `closest record`: the distance to the nearest synthetic series. `density ratio`: that distance, compared with the
    distance to other real series, in the manner of DOMIAS (van Breugel et al. 2023, arXiv:2302.12580): a series can
    be near because it is ordinary. Half of the others serve as that reference.
    """
    if min(len(members), len(others)) < _FEWEST:
        raise InputError(f"Expected at least {_FEWEST} members and as many others, got fewer.")
    reference, controls = others[::2], others[1::2]
    near = [-distances(rows, synthetic)[:, 0] for rows in (controls, members)]
    ratio = [_density_ratio(rows, synthetic, reference) for rows in (controls, members)]
    return {
        "closest record": area_under_curve(near[0], near[1], confidence),
        "density ratio": area_under_curve(ratio[0], ratio[1], confidence),
    }


def _density_ratio(rows: Vectors, synthetic: Vectors, reference: Vectors) -> np.ndarray:
    """Returns how much nearer the nearest synthetic series is than the fifth real one, as a logarithm."""
    near, usual = distances(rows, synthetic)[:, 0], distances(rows, reference, _NEIGHBOURS)[:, -1]
    return np.log(np.maximum(usual, 1e-9)) - np.log(np.maximum(near, 1e-9))
