"""`pets-ablation`: one option at a time on METR-LA at epsilon 5, as in Table 1 of PETS."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from understudy.synthesizers.pets import PETS
from understudy.synthesizers.pets.recipe import S3, Recipe
from understudy_bench.cells import Cells
from understudy_bench.pets import data as pets_data
from understudy_bench.pets.contest import without_private_data
from understudy_bench.pets.experiment import Experiment, public_file
from understudy_bench.pets.results import PAPER_NAME, experiment_of
from understudy_bench.result import Progress, Row, result

_EPSILON, _SAMPLED = 5.0, 435
_DEFAULT = Recipe(
    iterations=11,
    schedule=S3,
    lookahead=4,
    neighbours=1,
    threshold=8.0,
    as_published=True,
)
SCHEDULES = {
    "S1": (20, 20, 20, 15, 15, 15, 10, 10, 5, 5, 5),
    "S2": (25, 25, 20, 20, 15, 15, 10, 10, 8, 6, 5),
    "S3": S3,
    "S4": (45, 40, 35, 30, 25, 20, 15, 10, 10, 5, 5),
    "S5": (50, 45, 40, 35, 30, 25, 20, 15, 10, 5, 5),
    "S6": (60, 55, 50, 45, 40, 35, 30, 25, 20, 15, 10),
    "S7": (95, 85, 75, 65, 55, 45, 35, 25, 20, 15, 10),
}
# PETS, Table 1: the best value of each option, where it says which, with its C-FID, RMSE and MAE.
_PAPER: dict[str, tuple[str | None, float, float, float]] = {
    "delta": (None, 1.77, 0.964, 0.599),
    "threshold": ("12.0", 1.90, 0.953, 0.594),
    "lookahead": (None, 1.74, 0.979, 0.598),
    "neighbours": ("1", 1.85, 0.952, 0.592),
    "private_fraction": (None, 1.73, 0.944, 0.573),
    "schedule": ("S2", 1.90, 1.007, 0.605),
}
OPTIONS: dict[str, tuple[Any, ...]] = {
    "delta": (1e-4, 1e-5, 1e-6),
    "threshold": (2.0, 4.0, 8.0, 12.0, 16.0),
    "lookahead": (0, 4, 8, 12, 16),
    "neighbours": (1, 3, 5, 7),
    "private_fraction": (0.5, 0.75, 1.0, 1.25, 1.5),
    "schedule": tuple(SCHEDULES),
}


# Values that findings compare or the paper prints, beside the default: three seeds at every scale.
_REPEATED = {"threshold": (4.0, 12.0, 16.0), "neighbours": (5,), "schedule": ("S2",)}
_DELTA = 1e-5
_UNNAMED = "our best beside the paper's, whose value it does not name"


def ablation(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Thresholds, lookahead, neighbours, population, schedules and delta of the published recipe (about an hour)."""
    public, private = (pets_data.traffic(name, data_root) for name in ("pemsd7", "metr-la"))
    experiment = experiment_of(
        "traffic", "overlapping-window", (private, public), delta=_DELTA, reproduction=PAPER_NAME, sampled=_SAMPLED
    )
    seeds = 1 if scale == "quick" else 3
    rows, total = [], sum(map(len, OPTIONS.values()))
    with tempfile.TemporaryDirectory() as folder:
        base = PETS(scale="bounds", public=public_file(public.values, Path(folder)), recipe=_DEFAULT)
        for option, value in ((option, value) for option, values in OPTIONS.items() for value in values):
            here = replace(experiment, delta=value) if option == "delta" else experiment
            method = base if option == "delta" else replace(base, recipe=changed(option, value, experiment))
            usual = (method, here.delta) == (base, _DELTA)  # one row of figures, whichever option it stands for
            often = 3 if usual or value in _REPEATED.get(option, ()) else seeds
            key, name = "default" if usual else f"{option} {value}", f"{option} = {value}"
            line = cells(f"{scale} {key} {often}", partial(here.row, name, method, _EPSILON, often))
            rows.append({**line, "method": name})
            progress(name, len(rows) / total)
        none = partial(experiment.row, "no_private", without_private_data(base), _EPSILON, seeds)
        controls = [
            cells(f"{scale} none", none),
            cells(f"{scale} holdout", lambda: experiment.control("other real series", experiment.unseen)),
        ]
    data = {"name": "METR-LA, one week", "sha256": private.sha256, "public": "PeMSD7", "stand_in": True}
    return result("pets-ablation", scale, data, quoted(rows), controls)


def changed(option: str, value: Any, experiment: Experiment) -> Recipe:
    """Return the published recipe with one option changed."""
    if option == "schedule":
        return replace(_DEFAULT, schedule=SCHEDULES[value])
    if option == "private_fraction" and value != 1.0:
        return replace(_DEFAULT, population=round(value * experiment.private.num_series))
    return _DEFAULT if option == "private_fraction" else replace(_DEFAULT, **{option: value})


def quoted(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows with the paper's figures beside the value it found best; if it does not say, beside our best."""
    printed: dict[str, dict[str, Any]] = {}
    for option, (best, *figures) in _PAPER.items():
        own = [line for line in rows if line["method"].startswith(f"{option} = ")]
        nearest = min(own, key=lambda line: float(line["metrics"]["c_fid"]["mean"]))["method"]
        named = nearest if best is None else f"{option} = {best}"
        said = dict(zip(("c_fid", "forecast_rmse", "forecast_mae"), figures, strict=True))
        printed[named] = {"paper": said, **({"quoted": _UNNAMED} if best is None else {})}
    return [{**line, **printed.get(line["method"], {"paper": {}})} for line in rows]
