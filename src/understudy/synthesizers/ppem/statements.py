"""What is said about a hidden marginal: figures that a release holds, and the sentences made from them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.distance import cdist

from understudy.data import Channel
from understudy.data.channels import num_codes
from understudy.synthesizers.ppem.attributes import UNIFORM, Attribute, Partition
from understudy.synthesizers.ppem.effect_size import ERROR

if TYPE_CHECKING:
    from understudy.synthesizers.ppem.method import PPEM

FIGURES = "obfuscation"  # array of a release: share of x′ far from any pool row, then one flag per transformed column
NO_GUARANTEE = (
    "This is obfuscation of an aggregate, not protection of a person, and no part of epsilon. It does not hide what a "
    "reader can infer from the other columns, nor from how well they fit a value of x′."
)
_FREQUENT = 0.05  # share of x′ without support from which the sentence is a caution
_QUANTILES = np.linspace(0.02, 0.98, 97)
_SAME_SHAPE = 0.06  # mean distance of standardised quantiles up to which two shapes count as one
_MOVED = 0.1  # standard deviations from which a shape counts as moved
_SAME_SHARES = 0.05  # total variation distance up to which shares count as the same
_PROBED = 512
_UNSUPPORTED = 0.99  # quantile of distances among reference points beyond which a point has no support


def figures(method: "PPEM", partition: Partition, values: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return what the probes found, from released and reference values of the sensitive columns."""
    copies = transformed_copies(partition.columns, values, points) if method.has_generator else ()
    unsupported = share_without_support(partition.encoded(values), partition.encoded(points))
    return np.array([unsupported, *(column.name in copies for column in partition.columns)], dtype=np.float64)


def sentences(method: "PPEM") -> tuple[str, ...]:
    """Return the section of the certificate. It is the same whatever the data: what probes found is in the release."""
    released = "a distribution that was stated from public knowledge"
    if method.has_generator:
        released = "samples of a generator that was trained to differ from it"
    elif method.target == UNIFORM:
        released = "the uniform distribution over the declared bounds"
    checked = "No effect size was asked for and none was checked: the two distributions may be as good as equal."
    if method.effect is not None:
        checked = (
            f"Checked with differential privacy on held-out units: every set is at least {method.effect:g} away "
            f"(Wasserstein distance in shares of the range), with an error probability of {ERROR:g}. The check is "
            "among the charges."
        )
    return (
        f"Hidden: the distribution of {', '.join(method.sets)}. Released: {released}.",
        checked,
        f"What probes found, for transformed copies and values without support, is in the release (array '{FIGURES}').",
        NO_GUARANTEE,
    )


def findings(attributes: tuple[Attribute, ...], arrays: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """Return what the probes found, one sentence each; made from released figures alone."""
    unsupported, flags = float(arrays[FIGURES][0]), arrays[FIGURES][1:] > 0
    columns = [column.name for attribute in attributes for column in attribute.columns]
    copies = [name for name, flag in zip(columns, flags, strict=True) if flag]
    found = []
    if copies:
        found.append(
            f"Caution: {', '.join(copies)} came out as the real distribution moved, stretched, mirrored or renamed. "
            "A reader who guesses the map has the original."
        )
    share = f"{unsupported:.0%} of the released values of x′ lie where the conditional model saw almost no unit"
    caution = unsupported > _FREQUENT
    found.append(f"Caution: {share}; what was generated for them is a guess." if caution else f"{share}.")
    return tuple(found)


def transformed_copies(columns: tuple[Channel, ...], released: np.ndarray, real: np.ndarray) -> tuple[str, ...]:
    """Return names of columns whose released distribution is the real one behind a simple invertible map.

    Numbers: moved, stretched or mirrored. Categories: renamed. Such a copy passes every test of difference.
    """
    found = []
    for place, column in enumerate(columns):
        codes = num_codes(column)
        sides = released[:, place], real[:, place]
        if _affine_copy(*sides) if codes is None else _renamed(*sides, codes):
            found.append(column.name)
    return tuple(found)


def _affine_copy(released: np.ndarray, real: np.ndarray) -> bool:
    first, second = (np.quantile(values, _QUANTILES) for values in (released, real))
    spreads = first.std(), second.std()
    if not min(spreads) > 1e-9:
        return False
    moved = abs(first.mean() - second.mean()) / spreads[1] > _MOVED or abs(np.log(spreads[0] / spreads[1])) > _MOVED
    shapes = [(values - values.mean()) / values.std() for values in (first, second)]
    straight, mirrored = (float(np.abs(shapes[0] - other).mean()) for other in (shapes[1], -shapes[1][::-1]))
    return (moved and straight < _SAME_SHAPE) or (mirrored < _SAME_SHAPE < straight)


def _renamed(released: np.ndarray, real: np.ndarray, codes: int) -> bool:
    shares = [np.bincount(values.astype(int), minlength=codes) / len(values) for values in (released, real)]
    apart = np.abs(shares[0] - shares[1]).sum() / 2
    sorted_apart = np.abs(np.sort(shares[0]) - np.sort(shares[1])).sum() / 2
    return bool(apart > 2 * _SAME_SHARES and sorted_apart < _SAME_SHARES)


def share_without_support(released: np.ndarray, real: np.ndarray) -> float:
    """Return the share of released x′ [row, number] that lie farther from reference points than these do."""
    if len(real) < 2:
        return 1.0
    probed = min(_PROBED, len(real) // 2)
    pool, own = real[probed:], real[:probed]
    usual, found = (cdist(points, pool).min(axis=1) for points in (own, released[:_PROBED]))
    return float((found > max(np.quantile(usual, _UNSUPPORTED), 1e-9)).mean())
