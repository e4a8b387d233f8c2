"""Comparison of DP-aware AdaLN-Zero: no privacy, DP-vanilla and DP-aware, at its noise and at a useful epsilon.

`impute` is over random shares and strides, `stride` over strides alone, `forecast` over the last steps of a window. The
published rows keep the paper's noise multiplier; their true epsilon stands beside them. What is judged is trained
first, so that a long run which is cut has it.
"""

import math
import tempfile
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from understudy.privacy import accounting
from understudy.privacy.budget import Guarantee, default_delta
from understudy.privacy.events import Gaussian, MixtureOfGaussians, SubsampledGaussian
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.synthesizers.completing import fillings
from understudy.synthesizers.dit import DiT
from understudy.synthesizers.dit.pretraining import pretrain
from understudy.synthesizers.dit.recipe import PAPER, Network, Recipe, Tightness
from understudy.synthesizers.release import Release
from understudy.synthesizers.spectral import Spectral
from understudy.training.networks import num_parameters
from understudy.training.plan import TRAINING, noise_ratio
from understudy_bench.adaln import paper
from understudy_bench.adaln.data import STUDIES, Study
from understudy_bench.adaln.errors import NUM_DRAWS, GaussianFillings, errors, naive_ways
from understudy_bench.cells import Cells
from understudy_bench.result import Progress, Row, Stopwatch, result, row

_NOTHING = 1e-3  # noise multiplier of what the paper does not add noise to
_VARIANTS: dict[str, Tightness] = {"dp-vanilla": "none", "dp-aware": "medium"}
_JUDGED = 8.0  # epsilon
_BOUGHT = "what is bought, no network"
_UNTRAINED: dict[str, Any] = {"iterations": 1, "learning_rate": 1e-9}  # a network that answers zero, as it began
_DRAWN = 4000  # synthetic series that a covariance is taken from


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much work a run of the benchmark is.

    Attributes:
        seeds: Of all networks.
        judged_seeds: Of those that are judged: at the largest epsilon, without public weights.
    """

    network: Network
    recipe: Recipe
    epsilons: tuple[float, ...]
    published: tuple[float, ...]
    seeds: int
    num_test: int
    judged_seeds: int = 3
    public_iterations: int = 600


SCALES = {
    "quick": Scale(
        network=Network(), recipe=Recipe(batch=128, draws=1),
        epsilons=(1.0, 2.0, 8.0), published=(0.1,), seeds=1, num_test=60, public_iterations=300,
    ),
    "target": Scale(
        network=Network(width=128, depth=4, num_heads=8), recipe=Recipe(iterations=3000, batch=128, draws=1, ema=0.995),
        epsilons=(1.0, 2.0, 8.0), published=(0.03, 0.05, 0.1, 0.2), seeds=3, num_test=100,
    ),
    "full": Scale(
        network=PAPER.network, recipe=PAPER,
        epsilons=(1.0, 2.0, 8.0), published=(0.03, 0.05, 0.1, 0.2), seeds=3, num_test=400,
    ),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One network to train.

    Attributes:
        sigma: Noise multiplier as published, whatever epsilon that is; None calibrates to `epsilon`.
        epsilon: None without a sigma means: no clip and no noise.
        pack: Public weights to start from.
    """

    name: str
    network: Network
    recipe: Recipe
    sigma: float | None = None
    epsilon: float | None = None
    seed: int = 0
    pack: str | None = None
    paper: dict[str, float] = field(default_factory=dict)


def compare(name: str, scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Returns one study's rows: every variant at every noise and epsilon, and what anybody could have said."""
    work, study = SCALES[scale], STUDIES[name](data_root)
    study = study.first(work.num_test)
    with tempfile.TemporaryDirectory() as folder:
        trials = _trials(work, name, Path(folder))
        found = []
        for place, trial in enumerate(trials):
            key = f"{name} {scale} {trial.name} {trial.sigma} {trial.epsilon} {trial.seed}"
            found.append(cells(key, partial(_started, study, work, trial)))
            progress(trial.name, (place + 1) / (len(trials) + len(work.epsilons)))
    controls = [row(way, errors(study, fill), unit=study.unit) for way, fill in naive_ways(study).items()]
    for epsilon in work.epsilons:
        bought = Trial(name=_BOUGHT, network=work.network, recipe=replace(work.recipe, **_UNTRAINED), epsilon=epsilon)
        controls.append(cells(f"{name} {scale} {_BOUGHT} {epsilon}", partial(trained, study, bought)))
        controls.append(cells(f"{name} {scale} spectral {epsilon}", partial(_by_spectral, study, epsilon)))
        progress("spectral", 1.0)
    return result(name, scale, study.data, found, controls)


def _trials(work: Scale, study: str, folder: Path) -> list[Trial]:
    """Returns all networks to train; packs of public weights lie in the folder once one was needed."""

    def trial(name: str, tightness: Tightness, **more: Any) -> Trial:
        return Trial(name=name, network=replace(work.network, tightness=tightness), recipe=work.recipe, **more)

    noisy: list[tuple[float | None, float | None]] = [(sigma, None) for sigma in work.published]
    noisy += [(None, epsilon) for epsilon in work.epsilons]
    wanted = [trial("non-private", "none", paper=paper.row(study, "non-private", None))]
    for sigma, epsilon in noisy:
        for name, tightness in _VARIANTS.items():
            printed = paper.row(study, name, sigma)
            wanted.append(trial(name, tightness, sigma=sigma, epsilon=epsilon, paper=printed))
    for name, tightness in _VARIANTS.items():
        pack = str(folder / f"{tightness}.safetensors")
        wanted += [trial(f"{name}, pre-trained", tightness, epsilon=epsilon, pack=pack) for epsilon in work.epsilons]
    judged = [one for one in wanted if (one.epsilon == _JUDGED or one.sigma is not None) and one.pack is None]
    every = [replace(one, seed=seed) for seed in range(work.seeds) for one in wanted]
    every += [replace(one, seed=seed) for seed in range(work.seeds, work.judged_seeds) for one in judged]
    return sorted(every, key=lambda one: (one.epsilon != _JUDGED, one.pack is not None))


def _started(study: Study, work: Scale, trial: Trial) -> Row:
    """Trains one network; public weights are made when the first network needs them."""
    if trial.pack is not None and not Path(trial.pack).exists():
        method = DiT(recipe=replace(trial.recipe, network=trial.network))
        made = pretrain(
            study.surrogate, method, iterations=work.public_iterations, with_weights=True,
            provenance={"command": "understudy-bench"}, progress=lambda stage, share: None,
        )  # fmt: skip
        made.save(Path(trial.pack))
    return trained(study, trial)


def trained(study: Study, trial: Trial) -> Row:
    """Returns the row of one network: its errors on windows that nothing was learned from."""
    watch, schema = Stopwatch(), study.train.schema
    private = trial.sigma is not None or trial.epsilon is not None
    recipe = trial.recipe if private else replace(trial.recipe, clipping_norm=1e3)
    method = DiT(
        recipe=replace(recipe, network=trial.network), seed=trial.seed, pack=trial.pack,
        window_steps=study.window_steps, window_stride=study.window_stride,
    )  # fmt: skip
    delta, epsilon = default_delta(schema.protected_units or 1), trial.epsilon
    if epsilon is not None:
        guarantee = Guarantee(epsilon, delta)
        release = method.fit(study.train, Ledger.in_memory(guarantee), guarantee=guarantee)
        noise = method.spending_plan(schema, guarantee).event(TRAINING).noise_multiplier  # type: ignore[attr-defined]
    else:
        noise = 1e-7 if trial.sigma is None else trial.sigma
        release, cost = _with_noise(method, study, noise, delta)
        epsilon = None if trial.sigma is None else cost  # without clip and noise there is none
    fitted = watch.seconds
    figures = errors(study, lambda hidden, rng: _filled(release, study, hidden, rng))
    size = num_parameters(method.empty_network(release.schema))
    batch = method.num_contributions(schema, schema.population.size or 1)
    loud = noise_ratio(noise, size, min(float(recipe.batch), batch)) if private else 0.0  # σ√p/B
    return row(
        trial.name, {**figures, "noise_ratio": loud, "fit_seconds": fitted},
        epsilon=epsilon, delta=delta, unit=study.unit,
        paper=trial.paper, seconds=watch.seconds, noise_multiplier=noise, seed=trial.seed,
        published_noise=trial.sigma is not None,
    )  # fmt: skip


def _filled(release: Release, study: Study, hidden: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    unseen = hidden[:, :, None] & study.test.observed
    return fillings(release, study.test, unseen, num_draws=NUM_DRAWS, rng=rng)


def _by_spectral(study: Study, epsilon: float) -> Row:
    """Returns what the normal distribution of a `spectral` release says of what is hidden."""
    watch, delta = Stopwatch(), default_delta(study.train.schema.protected_units or 1)
    guarantee = Guarantee(epsilon, delta)
    method = Spectral(window_steps=study.window_steps, window_stride=study.window_stride)
    release = method.fit(study.train, Ledger.in_memory(guarantee), guarantee=guarantee)
    drawn = release.sample(_DRAWN, rng=np.random.default_rng(0))
    figures = errors(study, GaussianFillings(drawn, study.test))
    return row("spectral, conditional", figures, epsilon=epsilon, delta=delta, unit=study.unit, seconds=watch.seconds)


def _with_noise(method: DiT, study: Study, noise: float, delta: float) -> tuple[Release, float]:
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
    private = method.private_series(study.train, schema.population.size or 1)
    arrays = method.learn(private, grant, lambda stage, share: None)
    made = Release(synthesizer=method, schema=private.schema, arrays=arrays, certificate=None)  # type: ignore[arg-type]
    return made, accounting.epsilon((event,), delta)
