"""Sums over units, clipped and exact: all that `Grant.release` adds noise to.

Every unit's vector is scaled to at most the bound and added up in whole multiples of a public step. Whatever a
statistic computes, adding or removing one unit moves the integers by at most bound / step: docs/claims/border.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from understudy.data import Panel
from understudy.data.table import Partition
from understudy.errors import InputError
from understudy.privacy.contributions import Cells, Contributions, Rows, require_known

WIDENING = 1 + 2.0**-20  # of the bound, for what float64 may lose in lengths of up to 2³⁰ numbers
_LEVELS = 32  # log₂ of the steps in a bound, at least; at most four times as many
_COARSE = 2.0**-16  # of the noise, which no step has to be finer than 2³² times
_SMALLEST, _LARGEST = 1e-100, 1e100
_FINEST = 2.0**-34
_LEAST = 1e-200  # factor, below which products of it lose digits


def _at_hand(panel: Panel) -> Contributions:
    raise InputError("A statistic of given vectors is asked for no others.")


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """A sum of one bounded vector per unit.

    Attributes:
        label: What the ledger charged.
        shape: Of the released array.
        bound: Euclidean length to which each unit's vector is clipped.
        contributions: Returns what a panel of whole units adds, from these units and public facts alone: one vector
            for each series, of which a unit adds the mean.
        step: Public lattice step, for votes that are whole; None chooses a fine one.
        tables: Cells of each table, where contributions have to be `Cells` with a ballot for each.
    """

    label: str
    shape: tuple[int, ...]
    bound: float
    contributions: Callable[[Panel], Contributions] = _at_hand
    step: float | None = None
    tables: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not _SMALLEST < self.bound < _LARGEST:
            raise InputError(f"{self.label}: a bound between 1e-100 and 1e100 is expected, got {self.bound}.")
        if self.step is not None and not self.bound * _FINEST <= self.step <= self.bound:
            raise InputError(f"{self.label}: a step of at most the bound and at least 2⁻³⁴ of it is expected.")


def lattice_step(bound: float, deviation: float) -> float:
    """Return an even power of two that fits 2³² to 2³⁴ times into the bound, or into 2⁻¹⁶ of larger noise."""
    exponent = math.floor(math.log2(max(bound, _COARSE * deviation))) - _LEVELS
    return 2.0 ** (exponent - exponent % 2)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Given:
    """Units whose vectors are at hand: `contributions` of the statistic are asked for nothing.

    Attributes:
        reach: Factor by which one protected unit's reach exceeds one of these vectors.
        unit: Whose each vector is, numbered from 0; None has one of each unit.
    """

    contributions: Contributions
    reach: float = 1.0
    unit: NDArray[np.int64] | None = None

    def total(self, statistic: Statistic, step: float) -> NDArray[np.int64]:
        """Return the clipped integer sum; private."""
        return clipped_sum(statistic, step, self.contributions, self.unit)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Listed:
    """Rows that are released one by one: the shape of the release tells how many units there are.

    Only a charge for neighbours that hold the same units, the relation "values", pays for it.

    Attributes:
        reach: Factor by which one protected unit's reach exceeds one of these rows.
    """

    rows: NDArray[np.float64]
    reach: float = 1.0

    def total(self, statistic: Statistic, step: float) -> NDArray[np.int64]:
        """Return the clipped rows in whole steps; private."""
        number = len(self.rows)
        return clipped_sum(statistic, step, Rows(self.rows, np.arange(number), number), None)


def partition_sum(
    statistic: Statistic, step: float, partition: Partition, *, view: Callable[[Panel], Panel] | None, by_series: bool
) -> NDArray[np.int64]:
    """Return the clipped integer sum over one partition.

    Args:
        view: What the method sees of a panel, each unit by itself; None sees all of it.
        by_series: Whether each series is clipped by itself, where events are protected.
    """
    total = np.zeros(statistic.shape, dtype=np.int64)
    for panel in partition.panels():
        seen = panel if view is None else view(panel)
        if not seen.num_series:
            continue
        own = np.arange(seen.num_series) if by_series else seen.unit
        total += clipped_sum(statistic, step, statistic.contributions(seen), own)
    return total


def clipped_sum(
    statistic: Statistic, step: float, contributions: Contributions, own: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """Return Σ over units of their vector, clipped to the bound, in whole steps.

    A unit's vector is the mean of those of its series; it is no longer than the mean of their lengths, by which it is
    clipped. `own` says whose each vector is; None has one of each unit.
    """
    require_known(contributions)
    if statistic.tables is not None and _tables(contributions) != statistic.tables:
        raise InputError(f"{statistic.label}: votes with a ballot for each table are expected.")
    lengths = contributions.norms()
    own = np.arange(len(lengths)) if own is None else own
    if len(lengths) != len(own):
        raise InputError(f"{statistic.label}: one vector per series is expected.")
    weights = (1.0 / np.bincount(own))[own]
    with np.errstate(over="ignore"):
        mean_lengths = np.bincount(own, (weights * lengths).astype(np.float64)).astype(np.float64)
    factors = weights * clip_factors(mean_lengths, statistic.bound)[own]
    total = contributions.weighted_sum(factors, step)
    if total.shape != statistic.shape:
        raise InputError(f"{statistic.label}: a sum of the shape {statistic.shape} is expected, got {total.shape}.")
    return total


def public_mean(statistic: Statistic, panel: Panel) -> NDArray[np.float64]:
    """Return the mean over the units of a panel that is not private of what is summed over private ones, without noise.

    **Privacy**: panels that are marked private are refused; nothing is charged for others.
    """
    if panel.private:
        raise InputError(f"{statistic.label}: public series are expected as a prior, got private ones.")
    step = lattice_step(statistic.bound, 0.0)
    total = clipped_sum(statistic, step, statistic.contributions(panel), panel.unit)
    return np.asarray(total * (step / max(1, panel.num_units)), dtype=np.float64)


def clip_factors(lengths: NDArray[np.float64], bound: float) -> NDArray[np.float64]:
    """Return min(1, bound / length) for each unit; 0 where the length is not finite."""
    factors = np.divide(bound, lengths, out=np.ones(len(lengths)), where=lengths > bound)
    return np.where(np.isfinite(lengths) & (factors > _LEAST), factors, 0.0)


def _tables(contributions: Contributions) -> tuple[int, ...] | None:
    return tuple(contributions.sizes.tolist()) if isinstance(contributions, Cells) else None
