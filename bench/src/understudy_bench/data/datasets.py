"""Public benchmark files that users bring themselves; the package ships loaders and no data.

Bounds are fixed round numbers, not computed when a file is loaded. They were chosen with the ranges of these
public files in view, so results on them do not show what bounds declared unseen would give.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from understudy.data import Channel, Continuous, Integer, Population, PrivacyUnit, Schema, Time, read_panel
from understudy.data.panel import Panel
from understudy.errors import InputError, MissingData
from understudy.privacy.canonical import file_sha256 as file_sha256

DATA_ROOT_VARIABLE = "UNDERSTUDY_DATA"
WINDOW_STEPS = 24


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """Which file a result was computed from.

    Attributes:
        name: Name of the benchmark dataset.
        path: Where the file was found.
        sha256: Hash of the file as it is on disk.
        stand_in: Whether it takes the place of data that is not public.
    """

    name: str
    path: Path
    sha256: str
    stand_in: bool


@dataclass(frozen=True, kw_only=True)
class _Dataset:
    file: str
    published: str
    frequency: str
    start: str
    num_windows: int
    channels: tuple[Channel, ...]
    ignore: tuple[str, ...] = ()


def _price(name: str) -> Continuous:
    return Continuous(name, 0.0, 1500.0)


def _indoor(room: int) -> tuple[Channel, ...]:
    low = -20.0 if room == 6 else 0.0  # sensor 6 hangs outside
    return (Continuous(f"T{room}", low, 40.0), Continuous(f"RH_{room}", 0.0, 100.0))


DATASETS: Mapping[str, _Dataset] = {
    "stock": _Dataset(
        file="stock/stock_data.csv",
        published="Google daily prices 2004 to 2019, github.com/jsyoon0823/TimeGAN",
        frequency="1d",
        start="2004-08-19T00:00:00",
        num_windows=3661,
        channels=(
            *(_price(name) for name in ("Open", "High", "Low", "Close", "Adj_Close")),
            Continuous("Volume", 0.0, 100_000_000.0),
        ),
    ),
    "energy": _Dataset(
        file="energy/energydata_complete.parquet",
        published="Appliances energy prediction, UCI Machine Learning Repository, dataset 374",
        frequency="10min",
        start="2016-01-11T17:00:00",
        num_windows=19711,
        channels=(
            Integer("Appliances", 0, 1200),
            Integer("lights", 0, 100),
            *(channel for room in range(1, 10) for channel in _indoor(room)),
            Continuous("T_out", -20.0, 40.0),
            Continuous("Press_mm_hg", 700.0, 800.0),
            Continuous("RH_out", 0.0, 100.0),
            Continuous("Windspeed", 0.0, 20.0),
            Continuous("Visibility", 0.0, 100.0),
            Continuous("Tdewpoint", -20.0, 30.0),
            Continuous("rv1", 0.0, 50.0),
            Continuous("rv2", 0.0, 50.0),
        ),
        ignore=("date",),
    ),
}
DATASET_NAMES = tuple(DATASETS)


def windows_schema(name: str) -> Schema:
    """Returns the public contract of a dataset's overlapping windows, which protects no person."""
    dataset = _dataset(name)
    return Schema(
        name=name,
        population=Population(dataset.num_windows),
        unit=PrivacyUnit(kind="overlapping-window", column="window", dtype="int64"),
        time=Time(frequency=dataset.frequency, start=dataset.start, steps=WINDOW_STEPS),
        channels=dataset.channels,
        ignore=dataset.ignore,
    )


def load_windows(name: str, root: str | Path | None = None) -> tuple[Panel, DatasetInfo]:
    """Returns the dataset's 24-step windows at every step, in the file's own units, and where they came from.

    Args:
        name: One of `DATASET_NAMES`.
        root: Folder with the user's copies; the environment variable UNDERSTUDY_DATA if not given.

    Privacy:
        The data is public. Each window counts as a unit only to repeat published experiments.
    """
    path = find_dataset(name, root)
    panel = read_panel(path, windows_schema(name))
    return panel, DatasetInfo(name=name, path=path, sha256=file_sha256(path), stand_in=False)


def find_dataset(name: str, root: str | Path | None = None) -> Path:
    """Returns where a dataset's file is; what is missing is named with its publisher."""
    dataset = _dataset(name)
    return find_file(name, dataset.file, dataset.published, root)


def find_file(name: str, file: str, published: str, root: str | Path | None = None) -> Path:
    """Returns where a public file is in the user's data folder; what is missing is named with its publisher."""
    folder = root if root is not None else os.environ.get(DATA_ROOT_VARIABLE)
    if folder is None:
        raise MissingData(
            f"Dataset '{name}' needs a data folder. Set {DATA_ROOT_VARIABLE} or pass it; put there "
            f"{file} ({published})."
        )
    path = Path(folder) / file
    if not path.is_file():
        raise MissingData(f"Dataset '{name}' is not at {path}. Put it there; it is published: {published}.")
    return path


def _dataset(name: str) -> _Dataset:
    if name not in DATASETS:
        raise InputError(f"Unknown dataset '{name}'. Known are: {', '.join(DATASETS)}.")
    return DATASETS[name]
