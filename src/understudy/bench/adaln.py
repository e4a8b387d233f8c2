"""Paper 003's comparison: no privacy, DP-vanilla and DP-aware, at its own noise and at an epsilon that means something.

Errors are in standard deviations of what was learned from: `impute` over random shares and strides, `forecast` over the
last day of a window. The published rows keep the paper's noise multiplier; their true epsilon stands beside them.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from understudy.bench.adaln_data import STUDIES, Study
from understudy.bench.cells import Cells
from understudy.bench.result import Progress, Row, Stopwatch, result, row
from understudy.data import Panel
from understudy.data.masks import MASKS
from understudy.evaluate.comparison import Completion
from understudy.evaluate.conditional import point
from understudy.evaluate.conditional.fillings import straight_lines
from understudy.privacy import accountants
from understudy.privacy.budget import Guarantee, default_delta
from understudy.privacy.events import Gaussian, MixtureOfGaussians, SubsampledGaussian
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.synthesizers.completing import fillings
from understudy.synthesizers.dit import Dit
from understudy.synthesizers.dit.recipe import Network, Recipe, Tightness
from understudy.synthesizers.frame.gradients import TRAINING
from understudy.synthesizers.release import Release

_DRAWS, _NOTHING = 19, 1e-3  # noise multiplier of what the paper does not add noise to
_VARIANTS: dict[str, Tightness] = {"dp-vanilla": "none", "dp-aware": "medium"}


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much work a run of the benchmark is."""

    network: Network
    recipe: Recipe
    epsilons: tuple[float, ...]
    published: tuple[float, ...]
    seeds: int
    num_test: int


SCALES = {
    "quick": Scale(
        network=Network(width=32, depth=1, num_heads=4), recipe=Recipe(iterations=60, batch=64, draws=1),
        epsilons=(1.0, 2.0, 8.0), published=(0.1,), seeds=1, num_test=30,
    ),
    "target": Scale(
        network=Network(width=128, depth=4, num_heads=8), recipe=Recipe(iterations=3000, batch=128, draws=4, ema=0.995),
        epsilons=(1.0, 2.0, 8.0), published=(0.03, 0.05, 0.1, 0.2), seeds=3, num_test=200,
    ),
    "full": Scale(
        network=Network(width=256, depth=8, num_heads=8, patch=1),
        recipe=Recipe(
            iterations=20_000, batch=96, draws=1, learning_rate=7e-4, ema=0.999, predicts="noise", bridged=False
        ),
        epsilons=(1.0, 2.0, 8.0), published=(0.03, 0.05, 0.1, 0.2), seeds=3, num_test=400,
    ),
}  # fmt: skip


def compare(name: str, scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Returns one study's rows: every variant at every noise and epsilon, and what anybody could have said."""
    work, study = SCALES[scale], STUDIES[name](data_root)
    study = replace(study, test=_some(study.test, work.num_test))
    wanted: list[tuple[str, float | None, float | None]] = [("non-private", None, None)]
    wanted += [(variant, sigma, None) for sigma in work.published for variant in _VARIANTS]
    wanted += [(variant, None, epsilon) for epsilon in work.epsilons for variant in _VARIANTS]
    found = []
    for place, (variant, sigma, epsilon) in enumerate(wanted):
        for seed in range(work.seeds):
            key = f"{name} {scale} {variant} {sigma} {epsilon} {seed}"
            found.append(cells(key, partial(_trained, study, work, variant, sigma, epsilon, seed)))
        progress(variant, (place + 1) / len(wanted))
    return result(name, scale, study.data, found, _naive(study))


def _some(test: Panel, number: int) -> Panel:
    """Returns the first windows, each a unit of its own."""
    rows = min(number, test.num_series)
    own = replace(test, unit=np.arange(test.num_series, dtype=np.int64), unit_ids=None, private=False)
    return own.take_units(np.arange(rows))


def _trained(study: Study, work: Scale, variant: str, sigma: float | None, epsilon: float | None, seed: int) -> Row:
    watch, schema = Stopwatch(), study.train.schema
    tightness = _VARIANTS.get(variant, "none")
    recipe = work.recipe if variant != "non-private" else replace(work.recipe, clip=1e3)
    method = Dit(
        network=replace(work.network, tightness=tightness), recipe=recipe, seed=seed,
        window_steps=study.window_steps, window_stride=study.window_stride,
    )  # fmt: skip
    delta = default_delta(schema.protected_units or 1)
    if epsilon is not None:
        guarantee = Guarantee(epsilon, delta)
        release = method.fit(study.train, Ledger.in_memory(guarantee), guarantee=guarantee)
        noise = method.spending_plan(schema, guarantee).event(TRAINING).noise_multiplier  # type: ignore[union-attr]
    else:
        noise = 1e-7 if sigma is None else sigma
        release, cost = _with_noise(method, study, noise, delta)
        epsilon = None if sigma is None else cost  # without clip and noise there is none
    fitted = watch.seconds
    return row(
        variant, {**_errors(release, study), "fit_seconds": fitted}, epsilon=epsilon, delta=delta, unit=study.unit,
        seconds=watch.seconds, noise_multiplier=noise, seed=seed, published_noise=sigma is not None,
    )  # fmt: skip


def _with_noise(method: Dit, study: Study, noise: float, delta: float) -> tuple[Release, float]:
    """Trains at a given noise multiplier, with scales that nobody paid for; returns the epsilon of the gradients."""
    schema = study.train.schema
    planned = method.spending_plan(schema, Guarantee(8.0, delta))
    calibrated = planned.event(TRAINING)
    assert isinstance(calibrated, SubsampledGaussian | MixtureOfGaussians)
    event = replace(calibrated, noise_multiplier=noise)
    facts = [PlanEntry(entry.label, Gaussian(_NOTHING)) for entry in planned.entries if entry.label != TRAINING]
    unlimited = Guarantee(math.inf, delta)
    plan = SpendingPlan((*facts, PlanEntry(TRAINING, event)), unlimited)
    grant = Ledger.in_memory(unlimited).charge(plan, label="published", noise=NoiseSource.secure())
    private = method._private_series(study.train, schema.population.size or 1)
    arrays = method.learn(private, grant, lambda stage, share: None)
    made = Release(synthesizer=method, schema=private.panel.schema, arrays=arrays, certificate=None)  # type: ignore[arg-type]
    return made, accountants.epsilon((event,), delta)


def _errors(release: Release, study: Study) -> dict[str, float]:
    """Returns errors of fillings and forecasts of windows that nothing was learned from."""
    told: dict[str, float] = {}
    for name, kinds in (("impute", ("random", "stride")), ("forecast", ("block",))):
        made = [_completed(release, study, kind) for kind in kinds]
        told |= {f"{name}_{what}": figure for what, figure in _figures(made, study).items()}
    return told


def _completed(release: Release, study: Study, kind: str) -> Completion:
    test, rng = study.test, np.random.default_rng(7)
    steps = MASKS[kind](test.num_series, test.num_steps, rng)
    hidden = steps[:, :, None] & test.observed
    drawn = fillings(release, test, hidden, num_draws=_DRAWS, rng=rng)
    return Completion(kind=kind, truth=test.values, hidden=steps, draws=drawn)


def _figures(completions: list[Completion], study: Study) -> dict[str, float]:
    """Returns mean errors over channels and ways of hiding, in standard deviations of what was learned from."""
    spread = np.nanstd(study.train.values, axis=(0, 1))
    parts: dict[str, list[float]] = {"rmse": [], "mae": [], "coverage": []}
    for made in completions:
        for place in range(made.truth.shape[2]):
            truth, draws = made.truth[..., place], made.draws[..., place]
            parts["rmse"].append(math.sqrt(point.squared_error(truth, draws, made.hidden)) / spread[place])
            parts["mae"].append(point.absolute_error(truth, draws, made.hidden) / spread[place])
            parts["coverage"].append(point.interval_coverage(truth, draws, made.hidden))
    return {name: float(np.mean(figures)) for name, figures in parts.items()}


def _naive(study: Study) -> list[Row]:
    """Returns what anybody could have said: straight lines, the last value, the same hour of the day before."""
    test, rng, rows = study.test, np.random.default_rng(7), []
    per_day = 24 if study.train.schema.time.frequency == "1h" else 96
    ways = {"straight lines": None, "last value": 1, "seasonal naive": per_day}
    for name, lag in ways.items():
        told: dict[str, float] = {}
        for what, kinds in (("impute", ("random", "stride")), ("forecast", ("block",))):
            made = []
            for kind in kinds:
                steps = MASKS[kind](test.num_series, test.num_steps, rng)
                plain = Completion(kind=kind, truth=test.values, hidden=steps, draws=test.values[None])
                drawn = straight_lines(plain) if lag is None else _lagged(test.values, steps, lag)[None]
                made.append(replace(plain, draws=np.where(np.isnan(drawn), straight_lines(plain), drawn)))
            told |= {
                f"{what}_{figure}": value for figure, value in _figures(made, study).items() if figure != "coverage"
            }
        rows.append(row(name, told, unit=study.unit))
    return rows


def _lagged(values: np.ndarray, hidden: np.ndarray, lag: int) -> np.ndarray:
    """Returns values with hidden steps replaced by what stood `lag` steps before, filled or not; NaN before that."""
    made = np.where(hidden[:, :, None], np.nan, values).astype(np.float64)
    for step in range(values.shape[1]):
        before = made[:, step - lag] if step >= lag else np.full_like(made[:, 0], np.nan)
        made[:, step] = np.where(hidden[:, step, None], before, made[:, step])
    return made
