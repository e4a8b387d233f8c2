"""`cost-voting` and `cost-pets`: what nearest-neighbour voting, an iteration of the evolution and encoders cost."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from understudy.data import Continuous, Panel, Population, PrivacyUnit, Schema, Time
from understudy.nn.nearest import nearest
from understudy.privacy.budget import Guarantee, default_delta
from understudy.privacy.ledger import Ledger
from understudy_bench.cells import Cells
from understudy_bench.pets.encoders import encoder_rows
from understudy_bench.result import Progress, Row, peak_rss_mb, result, row, spread

_VOTING = {"quick": (5_000, 20_000), "target": (5_000, 50_000), "full": (50_000, 50_000)}
_DIMENSIONS = (66, 320)  # of the general pack and of TS2Vec
_ROUNDS = 3
_SMALL = ((2_000, 2_000), (2_000, 10_000))  # candidates, private series
_CELLS = {"quick": _SMALL, "target": (*_SMALL, (10_000, 10_000)), "full": (*_SMALL, (10_000, 10_000))}
_STEPS = (128, 576)
_ITERATIONS, _LOOKAHEAD = 3, 2


def voting(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Tiled nearest neighbours beside scikit-learn's brute force, processor seconds (target: a minute)."""
    queries, base = _VOTING[scale]
    rows: list[Row] = []
    controls: list[Row] = []
    for place, dimension in enumerate(_DIMENSIONS, start=1):
        part = cells(f"{scale} {dimension}", partial(_compare, queries, base, dimension))
        rows.append(part["tiles"])
        controls += part["others"]
        progress(f"{dimension} dimensions", place / len(_DIMENSIONS))
    data = {"name": "uniform whole numbers", "sha256": None, "stand_in": False, "simulated": True}
    return result("cost-voting", scale, data, rows, controls)


def evolution(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Seconds of an iteration beside what it can't avoid, and encoders beside TS2Vec (quick: minutes)."""
    rows, sizes = [], [(steps, *sizes) for steps in _STEPS for sizes in _CELLS[scale]]
    for place, size in enumerate(sizes, start=1):
        rows.append(cells(f"{scale} {size}", partial(_in_own_process, *size)))
        progress(f"{size[1]} candidates of {size[0]} steps", 0.5 * place / len(sizes))
    encoders, controls = encoder_rows(scale, data_root, lambda name, share: progress(name, 0.5 + 0.5 * share), cells)
    data = {"name": "random walks; for encoders public windows", "sha256": None, "stand_in": False, "simulated": True}
    return result("cost-pets", scale, data, [*rows, *encoders], controls)


def _compare(queries: int, base: int, dimension: int) -> dict[str, Any]:
    """Measures three searches in turn, several rounds; all see the same points."""
    from sklearn.metrics import pairwise_distances_argmin
    from sklearn.neighbors import NearestNeighbors

    rng = np.random.default_rng(0)
    limit = int(np.sqrt(2**24 / (3 * dimension)))
    asked, points = (
        rng.integers(-limit, limit + 1, (number, dimension)).astype(np.float32) for number in (queries, base)
    )
    searches: dict[str, Callable[[], np.ndarray]] = {
        "tiles": lambda: nearest(asked, points)[0][:, 0],
        "scikit-learn argmin": lambda: pairwise_distances_argmin(asked, points),
        "scikit-learn neighbours": lambda: (
            NearestNeighbors(n_neighbors=1, algorithm="brute")
            .fit(points)
            .kneighbors(asked, return_distance=False)[:, 0]
        ),
    }
    seconds: dict[str, list[float]] = {name: [] for name in searches}
    found: dict[str, np.ndarray] = {}
    for _ in range(_ROUNDS):
        for name, search in searches.items():
            begin = time.process_time()
            found[name] = search()
            seconds[name].append(time.process_time() - begin)
    facts: dict[str, Any] = {"queries": queries, "base": base, "dimension": dimension}
    best = min(float(np.median(seconds[name])) for name in searches if name != "tiles")
    lines = []
    for name, times in seconds.items():
        metrics = {
            "cpu_seconds": spread(times),
            "times_as_fast_as_scikit_learn": best / float(np.median(times)),
            "agreement": float((found[name] == found["tiles"]).mean()),
        }
        lines.append(row(name, metrics, seconds=float(np.median(times)), **facts))
    return {"tiles": lines[0], "others": lines[1:]}


def _in_own_process(steps: int, candidates: int, series: int) -> Row:
    """Runs one size in a process of its own, so that its peak memory is its own."""
    command = [sys.executable, "-m", "understudy_bench.cost.pets", str(steps), str(candidates), str(series)]
    facts = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    unavoidable = facts["embedding"] + facts["variation"] + facts["voting"]
    metrics = {
        "cpu_seconds_per_iteration": facts["iteration"],
        "encoder_seconds": facts["embedding"],
        "autoencoder_seconds": facts["variation"],
        "voting_seconds": facts["voting"],
        "over_unavoidable": facts["iteration"] / unavoidable,
        "over_encoder_and_voting": facts["iteration"] / (facts["embedding"] + facts["voting"]),
        "private_encoding_seconds": facts["private_encoding"],
    }
    line = row("pets", metrics, epsilon=2.0, unit="entity", steps=steps, candidates=candidates, series=series)
    return {**line, "seconds": facts["iteration"], "peak_rss_mb": facts["peak_rss_mb"]}


def _walks(steps: int, series: int) -> Panel:
    rng = np.random.default_rng(0)
    moves = rng.standard_normal((series, steps, 1), dtype=np.float32)
    walks = np.cumsum(moves, axis=1) / np.sqrt(steps) + rng.standard_normal((series, 1, 1), dtype=np.float32)
    schema = Schema(
        name="walks",
        population=Population(series),
        unit=PrivacyUnit(column="walk", dtype="int64"),
        time=Time(column="step", steps=steps),
        channels=(Continuous("value", -4.0, 4.0),),
    )
    return Panel(
        schema=schema,
        values=walks.clip(-4, 4).astype(np.float32),
        lengths=np.full(series, steps, dtype=np.int32),
        unit=np.arange(series, dtype=np.int64),
        static=np.zeros((series, 0), dtype=np.float32),
    )


class _Clock:
    """Adds up processor seconds spent inside a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.seconds = function, 0.0

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        begin = time.process_time()
        try:
            return self.function(*arguments, **options)
        finally:
            self.seconds += time.process_time() - begin


def _child(steps: int, candidates: int, series: int) -> dict[str, float]:
    """Fits once with clocks around the networks, the search and the loop."""
    from dataclasses import replace
    from unittest import mock

    from understudy.synthesizers.pets import method as pets
    from understudy.synthesizers.pets import selection as votes
    from understudy.synthesizers.pets.recipe import Recipe

    modules = pets.PETS().modules_for(_walks(steps, 1).schema)
    network = modules.variation.network  # type: ignore[attr-defined] # of the general pack
    evolving = pets.evolve
    clocks = {"encode": _Clock(network.encode), "decode": _Clock(network.decode)}
    network.encode, network.decode = clocks["encode"], clocks["decode"]
    clocks["embedding"] = _Clock(modules.similarity)
    timed = replace(modules, similarity=clocks["embedding"])
    loop, search, before = _Clock(lambda *arguments: list(evolving(*arguments))), _Clock(votes.nearest), {}

    def evolve(*arguments: Any) -> Any:
        before.update({name: clock.seconds for name, clock in clocks.items()})
        return loop(*arguments)

    recipe = Recipe(iterations=_ITERATIONS, population=candidates, lookahead=_LOOKAHEAD)
    guarantee = Guarantee(2.0, default_delta(series))
    with (
        mock.patch.object(pets.PETS, "modules_for", return_value=timed),
        mock.patch.object(votes, "nearest", search),
        mock.patch.object(pets, "evolve", evolve),
    ):
        method = pets.PETS(scale="bounds", recipe=recipe)
        method.fit(_walks(steps, series), Ledger.in_memory(guarantee), guarantee=guarantee)
    inside = {name: (clock.seconds - before[name]) / _ITERATIONS for name, clock in clocks.items()}
    return {
        "embedding": inside["embedding"],
        "variation": inside["encode"] + inside["decode"],
        "iteration": loop.seconds / _ITERATIONS,
        "voting": search.seconds / _ITERATIONS,
        "private_encoding": before["embedding"],
        "peak_rss_mb": peak_rss_mb(),
    }


if __name__ == "__main__":
    print(json.dumps(_child(*map(int, sys.argv[1:]))))
