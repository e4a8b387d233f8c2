"""Local times and instants: which moment a clock in a declared time zone shows, and back."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int64


def is_zone(name: str | None) -> bool:
    """Tells whether Arrow can write the hours of a time zone; it accepts the name of any in a type."""
    try:
        pa.array([0], pa.timestamp("s", tz=name)).cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def instants(local: pa.Array, zone: str) -> pa.Array:
    """Returns the moments at which a clock in `zone` shows these times.

    Raises:
        pa.ArrowInvalid: A time is shown twice or never, because the clocks change.
    """
    return pc.assume_timezone(local.cast(pa.timestamp("us")), zone, ambiguous="raise", nonexistent="raise")


def local_ticks(ticks: Int64[np.ndarray, " row"], zone: str) -> Int64[np.ndarray, " row"]:
    """Returns what a clock in `zone` shows at these moments, both in microseconds since 1970."""
    shown = pc.local_timestamp(pa.array(ticks).cast(pa.timestamp("us", tz=zone)))
    local: np.ndarray = shown.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return local
