"""Public facts that a schema's author does not know, bought one purchase at a time.

A purchase checks what it can without the table, names its price, reads what its answer needs (private; nothing is
computed across units), and answers under a grant with a schema in which the fact is declared. Every unit enters with
one value of its own. What constraints say is public and corrects an answer for free.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from understudy.data import Population, Schema
from understudy.data.channels import LARGEST, Categorical, Continuous, Integer
from understudy.data.constraints import NonNegative, ZeroWhen
from understudy.data.draft import Interval, private_column, reading_schema, still_open, with_bounds, with_fields
from understudy.data.io.read import read_first_categories
from understudy.data.io.stores import is_array_file
from understudy.data.panel import Panel
from understudy.data.table import Table, table_of
from understudy.errors import DataError, InputError, SchemaError
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import ApproximateDP, PureDP
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.privacy.selections import domain_threshold

_ROUNDING = 0.99  # share of a run's delta that a domain spends: accountants need room for rounding
_SURE = 0.95


def round_numbers(low: float, high: float, *, whole: bool = False) -> NDArray[np.float64]:
    """Return about a thousand round numbers from at most `low` to at least `high`: public candidates for a bound.

    >>> round_numbers(0.001, 49.99)[[0, 1, -1]].tolist()
    [0.0, 0.05, 50.0]
    """
    rough = (high - low) / 1000
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(times * power for times in (1, 2, 5, 10) if times * power >= rough * (1 - 1e-9))
    step = max(1.0, step) if whole else step
    places = max(0, -math.floor(math.log10(step) + 1e-6))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return np.array([round(number * step, places) for number in range(first, last + 1)])


def one_per_unit(panel: Panel, column: str, which: Literal["min", "max"]) -> NDArray[np.float64]:
    """Return each unit's own minimum or maximum of a channel or static column; NaN if it has no value.

    **Privacy**: the result is private, one number per unit, and looks at no other unit.
    """
    channels = [channel.name for channel in panel.schema.channels]
    if column in channels:
        values = panel.values[:, :, channels.index(column)]
    else:
        values = panel.static[:, [[other.name for other in panel.schema.static].index(column)]]
    if panel.num_series == 0:
        return np.empty(0)
    starts = np.flatnonzero(np.diff(panel.unit, prepend=-1))
    furthest = {"min": np.fmin, "max": np.fmax}[which]
    return np.asarray(furthest.reduceat(furthest.reduce(values, axis=1), starts), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Bought:
    """A schema with the fact declared, and the fact itself. Public: it went through a grant."""

    schema: Schema
    facts: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class BuyBounds:
    """Bounds of numeric columns, on a grid of round numbers between two public ones. Columns share epsilon.

    **Privacy**: two quantiles for each column, of each unit's minimum and of each unit's maximum.

    Attributes:
        coverage: Share of units whose smallest value lies above low, and whose largest lies below high.
    """

    columns: tuple[str, ...]
    low: float
    high: float
    coverage: float = 0.99

    @property
    def label(self) -> str:
        return f"bounds of {', '.join(self.columns)}"

    def check(self, schema: Schema, guarantee: Guarantee) -> None:
        """Refuses columns without bounds, and numbers that can't be the ends of a grid."""
        _require_entity(schema)
        for name in self.columns:
            if not isinstance(private_column(schema, name), Continuous | Integer):
                raise InputError(f"column: '{name}' has no bounds to buy; continuous and integer columns have.")
        if len(set(self.columns)) != len(self.columns):
            raise InputError("column: each column once is expected.")
        if not -LARGEST <= self.low < self.high <= LARGEST:
            raise InputError("between: two finite numbers are expected, the smaller one first.")
        if not 0.5 < self.coverage < 1:
            raise InputError(f"coverage: a share between 0.5 and 1 is expected, got {self.coverage:g}.")
        with_bounds(schema, self._widest(schema))

    def plan(self, guarantee: Guarantee) -> SpendingPlan:
        """Two quantiles for each column, within the guarantee however coarsely the accountant rounds."""
        share = guarantee.epsilon / len(self.columns)
        for _ in range(200):
            entries = tuple(PlanEntry(f"bounds of {name}", PureDP(share / 2, count=2)) for name in self.columns)
            plan = SpendingPlan(entries, guarantee)
            if plan.epsilon() <= guarantee.epsilon:
                return plan
            share *= 0.999 * guarantee.epsilon / plan.epsilon()
        raise InputError(f"epsilon: {guarantee.epsilon:g} is too little for these columns. Buy fewer at a time.")

    def read(self, source: Any, schema: Schema) -> Table:
        return _read(source, schema, self._widest(schema))

    def answer(self, grant: Grant, private: Table, schema: Schema) -> Bought:
        """Returns the bounds; the ends of the grid where bounds would contradict the schema's constraints."""
        bought = {}
        for name in self.columns:
            bought[name] = _agreeing(schema, name, *self.bounds_of(name, self._grid(schema, name), grant, private))
        try:
            made = with_bounds(schema, bought)
        except SchemaError:  # what the constraints say about several columns does not fit these bounds
            made = with_bounds(schema, self._widest(schema))
        columns = [private_column(made, name) for name in self.columns]
        return Bought(schema=made, facts={c.name: {"low": c.bounds[0], "high": c.bounds[1]} for c in columns})

    def bounds_of(self, column: str, grid: NDArray[np.float64], grant: Grant, table: Table) -> Interval:
        """Return (low, high) with low below high; the grid's ends if the two noisy quantiles meet."""

        def bought(which: Literal["min", "max"], share: float) -> float:
            own = [one_per_unit(panel, column, which) for panel in table.panels()]
            return grant.quantile(f"bounds of {column}", np.concatenate([np.zeros(0), *own]), grid, share)

        low, high = bought("min", 1 - self.coverage), bought("max", self.coverage)
        return (low, high) if low < high else (float(grid[0]), float(grid[-1]))

    def blurred_share(self, schema: Schema, guarantee: Guarantee) -> float | None:
        """Returns by how much of the population a bound may miss its rank; from public facts, free.

        Above 1 − coverage the mechanism can't tell the last units from the empty part of the grid beyond them.
        """
        if schema.population.size is None:
            return None
        points = max(len(self._grid(schema, name)) for name in self.columns)
        epsilon = guarantee.epsilon / (2 * len(self.columns))
        return 2 * self.coverage / epsilon * math.log(points / (1 - _SURE)) / schema.population.size

    def _grid(self, schema: Schema, name: str) -> NDArray[np.float64]:
        return round_numbers(self.low, self.high, whole=isinstance(private_column(schema, name), Integer))

    def _widest(self, schema: Schema) -> dict[str, Interval]:
        grids = {name: self._grid(schema, name) for name in self.columns}
        return {name: (float(grid[0]), float(grid[-1])) for name, grid in grids.items()}


@dataclass(frozen=True, kw_only=True)
class BuyCategories:
    """The categories of a column that enough units hold.

    **Privacy**: one vote per unit, for the first category it holds.
    """

    column: str

    @property
    def label(self) -> str:
        return f"categories of {self.column}"

    def check(self, schema: Schema, guarantee: Guarantee) -> None:
        """Refuses another kind of column, and a price at which no category could be found."""
        _require_entity(schema)
        column = private_column(schema, self.column)
        if not isinstance(column, Categorical):
            raise InputError(f"column: '{self.column}' has no categories to buy; categorical columns have.")
        if column.categories:
            raise InputError(f"column: the categories of '{self.column}' are declared; nothing is to be bought.")
        if schema.budget is not None and schema.budget.composition != "basic":
            raise InputError("A list of categories needs delta of its own, so a ledger with composition = 'basic'.")
        size, needed = schema.population.size, self.threshold(guarantee)
        if size is not None and needed >= size:
            raise InputError(
                f"epsilon: {guarantee.epsilon:g} finds only categories that more than {needed} units hold, and the "
                f"population is {size}. Nothing was charged. Ask for more, or declare the categories."
            )

    def plan(self, guarantee: Guarantee) -> SpendingPlan:
        event = ApproximateDP(guarantee.epsilon, guarantee.delta * _ROUNDING)
        return SpendingPlan((PlanEntry(self.label, event),), guarantee)

    def read(self, source: Any, schema: Schema) -> Any:
        votes, whole = read_first_categories(source, schema, self.column)
        if whole and private_column(schema, self.column).dtype != "string":
            raise DataError(
                f"Column '{self.column}' stores whole numbers, and the schema declares text. Leave its dtype out.",
                column=self.column,
            )
        return votes, whole

    def answer(self, grant: Grant, private: Any, schema: Schema) -> Bought:
        """Returns the categories found; a column of which none was found stays open."""
        votes, whole = private
        found: tuple[str | int, ...] = grant.stable_domain(self.label, votes)
        if whole:
            found = tuple(sorted(int(category) for category in found))
        made = with_fields(schema, {self.column: {"categories": found}})
        return Bought(schema=made, facts={self.column: list(found)})

    def threshold(self, guarantee: Guarantee) -> int:
        """Returns how many units have to hold a category, give or take the noise; from public facts, free."""
        return domain_threshold(guarantee.epsilon, guarantee.delta * _ROUNDING)


@dataclass(frozen=True, kw_only=True)
class BuyPopulation:
    """How many units there are.

    **Privacy**: one unit moves the count by one.
    """

    label = "population"

    def check(self, schema: Schema, guarantee: Guarantee) -> None:
        """Refuses to count a declared population: the ledger's delta may have been derived from it."""
        _require_entity(schema)
        if schema.population.size is not None:
            raise InputError("The schema declares its population; nothing is to be bought.")
        reading_schema(schema, {})

    def plan(self, guarantee: Guarantee) -> SpendingPlan:
        return SpendingPlan((PlanEntry(self.label, PureDP(guarantee.epsilon)),), guarantee)

    def read(self, source: Any, schema: Schema) -> Table:
        return _read(source, schema, {})

    def answer(self, grant: Grant, private: Table, schema: Schema) -> Bought:
        size = max(1, grant.count(self.label, private))
        return Bought(schema=replace(schema, population=Population(size)), facts={"population": size})


Purchase = BuyBounds | BuyCategories | BuyPopulation


def _require_entity(schema: Schema) -> None:
    """One value per unit is worth its price only where a neighbour lacks a whole unit."""
    if schema.unit.kind != "entity":
        raise InputError(
            f"Facts are bought for unit.kind = 'entity', and the schema says '{schema.unit.kind}'. Declare them from "
            "public knowledge."
        )


def _agreeing(schema: Schema, name: str, low: float, high: float) -> Interval:
    """What the schema says about zero holds, whatever was bought."""
    about = [rule for rule in schema.constraints if isinstance(rule, NonNegative | ZeroWhen) and rule.channel == name]
    if any(isinstance(rule, ZeroWhen) for rule in about):
        low, high = min(low, 0.0), max(high, 0.0)
    if any(isinstance(rule, NonNegative) for rule in about) and high > 0:
        low = max(low, 0.0)
    return low, high


def _read(source: Any, schema: Schema, bounds: Mapping[str, Interval]) -> Table:
    reading = reading_schema(schema, bounds)
    if is_array_file(source) and set(still_open(schema)) - set(bounds):
        raise InputError(
            "An array holds its columns by position, so none can be left out: declare the other open bounds first, "
            "buy them in the same run, or bring a table."
        )
    return table_of(source, reading)
