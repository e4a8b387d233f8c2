"""The public contract, written before any data is read.

A `Schema` holds what everybody may know: who is protected, which columns exist with which bounds, the time
axis, facts that always hold and the budget. Nothing in it comes from the private table; what its author does
not know is bought with a differentially private query.
"""

from collections import Counter
from dataclasses import dataclass
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
    undeclared,
)
from understudy.data.constraint_kinds import (
    Constraint,
    Monotone,
    NonNegative,
    Sum,
    ZeroWhen,
    constrained_channels,
)
from understudy.data.csv_format import CsvFormat
from understudy.data.dtypes import require_fit
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
COMPOSITIONS = ("basic", "rdp", "zcdp")
MAX_WIDE_COLUMNS = 100_000
_SHOWN = 10  # names that an error lists


@dataclass(frozen=True)
class Population:
    """How many units there are: declared from public knowledge, or to be bought as a DP count.

    Delta, sampling rates and batch sizes come from it and never from the number of rows, which is private.
    """

    size: int | None = None
    count_epsilon: float | None = None

    def __post_init__(self) -> None:
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
    csv: CsvFormat = CsvFormat()
    version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        for field in ("channels", "static", "context", "constraints", "ignore", "columns"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
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
        _check_layout(self)
        _check_names(self)
        _check_label(self)
        for constraint in self.constraints:
            _check_constraint(constraint, self)

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

        return load(Path(path), draft=draft)

    @classmethod
    def loads(cls, text: str, *, file: str = "schema.toml", draft: bool = False) -> "Schema":
        """Reads a schema from TOML text; errors call it `file`."""
        from understudy.data.toml import loads

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
    return schema.columns or _default_columns(schema)


def _default_columns(schema: Schema) -> tuple[str, ...]:
    time, channels = schema.time, [channel.name for channel in schema.channels]
    keys = [schema.unit.column, time.series_column]
    static = [channel.name for channel in schema.static]
    if time.layout == "wide":
        wide = [time.wide_column(channel, step) for channel in channels for step in range(time.steps)]
        return tuple(name for name in (*keys, *static, *wide) if name is not None)
    return tuple(name for name in (*keys, time.column, *channels, *static) if name is not None)


def _check_names(schema: Schema) -> None:
    columns = [c.name for group in (schema.channels, schema.static, schema.context) for c in group]
    keys = [schema.unit.column, schema.time.column, schema.time.series_column]
    declared = Counter([*columns, *(key for key in keys if key is not None), *schema.ignore])
    in_table = Counter([*_default_columns(schema), *schema.ignore])
    for name in (name for names in (declared, in_table) for name, number in names.items() if number > 1):
        raise SchemaError(f"Key '{name}': the column is declared twice. Declare each column once.", key=name)
    for channel in (*schema.static, *schema.context):
        if channel.aggregate == "count":
            raise SchemaError(
                f"Key '{channel.name}.aggregate': only a channel can be a count of rows.",
                key=f"{channel.name}.aggregate",
            )


def _check_layout(schema: Schema) -> None:
    if schema.time.layout == "long" and schema.time.column is None and schema.unit.protects_a_person:
        raise SchemaError("Key 'time.column': the time column of a long table is expected.", key="time.column")
    if schema.time.layout == "wide" and schema.num_steps * schema.num_channels > MAX_WIDE_COLUMNS:
        raise SchemaError(
            f"Key 'time.layout': a wide table of at most {MAX_WIDE_COLUMNS} columns (steps x channels) is expected. "
            "Use the long layout.",
            key="time.layout",
        )
    if not schema.columns:
        return
    context = {channel.name for channel in schema.context}
    expected, listed = set(_default_columns(schema)), set(schema.columns) - context
    if listed != expected or len(set(schema.columns)) != len(schema.columns):
        names = ", ".join(sorted(f"'{name}'" for name in listed ^ expected)[:_SHOWN]) or "a name listed twice"
        raise SchemaError(
            f"Key 'columns': every declared column, once, is expected. Put right: {names}.", key="columns"
        )


def _check_label(schema: Schema) -> None:
    if schema.label is not None and schema.label_column is None:
        raise SchemaError(
            f"Key 'label': the name of a categorical column under [[static]] is expected, got '{schema.label}'.",
            key="label",
        )


def _check_constraint(constraint: Constraint, schema: Schema) -> None:
    key = f"constraints.{constrained_channels(constraint)[0]}"
    channels = {channel.name: channel for channel in schema.channels}
    for name in constrained_channels(constraint):
        if not isinstance(channels.get(name), Continuous | Integer):
            raise SchemaError(f"Key '{key}': '{name}' is not a continuous or integer channel.", key=key)
    if isinstance(constraint, ZeroWhen):
        _check_zero_when(constraint, schema, key)
    bounds = {name: channels[name] for name in constrained_channels(constraint)}
    if any(undeclared(channel) for channel in bounds.values()):
        return
    if isinstance(constraint, Sum):
        low = sum(bounds[part].bounds[0] for part in constraint.parts)
        high = sum(bounds[part].bounds[1] for part in constraint.parts)
        total = bounds[constraint.total].bounds
        if low > total[1] or high < total[0]:
            raise SchemaError(f"Key '{key}': the parts' bounds never add up to the total's. Widen them.", key=key)
    elif isinstance(constraint, ZeroWhen) and not _holds_zero(bounds[constraint.channel]):
        raise SchemaError(f"Key '{key}': the channel's bounds leave out zero. Widen them.", key=key)
    elif isinstance(constraint, NonNegative) and bounds[constraint.channel].bounds[1] < 0:
        raise SchemaError(f"Key '{key}': the channel's bounds are below zero. Widen them.", key=key)


def _check_zero_when(constraint: ZeroWhen, schema: Schema, key: str) -> None:
    if constraint.context is not None and constraint.context not in [c.name for c in schema.context]:
        raise SchemaError(f"Key '{key}.context': the name of a public context channel is expected.", key=key)
    if constraint.hours is not None and schema.time.align != "calendar":
        raise SchemaError(f"Key '{key}.hours': hours of day need time.align = 'calendar'.", key=key)


def _holds_zero(channel: Channel) -> bool:
    low, high = channel.bounds
    return low <= 0 <= high
