"""The declared time axis: which step a timestamp belongs to, and which timestamp a step has."""

import datetime as dt
import re
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pydantic
from jaxtyping import Int64

from understudy.data.channels import INTEGER_DTYPES, TIMESTAMP, arrow_type, require_fit
from understudy.data.type_checks import Count, check_fields, require_key, wrong_key

_SECOND = 10**6
_MICROSECONDS = {"us": 1, "ms": 1000, "s": _SECOND, "min": 60 * _SECOND, "h": 3600 * _SECOND}
_MICROSECONDS |= {"d": 24 * _MICROSECONDS["h"], "w": 7 * 24 * _MICROSECONDS["h"]}
_MONTHS = {"mo": 1, "y": 12}
MAX_STEPS = 1_000_000
_YEAR, _LAST_YEAR = 365.2425 * _MICROSECONDS["d"], 9999
_WIDE_FIELD = re.compile(r"\{channel\}|\{step(?::0?[1-9]?d)?\}")
_FREQUENCY = re.compile(r"([1-9][0-9]{0,17})(us|ms|s|min|h|d|w|mo|y)")
Rows = Int64[np.ndarray, " row"]
Steps = Int64[np.ndarray, " step"]


class Frequency(NamedTuple):
    """Distance between two steps: a fixed number of microseconds or of calendar months (the other is 0)."""

    microseconds: int
    months: int


def parse_frequency(text: str) -> Frequency:
    """Reads a distance such as "15min", "1h", "7d" or "1mo".

    >>> parse_frequency("15min").microseconds
    900000000
    """
    match = _FREQUENCY.fullmatch(text)
    if match is None:
        told = (
            f"a number with one of {', '.join([*_MICROSECONDS, *_MONTHS])} is expected (such as '15min', '1h', '1mo')"
        )
        raise wrong_key("time.frequency", f"{told}, got '{text}'.")
    count, measure = int(match.group(1)), match.group(2)
    return Frequency(count * _MICROSECONDS.get(measure, 0), count * _MONTHS.get(measure, 0))


@dataclass(frozen=True, kw_only=True)
class Time:
    """The public time axis every series is laid on.

    Attributes:
        column: The table's time column; None for wide tables and for tables whose rows are in order.
        frequency: Distance between two steps ("15min", "1h", "1d", "1mo", …).
        start: Timestamp of step 0, ISO 8601; without an offset it is a time of `zone`, or UTC when the column has a
            time zone and none is declared.
        steps: Number of steps of the longest series.
        min_steps: None when every series has all steps, else the fewest steps a series may have.
        align: "calendar" puts step 0 at `start` for every series; "relative" at each series' own first row, so that
            every series has its own stretch of the context.
        layout: "long" has a row per step, "wide" a row per series.
        wide_columns: Pattern of a wide table's column names; holds {channel} and {step}.
        dtype: How the user's table stores time; a whole-number dtype counts steps. "auto" becomes the coarsest
            timestamp that holds every step.
        off_grid: What reading does with a timestamp between two steps: "refuse" the table, or put the row at the step
            before ("floor") or at the "nearest" step; several rows of a step become one by the channel's `aggregate`.
        series_column: Column that distinguishes several series of one unit (`unit.max_series` above 1).
        zone: Time zone of timestamps that carry none ("Europe/Paris"); None takes them as they are.
    """

    column: str | None = None
    frequency: str = "1h"
    start: str = "2024-01-01T00:00:00"
    steps: Annotated[int, pydantic.Field(ge=1, le=MAX_STEPS)] = 168
    min_steps: Count | None = None
    align: Literal["calendar", "relative"] = "calendar"
    layout: Literal["long", "wide"] = "long"
    wide_columns: str = "{channel}_{step}"
    dtype: str = "auto"
    off_grid: Literal["refuse", "floor", "nearest"] = "refuse"
    series_column: str | None = None
    zone: str | None = None

    def __post_init__(self) -> None:
        check_fields(self, "time")
        fewest = self.min_steps is None or self.min_steps <= self.steps
        require_key(fewest, "time.min_steps", "a number from 1 to time.steps is expected. Change it.")
        self._check_zone()
        self._check_start()
        self._check_dtype()
        named = {field[:5] for field in _WIDE_FIELD.findall(self.wide_columns)}
        both = named == {"{chan", "{step"} and not set("{}") & set(_WIDE_FIELD.sub("", self.wide_columns))
        require_key(both, "time.wide_columns", "a pattern such as '{channel}_{step}', with both, is expected.")

    def _check_dtype(self) -> None:
        """Refuses a dtype in which two steps would share a time or lie elsewhere; chooses one where none is given."""
        dtype, start, zone = self.dtype, self.start, self.zone
        if dtype == "auto":
            object.__setattr__(self, "dtype", chosen_dtype(self))
            return
        stamp = TIMESTAMP.fullmatch(dtype)
        known = is_zone(stamp.group(2)) if stamp else dtype in (*INTEGER_DTYPES, "date32", "string")
        told = f"timestamp[s|ms|us|ns], date32, string or a whole-number type is expected, got '{dtype}'."
        require_key(known, "time.dtype", told)
        require_fit(dtype, self.steps - 1, "time.dtype")
        zoned = zone is None or ", tz=" in dtype or dtype == "string" or self.counts_steps
        needed = f"holds every step of {self.frequency} from {start}" if zoned else "knows time.zone"
        told = f"a type that {needed} is expected, and '{dtype}' does not. Write dtype = \"{chosen_dtype(self)}\" under"
        require_key(zoned and _holds_steps(dtype, self), "time.dtype", f"{told} [time], or leave it out.")

    def _check_zone(self) -> None:
        if self.zone is not None:
            told = f"a time zone such as 'Europe/Paris' is expected, got '{self.zone}'."
            require_key(is_zone(self.zone), "time.zone", told)
            told = f"steps shorter than a day are expected, got {self.frequency}: days differ where clocks change."
            days = parse_frequency(self.frequency).microseconds % _MICROSECONDS["d"] == 0
            require_key(not days, "time.zone", f"{told} Remove time.zone and store dates.")

    def _check_start(self) -> None:
        frequency, start = parse_frequency(self.frequency), start_microseconds(self)
        first = np.datetime64(start, "us") == np.datetime64(start, "us").astype("datetime64[M]")
        told = "the first day of a month, at midnight, is expected for a frequency in months or years. Move it there."
        require_key(first or not frequency.months, "time.start", told)
        years = frequency.months * self.steps / 12 + frequency.microseconds * self.steps / _YEAR
        ends = start / _YEAR + years <= _LAST_YEAR - 1970
        require_key(ends, "time.frequency", f"the last step must be before {_LAST_YEAR}. Shorten the axis.")

    @property
    def counts_steps(self) -> bool:
        """Whether the time column holds step numbers and not timestamps."""
        return self.dtype in INTEGER_DTYPES

    @property
    def variable_length(self) -> bool:
        """Whether series may end early."""
        return self.min_steps is not None


def start_microseconds(time: Time) -> int:
    """Returns the declared start in microseconds since 1970."""
    try:
        start = dt.datetime.fromisoformat(time.start)
    except ValueError:
        told = f"an ISO 8601 timestamp such as '2024-01-01T00:00:00' is expected, got '{time.start}'."
        raise wrong_key("time.start", told) from None
    if start.tzinfo is not None:
        start = start.astimezone(dt.UTC).replace(tzinfo=None)
    elif time.zone is not None:
        try:
            start = instants(pa.array([start]), time.zone)[0].as_py().astimezone(dt.UTC).replace(tzinfo=None)
        except pa.ArrowInvalid:
            told = f"{time.start} occurs twice or never in {time.zone}, where clocks change. Write it with its offset."
            raise wrong_key("time.start", told) from None
    return (start - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)


def chosen_dtype(time: Time) -> str:
    """Returns the coarsest timestamp dtype that holds every step.

    >>> chosen_dtype(Time(frequency="20ms")), chosen_dtype(Time(zone="Asia/Tokyo"))
    ('timestamp[ms]', 'timestamp[s, tz=Asia/Tokyo]')
    """
    measure = next(measure for measure in ("s", "ms", "us") if _holds_steps(f"timestamp[{measure}]", time))
    return f"timestamp[{measure}]" if time.zone is None else f"timestamp[{measure}, tz={time.zone}]"


def _moments(time: Time, step: Steps) -> Steps:
    """Returns the microseconds since 1970 of some steps."""
    frequency, start = parse_frequency(time.frequency), start_microseconds(time)
    if frequency.microseconds:
        return start + step * frequency.microseconds
    month: np.ndarray = np.datetime64(start, "us").astype("datetime64[M]") + step * frequency.months
    return month.astype("datetime64[us]").astype(np.int64)


def steps_since(ticks: Rows, origin: Int64[np.ndarray, "..."] | int, time: Time) -> tuple[Rows, bool]:
    """Returns each row's step counted from `origin`, and whether every row was exactly on the grid.

    Ticks are microseconds, or step numbers when the time column counts steps. Rows between two steps go to the earlier
    one, or to the nearest one if that is declared.
    """
    frequency, nearest = parse_frequency(time.frequency), time.off_grid == "nearest"
    width = 1 if time.counts_steps else frequency.microseconds
    if width:
        offset = ticks - origin + (width // 2 if nearest else 0)
        steps = offset // width
        return steps, time.off_grid != "refuse" or bool(np.array_equal(steps * width, offset))
    moments = ticks.view("datetime64[us]") + np.timedelta64(15 if nearest else 0, "D")
    month = moments.astype("datetime64[M]")
    first = np.asarray(origin, dtype=np.int64).view("datetime64[us]").astype("datetime64[M]")
    offset = (month - first).astype(np.int64)
    on_grid = bool((month == moments).all() and (offset % frequency.months == 0).all())
    return offset // frequency.months, time.off_grid != "refuse" or on_grid


def step_ticks(time: Time, num_steps: int, first_step: int = 0) -> Steps:
    """Returns the tick (microsecond, or step number) of `num_steps` steps, the first of them `first_step`."""
    index = np.arange(first_step, first_step + num_steps, dtype=np.int64)
    return index if time.counts_steps else _moments(time, index)


def local_times(time: Time, num_steps: int) -> Steps:
    """Returns the local time of each step, counted from the declared start, in microseconds."""
    ticks = _moments(time, np.arange(num_steps, dtype=np.int64))
    if time.zone is None:
        return ticks
    shown = pc.local_timestamp(pa.array(ticks).cast(pa.timestamp("us", tz=time.zone)))
    return np.asarray(shown.cast(pa.int64()))


def hours_of_day(time: Time, num_steps: int) -> Steps:
    """Returns the hour (0 to 23) in which each step begins, counted from the declared start."""
    return np.asarray(local_times(time, num_steps) // _MICROSECONDS["h"] % 24)


def steps_per_day(time: Time) -> int:
    """Returns the steps of a day; 0 where steps do not make up days."""
    width, day = parse_frequency(time.frequency).microseconds, _MICROSECONDS["d"]
    return day // width if width and day % width == 0 else 0


def season_steps(time: Time, num_steps: int) -> int | None:
    """Returns the steps of the declared axis' natural season: a day, a week or a year; None if it does not fit twice.

    >>> season_steps(Time(frequency="15min"), 400)
    96
    """
    frequency = parse_frequency(time.frequency)
    day, week, width = _MICROSECONDS["d"], _MICROSECONDS["w"], frequency.microseconds
    season = 12 // frequency.months if frequency.months else (day if width < day else week) // width
    return season if 2 <= season <= num_steps // 2 else None


def _holds_steps(dtype: str, time: Time) -> bool:
    """Returns whether a time dtype holds every step: a few of them tell, for the others are equally far apart."""
    if dtype in (*INTEGER_DTYPES, "string"):
        return True
    moments = pa.array(_moments(time, np.array([0, min(1, time.steps - 1), time.steps - 1]))).cast(pa.timestamp("us"))
    return bool(moments.cast(arrow_type(dtype), safe=False).cast(moments.type, safe=False).equals(moments))


def is_zone(name: str | None) -> bool:
    """Returns whether Arrow can write the hours of a time zone; it accepts the name of any in a type."""
    try:
        pa.array([0], pa.timestamp("s", tz=name)).cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def instants(local: pa.Array, zone: str) -> pa.Array:
    """Returns the instants at which a clock in `zone` shows these times; Arrow refuses one shown twice or never."""
    return pc.assume_timezone(local.cast(pa.timestamp("us")), zone, ambiguous="raise", nonexistent="raise")
