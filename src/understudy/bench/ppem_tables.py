"""`ppem-credit`, `ppem-mimic`, `ppem-series`: PPEM beside what it is compared with, hidden marginal and all.

Rows: PPEM without noise, with and without its penalty (Table 1 of paper 002), with DP at two epsilons, with a stated
target, and with DP on x′ alone (appendix D.4, not private). Beside them the paper's baselines, `spectral`, real rows
that nobody learned from, and `independent`, which never saw any.
"""

import math
from collections.abc import Callable, Sequence
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
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.base import Draw, Synthesizer
from understudy.synthesizers.baselines.dp_gan import DpGan
from understudy.synthesizers.baselines.pate_gan import PateGan
from understudy.synthesizers.frame.encoding import Encoding, linear_scales
from understudy.synthesizers.frame.facts import facts_of
from understudy.synthesizers.independent import Independent
from understudy.synthesizers.ppem import Ppem, modes
from understudy.synthesizers.ppem.attributes import Partition, parse
from understudy.synthesizers.ppem.purchases import bare
from understudy.synthesizers.ppem.recipe import PAPER, Recipe
from understudy.synthesizers.spectral import Spectral
from understudy.synthesizers.vflgan_ts.drawing import panel_of

_Task = tuple[str, Callable[[], Row]]  # what a row is called, and what makes it
EPSILONS = (1.0, 5.0)
_EFFECT = 0.1  # that the row `checked` asks for, in shares of the declared range
# Table 1 and appendix D of paper 002, two sensitive attributes; on other data, so not to be compared.
_PAPER: dict[str, dict[str, float]] = {
    "ppem, lmdp": {"auroc": 0.922, "regression_mse": 0.184, "regression_r2": 0.822, "p_ksd": 0.0, "p_mmd": 0.02},
    "ppem, both 1": {"auroc": 0.872, "regression_mse": 0.656, "regression_r2": 0.368, "p_mmd": 0.0},
    "ppem, marginal-dp (not private)": {"auroc": 0.903, "regression_mse": 0.602, "regression_r2": 0.421},
    "wgan-gp": {"auroc": 0.966, "regression_mse": 0.126, "regression_r2": 0.879, "p_mmd": 0.15},
    "energygan": {"auroc": 0.871, "regression_mse": 7.13, "regression_r2": -5.86, "p_mmd": 0.0},
    "steingan": {"auroc": 0.822, "regression_mse": 1.81, "regression_r2": -0.740, "p_mmd": 0.0},
    "dp-gan 1": {"auroc": 0.857, "regression_mse": 1.881, "regression_r2": -0.811, "p_mmd": 0.0},
    "pate-gan 1": {"auroc": 0.879, "regression_mse": 1.569, "regression_r2": -0.510, "p_mmd": 0.0},
}


@dataclass(frozen=True)
class Scale:
    """How much work a benchmark does.

    Attributes:
        iterations: Updates of the energies.
        rows: Synthetic rows that are drawn, at most.
        homes: That are simulated.
        seeds: Of rows that are judged against each other.
    """

    iterations: int
    rows: int
    homes: int
    seeds: int = 5


SCALES = {
    "quick": Scale(1500, 20_000, 4000),
    "target": Scale(6000, 20_000, 10_000),
    "full": Scale(60_000, 20_000, 20_000),
}
_LMDP, _WITHOUT = "ppem, lmdp", "ppem, lmdp without penalty"


@dataclass(frozen=True)
class Secret:
    """What is hidden, a public marginal in its place, and the channel that linear regression predicts."""

    sensitive: tuple[str, ...]
    stated: dict[str, list[float | str]]
    regressed: str | None = None


def credit(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Part of the credit-card table: two factors hidden (target: hours)."""
    panel, data = ppem_data.credit(data_root)
    spread: list[float | str] = [*range(-3, 4)]
    secret = Secret(("V0+V1",), {"V0": spread, "V1": spread}, regressed="Amount")
    return _run("ppem-credit", scale, panel, data, secret, progress, cells)


def mimic(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """The MIMIC-III demo: five diagnoses of 100 patients hidden (target: an hour)."""
    panel, data = ppem_data.mimic(data_root)
    hidden = [channel.name for channel in panel.schema.channels[:5]]
    secret = Secret(("+".join(hidden),), {name: [0, 1] for name in hidden})
    return _run("ppem-mimic", scale, panel, data, secret, progress, cells, private=False)


def series(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Simulated homes: the tariff mix and the mean load hidden (target: hours)."""
    work = replace(
        SCALES[scale], iterations=2 * SCALES[scale].iterations // 5, seeds=3
    )  # rows are eleven times as long
    panel, data = ppem_data.homes(work.homes)
    stated = {"tariff": ["flat", "night", "dynamic"], "mean(load_kw)": np.linspace(0.5, 4, 71).tolist()}
    return _run("ppem-series", scale, panel, data, Secret(("tariff+mean(load_kw)",), stated), progress, cells)


def _run(
    name: str, scale: str, panel: Panel, data: dict[str, Any], secret: Secret, progress: Progress, cells: Cells, *,
    private: bool = True,
) -> dict[str, Any]:  # fmt: skip
    train, rest = ppem_data.split(panel)
    size = SCALES[scale]
    if panel.num_steps > 1:  # rows are many times as long
        size = replace(size, iterations=2 * size.iterations // 5, seeds=3)
    work = _Work(train, rest, secret.sensitive, size, secret.regressed)
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


def _without_noise(work: "_Work") -> list[_Task]:
    """Rows that protect nobody: with and without the penalty, other networks, appendix D.4, a stated target."""
    recipe = Recipe(iterations=work.scale.iterations)
    published = replace(PAPER, iterations=recipe.iterations, ema=recipe.ema)
    judged = {_LMDP: recipe, _WITHOUT: replace(recipe, penalty=0.0)}
    found: list[_Task] = []
    for label, own in judged.items():
        method, seeds = work.ppem(mode="lmdp", recipe=own), range(work.scale.seeds)
        found.append((label, partial(work.fitted, label, method, tested_penalty=own.penalty, seeds=seeds)))
    along = work.train.num_steps > 1
    label = "ppem, lmdp, temporal" if along else "ppem, lmdp, networks of the paper"
    method = work.ppem(mode="lmdp", recipe=replace(recipe, network="temporal") if along else published)
    found.append((label, partial(work.fitted, label, method)))
    others = {
        "ppem, marginal-dp (not private)": work.ppem(mode="marginal-dp", recipe=recipe),
        "ppem, uniform": work.ppem(mode="lmdp", recipe=recipe, target="uniform"),
    }
    return found + [(label, partial(work.fitted, label, method)) for label, method in others.items()]


def _with_noise(work: "_Work", secret: Secret) -> list[_Task]:
    """Rows that are differentially private: x* given x′ by energies, and by `spectral`."""
    recipe = Recipe(iterations=work.scale.iterations)
    asked = {"recipe": recipe, "effect": _EFFECT, "metric": "wasserstein"}
    methods = {
        "ppem, both": work.ppem(recipe=recipe),
        "ppem, both, stated": work.ppem(recipe=recipe, target=secret.stated),
        "ppem, spectral, stated": work.ppem(conditional="spectral", target=secret.stated),
        "ppem, both, uniform, checked": work.ppem(target="uniform", **asked),
        "ppem, spectral, different, checked": work.ppem(conditional="spectral", attempts=3, **asked),
    }
    found: list[_Task] = [
        (f"{label} {epsilon:g}", partial(work.fitted, label, method, epsilon))
        for label, method in methods.items()
        for epsilon in EPSILONS
        if method.effect is None or epsilon == EPSILONS[-1]
    ]
    others: dict[str, Synthesizer] = {"dp-gan": DpGan(), "pate-gan": PateGan()}
    for label, other in others.items():
        found += [(f"{label} {epsilon:g}", partial(work.fitted, label, other, epsilon)) for epsilon in EPSILONS]
    return found


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


@dataclass(frozen=True)
class _Work:
    """One dataset's measuring."""

    train: Panel
    rest: Panel
    sensitive: tuple[str, ...]
    scale: Scale
    regressed: str | None = None

    @property
    def measures(self) -> Measures:
        """How candidates are measured, in declared bounds."""
        schema = bare(self.train.schema)
        attributes = tuple(one for group in parse(schema, self.sensitive) for one in group)
        partition = Partition(Encoding.of(schema, (), linear_scales(schema, None)), attributes)
        return Measures(
            train=self.train, rest=self.rest, partition=partition, max_rows=self.num_rows, regressed=self.regressed
        )

    @property
    def num_rows(self) -> int:
        """Synthetic rows that are drawn: about as many as were learned from, as in paper 002."""
        return max(4000, min(self.scale.rows, self.train.num_units))

    def ppem(self, **options: Any) -> Ppem:
        """The method on this dataset's secret."""
        return Ppem(sensitive=self.sensitive, **options)

    def fitted(
        self,
        label: str,
        method: Synthesizer,
        epsilon: float = math.inf,
        tested_penalty: float | None = None,
        seeds: Sequence[int] = (0,),
    ) -> Row:
        """Fits and samples once for every seed, and measures; figures are means over seeds.

        Without DP noise there is nothing secret about coins: they come from the seed as well, so that rows with and
        without the penalty differ by the penalty alone.
        """
        watch, measures = Stopwatch(), self.measures
        delta = default_delta(self.train.schema.population.size or 1)
        found, drawn, given = [], [], []
        for seed in seeds:
            own = replace(method, seed=seed) if isinstance(method, Ppem) else method
            ledger = Ledger.in_memory(Guarantee(epsilon, delta), population=self.train.schema.population.size)
            try:
                release = own.fit(self.train, ledger, noise=None if epsilon < math.inf else NoiseSource.seeded(seed))
            except ReleaseError as refusal:
                return row(label, {}, epsilon=epsilon, delta=delta, seconds=watch.seconds, status=f"nothing: {refusal}")
            drawn.append(release.sample(self.num_rows, rng=np.random.default_rng(seed)))
            found.append(measures.figures(drawn[-1]))
            if isinstance(own, Ppem) and own.conditional == "energies" and own.mode in modes.HIDING:
                given.append(measures.given(own, release))
        metrics: dict[str, Any] = {key: float(np.mean([one[key] for one in found if key in one])) for key in found[0]}
        metrics |= {"seeds": len(seeds), "held_out_gap": measures.held_out_gap(drawn)}
        if given:
            metrics["given_gap"] = measures.held_out_gap(given)
        if tested_penalty is not None:
            metrics |= measures.energy_test(Recipe(iterations=self.scale.iterations), tested_penalty)
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
            findings=list(own.findings(release.schema, release.arrays)) if isinstance(own, Ppem) else [],
            shown=measures.shown(drawn[0]),
        )

    def baseline(self, kind: str) -> Row:
        """Trains one of the paper's baselines on (x′, x*) and measures."""
        watch, measures = Stopwatch(), self.measures
        real = measures.rows(self.train)
        cut = real.sensitive.shape[1]
        made = BASELINES[kind](np.concatenate([real.sensitive, real.rest], axis=1), self.scale.iterations, 0)
        made = made[: self.num_rows]
        drawn = self._panel(measures.partition, made[:, :cut], made[:, cut:])
        return row(
            kind,
            {**measures.figures(drawn), "held_out_gap": measures.held_out_gap([drawn])},
            paper=_PAPER.get(kind, {}),
            unit=self.train.schema.unit.kind,
            seconds=watch.seconds,
            status="not private: no noise",
            shown=measures.shown(drawn),
        )

    def holdout(self) -> Row:
        """Kept-out real rows in the place of synthetic ones, against those that were learned from."""
        watch = Stopwatch()
        figures = {
            **self.measures.figures(self.rest, against=self.train),
            "held_out_gap": self.measures.held_out_gap([self.train]),
        }
        return row("holdout", figures, unit=self.train.schema.unit.kind, seconds=watch.seconds)

    def _panel(self, partition: Partition, sensitive: np.ndarray, rest: np.ndarray) -> Panel:
        schema = partition.schema
        single = len(partition.encoding.static_columns)
        nothing = facts_of([], np.ones(1), np.zeros(single), np.zeros((0, 1)), np.zeros(0))
        series, static, classes = partition.joined(partition.decoded(sensitive), rest)
        request = Draw(num_series=len(rest), rng=np.random.default_rng(0))
        return panel_of(schema, request, partition.encoding, nothing, classes, (series, static))
