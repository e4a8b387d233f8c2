"""`vertical-…`: VFLGAN-TS beside what it is compared with, without and with noise, and beside vertical `spectral`.

`dpvflgan-ts` has the published noise for an epsilon of 10 that does not hold (`--preset paper`).

The metrics are those of the suite `vertical`: AWD (Eq. 23) and AADA (Eq. 26) everywhere; on the sine sets amplitudes;
on windows the four errors of a forecaster, on EEG and homes the four accuracies of a classifier, and TPD (Eq. 24), kept
at the best epoch and, to compare with published figures, at the worst. Stock, Energy and EEG are windows of one series
each: as in the VFLGAN-TS paper the unit is a window and protects no person. Sines and homes are entities.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from understudy.data import Panel
from understudy.evaluation.metric import Measure
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.independent import Independent
from understudy.synthesizers.spectral import Spectral
from understudy.synthesizers.vflgan_ts.method import VFLGANTS
from understudy.synthesizers.vflgan_ts.published import CLAIMED_EPSILON
from understudy.synthesizers.vflgan_ts.recipe import Recipe
from understudy_bench.cells import Cells
from understudy_bench.metrics.vertical.distances import memory_difference, step_distance
from understudy_bench.metrics.vertical.sine import FREQUENCIES
from understudy_bench.metrics.vertical.sine import METRICS as SINE
from understudy_bench.metrics.vertical.tasks import classification_task, forecast_task, nearest_task
from understudy_bench.result import Progress, result
from understudy_bench.vertical.data import eeg, homes, sines, split, windows
from understudy_bench.vertical.paper import CLAIMED, PARTIES, PLAIN
from understudy_bench.vertical.rivals import MODELS, RIVALS, Rival
from understudy_bench.vertical.trial import Cell, Trial

EPSILONS = (10.0, 8.0, 6.0, 4.0, 2.0)
NUM_PARTIES = (2, 4, 6, 8, 10)  # VFLGAN-TS, Table 5
_HOMES = 10_000
# Networks that noise leaves something of: a tenth of the published parameters, more rows per iteration, larger steps.
SOUND = Recipe(iterations=600, batch=128, features=64, learning_rate=4e-3)
_RATE = {"sine-6": 5e-4, "eeg": 5e-4}  # learning rate of the released code, where it is not 2e-4
_DISTANCES: dict[str, Measure] = {"awd": step_distance, "aada": memory_difference}
_FORECASTS: dict[str, Measure] = {"tpd": forecast_task("best"), "tpd_worst": forecast_task("worst_val")}

_SOUND, NOISED = "vflgan-ts, sound", "dpvflgan-ts"  # the second as published: its noise protects nobody
Task = tuple[str, Synthesizer, float]  # label, method, epsilon
Working = Literal["bounds", "bought"]


@dataclass(frozen=True)
class Scale:
    """How much work a benchmark does.

    Attributes:
        iterations: Updates of the generators without noise.
        haste: Factor by which published learning rates are raised, to get somewhere in few iterations.
        rows: Synthetic and real series that metrics look at.
        cap: Most updates of a network that judges.
        seeds: Of rows that are judged: without noise, and at the largest and the least epsilon.
    """

    iterations: int
    haste: float
    rows: int
    cap: int | None
    seeds: int = 3


SCALES = {
    "quick": Scale(800, 5.0, 600, 200),
    "target": Scale(6000, 2.0, 3000, 2000),
    "full": Scale(11400, 1.0, 4000, None),
}
# Sines train as published at every scale: 200 epochs of 32 batches, as for EEG, which has as many rows; the paper does
# not say how many for sines.
SINES = Scale(6400, 1.0, 600, None)


def sine(name: str, scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Sine sets: amplitudes that belong together across parties (an hour or two)."""
    measures = {metric.name.removeprefix("vertical."): metric.measure for metric in SINE}
    data = {"name": name, "sha256": None, "stand_in": False, "simulated": True}
    trial = _trial(name, scale, sines(name), measures)
    return _compared(trial, scale, _published(name, scale), data, progress, cells)


def window(name: str, scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Windows of Stock or Energy: a forecaster trained on synthetic series (quick: 15 minutes)."""
    panel, data = windows(name, data_root)
    return _compared(_trial(name, scale, panel, _FORECASTS), scale, _published(name, scale), data, progress, cells)


def waves(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """EEG windows of two classes: a classifier trained on synthetic series (quick: minutes)."""
    panel, data = eeg(data_root)
    tasks = _published("eeg", scale)
    trial = _trial("eeg", scale, panel, {"tpd": classification_task, "nearest": nearest_task})
    return _compared(trial, scale, tasks, data, progress, cells)


def households(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Ten thousand simulated homes, entity level, two parties, label, gaps and lengths (quick: 15 minutes)."""
    panel, data = homes(_HOMES + _HOMES // 4)  # a quarter more, to be kept out
    trial = _trial("households", scale, panel, {"tpd": classification_task})
    return _compared(trial, scale, _published("households", scale, working="bought"), data, progress, cells)


def more_parties(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Energy windows at 2 to 10 parties: Table 5 and Fig. 12 of VFLGAN-TS (quick: 15 minutes)."""
    rows: list[Cell] = []
    data: dict[str, Any] = {}
    for place, number in enumerate(NUM_PARTIES):
        panel, data = windows("energy", data_root, number)
        trial = replace(_trial("energy", scale, panel, _FORECASTS), facts={"parties": number})
        method = _plain("energy", scale, "vflgan-ts")
        for seed in range(SCALES[scale].seeds):
            told: dict[str, Any] = {"seed": seed, "shown": not seed}
            fit = partial(trial.fitted, "vflgan-ts", method, math.inf, PARTIES.get(number, {}), **told)
            rows.append(cells(f"{scale} vflgan-ts {number} {seed}", fit))
        rows.append(cells(f"{scale} spectral {number}", partial(trial.fitted, "spectral", Spectral(), 10.0)))
        progress(f"{number} parties", (place + 1) / (len(NUM_PARTIES) + 1))
    controls = _controls(trial, scale, cells)
    curves = {f"{cell['row']['parties']} parties": {"awd": cell["picture"]["awd"]} for cell in rows if cell["picture"]}
    return {**result("vertical-parties", scale, data, _rows(rows), _rows(controls)), "vertical": curves}


def _compared(
    trial: Trial, scale: str, plain: Sequence[Task], data: dict[str, Any], progress: Progress, cells: Cells
) -> dict[str, Any]:
    """Everything without noise, then `sound` and `spectral` at every epsilon, then the controls."""
    repeats = _size(trial.name, scale).seeds
    tasks: list[tuple[Task, int]] = [(one, seed) for one in plain for seed in range(repeats)]
    for epsilon in EPSILONS:
        tasks.append((("spectral", Spectral(), epsilon), 0))
        seeds = repeats if epsilon in (EPSILONS[0], EPSILONS[-1]) else 1
        tasks += [((_SOUND, VFLGANTS(recipe=SOUND), epsilon), seed) for seed in range(seeds)]
    rows: list[Cell] = []
    for place, ((label, method, epsilon), seed) in enumerate(tasks, start=1):
        claimed = CLAIMED.get(trial.name, {}).get(CLAIMED_EPSILON if label == NOISED else epsilon)
        paper = claimed if label in (NOISED, _SOUND) else PLAIN.get(trial.name, {}).get(label)
        shown = epsilon >= EPSILONS[0] and not seed
        fit = partial(trial.fitted, label, method, epsilon, paper, seed=seed, shown=shown)
        rows.append(cells(f"{scale} {label} {epsilon:g} {seed}", fit))
        progress(f"{label}, epsilon {epsilon:g}", place / (len(tasks) + 2))
    controls = _controls(trial, scale, cells)
    found = result(f"vertical-{trial.name.replace('-', '')}", scale, data, _rows(rows), _rows(controls))
    return {**found, "vertical": _pictures([controls[0], *rows])}


def _controls(trial: Trial, scale: str, cells: Cells) -> list[Cell]:
    return [
        cells(f"{scale} holdout", trial.holdout),
        cells(f"{scale} independent", partial(trial.fitted, "independent", Independent(), 1.0)),
    ]


def _rows(found: Iterable[Cell]) -> list[dict[str, Any]]:
    return [cell["row"] for cell in found]


def _pictures(found: Iterable[Cell]) -> dict[str, Any]:
    """Numbers of pictures by method; at the largest epsilon where there are several."""
    return {cell["row"]["method"]: cell["picture"] for cell in found if cell["picture"] is not None}


def _trial(name: str, scale: str, panel: Panel, measures: dict[str, Measure]) -> Trial:
    train, rest = split(panel)
    size = _size(name, scale)
    return Trial(
        name=name,
        train=train,
        rest=rest,
        measures={**_DISTANCES, **measures},
        num_rows=size.rows,
        iteration_cap=size.cap,
        facts={},
    )


def _published(name: str, scale: str, working: Working = "bounds") -> list[Task]:
    """VFLGAN-TS and its rivals without noise; on sines those of the paper's Table 1."""
    models = [*PLAIN[name], NOISED] if name in FREQUENCIES else [*MODELS, NOISED]
    return [(model, _plain(name, scale, model, working), math.inf) for model in models]


def _plain(name: str, scale: str, model: str, working: Working = "bounds") -> VFLGANTS:
    """A method without noise, as published but for haste."""
    recipe = _recipe(name, scale, model)
    if model in RIVALS:
        return Rival(mode="plain", scale=working, model=model, recipe=recipe)
    return VFLGANTS(mode="paper" if model == NOISED else "plain", scale=working, recipe=recipe)


def _recipe(name: str, scale: str, model: str) -> Recipe:
    size = _size(name, scale)
    kind = _TwoSines if name == "sine-2" else Recipe
    return kind(
        iterations=size.iterations // (5 if model == "vflgan" else 1),  # its critics get five rounds each
        batch=64,
        learning_rate=size.haste * _RATE.get(name, 2e-4),
        features=256,
    )


@dataclass(frozen=True, kw_only=True)
class _TwoSines(Recipe):
    """What the released code has for two sines and for no other set."""

    @property
    def coupling(self) -> float:
        """β of Eq. 11."""
        return 10.0

    @property
    def widths(self) -> tuple[int, ...]:
        """Hidden layers of an attribute discriminator."""
        return 256, 128, 64


def _size(name: str, scale: str) -> Scale:
    return SINES if name in FREQUENCIES else SCALES[scale]
