"""`adaln-ablation` and `adaln-gradients`: what each part of bounding does (the paper's Tables 2 to 5, 10 to 17).

The paper's meter is not public; one household's hourly load stands in for it, as in `adaln-power`.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from understudy.synthesizers.dit import DiT
from understudy.synthesizers.dit.published import TIGHTNESS, Bounds, within
from understudy.synthesizers.dit.recipe import Network, Tightness
from understudy.synthesizers.options import require_one_of
from understudy_bench.adaln import paper
from understudy_bench.adaln.data import STUDIES
from understudy_bench.adaln.diagnose import diagnose, ratios
from understudy_bench.adaln.errors import errors, naive_ways
from understudy_bench.adaln.experiment import SCALES, Scale, Trial, trained
from understudy_bench.cells import Cells
from understudy_bench.result import Progress, Row, Stopwatch, result, row

_STUDY, _NOISE, _LOUD, _CLIP_NOISE = "adaln-power", 0.05, 0.2, 0.1
Bounded = Literal["both", "condition", "modulation"]
_COMPONENTS: dict[Bounded, str] = {"condition": "only c", "modulation": "only AdaLN", "both": "both"}
_CLIPS = (0.5, 1.0, 2.0)
BAND = 0.1  # of a bound: how far before and after it the soft operator bends
_MEANT = 8.0  # the epsilon at which components are compared once more


def soft(x: Tensor, bound: Tensor) -> Tensor:
    """Identity up to bound·(1 − BAND), a parabola that meets `bound` with slope zero at bound·(1 + BAND)."""
    band = BAND * bound
    t = ((x.abs() - (bound - band)) / (2 * band)).clamp(0.0, 1.0)
    bent = bound - band + 2 * band * (t - t * t / 2)
    return torch.where(x.abs() <= bound - band, x, x.sign() * bent)


def straight_through(x: Tensor, bound: Tensor) -> Tensor:
    """Clamped on the way forward, as if it were not on the way back."""
    return x.clamp(-bound, bound).detach() + (x - x.detach())  # adds nothing, to the last bit


OPERATORS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "tanh": within,
    "hard": lambda x, bound: x.clamp(-bound, bound),
    "soft": soft,
    "straight-through": straight_through,
}


@dataclass(frozen=True, kw_only=True)
class PartlyBounded(Network):
    """A network with the condition (Eq. 5) and what is made of it (Eq. 7) bounded, or one of the two alone."""

    bounded: Bounded = "both"
    operator: str = "tanh"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of(self, operator=OPERATORS)

    def bounds(self, reference: np.ndarray | None = None) -> Bounds:
        """Returns the bounds of the network, some of them lifted, kept by the operator."""
        whole = replace(super().bounds(reference), operator=OPERATORS[self.operator])
        if self.bounded == "condition":
            return Bounds(condition=whole.condition)
        return replace(whole, condition=math.inf) if self.bounded == "modulation" else whole


def ablation(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Components, operators, tightness and clip, at the paper's noise; components at epsilon 8 too."""
    work, study = SCALES[scale], STUDIES[_STUDY](data_root)
    study = study.first(work.num_test)
    rows, trials = [], list(_trials(work))
    for place, (table, trial) in enumerate(trials):
        key = f"{scale} {table} {trial.name} {trial.sigma} {trial.epsilon} {trial.seed}"
        found = cells(key, partial(trained, study, trial))
        rows.append({**found, "table": table, "method": f"{table}: {trial.name}"})
        progress(trial.name, (place + 1) / len(trials))
    controls = [row(way, errors(study, fill), unit=study.unit) for way, fill in naive_ways(study).items()]
    return result("adaln-ablation", scale, study.data, rows, controls)


def _trials(work: Scale) -> Iterator[tuple[str, Trial]]:
    for table, name, sigma, network, clip in _variants(work):
        recipe = work.recipe if clip is None else replace(work.recipe, clipping_norm=clip)
        for seed in range(work.seeds):
            printed = paper.ablation(table, name, sigma)
            yield table, Trial(name=name, network=network, recipe=recipe, sigma=sigma, seed=seed, paper=printed)
            if table == "components":
                yield table, Trial(name=name, network=network, recipe=recipe, epsilon=_MEANT, seed=seed)


def _variants(work: Scale) -> Iterator[tuple[str, str, float | None, Any, float | None]]:
    """Yields table, variant, noise, network and clip (None: the scale's own)."""
    bare, aware = (replace(work.network, tightness=tightness) for tightness in ("none", "medium"))
    yield "components", "nothing bounded", _NOISE, bare, None
    for bounded in get_args(Bounded):
        yield "components", _COMPONENTS[bounded], _NOISE, PartlyBounded(**vars(aware), bounded=bounded), None
    for noise in (_NOISE, _LOUD):
        for operator in OPERATORS:
            yield "operator", operator, noise, PartlyBounded(**vars(aware), operator=operator), None
    tightnesses: list[Tightness] = list(TIGHTNESS)  # type: ignore[arg-type]
    for tightness in tightnesses:
        yield "tightness", tightness, _NOISE, replace(aware, tightness=tightness), None
    for tightness in ("none", *tightnesses):
        yield "non-private", tightness, None, replace(aware, tightness=tightness), None
    for clip in _CLIPS:
        for name, network in (("dp-vanilla", bare), ("dp-aware", aware)):
            yield "clip", f"{name}, C = {clip:g}", _CLIP_NOISE, network, clip


def gradients(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Norms of single windows' gradients at the paper's noises, of windows that are trained on; the load is public."""
    work, study = SCALES[scale], STUDIES[_STUDY](data_root)
    noises = (0.03, 0.05, 0.1, 0.2)
    rows: list[Row] = []
    losses: dict[str, list[float]] = {}
    for place, noise in enumerate(noises):
        seen = [
            cells(f"{scale} {noise} {seed}", partial(_norms, study.train_windows, work, noise, seed))
            for seed in range(work.judged_seeds)
        ]
        rows += [line for one in seen for line in one["rows"]]
        losses |= {name: np.mean([one["losses"][name] for one in seen], axis=0).tolist() for name in seen[0]["losses"]}
        progress(f"noise {noise}", (place + 1) / len(noises))
    return {**result("adaln-gradients", scale, study.data, rows, []), "losses": losses}


def _norms(public: Any, work: Scale, noise: float, seed: int) -> dict[str, Any]:
    watch = Stopwatch()
    method = DiT(
        recipe=replace(work.recipe, network=replace(work.network, tightness="medium"), clipping_norm=1.0), seed=seed
    )
    public = replace(public, private=False, unit_ids=None)
    found = diagnose(public, method, noise_multiplier=noise, progress=lambda stage, share: None)
    told = ratios(found["aware"], found["vanilla"])
    return {
        "rows": [
            row(
                f"{name}, noise {noise:g}", {**norms.figures(), **(told if name == "aware" else {})},
                paper=paper.gradients(name, noise), seconds=watch.seconds, noise_multiplier=noise, seed=seed,
            )
            for name, norms in found.items()
        ],
        "losses": {f"{name}, noise {noise:g}": norms.losses.tolist() for name, norms in found.items()},
    }  # fmt: skip
