"""`pets-recipes`: what decides whether votes help, measured without private data.

People of a public set are split: some stay public, others play the private side with half of the activities. Recipes
are chosen here, so that no series of a benchmark's private side has a say in the choice.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from understudy.synthesizers.pets import PETS
from understudy.synthesizers.pets.recipe import BY_START, S3, Recipe
from understudy_bench.cells import Cells
from understudy_bench.pets import data as pets_data
from understudy_bench.pets.contest import without_private_data
from understudy_bench.pets.data import Windows
from understudy_bench.pets.experiment import SEEDS, Experiment, public_file
from understudy_bench.pets.results import PAPER_NAME
from understudy_bench.result import Progress, result

_EPSILON = 1.0
_PRIVATE, _JUDGED, _PUBLIC = 6_000, 1_500, 8_000
_NEAR = BY_START["public"]
VARIANTS: Mapping[str, Recipe] = {
    "ours for public starts": _NEAR,
    "one neighbour": replace(_NEAR, neighbours=1),
    "three neighbours": replace(_NEAR, neighbours=3),
    "two iterations": replace(_NEAR, iterations=2),
    "six iterations": replace(_NEAR, iterations=6),
    "degree 40 instead of 10": replace(_NEAR, schedule=S3),
    "threshold 0": replace(_NEAR, threshold=0.0),
    "threshold 1.5 deviations": replace(_NEAR, threshold=1.5),
    "500 candidates": replace(_NEAR, population=500),
    "ours for rules": BY_START["rules"],
}


def recipes(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Recipes from a public start at epsilon 1, tried on people of WISDM alone (quick: about 10 minutes)."""
    windows = pets_data.wisdm(data_root)
    private, reference, unseen, public = people(windows)
    panels = [pets_data.panel_of("wisdm", part, "overlapping-window") for part in (private, reference, unseen, public)]
    experiment = Experiment(
        private=panels[0], reference=panels[1], unseen=panels[2], public=panels[3], delta=1e-5,
        reproduction=PAPER_NAME, sampled=_JUDGED,
    )  # fmt: skip
    seeds, rows = 1 if scale == "quick" else SEEDS, []
    passed = panels[3].take_units(np.arange(_JUDGED))
    controls = [
        cells(f"{scale} holdout", partial(experiment.control, "other real series", experiment.unseen)),
        cells(f"{scale} public", partial(experiment.control, "public passed through", passed)),
    ]
    with tempfile.TemporaryDirectory() as folder:
        base = PETS(start="public", scale="bounds", public=public_file(public.values, Path(folder)))
        for name, recipe in VARIANTS.items():
            method = replace(base, recipe=recipe)
            rows.append(cells(f"{scale} {name}", partial(experiment.row, name, method, _EPSILON, seeds)))
            none = partial(experiment.row, f"no_private of {name}", without_private_data(method), _EPSILON, seeds)
            controls.append(cells(f"{scale} none {name}", none))
            progress(name, len(rows) / len(VARIANTS))
    data = {"name": "WISDM, people apart", "sha256": windows.sha256, "stand_in": False}
    return result("pets-recipes", scale, data, rows, controls)


def people(windows: Windows, seed: int = 5) -> list[Windows]:
    """Returns the private, the compared, the judge's and the public part; no person is on both sides."""
    rng = np.random.default_rng(seed)
    owners = rng.permutation(np.unique(windows.owner))
    outside = np.isin(windows.owner, owners[: len(owners) // 3])
    assert windows.activity is not None
    doing = np.isin(windows.activity, np.unique(windows.activity)[::2])
    own = rng.permutation(np.flatnonzero(~outside & doing))
    rows = [own[:_PRIVATE], own[_PRIVATE : _PRIVATE + _JUDGED], own[_PRIVATE + _JUDGED : _PRIVATE + 2 * _JUDGED]]
    return [windows.take(some) for some in (*rows, rng.permutation(np.flatnonzero(outside))[:_PUBLIC])]
