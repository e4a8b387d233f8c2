"""Public signals from a file, to train θ_T on or to see how context differs. Nothing here may be given private data."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pyarrow.types

from understudy.errors import InputError


def read_signals(path: Path, option: str = "--public") -> np.ndarray:
    """Returns public signals [series, step, feature], NaN where missing; `option` is what errors call the file.

    A table is one series: rows in the order of time, every column of numbers a feature, other columns left out. An
    array (.npy) is [step, feature] or [series, step, feature].
    """
    array = np.load(path, allow_pickle=False) if path.suffix == ".npy" else _table(path, option)
    if array.ndim not in (2, 3) or array.dtype.kind not in "fiu" or 0 in array.shape:
        raise InputError(f"{option}: numbers [step, feature] or [series, step, feature] are expected.")
    signals = np.asarray(array if array.ndim == 3 else array[None], dtype=np.float64)
    if np.isinf(signals).any() or np.isnan(signals).all(axis=(0, 1)).any():
        raise InputError(f"{option}: finite numbers are expected, missing where unknown, and no feature that is empty.")
    return signals


def split(signals: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns (signals to learn from, signals kept out): whole series, or the end of a single one."""
    if len(signals) > 1:
        kept = max(1, round(share * len(signals)))
        return signals[:-kept], signals[-kept:]
    kept = max(1, round(share * signals.shape[1]))
    return signals[:, :-kept], signals[:, -kept:]


def _table(path: Path, option: str) -> np.ndarray:
    try:
        table = pyarrow.parquet.read_table(path) if path.suffix == ".parquet" else pyarrow.csv.read_csv(path)
    except (pa.ArrowInvalid, OSError) as problem:
        raise InputError(f"{option}: '{path}' can't be read as a table (.csv, .parquet) or array (.npy).") from problem
    numbers = [
        name
        for name in table.column_names
        if pyarrow.types.is_floating(table[name].type) or pyarrow.types.is_integer(table[name].type)
    ]
    if not numbers:
        raise InputError(f"{option}: '{path}' has no column of numbers. Expected a column for each public signal.")
    columns = [table[name].cast(pa.float64()).to_numpy(zero_copy_only=False) for name in numbers]
    return np.stack(columns, axis=1)
