"""Windows as audits of vertical runs see them: dealt to two parties, small networks, and a transcript to invert."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from understudy.auditing.transcript import invert, recorded, rows_by_party
from understudy.data import Panel, Population
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.vflgan_ts.method import VFLGANTS
from understudy.synthesizers.vflgan_ts.recipe import Recipe
from understudy_bench.result import Row, Stopwatch, row
from understudy_bench.vertical.data import eeg, windows

_UNKNOWN, _RECORDED = 20, 40  # rows to reconstruct, iterations to listen to
_REPRODUCTION = "windows of one stock are protected one by one, as in the VFLGAN-TS paper"


@dataclass(frozen=True)
class Size:
    """How much work: shadows per arm, iterations of each, windows of Stock."""

    per_arm: int
    iterations: int
    windows: int


def some_windows(name: str, data_root: Path | None, number: int) -> tuple[Panel, dict[str, Any]]:
    """Returns some windows of Stock, Energy or EEG, drawn by a public seed, dealt to two parties, without a label."""
    panel, data = eeg(data_root) if name == "eeg" else windows(name, data_root)
    kept = np.sort(np.random.default_rng(0).permutation(panel.num_units)[:number])
    some = panel.take_units(kept)
    schema = replace(some.schema, population=Population(len(kept)), static=(), label=None)
    return replace(some, schema=schema, static=np.zeros((len(kept), 0), np.float32)), data


def small_vertical(iterations: int, mode: Literal["plain", "paper"] = "plain", seed: int = 0) -> VFLGANTS:
    """Returns VFLGAN-TS with small networks and batches, and a learning rate to get somewhere in few iterations."""
    recipe = Recipe(iterations=iterations, batch=16, features=64, learning_rate=1e-3)
    return VFLGANTS(mode=mode, scale="bounds", seed=seed, recipe=recipe)


def inversions(mode: Literal["plain", "sound", "local"], panel: Panel) -> Row:
    """Trains with networks of the published size and reads rows off what parties send."""
    watch, guarantee = Stopwatch(), Guarantee(math.inf if mode == "plain" else 10.0, 1e-5)
    method = VFLGANTS(
        mode=mode, scale="bounds", recipe=Recipe(iterations=_RECORDED, batch=64, learning_rate=2e-4, features=256)
    )
    with recorded() as sent:
        method.fit(panel, Ledger.in_memory(guarantee, reproduction=_REPRODUCTION), guarantee=guarantee)
    unknown = np.random.default_rng(1).choice(panel.num_units, _UNKNOWN, replace=False).tolist()
    found = [
        invert(sent[name], rows.series.flatten(1).double().numpy(), unknown) for name, rows in rows_by_party(panel)
    ]
    metrics = {"error / guessing": min(one.ratio for one in found), "rows": found[0].rows}
    return row(mode, metrics, seconds=watch.seconds, unit="window", sentence=" ".join(one.sentence() for one in found))
