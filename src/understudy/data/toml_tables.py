"""What a schema file may hold, table by table. Used only where text becomes dataclasses."""

import datetime as dt
from typing import Annotated, Literal

import pydantic
from pydantic import Field

from understudy.data.channels import Aggregate, OutOfBounds
from understudy.data.timegrid import Align, Layout, OffGrid
from understudy.data.units import UnitKind

Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]  # what TOML promises, and what ledgers and arrays hold


class FileTable(pydantic.BaseModel):
    """A table of the file: unknown keys are refused, types are not bent."""

    model_config = pydantic.ConfigDict(extra="forbid", strict=True)


class ContinuousTable(FileTable):
    """A `[[channels]]`, `[[static]]` or `[[context]]` table of kind "continuous"."""

    kind: Literal["continuous"]
    name: str
    low: float | None = None
    high: float | None = None
    missing: bool = False
    out_of_bounds: OutOfBounds = "refuse"
    aggregate: Aggregate = "mean"
    dtype: str = "float64"
    party: str | None = None


class IntegerTable(FileTable):
    """The same of kind "integer"."""

    kind: Literal["integer"]
    name: str
    low: Whole | None = None
    high: Whole | None = None
    missing: bool = False
    out_of_bounds: OutOfBounds = "refuse"
    aggregate: Aggregate = "mean"
    dtype: str = "int64"
    party: str | None = None


class CategoricalTable(FileTable):
    """The same of kind "categorical"."""

    kind: Literal["categorical"]
    name: str
    categories: list[str | Whole] = []
    missing: bool = False
    aggregate: Aggregate = "last"
    dtype: str = "string"
    party: str | None = None


class BinaryTable(FileTable):
    """The same of kind "binary"."""

    kind: Literal["binary"]
    name: str
    missing: bool = False
    aggregate: Aggregate = "last"
    dtype: str = "bool"
    party: str | None = None


ChannelTable = Annotated[ContinuousTable | IntegerTable | CategoricalTable | BinaryTable, Field(discriminator="kind")]


class NonNegativeTable(FileTable):
    """A `[[constraints]]` table of kind "non-negative"."""

    kind: Literal["non-negative"]
    channel: str


class MonotoneTable(FileTable):
    """The same of kind "monotone"."""

    kind: Literal["monotone"]
    channel: str
    direction: Literal["increasing", "decreasing"] = "increasing"


class SumTable(FileTable):
    """The same of kind "sum"."""

    kind: Literal["sum"]
    total: str
    parts: list[str]


class ZeroWhenTable(FileTable):
    """The same of kind "zero-when"."""

    kind: Literal["zero-when"]
    channel: str
    hours: list[Whole] | None = None
    context: str | None = None
    below: float | None = None


ConstraintTable = Annotated[NonNegativeTable | MonotoneTable | SumTable | ZeroWhenTable, Field(discriminator="kind")]


class PopulationTable(FileTable):
    """`population` as a table."""

    size: Whole | None = None
    count_epsilon: float | None = None


class UnitTable(FileTable):
    """`[unit]`."""

    kind: UnitKind = "entity"
    column: str | None = None
    max_series: Whole = 1
    event_steps: Whole = 1
    dtype: str = "string"


class TimeTable(FileTable):
    """`[time]`."""

    column: str | None = None
    frequency: str
    start: str | dt.datetime | dt.date = "2024-01-01T00:00:00"
    steps: Whole
    min_steps: Whole | None = None
    align: Align = "calendar"
    layout: Layout = "long"
    wide_columns: str = "{channel}_{step}"
    dtype: str = "auto"
    off_grid: OffGrid = "refuse"
    series_column: str | None = None
    zone: str | None = None


class CsvTable(FileTable):
    """`[csv]`."""

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    missing: list[str] = []


class BudgetTable(FileTable):
    """`[budget]`."""

    epsilon: float
    delta: float | None = None
    max_runs: Whole = 1
    composition: Literal["basic", "rdp", "zcdp"] = "basic"


class SchemaTable(FileTable):
    """The whole file."""

    version: Whole
    name: str
    population: Whole | PopulationTable
    label: str | None = None
    ignore: list[str] = []
    columns: list[str] = []
    unit: UnitTable
    time: TimeTable
    csv: CsvTable = CsvTable()
    channels: list[ChannelTable]
    static: list[ChannelTable] = []
    context: list[ChannelTable] = []
    constraints: list[ConstraintTable] = []
    budget: BudgetTable | None = None
