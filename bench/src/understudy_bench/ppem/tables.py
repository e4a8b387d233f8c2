"""`ppem-credit`, `ppem-mimic`, `ppem-series`: PPEM beside what it is compared with, hidden marginal and all.

Rows: PPEM without noise, with and without its penalty (Table 1 of the paper), with a stated target, and its sound form
at two epsilons. Beside them the paper's baselines, `spectral`, real
rows that nobody learned from, and `independent`, which never saw any.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from understudy.data import Panel
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.independent import Independent
from understudy.synthesizers.ppem.recipe import PAPER, Recipe
from understudy.synthesizers.spectral import Spectral
from understudy_bench.baselines.dp_gan import DpGan
from understudy_bench.baselines.pate_gan import PateGan
from understudy_bench.cells import Cells
from understudy_bench.ppem import data as ppem_data
from understudy_bench.ppem.baselines import BASELINES
from understudy_bench.ppem.paper import CREDIT, MIMIC
from understudy_bench.ppem.work import FEW_SEEDS, Scale, Work
from understudy_bench.result import Progress, Row, result

_Task = tuple[str, Callable[[], Row]]  # what a row is called, and what makes it
EPSILONS = (1.0, 5.0)
_EFFECT = 0.1  # that the row `checked` asks for, in shares of the declared range
SCALES = {
    "quick": Scale(1500, 20_000, 4000),
    "target": Scale(6000, 20_000, 10_000),
    "full": Scale(60_000, 20_000, 20_000),
}
_LMDP, _WITHOUT, _SOUND = "ppem, lmdp", "ppem, lmdp without penalty", "ppem, sound"
_COMPARED = (_SOUND, "dp-gan", "pate-gan")  # rows that findings compare, over three seeds


@dataclass(frozen=True)
class Secret:
    """What is hidden, a public marginal in its place, the channel that regression predicts, and published figures."""

    sensitive: tuple[str, ...]
    stated: dict[str, list[float | str]]
    regressed: str | None = None
    paper: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def credit(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Part of the credit-card table: two factors hidden (target: hours)."""
    panel, data = ppem_data.credit(data_root)
    values: list[float | str] = [*range(-3, 4)]
    first, second = (channel.name for channel in panel.schema.channels[:2])
    secret = Secret((f"{first}+{second}",), {first: values, second: values}, regressed="Amount", paper=CREDIT)
    return _run("ppem-credit", scale, panel, data, secret, progress, cells)


def mimic(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """MIMIC-III: 50 diagnoses hidden, and 200; five of the demo's 100 patients without the tables (target: an hour)."""
    panel, data = ppem_data.mimic(data_root)
    found: dict[str, Any] = {}
    for number in (5,) if data["stand_in"] else (50, 200):
        hidden = [channel.name for channel in panel.schema.channels[:number]]
        secret = Secret(("+".join(hidden),), {name: [0, 1] for name in hidden}, paper=MIMIC)
        part = _run("ppem-mimic", scale, panel, data, secret, progress, partial(_apart, cells, number), private=False)
        told = {side: [{**line, "hidden": number} for line in part[side]] for side in ("rows", "controls")}
        found = {**part, **{side: [*found.get(side, ()), *lines] for side, lines in told.items()}}
    return found


def _apart(cells: Cells, number: int, key: str, compute: Callable[[], Row]) -> Row:
    """Returns a cell of the run that hides so many columns."""
    return cells(f"{key} {number} hidden", compute)


def series(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Simulated homes: the tariff mix and the mean load hidden (target: hours)."""
    work = replace(
        SCALES[scale], iterations=2 * SCALES[scale].iterations // 5, seeds=3
    )  # rows are eleven times as long
    panel, data = ppem_data.homes(work.homes)
    stated = {"tariff": ["flat", "night", "dynamic"], "mean(load_kw)": np.linspace(0.5, 4, 71).tolist()}
    return _run("ppem-series", scale, panel, data, Secret(("tariff+mean(load_kw)",), stated), progress, cells)


def _run(
    name: str, scale: str, panel: Panel, data: dict[str, Any], secret: Secret, progress: Progress,
    cells: Callable[[str, Callable[[], Row]], Row], *, private: bool = True,
) -> dict[str, Any]:  # fmt: skip
    train, rest = ppem_data.split(panel)
    size = SCALES[scale]
    if panel.num_steps > 1:  # rows are many times as long
        size = replace(size, iterations=2 * size.iterations // 5, seeds=3)
    work = Work(train, rest, secret.sensitive, size, secret.regressed, secret.paper)
    tasks = [*_without_noise(work), *(_with_noise(work, secret) if private else ())]
    tasks += [(kind, partial(work.baseline, kind)) for kind in BASELINES]
    checks: list[_Task] = [("holdout", work.holdout)]
    checks += [(f"spectral {e:g}", partial(work.fitted, "spectral", Spectral(), e)) for e in EPSILONS]
    checks.append(("independent", partial(work.fitted, "independent", Independent(), 1.0)))
    rows: list[Row] = []
    controls: list[Row] = []
    for place, (label, task) in enumerate([*tasks, *checks], start=1):
        (rows if place <= len(tasks) else controls).append(cells(f"{scale} {label}", task))
        progress(label, place / (len(tasks) + len(checks)))
    return {**result(name, scale, data, rows, controls), "ppem": _pictures(rows), "notes": notes(rows, controls)}


def _without_noise(work: Work) -> list[_Task]:
    """Rows that protect no unit: with and without the penalty, the paper's networks, a stated target."""
    recipe = Recipe(iterations=work.scale.iterations)
    published = replace(PAPER, iterations=recipe.iterations, ema=recipe.ema)
    judged = {_LMDP: recipe, _WITHOUT: replace(recipe, penalty=0.0)}
    found: list[_Task] = []
    for label, own in judged.items():
        method, seeds = work.ppem(mode="lmdp", recipe=own), range(work.scale.seeds)
        found.append((label, partial(work.fitted, label, method, tested_penalty=own.penalty, seeds=seeds)))
    label = "ppem, lmdp, networks of the paper"
    found.append((label, partial(work.fitted, label, work.ppem(mode="lmdp", recipe=published))))
    label, stated = "ppem, uniform", work.ppem(mode="lmdp", recipe=recipe, target="uniform")
    return [*found, (label, partial(work.fitted, label, stated, seeds=_seeds(label)))]


def _with_noise(work: Work, secret: Secret) -> list[_Task]:
    """Rows that are differentially private."""
    recipe = Recipe(iterations=work.scale.iterations)
    methods = {
        _SOUND: work.ppem(recipe=recipe),
        "ppem, sound, stated": work.ppem(target=secret.stated),
        "ppem, sound, different, checked": work.ppem(recipe=recipe, effect=_EFFECT, attempts=3),
    }
    found: list[_Task] = [
        (f"{label} {epsilon:g}", partial(work.fitted, label, method, epsilon, seeds=_seeds(label)))
        for label, method in methods.items()
        for epsilon in EPSILONS
        if method.effect is None or epsilon == EPSILONS[-1]
    ]
    others: dict[str, Synthesizer] = {"dp-gan": DpGan(), "pate-gan": PateGan()}
    for label, other in others.items():
        found += [
            (f"{label} {epsilon:g}", partial(work.fitted, label, other, epsilon, seeds=_seeds(label)))
            for epsilon in EPSILONS
        ]
    return found


def _seeds(label: str) -> Sequence[int]:
    return FEW_SEEDS if label in _COMPARED else (0,)


def notes(rows: Sequence[Row], controls: Sequence[Row]) -> list[str]:
    """Returns whether the penalty costs conditional fidelity, what its test says without it, and what was checked."""
    return [*_kept(rows, controls), *_hidden(rows)]


def _hidden(rows: Sequence[Row]) -> list[str]:
    """Returns what the test says without the penalty, and how far marginals are that passed a check."""
    told = []
    for line in rows:
        metrics = line["metrics"]
        if line["method"] == _WITHOUT and "p_ksd" in metrics:
            found = "rejects" if metrics["p_ksd"] < 0.05 else "does not reject"
            told.append(f"x′: the test {found} without any penalty (p_KSD {metrics['p_ksd']:.3g}).")
        if line["method"].endswith("checked"):
            passed = f"released, {metrics['effect_wasserstein']:.3g} away" if metrics else "nothing released"
            told.append(f"x′: {line['method']}, epsilon {line['epsilon']:.3g}, asked for {_EFFECT:g}: {passed}.")
    return told


def _kept(rows: Sequence[Row], controls: Sequence[Row]) -> list[str]:
    """Returns the verdict on x* given x′, asked of both models at the x′ of the same kept-out rows."""
    found = {line["method"]: line["metrics"] for line in [*rows, *controls]}
    gaps = {name: found[name].get("given_gap") for name in (_LMDP, _WITHOUT) if name in found}
    if not all(gaps.get(name) for name in (_LMDP, _WITHOUT)):
        return ["x* given x′: too few rows were kept out for a verdict."]
    own, interval = gaps[_LMDP]["mean"], gaps[_WITHOUT]
    verdict = "is nearer than" if own < interval["low"] else "lies within" if own <= interval["high"] else "is beyond"
    told = [
        f"x* given x′: with the penalty {own:.3g}, which {verdict} what the model without it shows for the x′ of "
        f"kept-out rows ({interval['low']:.3g} to {interval['high']:.3g})."
    ]
    real = found.get("holdout", {}).get("held_out_gap")
    if real:
        told.append(f"x* given x′: real rows against kept-out rows {real['low']:.3g} to {real['high']:.3g}.")
    return told


def _pictures(rows: list[Row]) -> dict[str, Any]:
    return {f"{line['method']}{_budget(line)}": line["shown"] for line in rows if "shown" in line}


def _budget(line: Row) -> str:
    return f", epsilon {line['epsilon']:.3g}" if math.isfinite(line["epsilon"] or math.inf) else ""
