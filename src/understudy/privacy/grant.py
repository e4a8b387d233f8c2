"""The one border: private statistics become public here and nowhere else, under a charge already paid.

Each method of a `Grant` checks that its label was charged and is not executed more often than charged, writes the
execution down, and only then adds noise.
"""

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.data.table import Table
from understudy.errors import BudgetExceeded, InputError
from understudy.privacy.border import WIDENING, Given, Listed, Statistic, lattice_step
from understudy.privacy.events import (
    EXACT,
    ApproximateDP,
    DiscreteGaussian,
    Gaussian,
    MixtureOfGaussians,
    NonPrivate,
    PureDP,
    SubsampledGaussian,
    relation,
)
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.private_series import Private, PrivateSeries
from understudy.privacy.selections import AboveThreshold, domain_threshold, first_keys_by_noisy_count, quantile_scores

Charged = TypeVar("Charged")
_LARGEST_SCALE = 2.0**52  # of discrete noise


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What the ledger wrote down when it granted a run. Public facts only."""

    ledger: str
    ledger_kind: str
    run: int
    composition: str
    population: int | None
    reproduction: str | None
    secure_noise: bool
    head: str
    amendments: tuple[str, ...] = ()  # what was changed about the ledger after it was made, a sentence each


@final
class Grant:
    """Permission to execute one charged plan, each label at most as often as it was charged.

    **Privacy**: unit, relation and sensitivity are those of the statistics handed in; the event
    executed is the one charged under the label. Made by `Ledger.charge`, not by hand.
    """

    def __init__(
        self,
        *,
        plan: SpendingPlan,
        noise: NoiseSource,
        receipt: Receipt,
        record: Callable[[str, int], int],
        executed: dict[str, int] | None = None,
    ) -> None:
        self.plan = plan
        self.noise = noise
        self.receipt = receipt
        self._record = record
        self._executed = {entry.label: 0 for entry in plan.entries} | (executed or {})
        self._counted: set[str] = set()
        self._chosen: set[str] = set()
        self._lock = threading.Lock()

    @property
    def executed(self) -> dict[str, int]:
        """How often each label has been executed so far."""
        return dict(self._executed)

    @property
    def arithmetic(self) -> dict[str, str]:
        """How the answers to each label are computed: exact, or idealised where the proof has real numbers."""
        counted = self._counted - self._chosen
        exact = {entry.label for entry in self.plan.entries if isinstance(entry.event, EXACT)} | counted
        return {entry.label: "exact" if entry.label in exact else "idealised" for entry in self.plan.entries}

    def remaining(self, label: str) -> int:
        """How often `label` may still be executed."""
        return self.plan.executions(label) - self._executed[label]

    def release(self, statistic: Statistic, private: Private) -> NDArray[np.float64]:
        """Return the sum of one clipped vector per unit plus noise of the deviation noise_multiplier · bound · reach.

        Exact: discrete Gaussian noise on whole multiples of a public step.

        **Privacy**: every unit is clipped here, whatever the statistic computes; docs/claims/border.md.
        """
        return self._noised(statistic, private)

    def distances(
        self, statistic: Statistic, private: Private, expected: Sequence[NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Return noisy sums of absolute differences between tables of votes, end to end, and what is expected of each.

        **Privacy**: a table's distance moves by no more than a unit's votes in it are worth together, so all distances
        move by no more than `Cells` counts as the length of these votes, of which each table is a ballot.
        """
        ends = np.cumsum([len(table) for table in expected])[:-1]

        def apart(total: NDArray[np.int64], step: float) -> NDArray[np.int64]:
            tables = zip(np.split(total, ends), expected, strict=True)
            return np.array([np.abs(table - np.rint(other / step).astype(np.int64)).sum() for table, other in tables])

        tables = tuple(len(table) for table in expected)
        return self._noised(replace(statistic, tables=tables), private, apart)

    def _noised(
        self,
        statistic: Statistic,
        private: Private,
        measured: Callable[[NDArray[np.int64], float], NDArray[np.int64]] = lambda total, step: total,
    ) -> NDArray[np.float64]:
        event = self._sum_event(statistic.label)
        if type(private) not in (PrivateSeries, Given, Listed):  # another could leave the clip out of its total
            raise InputError("Private series of a kind that the border knows are expected: PrivateSeries.")
        if not 1 <= private.reach < math.inf:
            raise InputError("A release needs a finite reach of at least one.")
        if isinstance(private, Listed) != (relation([event]) == "values"):
            raise InputError(
                f"'{statistic.label}': rows released one by one tell how many units there are. For them, and for no "
                "other release, a charge with the relation 'values' is expected."
            )
        deviation = self.deviation(statistic.label, statistic.bound * private.reach)
        step = statistic.step or lattice_step(statistic.bound, deviation)
        if isinstance(event, DiscreteGaussian) and event.one_vote:
            if not statistic.bound == step * private.reach == step:
                raise InputError("A one-vote release needs a bound of one step: a unit adds one to one coordinate.")
        else:
            deviation *= WIDENING
        if not 0 < deviation / step < _LARGEST_SCALE:
            raise InputError("A release needs noise below 2⁵² steps.")
        if statistic.step is not None and not isinstance(event, DiscreteGaussian):
            raise InputError("A statistic with its own step needs a charge for discrete noise. Leave the step out.")
        self._execute(statistic.label)
        exact = measured(private.total(statistic, step), step)
        return (exact + self.noise.discrete_gaussian(deviation / step, exact.shape)).astype(np.float64) * step

    def deviation(self, label: str, reach: float) -> float:
        """Return the standard deviation of the noise on a release that one unit moves by `reach` at most; public."""
        return self._sum_event(label).noise_multiplier * reach

    def count(self, label: str, private: PrivateSeries | Table) -> int:
        """Return the number of units plus discrete Laplace noise of scale 1/epsilon."""
        event = self._event(label, PureDP)
        self._execute(label)
        self._counted.add(label)
        return private.num_units + int(self.noise.discrete_laplace(1 / event.epsilon, 1)[0])

    def quantile(self, label: str, values_one_per_unit: ArrayLike, candidates: ArrayLike, q: float) -> float:
        """A point of a public grid near the q-quantile, by the exponential mechanism.

        **Privacy**: epsilon-DP, because adding a unit moves no candidate's score by more than max(q, 1 − q).
        """
        event = self._event(label, PureDP)
        grid = np.unique(np.asarray(candidates, dtype=np.float64))
        scores = quantile_scores(values_one_per_unit, grid, q)
        self._execute(label)
        self._chosen.add(label)
        return float(grid[self._place(event.epsilon * scores / (2 * max(q, 1 - q)))])

    def choose(self, label: str, merits_one_row_per_unit: ArrayLike) -> int:
        """The place of a candidate with a high total merit, by the exponential mechanism.

        **Privacy**: each row is computed from one unit alone and cut off at 0 and 1 here. Adding a unit raises totals
        by 0 to 1, so no two move apart by more than 1, and weights exp(epsilon · total) make the choice epsilon-DP.
        """
        event = self._event(label, PureDP)
        merits = np.asarray(merits_one_row_per_unit, dtype=np.float64)
        if merits.ndim != 2 or merits.shape[1] < 2:
            raise InputError("A choice needs a matrix of merits: one row per unit, two or more candidates.")
        totals = np.clip(np.nan_to_num(merits, nan=0.5), 0.0, 1.0).sum(axis=0)
        self._execute(label)
        self._chosen.add(label)
        return self._place(event.epsilon * totals)

    def above_threshold(self, label: str, max_questions: int, mistake: float) -> AboveThreshold:
        """Return an AboveThreshold (sparse vector) oracle for up to `max_questions` queries.

        **Privacy**: epsilon-DP for all answers together, however many there are; the one execution is counted now.
        """
        event = self._event(label, PureDP)
        self._execute(label)
        return AboveThreshold(event.epsilon, self.noise, max_questions, mistake)

    def stable_domain(self, label: str, votes_one_per_unit: Sequence[str]) -> tuple[str, ...]:
        """Categories that enough units have, sorted; one vote per unit.

        **Privacy**: (epsilon, delta)-DP. A category of a single unit appears with probability at most delta.
        """
        event = self._event(label, ApproximateDP)
        threshold = domain_threshold(event.epsilon, event.delta)
        self._execute(label)
        return first_keys_by_noisy_count(votes_one_per_unit, 1 / event.epsilon, threshold, self.noise)

    def begin_block(self, label: str, iterations: int) -> int:
        """Durably counts `iterations` as executed before they run; returns how many had been executed.

        A process killed within the block has them counted, and resuming from an older checkpoint does not
        give them back: the noisy gradients may have been seen.
        """
        event = self.plan.event(label)
        if not isinstance(event, SubsampledGaussian | MixtureOfGaussians):
            raise InputError(f"'{label}' was not charged as iterations but as {type(event).__name__}.")
        if iterations < 1:
            raise InputError(f"A block needs at least one iteration, got {iterations}.")
        return self._execute(label, iterations)

    def without_privacy(self, label: str) -> None:
        """Counts the one execution of what no accountant covers; the certificate says *not private* and why."""
        self._event(label, NonPrivate)
        self._execute(label)

    def _place(self, exponents: NDArray[np.float64]) -> int:
        """A place drawn with probability proportional to exp(exponent)."""
        weights = np.cumsum(np.exp(exponents - exponents.max()))
        place = int(np.searchsorted(weights, self.noise.uniform(1)[0] * weights[-1], side="right"))
        return min(place, len(weights) - 1)

    def _event(self, label: str, kind: type[Charged]) -> Charged:
        event = self.plan.event(label)
        if not isinstance(event, kind):
            raise InputError(f"'{label}' was charged as {type(event).__name__}, not as {kind.__name__}.")
        return event

    def _sum_event(self, label: str) -> Gaussian | DiscreteGaussian:
        event = self.plan.event(label)
        return event if isinstance(event, DiscreteGaussian) else self._event(label, Gaussian)

    def _execute(self, label: str, number: int = 1) -> int:
        with self._lock:
            before = self._executed[label]
            if before + number > self.plan.executions(label):
                raise BudgetExceeded(
                    f"'{label}' was charged for {self.plan.executions(label)} executions and this would be more. "
                    "Charge a new plan.",
                    requested=before + number,
                    remaining=self.plan.executions(label) - before,
                    label=label,
                )
            self._record(label, number)
            self._executed[label] = before + number
            return before

    def __repr__(self) -> str:
        labels = ", ".join(entry.label for entry in self.plan.entries)
        return f"Grant(run={self.receipt.run}, ledger={self.receipt.ledger!r}, labels=[{labels}])"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("A Grant can't be copied or saved: its executions would be counted twice over.")
