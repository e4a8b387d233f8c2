"""`ppem-credit`, `ppem-mimic`, `ppem-series`: PPEM beside what it is compared with, hidden marginal and all.

Rows: PPEM without noise, with and without its penalty (Table 1 of paper 002), with DP at two epsilons, with a stated
target, and with DP on x′ alone (appendix D.4, not private). Beside them the paper's baselines, `spectral`, real rows
that nobody learned from, and `independent`, which never saw any.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from understudy.bench import ppem_data
from understudy.bench.cells import Cells
from understudy.bench.ppem_baselines import BASELINES
from understudy.bench.ppem_measures import Measures
from understudy.bench.result import Progress, Row, Stopwatch, result, row
from understudy.data import Panel
from understudy.errors import ReleaseError
from understudy.privacy.budget import Guarantee, default_delta
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.base import Draw, Synthesizer
from understudy.synthesizers.frame.encoding import Encoding, linear_scales
from understudy.synthesizers.frame.facts import facts_of
from understudy.synthesizers.independent import Independent
from understudy.synthesizers.ppem import Ppem
from understudy.synthesizers.ppem.attributes import Partition, parse
from understudy.synthesizers.ppem.purchases import bare
from understudy.synthesizers.ppem.recipe import Recipe
from understudy.synthesizers.spectral import Spectral
from understudy.synthesizers.vflgan_ts.drawing import panel_of

EPSILONS = (1.0, 5.0)
_EFFECT = 0.1  # that the row `checked` asks for, in shares of the declared range
# Table 1 and appendix D of paper 002, two sensitive attributes; on other data, so not to be compared.
_PAPER: dict[str, dict[str, float]] = {
    "ppem, lmdp": {"auroc": 0.922, "regression_mse": 0.184, "regression_r2": 0.822, "p_ksd": 0.0, "p_mmd": 0.02},
    "ppem, both 1": {"auroc": 0.872, "regression_mse": 0.656, "regression_r2": 0.368, "p_mmd": 0.0},
    "ppem, marginal-dp": {"auroc": 0.903, "regression_mse": 0.602, "regression_r2": 0.421},
    "wgan-gp": {"auroc": 0.966, "regression_mse": 0.126, "regression_r2": 0.879, "p_mmd": 0.15},
    "energygan": {"auroc": 0.871, "regression_mse": 7.13, "regression_r2": -5.86, "p_mmd": 0.0},
    "steingan": {"auroc": 0.822, "regression_mse": 1.81, "regression_r2": -0.740, "p_mmd": 0.0},
}


@dataclass(frozen=True)
class Scale:
    """How much work a benchmark does: updates of energies, rows that metrics look at, simulated homes."""

    iterations: int
    rows: int
    homes: int


SCALES = {"quick": Scale(600, 4000, 4000), "target": Scale(6000, 10_000, 10_000), "full": Scale(60_000, 20_000, 20_000)}


def credit(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Part of the credit-card table: two factors hidden (target: hours)."""
    panel, data = ppem_data.credit(data_root)
    return _run("ppem-credit", scale, panel, data, ("V0+V1",), progress, cells)


def mimic(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """The MIMIC-III demo: five diagnoses of 100 patients hidden (target: an hour)."""
    panel, data = ppem_data.mimic(data_root)
    hidden = "+".join(channel.name for channel in panel.schema.channels[:5])
    return _run("ppem-mimic", scale, panel, data, (hidden,), progress, cells, private=False)


def series(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Simulated homes: the tariff mix and the mean load hidden (target: hours)."""
    panel, data = ppem_data.homes(SCALES[scale].homes)
    return _run("ppem-series", scale, panel, data, ("tariff+mean(load_kw)",), progress, cells)


def _run(
    name: str,
    scale: str,
    panel: Panel,
    data: dict[str, Any],
    sensitive: tuple[str, ...],
    progress: Progress,
    cells: Cells,
    *,
    private: bool = True,
) -> dict[str, Any]:
    train, rest = ppem_data.split(panel)
    work = _Work(train, rest, sensitive, SCALES[scale])
    recipe = Recipe(iterations=SCALES[scale].iterations)
    without = replace(recipe, penalty=0.0)
    tasks: list[tuple[str, Callable[[], Row]]] = [
        ("ppem, lmdp", partial(work.fitted, "ppem, lmdp", work.ppem(mode="lmdp", recipe=recipe), math.inf, 10.0)),
        (
            "ppem, lmdp without penalty",
            partial(work.fitted, "ppem, lmdp without penalty", work.ppem(mode="lmdp", recipe=without), math.inf, 0.0),
        ),
        ("ppem, marginal-dp", partial(work.fitted, "ppem, marginal-dp", work.ppem(mode="marginal-dp", recipe=recipe))),
        (
            "ppem, uniform",
            partial(work.fitted, "ppem, uniform", work.ppem(mode="lmdp", recipe=recipe, target="uniform")),
        ),
    ]
    for epsilon in EPSILONS if private else ():
        both = work.ppem(mode="both", recipe=recipe)
        stated = work.ppem(mode="both", recipe=recipe, target="uniform")
        tasks.append((f"ppem, both {epsilon:g}", partial(work.fitted, "ppem, both", both, epsilon)))
        tasks.append((f"ppem, both, uniform {epsilon:g}", partial(work.fitted, "ppem, both, uniform", stated, epsilon)))
    if private:
        asked = work.ppem(mode="both", recipe=recipe, target="uniform", effect=_EFFECT, metric="wasserstein")
        tasks.append(("ppem, both, checked", partial(work.fitted, "ppem, both, checked", asked, EPSILONS[-1])))
    tasks += [(kind, partial(work.baseline, kind)) for kind in BASELINES]
    checks: list[tuple[str, Callable[[], Row]]] = [("holdout", work.holdout)]
    checks += [(f"spectral {e:g}", partial(work.fitted, "spectral", Spectral(), e)) for e in EPSILONS]
    checks.append(("independent", partial(work.fitted, "independent", Independent(), 1.0)))
    rows: list[Row] = []
    controls: list[Row] = []
    for place, (label, task) in enumerate([*tasks, *checks], start=1):
        (rows if place <= len(tasks) else controls).append(cells(f"{scale} {label}", task))
        progress(label, place / (len(tasks) + len(checks)))
    return {**result(name, scale, data, rows, controls), "ppem": _pictures(rows)}


def _pictures(rows: list[Row]) -> dict[str, Any]:
    return {line["method"]: line["marginals"] for line in rows if "marginals" in line}


@dataclass(frozen=True)
class _Work:
    """One dataset's measuring."""

    train: Panel
    rest: Panel
    sensitive: tuple[str, ...]
    scale: Scale

    @property
    def measures(self) -> Measures:
        """How candidates are measured, in declared bounds."""
        schema = bare(self.train.schema)
        attributes = tuple(one for group in parse(schema, self.sensitive) for one in group)
        partition = Partition(Encoding.of(schema, (), linear_scales(schema, None)), attributes)
        return Measures(train=self.train, rest=self.rest, partition=partition, max_rows=self.scale.rows)

    def ppem(self, **options: Any) -> Ppem:
        """The method on this dataset's secret."""
        return Ppem(sensitive=self.sensitive, **options)

    def fitted(
        self, label: str, method: Synthesizer, epsilon: float = math.inf, tested_penalty: float | None = None
    ) -> Row:
        """Fits once, samples, and measures."""
        watch = Stopwatch()
        delta = default_delta(self.train.schema.population.size or 1)
        ledger = Ledger.in_memory(Guarantee(epsilon, delta), population=self.train.schema.population.size)
        try:
            release = method.fit(self.train, ledger)
        except ReleaseError as refusal:
            return row(label, {}, epsilon=epsilon, delta=delta, seconds=watch.seconds, status=f"nothing: {refusal}")
        fitting = watch.seconds
        drawn = release.sample(self.scale.rows, rng=np.random.default_rng(0))
        metrics = {**self.measures.figures(drawn), "fit_s": fitting}
        if tested_penalty is not None:
            metrics |= self.measures.energy_test(Recipe(iterations=self.scale.iterations), tested_penalty)
        return row(
            label,
            metrics,
            epsilon=release.certificate.epsilon,
            delta=delta,
            unit=self.train.schema.unit.kind,
            paper=_PAPER.get(f"{label} {epsilon:g}" if epsilon < math.inf else label, {}),
            seconds=watch.seconds,
            status=release.certificate.status,
            obfuscation=list(release.certificate.marginal_obfuscation),
            marginals=self.measures.marginals(drawn),
        )

    def baseline(self, kind: str) -> Row:
        """Trains one of the paper's baselines on (x′, x*) and measures."""
        watch, measures = Stopwatch(), self.measures
        real = measures.rows(self.train)
        cut = real.sensitive.shape[1]
        made = BASELINES[kind](np.concatenate([real.sensitive, real.rest], axis=1), self.scale.iterations, 0)
        made = made[: self.scale.rows]
        drawn = self._panel(measures.partition, made[:, :cut], made[:, cut:])
        marginals = measures.marginals(drawn)
        return row(
            kind, measures.figures(drawn), paper=_PAPER.get(kind, {}), unit=self.train.schema.unit.kind,
            seconds=watch.seconds, status="not private: no noise", marginals=marginals,
        )  # fmt: skip

    def holdout(self) -> Row:
        """Kept-out real rows in the place of synthetic ones, against those that were learned from."""
        watch = Stopwatch()
        figures = self.measures.figures(self.rest, against=self.train)
        return row("holdout", figures, unit=self.train.schema.unit.kind, seconds=watch.seconds)

    def _panel(self, partition: Partition, sensitive: np.ndarray, rest: np.ndarray) -> Panel:
        schema = partition.schema
        single = len(partition.encoding.static_columns)
        nothing = facts_of([], np.ones(1), np.zeros(single), np.zeros((0, 1)), np.zeros(0))
        series, static, classes = partition.joined(partition.decoded(sensitive), rest)
        request = Draw(num_series=len(rest), rng=np.random.default_rng(0))
        return panel_of(schema, request, partition.encoding, nothing, classes, (series, static))
