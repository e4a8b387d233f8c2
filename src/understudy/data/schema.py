"""The public contract, written before any data is read, and its file: schema.toml ⇄ `Schema`.

Nothing in it comes from the private table; what its author does not know is bought with a private query.
"""

import codecs
import datetime as dt
import html
import json
import tomllib
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pydantic

from understudy import display
from understudy.data.channels import (
    INTEGER_DTYPES,
    TEXT_DTYPES,
    Binary,
    Categorical,
    Channel,
    Continuous,
    Integer,
    require_dtype,
    require_fit,
    undeclared,
)
from understudy.data.constraints import Constraint, Monotone, NonNegative, Sum, ZeroWhen, constrained_channels
from understudy.data.timegrid import Time, chosen_dtype
from understudy.data.type_checks import (
    Count,
    Positive,
    check_fields,
    require_argument,
    require_key,
    require_path,
    wrong_key,
)
from understudy.errors import MissingData, SchemaError

FALLBACK_SERIES_COLUMN = "series"  # a long table of several series has to tell them apart
MAX_WIDE_COLUMNS = 100_000
_SHOWN = 10  # names that an error lists
_POPULATION = (
    "either a size or a count_epsilon is expected. Write population = 10000, or population = { count_epsilon = 0.1 } "
    "to buy the count."
)


@dataclass(frozen=True, kw_only=True)
class PrivacyUnit:
    """What one neighbouring dataset has and the other has not (add or remove one unit).

    Attributes:
        kind: "entity" protects everything about one entity; "event" protects any `event_steps` consecutive
            steps of one entity; "overlapping-window" repeats what papers do and protects no person.
        column: The table's identifier column; None when every series is its own unit.
        max_series: How many series one unit may contribute; a unit with more is refused.
        event_steps: Length of the protected stretch, for kind "event".
        dtype: How the user's table stores the identifier.
    """

    kind: Literal["entity", "event", "overlapping-window"] = "entity"
    column: str | None = None
    max_series: Count = 1
    event_steps: Count = 1
    dtype: str = "string"

    def __post_init__(self) -> None:
        check_fields(self, "unit")
        require_dtype(self.dtype, INTEGER_DTYPES + TEXT_DTYPES, "unit.dtype")

    @property
    def protects_a_person(self) -> bool:
        """False for windows cut from one long series: everyone in it is in many windows."""
        return self.kind != "overlapping-window"

    def sentence(self) -> str:
        """Says in words what the guarantee covers; certificates quote it.

        >>> PrivacyUnit(column="household").sentence()
        "Everything the table holds about one 'household' (up to 1 series) is protected."
        """
        who = f"'{self.column}'" if self.column else "series"
        if self.kind == "entity":
            return f"Everything the table holds about one {who} (up to {self.max_series} series) is protected."
        if self.kind == "event":
            told = "consecutive steps of one {} are protected; what is the same throughout that series is not."
            return f"Any {self.event_steps} {told.format(who)}"
        windows = "one of many overlapping windows of the same series, as in the papers this reproduces."
        return f"No person is protected: the unit is {windows}"


@dataclass(frozen=True)
class Population:
    """How many units there are: declared from public knowledge, or to be bought as a DP count.

    Delta, sampling rates and batch sizes come from it and never from the number of rows, which is private.

    Attributes:
        size: Number of units, from public knowledge.
        count_epsilon: Epsilon at which the number of units is bought, in place of `size`. A draft has neither.
    """

    size: Count | None = None
    count_epsilon: Positive | None = None

    def __post_init__(self) -> None:
        check_fields(self, "population")
        require_key(self.size is None or self.count_epsilon is None, "population", _POPULATION)


@dataclass(frozen=True, kw_only=True)
class BudgetDeclaration:
    """All that may ever be spent on this population.

    Attributes:
        epsilon: Total over all runs.
        delta: Total over all runs; None means 1/(100 · population).
        max_runs: Most runs there can be; basic composition splits delta over them.
        composition: How runs add up: "basic" adds epsilons and deltas; "rdp" and "zcdp" are filters of that kind.
    """

    epsilon: Positive
    delta: Annotated[float, pydantic.Field(gt=0, lt=1)] | None = None
    max_runs: Count = 1
    composition: Literal["basic", "rdp", "zcdp"] = "basic"

    def __post_init__(self) -> None:
        check_fields(self, "budget")


@dataclass(frozen=True, kw_only=True)
class Issuer:
    """Who answers for releases; every certificate prints it.

    Attributes:
        name: The organisation that publishes.
        purpose: What the synthetic data are for.
        contact: Whom a recipient asks, such as a data protection officer.
    """

    name: str = ""
    purpose: str = ""
    contact: str = ""

    def __post_init__(self) -> None:
        check_fields(self, "issuer")

    @property
    def stated(self) -> dict[str, str]:
        """What was filled in, by key."""
        return {key: text for key, text in vars(self).items() if text}


@dataclass(frozen=True, kw_only=True)
class CsvFormat:
    """The format of every CSV file that is read or written with a schema.

    Attributes:
        delimiter: Character between two columns.
        decimal: Decimal sign of numbers.
        encoding: Encoding of the file's text, by a name that Python knows.
        missing: Words that stand for a missing value, in addition to the usual ones (empty, NA, NaN, null).
    """

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self, "csv")
        sign, other = self.delimiter, self.decimal in (".", ",") and self.decimal != self.delimiter
        one = len(sign) == 1 and sign.isascii() and not sign.isalnum() and sign not in "\r\n\"'.-+\0"
        require_key(one, "csv.delimiter", "one character such as ',' or ';' is expected, no letter. Write the file's.")
        require_key(other, "csv.decimal", "'.' or ',' is expected, and another sign than csv.delimiter. Declare both.")
        told = "'utf-8', 'latin-1', 'cp1252' or the like is expected. Write the file's."
        require_key(_is_encoding(self.encoding), "csv.encoding", told)


@dataclass(frozen=True, kw_only=True)
class FrameForm:
    """How a pandas frame held the table, so that samples come back in the same form; names and types only.

    Attributes:
        index: Columns that were the frame's index, in order.
        dtypes: Column and pandas' name of its type ("Float64", "ordered category"), where another would be its default.
    """

    index: tuple[str, ...] = ()
    dtypes: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check_fields(self, "frame")


class MissingFact(NamedTuple):
    """A public fact that a draft leaves open: its key in the schema, what is asked, and how it is said."""

    key: str
    asks: str
    example: str

    def __str__(self) -> str:
        return f"{self.key}: {self.asks}, such as with_facts({self.example})"


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
        issuer: Who answers for releases, as certificates print it.
        ignore: Columns of the table that reading leaves out.
        columns: Order of the table's columns; if empty: unit, series, time, channels, static.
        csv: How CSV files of this table are written.
        frame: Form of the data frame that the schema was drafted from or read with; no part of the contract.
        undecided: Keys that a draft leaves open; what they hold means nothing. See `missing_facts`.
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
    csv: CsvFormat = field(default_factory=CsvFormat)
    frame: FrameForm | None = field(default=None, compare=False)
    issuer: Issuer | None = None
    undecided: tuple[str, ...] = ()
    version: Literal[1] = 1

    def __post_init__(self) -> None:
        check_fields(self, "")
        require_key(self.name, "name", "the population's name is expected. Give it one.")
        counted = self.population != Population() or "population" in self.undecided
        require_key(counted, "population", _POPULATION)
        some = self.channels or self.undecided
        require_key(some, "channels", "at least one channel is expected. Declare one.")
        require_fit(self.unit.dtype, (self.population.size or 1) - 1, "unit.dtype")
        _check_layout(self)
        _check_names(self)
        told = f"a categorical column under [[static]] is expected, got '{self.label}'."
        require_key(self.label is None or self.label_column is not None, "label", told)
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
            raise wrong_key("budget.delta", "needed, because no population size is declared. Declare either of them.")
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
        """Returns the place of a channel on the last axis of a panel's values."""
        return [channel.name for channel in self.channels].index(name)

    @classmethod
    def draft(cls, frame: Any, **named: Any) -> "Schema":
        """Returns a schema of a table's column names and types, which leaves open what a person has to say.

        Args:
            frame: A pandas or polars frame (also lazy), an Arrow table or dataset, a DuckDB relation, an array
                [series, step, channel], or the path or URL of a table as `open_table` takes it.
            unit: Column, or level of an index, that says whose rows they are; default: one picked by its name.
            time: Column, or level of an index, of times; default: one picked by its type or name.
            series: Column that distinguishes several series of one unit.
            static: Columns with one value per series; text is drafted so without being named.
            ignore: Columns to leave out.
            name: Name of the population.
            zone: Time zone of timestamps that carry none.
            csv: A `CsvFormat`, for a CSV file.
            peek: Lets the shape of a CSV file's text decide the kinds of its columns: an unprotected look, which
                `draft_schema` and `understudy init` record in the text they write.
            columns_are_public: Lets names that look like identifiers into the draft.

        Privacy:
            Reads names and types and no row. A CSV file and pandas columns of Python objects have no types, so their
            kinds are left open. Column names go into the draft: where many follow one pattern they may be people's,
            and that is refused unless they are said to be public.
        """
        from understudy.data.draft import draft

        return draft(frame, **named)

    def missing_facts(self) -> tuple[MissingFact, ...]:
        """Returns what a person has yet to say, each with its key, what is asked and an example."""
        found = [MissingFact(key, *_OPEN[key][:2]) for key in self.undecided if key in _OPEN]
        for column in (*self.channels, *self.static, *self.context):
            if fact := self._open_fact(column):
                asks, example, _ = _OPEN[fact]
                found.append(MissingFact(f"{column.name}.{fact}", asks, example.format(column.name)))
        if self.budget is None and self.undecided:
            found.append(MissingFact("budget", *_OPEN["budget"][:2]))
        return tuple(found)

    def _open_fact(self, column: Channel) -> str | None:
        """Returns what a draft leaves open of a column: its kind, or the first other fact."""
        return "kind" if f"{column.name}.kind" in self.undecided else undeclared(column)

    def with_facts(self, **facts: Any) -> "Schema":
        """Returns the schema with public facts that a person knows.

        Args:
            population: Number of units, or a `Population`.
            bounds: Column → (low, high).
            categories: Column → list of all categories.
            kinds: Column → "continuous", "integer", "categorical" or "binary", where the draft leaves it open.
            columns: Column → any of its other fields, such as {"missing": False, "resolution": 0.1}.
            context: Columns that are public: the same for all units, and known without the table.
            unit, time: Columns of identifiers and of times.
            budget: Total epsilon, or a `BudgetDeclaration`.
            frequency, start, steps: The time axis; also every other field of `Time`.
            name, label, constraints, ignore, csv: Fields of `Schema`.
        """
        from understudy.data.draft import with_facts

        return with_facts(self, **facts)

    def require_declared(self) -> None:
        """Refuses a draft: public facts have to be declared before data is read."""
        if self.undecided:
            told = "; ".join(map(str, self.missing_facts()[:_SHOWN]))
            raise wrong_key(self.undecided[0], f"the draft leaves it open. Public facts to say: {told}.")
        for channel in (*self.channels, *self.static, *self.context):
            _ = channel.bounds

    @classmethod
    def load(cls, path: str | Path, *, draft: bool = False) -> "Schema":
        """Reads a schema file; `draft` lets bounds that are still open pass."""
        require_path(path, "Schema.load")
        if not Path(path).is_file():
            raise MissingData(f"No schema at {path}. Write one with `understudy init`.")
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise SchemaError(f"{path}: UTF-8 text is expected. Save it as UTF-8.", file=str(path), key=None) from None
        return cls.loads(text, file=str(path), draft=draft)

    @classmethod
    def loads(cls, text: str, *, file: str = "schema.toml", draft: bool = False) -> "Schema":
        """Reads a schema from TOML text; errors call it `file`."""
        require_argument(text, str, "Schema.loads", "Give TOML text; Schema.load takes a path.")
        try:
            document = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # also numbers of a thousand digits and brackets within brackets
            raise SchemaError(f"{file}: not valid TOML: {error}. Correct that line.", file=file, key=None) from None
        try:
            schema = _schema(document)
            if not draft:
                schema.require_declared()
        except SchemaError as error:
            told = str(error)
            raise SchemaError(f"{file}: {told[:1].lower()}{told[1:]}", file=file, key=error.facts.get("key")) from None
        return schema

    def dumps(self) -> str:
        """Returns TOML text that `loads` turns back into an equal schema; keys that hold their default are left out."""
        population = self.population.size or {"count_epsilon": self.population.count_epsilon}
        head = {"version": self.version, "name": self.name, "population": population}
        head |= {key: getattr(self, key) for key in ("label", "ignore", "columns") if getattr(self, key)}
        if "population" in self.undecided:
            del head["population"]
        parts = [_lines(head), self._todo("population")]
        for name in ("unit", "time", "csv", "issuer", "frame"):
            table = getattr(self, name)
            if table not in (None, CsvFormat()):
                parts += [f"\n[{name}]\n", _changed_lines(table, self.undecided), self._todo(f"{name}.")]
        for group in _GROUPS:
            parts += [f"\n[[{group}]]\n{self._item_lines(item)}" for item in getattr(self, group)]
        parts += ["\n[budget]\n", _changed_lines(self.budget)] if self.budget else []
        return "".join([*parts, "\n" + _commented("budget") if self.undecided and not self.budget else ""])

    def _todo(self, prefix: str) -> str:
        return "".join(_commented(key) for key in self.undecided if key in _OPEN and key.startswith(prefix))

    def _item_lines(self, item: Any) -> str:
        """Returns the lines of a column or a constraint, and what a draft leaves open of it."""
        todo = self._open_fact(item) if isinstance(item, Channel) else None
        if todo == "kind":
            return _lines({"name": item.name, "missing": item.missing}) + _commented(todo)
        lines = f'kind = "{item.kind}"\n{_changed_lines(item)}'
        return lines.replace("categories = []\n", "") + _commented(todo) if todo else lines

    def _repr_html_(self) -> str:
        """Returns who is protected and what is public, small enough for a notebook."""
        size = self.population.size
        facts = [("protected", self.unit.sentence()), ("units", "to be bought" if size is None else f"{size:,}")]
        facts.append(("steps", f"{self.time.steps} of {self.time.frequency}"))
        for group in ("channels", "static", "context"):
            facts += [(group, f"{column.name} ({column.kind})") for column in getattr(self, group)]
        facts += [("still open", str(fact)) for fact in self.missing_facts()]
        return f"<p><strong>{html.escape(self.name)}</strong></p>{display.html_table(('', 'schema'), facts)}"

    def __str__(self) -> str:
        channels = ", ".join(f"{channel.name} ({channel.kind})" for channel in self.channels)
        return f"schema '{self.name}', {self.num_steps} steps of {self.time.frequency}: {channels}"

    def save(self, path: str | Path) -> None:
        """Writes the schema as a TOML file."""
        Path(path).write_text(self.dumps(), encoding="utf-8")


def column_names(schema: Schema, channel: str) -> list[str]:
    """Returns the columns of the table that hold a channel: one, or one per step of a wide table."""
    time = schema.time
    if time.layout == "long":
        return [channel]
    return [time.wide_columns.format(channel=channel, step=step) for step in range(time.steps)]


def table_columns(schema: Schema) -> tuple[str, ...]:
    """Returns the names of the user's table in the user's order."""
    return schema.columns or _default_columns(schema)


def _default_columns(schema: Schema) -> tuple[str, ...]:
    """Returns the table's columns in the order of a schema that declares none: unit, series, time, channels, static."""
    keys = [schema.unit.column, schema.time.series_column]
    channels = [name for channel in schema.channels for name in column_names(schema, channel.name)]
    static = [channel.name for channel in schema.static]
    wide = schema.time.layout == "wide"
    names = (*keys, *static, *channels) if wide else (*keys, schema.time.column, *channels, *static)
    return tuple(name for name in names if name is not None)


def _check_names(schema: Schema) -> None:
    keys = {"unit.column": schema.unit.column, "time.column": schema.time.column}
    keys |= {"time.series_column": schema.time.series_column}
    places: dict[str, tuple[str, ...]] = {f"as {key}": (column,) for key, column in keys.items() if column is not None}
    for group in ("channels", "static", "context"):
        places[f"under [[{group}]]"] = tuple(column.name for column in getattr(schema, group))
    places["under ignore"] = schema.ignore
    declared = Counter(name for names in places.values() for name in names)
    for name, number in (declared | Counter([*_default_columns(schema), *schema.ignore])).items():
        where = " and ".join(place for place, names in places.items() if name in names) or "by wide columns"
        told = f"the column is declared twice, {where}. Declare each column once: remove one."
        require_key(number == 1, name, told)
    for channel in (*schema.static, *schema.context):
        told = "only a channel can be a count of rows. Choose another."
        require_key(channel.aggregate != "count", f"{channel.name}.aggregate", told)


def _check_layout(schema: Schema) -> None:
    time, unit = schema.time, schema.unit
    timeless = time.layout == "long" and time.column is None and "time.column" not in schema.undecided
    told = "the time column of a long table is expected. Declare it."
    require_key(not timeless or not unit.protects_a_person, "time.column", told)
    few = time.layout == "long" or schema.num_steps * schema.num_channels <= MAX_WIDE_COLUMNS
    told = f"a wide table of at most {MAX_WIDE_COLUMNS} columns (steps x channels) is expected. Use the long layout."
    require_key(few, "time.layout", told)
    if schema.columns:
        context = {channel.name for channel in schema.context}
        expected, listed = set(_default_columns(schema)), set(schema.columns) - context
        names = ", ".join(sorted(f"'{name}'" for name in listed ^ expected)[:_SHOWN]) or "a name listed twice"
        all_once = listed == expected and len(set(schema.columns)) == len(schema.columns)
        require_key(all_once, "columns", f"every declared column, once, is expected. Correct: {names}.")


def _check_constraint(constraint: Constraint, schema: Schema) -> None:
    names = constrained_channels(constraint)
    key, channels = f"constraints.{names[0]}", {channel.name: channel for channel in schema.channels}
    for name in names:
        numbers = isinstance(channels.get(name), Continuous | Integer)
        require_key(numbers, key, f"'{name}' is not a continuous or integer channel. Name one that is.")
    if isinstance(constraint, ZeroWhen):
        there = constraint.context in (None, *(c.name for c in schema.context))
        told = "the name of a public context channel is expected. Declare the channel."
        require_key(there, f"{key}.context", told)
        there = constraint.channel_is_zero in (None, *channels)
        require_key(there, f"{key}.channel_is_zero", "the name of a channel is expected. Declare the channel.")
        clocked = constraint.hours is None or schema.time.align == "calendar"
        told = "hours of day need time.align = 'calendar'. Declare that, or no hours."
        require_key(clocked, f"{key}.hours", told)
    if any(undeclared(channels[name]) for name in names):
        return
    (low, high), *parts = (channels[name].bounds for name in names)
    if isinstance(constraint, Sum):
        meet = sum(p[0] for p in parts) <= high and sum(p[1] for p in parts) >= low
        require_key(meet, key, "the parts' bounds never add up to the total's. Widen them.")
    if isinstance(constraint, ZeroWhen):
        require_key(low <= 0 <= high, key, "the channel's bounds leave out zero. Widen them.")
    if isinstance(constraint, NonNegative):
        require_key(high >= 0, key, "the channel's bounds are below zero. Widen them.")


def _is_encoding(name: str) -> bool:
    try:
        return "\n".encode(name).decode(name) == "\n" and codecs.lookup(name) is not None
    except (LookupError, UnicodeError, TypeError, ValueError):
        return False


CHANNELS: dict[str, Any] = {kind.kind: kind for kind in (Continuous, Integer, Categorical, Binary)}
_NUMBERS = "the smallest and the largest value there can be", 'bounds={{"{}": (0, 1)}}', "low = 0\nhigh = 1"
_UNIT = 'column = "household"  # without a table of its own below: `understudy init --unit COLUMN` does both'
_TIME = 'column = "timestamp"  # without a table of its own below; or layout = "wide" for a row per series'
_KIND = """\
kind = "continuous"   # then low and high, from public knowledge
kind = "integer"      # then low and high
kind = "categorical"  # then categories = ["a", "b"]; under [[static]] if it is the same throughout a series
kind = "binary"
"""
_BUDGET = "[budget]\nepsilon = 3.0\nmax_runs = 5  # delta is 1/(100 · population) unless declared"
_OPEN: dict[str, tuple[str, str, str]] = {  # what a draft may leave open: what is asked, how Python and the file say it
    "population": (
        *("how many units there are", "population=10_000"),
        "population = 10000  # or { count_epsilon = 0.1 } to buy the count",
    ),
    "unit.column": ("the column that says whose rows they are", 'unit="household"', _UNIT),
    "time.column": ("the column of times", 'time="timestamp"', _TIME),
    "time.frequency": ("the distance between two steps", 'frequency="1h"', 'frequency = "1h"'),
    "time.start": ("the timestamp of the first step", 'start="2024-01-01"', 'start = "2024-01-01T00:00:00"'),
    "time.steps": ("the number of steps of the longest series", "steps=168", "steps = 168"),
    "low": _NUMBERS,
    "high": _NUMBERS,
    "categories": ("every category there can be", 'categories={{"{}": ["a", "b"]}}', 'categories = ["a", "b"]'),
    "kind": (
        "what the column holds: numbers, categories or yes/no",
        *('bounds={{"{0}": (0, 1)}}) or with_facts(categories={{"{0}": ["a", "b"]}}', _KIND),
    ),
    "budget": ("all that may ever be spent on this population", "budget=3.0", _BUDGET),
}
_CONSTRAINTS: dict[str, Any] = {kind.kind: kind for kind in (NonNegative, Monotone, Sum, ZeroWhen)}
_TABLES: dict[str, Any] = {"unit": PrivacyUnit, "time": Time, "csv": CsvFormat, "budget": BudgetDeclaration}
_TABLES |= {"frame": FrameForm, "issuer": Issuer, "population": Population}
_GROUPS = {"channels": CHANNELS, "static": CHANNELS, "context": CHANNELS, "constraints": _CONSTRAINTS}
_ALWAYS = {"kind", "name", "low", "high", "categories", "frequency", "start", "steps"}  # written even if default
_NEEDED = {Schema: ("version",), Time: ("frequency", "steps")}  # keys that a file has to hold although Python needs not


def _commented(key: str) -> str:
    """Returns the lines by which a draft asks for a fact."""
    asks, _, lines = _OPEN[key]
    return "\n".join([f"# TODO: {asks}.", *(f"# {line}" for line in lines.splitlines())]) + "\n"


def _schema(document: dict[str, Any]) -> Schema:
    told = "version 1 is expected. Write the schema again with `understudy init`, or use the release that wrote it."
    require_key(document.get("version", 1) == 1, "version", told)
    given = dict(document)
    if not isinstance(population := given.get("population", {}), dict):
        given["population"] = {"size": population}
    if isinstance(time := given.get("time"), dict) and isinstance(time.get("start"), dt.date):
        given["time"] = {**time, "start": time["start"].isoformat()}
    for name, table in given.items():
        if name in _TABLES:
            given[name] = _made(_TABLES[name], table, name)
        elif name in _GROUPS:
            require_key(isinstance(table, list), name, f"tables are expected. Write [[{name}]] before each.")
            given[name] = [_made_of(name, one, place) for place, one in enumerate(table)]
    made: Schema = _made(Schema, given, "")
    return made


def _made_of(group: str, table: Any, place: int) -> Any:
    """Makes a column or a constraint, which errors call as its author sees it: channels.load_kw."""
    kinds, table = _GROUPS[group], dict(table) if isinstance(table, dict) else {}
    where = f"{group}.{next(filter(None, map(table.get, ('name', 'channel', 'total'))), place + 1)}"
    kind = table.pop("kind", None)
    known = isinstance(kind, str) and kind in kinds
    require_key(known, f"{where}.kind", f"one of {', '.join(kinds)} is expected. Declare which it is.")
    return _made(kinds[kind], table, where)


def _made(kind: Any, table: Any, where: str) -> Any:
    """Makes a dataclass of a table of the file: the keys are checked here, what they hold by the dataclass."""
    require_key(isinstance(table, dict), where, f"a table is expected. Write [{where}] before its keys.")
    known, prefix = {part.name: part for part in fields(kind)}, where and f"{where}."
    for key in table:
        if key not in known:
            raise wrong_key(prefix + key, f"it is not known{_home(key)}")
    for name, part in known.items():
        optional = part.default is not part.default_factory  # both are MISSING where there is no default
        there = name in table or (optional and name not in _NEEDED.get(kind, ()))
        require_key(there, prefix + name, "it is missing. Declare it.")
    return kind(**table)


def _home(word: str) -> str:
    """Says in which tables of the file a key belongs, and what to do about it."""
    homes: dict[str, Any] = {f"under [{name}]": kind for name, kind in _TABLES.items() if kind != Population}
    homes |= {"at the top of the file, before any [table]": Schema}
    homes |= {"under [[channels]], [[static]] or [[context]]": Continuous}
    found = [place for place, kind in homes.items() if word in kind.__dataclass_fields__]
    return f" there. It belongs {' or '.join(found)}: move it." if found else ". Check its spelling or remove it."


def _changed_lines(item: Any, undecided: tuple[str, ...] = ()) -> str:
    """Returns the TOML lines of the fields that differ from their defaults, and of those a reader expects."""
    defaults = {part.name: part.default for part in fields(item)}
    if isinstance(item, Time):
        defaults["dtype"] = chosen_dtype(item)
    decided = (name for name in defaults if f"time.{name}" not in undecided)
    values = {name: value for name in decided if (value := getattr(item, name)) is not None}
    return _lines({name: value for name, value in values.items() if name in _ALWAYS or value != defaults[name]})


def _lines(table: dict[str, Any]) -> str:
    return "".join(f"{key} = {_format_value(value)}\n" for key, value in table.items())


def _format_value(value: Any) -> str:
    """Writes one TOML value.

    >>> _format_value({"count_epsilon": 0.1})
    '{ count_epsilon = 0.1 }'
    """
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_format_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # what JSON writes, TOML reads
