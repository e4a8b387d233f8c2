"""`pub2priv-households`: simulated homes as entities, with temperature and price as public context."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from understudy.data import Population, simulate_households
from understudy.privacy.budget import default_delta
from understudy_bench.cells import Cells
from understudy_bench.data.household_weeks import simulate_household_weeks, week_contexts
from understudy_bench.pub2priv.experiment import SCALES, Experiment, Scale
from understudy_bench.pub2priv.tables import beside_spectral, measure
from understudy_bench.result import Progress, Row, result

HOMES, WEEKS = 10_000, 50


def households(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Simulated homes as entities, n = 10⁴, with temperature and price: fifty different weeks, and one shared week."""
    work = SCALES[scale]
    rows: list[Row] = []
    controls: list[Row] = []
    more: dict[str, Any] = {}
    for name, experiment in {"fifty weeks": many_weeks(work), "one week": one_week(work)}.items():
        several = name == "fifty weeks"  # with one week the published network costs hours and has nothing to learn
        found = measure(experiment, work, f"{scale} {name}", cells, progress, with_published=several)
        spectral = {line["epsilon"]: line for line in found[1] if line["method"] == "spectral"}
        rows += [{**beside_spectral(line, spectral.get(line["epsilon"])), "homes": name} for line in found[0]]
        controls += [{**line, "homes": name} for line in found[1]]
        more = more or found[2]
    data = {"name": "households", "sha256": None, "stand_in": False, "simulated": True}
    return result("pub2priv-households", scale, data, rows, controls) | more


def one_week(work: Scale, homes: int = HOMES) -> Experiment:
    """Returns homes that all lived through the same week: its context tells no more than the hour does."""
    made = simulate_households(homes + 2 * work.sampled)
    parts = np.split(np.arange(made.num_units), [homes, homes + work.sampled])
    private, real, second = (made.take_units(rows) for rows in parts)
    private = replace(private, schema=replace(private.schema, population=Population(homes)))
    return Experiment(private=private, real=real, second=second, judge=work.judge, delta=default_delta(homes))


def many_weeks(work: Scale, homes: int = HOMES, weeks: int = WEEKS) -> Experiment:
    """Returns homes of many weeks, and others of half as many weeks that nothing was learned from."""
    contexts = week_contexts(weeks + weeks // 2)
    private = simulate_household_weeks(homes // weeks, contexts[:weeks])
    each = max(1, work.sampled // (weeks // 2))
    real, second = (simulate_household_weeks(each, contexts[weeks:], seed=seed) for seed in (1_000, 2_000))
    return Experiment(
        private=private, real=real, second=second, judge=work.judge, delta=default_delta(homes), market=contexts
    )
