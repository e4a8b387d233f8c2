"""The public and the private side of each PETS experiment, as windows of one channel (PETS, section 4).

Windows are standardised one at a time, or by sensor as the paper does for traffic; the second is not private and is
only here to repeat the paper. Stand-ins are named: PeMSD7 for PeMS-BAY, one week of METR-LA for seventeen.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from scipy.signal import resample_poly

from understudy.data import Continuous, Panel, Population, PrivacyUnit, Schema, Time
from understudy.errors import MissingData
from understudy_bench.data.datasets import DATA_ROOT_VARIABLE, file_sha256

ACTIVITY_STEPS, TRAFFIC_STEPS = 128, 576
BOUND = 4.0  # standardised values beyond are clipped, as the paper does for its baseline
_FALSE_JOIN = 3.0  # windows of the reconstructed HAR file with a larger joint score are joined wrongly
_FILES = {
    "wisdm": ("wisdm/phone_accel.parquet", "WISDM Smartphone and Smartwatch Activity, UCI dataset 507"),
    "har": ("har/har_windows_reconstructed.npz", "Human Activity Recognition Using Smartphones, UCI dataset 240"),
    "pemsd7": ("pemsd7/PeMSD7.csv", "PeMSD7, one week of traffic speeds, github.com/VeritasYin/STGCN_IJCAI-18"),
    "metr-la": ("metr_la/los_speed.csv", "METR-LA, one week of traffic speeds, github.com/lehaifeng/T-GCN"),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Windows:
    """Standardised windows [window, step, 1], whose they are and, where it is known, what the owner was doing."""

    values: np.ndarray
    owner: np.ndarray
    sha256: str
    activity: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> "Windows":
        """Returns some windows, sorted by owner."""
        rows = rows[np.argsort(self.owner[rows], kind="stable")]
        activity = None if self.activity is None else self.activity[rows]
        return Windows(values=self.values[rows], owner=self.owner[rows], sha256=self.sha256, activity=activity)

    def split(self, holdout_fraction: float, seed: int) -> tuple["Windows", "Windows"]:
        """Returns (train, holdout), windows drawn at random as in the paper."""
        order = np.random.default_rng(seed).permutation(len(self.values))
        cut = round(holdout_fraction * len(order))
        return self.take(np.sort(order[cut:])), self.take(np.sort(order[:cut]))


def find(name: str, root: Path | None) -> Path:
    """Returns where a file is; a missing one is named with its publisher."""
    file, published = _FILES[name]
    folder = root if root is not None else os.environ.get(DATA_ROOT_VARIABLE)
    path = None if folder is None else Path(folder) / file
    if path is None or not path.is_file():
        raise MissingData(f"'{name}' needs {file} in the folder that {DATA_ROOT_VARIABLE} names; it is {published}.")
    return path


def wisdm(root: Path | None) -> Windows:
    """Returns WISDM's acceleration magnitude, resampled from 20 to 50 Hz, each window standardised by itself."""
    path = find("wisdm", root)
    table = pq.read_table(path, columns=["subject", "activity", "x", "y", "z"])
    subject = table["subject"].to_numpy()
    _, activity = np.unique(table["activity"].to_numpy(zero_copy_only=False).astype(str), return_inverse=True)
    size = np.sqrt(sum(table[axis].to_numpy().astype(np.float64) ** 2 for axis in ("x", "y", "z")))
    ends = np.flatnonzero((np.diff(subject) != 0) | (np.diff(activity) != 0)) + 1
    windows, owners, doing = [], [], []
    for begin, end in zip([0, *ends], [*ends, len(size)], strict=True):
        resampled = resample_poly(size[begin:end], 5, 2)
        cut = resampled[: len(resampled) // ACTIVITY_STEPS * ACTIVITY_STEPS].reshape(-1, ACTIVITY_STEPS)
        windows.append(cut)
        owners.append(np.full(len(cut), subject[begin]))
        doing.append(np.full(len(cut), activity[begin]))
    values = standardised(np.concatenate(windows))
    owner, now = np.concatenate(owners), np.concatenate(doing)
    return Windows(values=values[:, :, None], owner=owner, sha256=file_sha256(path), activity=now)


def har(root: Path | None) -> Windows:
    """Returns UCI HAR's acceleration magnitude in its half-overlapping windows, each standardised by itself."""
    path = find("har", root)
    with np.load(path, allow_pickle=False) as file:
        good = file["joint_score"] <= _FALSE_JOIN
        size = np.sqrt((file["X"][good][:, :, :3].astype(np.float64) ** 2).sum(axis=2))
        owner, now = file["subject"][good], file["activity"][good]
    return Windows(values=standardised(size)[:, :, None], owner=owner, sha256=file_sha256(path), activity=now)


def traffic(name: str, root: Path | None) -> Windows:
    """Returns two-day windows of a week of sensors, standardised by sensor as in the paper (not private)."""
    speed, sha256 = speeds(name, root)
    scaled = standardised(speed)
    per_sensor = scaled.shape[1] // TRAFFIC_STEPS
    cut = scaled[:, : per_sensor * TRAFFIC_STEPS].reshape(-1, TRAFFIC_STEPS)
    owner = np.repeat(np.arange(len(scaled)), per_sensor)
    return Windows(values=cut[:, :, None].astype(np.float32), owner=owner, sha256=sha256)


def speeds(name: str, root: Path | None) -> tuple[np.ndarray, str]:
    """Returns speeds [sensor, five minutes] of a week, and the file's hash."""
    path = find(name, root)
    lines = path.read_text(encoding="utf-8").split()[int(name == "metr-la") :]  # METR-LA has a line of names
    whole = re.sub(r"(e[+-]\d\d)\.\d+", r"\1", ",".join(lines))  # equal numbers of PeMSD7's first line were numbered
    return np.fromstring(whole, sep=",").reshape(len(lines), -1).T, file_sha256(path)


def standardised(rows: np.ndarray) -> np.ndarray:
    """Returns rows with mean 0 and deviation 1, clipped; a row that does not move becomes 0."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    deviation = centred.std(axis=1, keepdims=True)
    return (centred / np.where(deviation > 1e-6, deviation, 1)).clip(-BOUND, BOUND).astype(np.float32)


def panel_of(name: str, windows: Windows, unit: str) -> Panel:
    """Returns the windows as a panel that protects each of them ("overlapping-window") or their owners ("entity")."""
    entity, windows = unit == "entity", windows.take(np.arange(len(windows.values)))
    owners, index, counts = np.unique(windows.owner, return_inverse=True, return_counts=True)
    num_windows, num_steps = windows.values.shape[:2]
    kind = PrivacyUnit(kind="entity", column="owner", max_series=int(counts.max()), dtype="int64")
    schema = Schema(
        name=name,
        population=Population(len(owners) if entity else num_windows),
        unit=kind if entity else PrivacyUnit(kind="overlapping-window", column="window", dtype="int64"),
        time=Time(
            column="when" if entity else None,
            steps=num_steps,
            align="relative",
            series_column="part" if entity else None,
        ),
        channels=(Continuous("value", -BOUND, BOUND),),
    )
    return Panel(
        schema=schema,
        values=windows.values,
        lengths=np.full(num_windows, num_steps, dtype=np.int32),
        unit=(index if entity else np.arange(num_windows)).astype(np.int64),
        static=np.zeros((num_windows, 0), dtype=np.float32),
    )
