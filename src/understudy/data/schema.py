"""The public contract, written before any data is read.

A `Schema` holds what everybody may know: who is protected, which columns exist with which bounds, the time
axis, facts that always hold and the budget. Nothing in it comes from the private table; what its author does
not know is bought with a differentially private query.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from understudy.data.channels import (
    Aggregate,
    Binary,
    Categorical,
    Channel,
    Continuous,
    Integer,
    OutOfBounds,
)
from understudy.data.constraint_kinds import Constraint, Monotone, NonNegative, Sum, ZeroWhen
from understudy.data.csv_format import COMMAS, CsvFormat
from understudy.data.dtypes import require_fit
from understudy.data.given import require_argument, require_given, require_path
from understudy.data.schema_checks import check_together, default_columns
from understudy.data.timegrid import Time
from understudy.data.units import PrivacyUnit
from understudy.errors import SchemaError

__all__ = [
    "SCHEMA_VERSION",
    "Aggregate",
    "Binary",
    "BudgetDeclaration",
    "Categorical",
    "Channel",
    "Constraint",
    "Continuous",
    "Integer",
    "Monotone",
    "NonNegative",
    "OutOfBounds",
    "Population",
    "PrivacyUnit",
    "Schema",
    "Sum",
    "Time",
    "ZeroWhen",
]

SCHEMA_VERSION = 1
FALLBACK_SERIES_COLUMN = "series"  # a long table of several series has to tell them apart
COMPOSITIONS = ("basic", "rdp", "zcdp")


@dataclass(frozen=True)
class Population:
    """How many units there are: declared from public knowledge, or to be bought as a DP count.

    Delta, sampling rates and batch sizes come from it and never from the number of rows, which is private.
    """

    size: int | None = None
    count_epsilon: float | None = None

    def __post_init__(self) -> None:
        require_given(self, "population")
        if (self.size is None) == (self.count_epsilon is None):
            raise SchemaError(
                "Key 'population': either a size or a count_epsilon is expected. Write population = 10000, "
                "or population = { count_epsilon = 0.1 } to buy the count.",
                key="population",
            )
        if self.size is not None and self.size < 1:
            raise SchemaError("Key 'population': a size of at least 1 is expected.", key="population")
        if self.count_epsilon is not None:
            object.__setattr__(self, "count_epsilon", float(self.count_epsilon))
            if not 0 < float(self.count_epsilon) < float("inf"):
                raise SchemaError("Key 'population.count_epsilon': a number above 0 is expected.", key="population")


@dataclass(frozen=True, kw_only=True)
class BudgetDeclaration:
    """All that may ever be spent on this population.

    Attributes:
        epsilon: Total over all runs.
        delta: Total over all runs; None stands for 1/(100 · population).
        max_runs: Most runs there can be; basic composition splits delta over them.
        composition: How runs add up.
    """

    epsilon: float
    delta: float | None = None
    max_runs: int = 1
    composition: Literal["basic", "rdp", "zcdp"] = "basic"

    def __post_init__(self) -> None:
        require_given(self, "budget")
        object.__setattr__(self, "epsilon", float(self.epsilon))
        if not 0 < self.epsilon < float("inf"):
            raise SchemaError("Key 'budget.epsilon': a finite number above 0 is expected.", key="budget.epsilon")
        if self.delta is not None and not 0 < self.delta < 1:
            raise SchemaError("Key 'budget.delta': a number between 0 and 1 is expected.", key="budget.delta")
        if self.max_runs < 1:
            raise SchemaError("Key 'budget.max_runs': at least 1 is expected.", key="budget.max_runs")
        if self.composition not in COMPOSITIONS:
            raise SchemaError(
                f"Key 'budget.composition': one of {', '.join(COMPOSITIONS)} is expected.",
                key="budget.composition",
            )


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The public contract of one protected population.

    Attributes:
        name: Name of the population; its ledger is found by it.
        population: Declared size, or the price of a DP count.
        unit: Who is protected.
        time: The time axis.
        channels: Private columns that change along a series.
        static: Private columns with one value per series.
        context: Public columns with one value per step, known without the private table.
        label: Name of the static categorical column that samples can be asked for.
        constraints: Facts that samples obey.
        budget: What may be spent in total.
        ignore: Columns of the table that reading leaves out.
        columns: Order of the table's columns; empty for unit, series, time, channels, static.
        csv: How CSV files of this table are written.
        version: Version of the schema's own format.
    """

    name: str
    population: Population
    unit: PrivacyUnit
    time: Time
    channels: tuple[Channel, ...]
    static: tuple[Channel, ...] = ()
    context: tuple[Channel, ...] = ()
    label: str | None = None
    constraints: tuple[Constraint, ...] = ()
    budget: BudgetDeclaration | None = None
    ignore: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    csv: CsvFormat = COMMAS
    version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        for field in ("channels", "static", "context", "constraints", "ignore", "columns"):
            given = getattr(self, field)
            object.__setattr__(self, field, tuple(given) if isinstance(given, list | tuple) else given)
        require_given(self, "")
        if self.version != SCHEMA_VERSION:
            raise SchemaError(
                f"Key 'version': version {SCHEMA_VERSION} is expected, got {self.version}. "
                "Write the schema anew with `understudy init`, or use the release of Understudy that wrote "
                "it.",
                key="version",
            )
        if not self.name:
            raise SchemaError("Key 'name': the population's name is expected. Give it one.", key="name")
        if not self.channels:
            raise SchemaError("Key 'channels': at least one channel is expected. Declare one.", key="channels")
        require_fit(self.unit.dtype, (self.population.size or 1) - 1, "unit.dtype")
        check_together(self)

    @property
    def num_steps(self) -> int:
        """Steps of the longest series."""
        return self.time.steps

    @property
    def num_channels(self) -> int:
        """Private columns that change along a series."""
        return len(self.channels)

    @property
    def delta(self) -> float:
        """The budget's delta, or 1/(100 · population) when none is declared."""
        if self.budget is not None and self.budget.delta is not None:
            return self.budget.delta
        if self.protected_units is None:
            raise SchemaError(
                "Key 'budget.delta': needed because the population's size is not declared. Declare delta, or "
                "declare the population.",
                key="budget.delta",
            )
        return 1.0 / (100.0 * self.protected_units)

    @property
    def protected_units(self) -> int | None:
        """How many units the guarantee covers: the population, or all stretches of steps when events are protected.

        Delta is a chance of failure for each of them, so the rule for delta counts them all.
        """
        size = self.population.size
        if size is None or self.unit.kind != "event":
            return size
        return size * self.unit.max_series * -(-self.time.steps // self.unit.event_steps)

    def without_context(self) -> "Schema":
        """Returns the contract without public context, and without constraints, which samples obey anyway."""
        return replace(self, context=(), constraints=())

    @property
    def own_contexts(self) -> bool:
        """Whether every series has a context of its own: when each starts at its own time. A public fact."""
        return len(self.context) > 0 and self.time.align == "relative"

    @property
    def label_column(self) -> Categorical | None:
        """The static categorical column named by `label`."""
        return next((c for c in self.static if isinstance(c, Categorical) and c.name == self.label), None)

    def channel_index(self, name: str) -> int:
        """Returns where a channel stands on the last axis of a panel's values."""
        return [channel.name for channel in self.channels].index(name)

    def require_declared(self) -> None:
        """Refuses a draft: bounds and categories have to be declared before data is read."""
        for group in (self.channels, self.static, self.context):
            for channel in group:
                _ = channel.bounds

    @classmethod
    def load(cls, path: str | Path, *, draft: bool = False) -> "Schema":
        """Reads a schema file; `draft` lets bounds that are still open pass."""
        from understudy.data.toml import load

        require_path(path, "Schema.load")
        return load(Path(path), draft=draft)

    @classmethod
    def loads(cls, text: str, *, file: str = "schema.toml", draft: bool = False) -> "Schema":
        """Reads a schema from TOML text; errors call it `file`."""
        from understudy.data.toml import loads

        require_argument(text, str, "Schema.loads", "Give TOML text; Schema.load takes a path.")
        return loads(text, file=file, draft=draft)

    def dumps(self) -> str:
        """Returns TOML text that `loads` turns back into an equal schema."""
        from understudy.data.toml import dumps

        return dumps(self)

    def save(self, path: str | Path) -> None:
        """Writes the schema as a TOML file."""
        Path(path).write_text(self.dumps(), encoding="utf-8")


def table_columns(schema: Schema) -> tuple[str, ...]:
    """Returns the names of the user's table in the user's order."""
    return schema.columns or default_columns(schema)
