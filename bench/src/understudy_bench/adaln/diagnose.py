"""Norms of gradients of `dit` along the conditioning path and elsewhere, with bounds and without.

Tables 2, 3 and 12 and Fig. 1 to 4 of DP-aware AdaLN-Zero are made of norms of single units' gradients. Such norms are
as private as the units, and no noise is on them; here they are taken of public or simulated series, in a run
whose updates are those of private training, and what is found is internal all the same.

Notation: g = (g_cond, g_other) is a unit's gradient; η = min(1, C/‖g‖) what clipping leaves of it; S a high quantile
of norms; ρ the bounded network's S over that of the network without bounds (Eq. 11).
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from understudy.data import Panel, Schema, read_panel, simulate_households, windows
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee, default_delta
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.report.figures import Drawing
from understudy.synthesizers.base import Progress
from understudy.synthesizers.dit.method import DiT
from understudy.synthesizers.dit.pretraining import MIN_SERIES, public_examples
from understudy.synthesizers.dit.published import MaskedDiT
from understudy.synthesizers.dit.recipe import Tightness
from understudy.training import DPSGDConfig, Optimisation, Task, UnitWindows, adam, train
from understudy.training.clipping.engine import PerUnitClipper
from understudy.training.plan import TRAINING
from understudy_bench.pictures.gradients import gradient_tails

PUBLIC = "Internal, and of public series: norms of single units' gradients have no noise on them."
_SIMULATED_HOMES = 400
QUANTILES = (0.95, 0.99)
_LOOKS, _WATCHED = 20, 64  # how often norms are taken in a run, and of how many units


@dataclass(frozen=True, eq=False, kw_only=True)
class Norms:
    """Norms of single units' gradients [look · unit] over a run; of public series only.

    Attributes:
        conditioning: ‖g_cond‖.
        other: ‖g_other‖.
        clip: C.
        losses: Mean loss of the watched units at each look [look] (Fig. 5).
    """

    conditioning: np.ndarray
    other: np.ndarray
    clip: float
    losses: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """‖g‖, whose square is the sum of the two squares."""
        return np.hypot(self.conditioning, self.other)

    @property
    def left_by_clip(self) -> np.ndarray:
        """η of each unit."""
        return np.minimum(1.0, self.clip / np.maximum(self.total, 1e-12))

    def figures(self) -> dict[str, float]:
        """Returns quantiles of norms (Table 2), how many are clipped (Table 3), how far (12), and the last loss."""
        parts = {"other": self.other, "cond": self.conditioning, "total": self.total}
        found = {
            f"s_{name}_p{100 * q:.0f}": float(np.quantile(norms, q)) for q in QUANTILES for name, norms in parts.items()
        }
        kept = self.left_by_clip
        found |= {"clipped": float((self.total > self.clip).mean()), "eta_mean": float(kept.mean())}
        found["loss_last"] = float(self.losses[-max(1, len(self.losses) // 4) :].mean())  # of the run's last quarter
        return found | {f"eta_p{100 * q:.0f}": float(np.quantile(kept, q)) for q in (0.1, 0.5, 0.9, 0.99)}


def public_series(table: Path | None, schema: Path | None, context: Path | None, window_steps: int | None) -> Panel:
    """Returns the series of a public table, cut into windows if a length is given; without a table simulated homes."""
    if table is None or schema is None:
        return replace(simulate_households(_SIMULATED_HOMES), private=False, unit_ids=None)
    panel = replace(read_panel(table, Schema.load(schema), context=context, allow_few_units=True), private=False)
    return panel if window_steps is None else windows.cut(panel, window_steps, window_steps)


def facts_of(found: Mapping[str, Norms]) -> dict[str, dict[str, float]]:
    """Returns the figures of each network."""
    return {name: norms.figures() for name, norms in found.items()}


def rows_of(facts: Mapping[str, Mapping[str, float]], found: Mapping[str, float]) -> Iterator[tuple[str, ...]]:
    """Yields a row for each figure: its name, the figure of each network, and their ratio where there is one."""
    names = {"total": "rho_emp", "cond": "rho_cond"}
    for figure in facts["vanilla"]:
        part, _, level = figure.removeprefix("s_").rpartition("_")
        ratio = found.get(f"{names.get(part, '')}_{level}")
        yield figure, *(f"{of[figure]:.3g}" for of in facts.values()), "" if ratio is None else f"{ratio:.3f}"


def picture(found: Mapping[str, Norms]) -> Drawing:
    """Returns the tails of the norms, and what clipping leaves."""
    kinds = {name: {"cond": norms.conditioning, "other": norms.other} for name, norms in found.items()}
    return gradient_tails(kinds, {name: norms.left_by_clip for name, norms in found.items()})


def ratios(aware: Norms, vanilla: Norms) -> dict[str, float]:
    """Returns ρ_emp and ρ_cond at each quantile (Eq. 11): below 1 where bounds make gradients shorter."""
    pairs = {"emp": (aware.total, vanilla.total), "cond": (aware.conditioning, vanilla.conditioning)}
    return {
        f"rho_{name}_p{100 * q:.0f}": float(np.quantile(ours, q) / max(np.quantile(theirs, q), 1e-12))
        for q in QUANTILES
        for name, (ours, theirs) in pairs.items()
    }


def diagnose(public: Panel, method: DiT, *, noise_multiplier: float, progress: Progress) -> dict[str, Norms]:
    """Returns the norms of training without bounds ("vanilla") and with the method's own ("aware").

    Args:
        public: Public or simulated series; private ones are refused.
        noise_multiplier: Of the updates, so that weights go where private training would take them.
    """
    if public.private:
        raise InputError("Diagnostics read single units' gradients: public or simulated series are expected.")
    if public.num_series < MIN_SERIES:
        raise InputError(f"Public series: at least {MIN_SERIES} are expected. Cut long ones into windows.")
    variants: Mapping[str, Tightness] = {"vanilla": "none", "aware": method.recipe.network.tightness}
    found = {}
    for place, (name, tightness) in enumerate(variants.items()):
        network = replace(method.recipe.network, tightness=tightness)
        own = replace(method, recipe=replace(method.recipe, network=network))

        def report(done: int, planned: int, name: str = name, place: int = place) -> None:
            progress(name, (place + done / planned) / len(variants))

        found[name] = _watched(public, own, noise_multiplier, report)
    return found


def _watched(public: Panel, method: DiT, noise_multiplier: float, report: Callable[[int, int], None]) -> Norms:
    schema, recipe = public.schema, method.recipe
    examples, neighbours = public_examples(public, method)
    loss = method.denoising(schema, neighbours).loss
    model = method.empty_network(schema, method.reference())
    number, watch = len(examples["x"]), _Watch(model, loss, examples, recipe.iterations)
    plan = DPSGDConfig(
        sampling_rate=min(1.0, recipe.batch / number), iterations=recipe.iterations,
        expected_batch=min(recipe.batch, number), clipping_norm=recipe.clipping_norm, noise_multiplier=noise_multiplier,
    )  # fmt: skip
    unlimited = Guarantee(math.inf, default_delta(number))
    charge = SpendingPlan((PlanEntry(TRAINING, plan.event),), unlimited)
    grant = Ledger.in_memory(unlimited).charge(charge, label="public series", noise=NoiseSource.secure())
    windows = UnitWindows(examples, np.arange(number), np.random.default_rng(method.seed))
    made = adam(recipe.learning_rate, recipe.weight_decay)
    train(
        Task(model=model, loss=loss, windows=windows, after_iteration=watch), plan, grant, label=TRAINING,
        optimisation=Optimisation(make=made, warm_up=recipe.warm_up_iterations), progress=report,
    )  # fmt: skip
    return Norms(clip=recipe.clipping_norm, **{name: np.concatenate(found) for name, found in watch.seen.items()})


def conditioning_names(model: nn.Module) -> frozenset[str]:
    """Returns names of θ_cond: parameters on the way from the condition to shift, scale and gate."""
    makers = ("time.", "summary.", "label.")
    names = (name for name, _ in model.named_parameters())
    return frozenset(name for name in names if name.startswith(makers) or ".condition." in f".{name}")


class _Watch:
    """Looks at single units' gradients of a public batch now and then."""

    def __init__(self, model: MaskedDiT, loss: Any, examples: Mapping[str, np.ndarray], iterations: int) -> None:
        self._model, self._loss, self._examples = model, loss, examples
        self._every, self._rng = max(1, iterations // _LOOKS), np.random.default_rng(0)
        names = conditioning_names(model)
        self._on_the_way = {id(parameter) for name, parameter in model.named_parameters() if name in names}
        self.seen: dict[str, list[np.ndarray]] = {"conditioning": [], "other": [], "losses": []}

    def __call__(self, iteration: int) -> None:
        if iteration % self._every:
            return
        rows = self._rng.integers(0, len(self._examples["x"]), _WATCHED)
        batch = {name: torch.from_numpy(np.array(array[rows])) for name, array in self._examples.items()}
        generator = torch.Generator().manual_seed(iteration)

        def loss() -> torch.Tensor:
            losses: torch.Tensor = self._loss(self._model, batch, generator)
            self.seen["losses"].append(losses.detach().mean(0, keepdim=True).numpy())
            return losses

        gradients = PerUnitClipper(self._model, 1.0).collect(loss, _WATCHED)
        whole, part = gradients.norms(), gradients.norms(self._on_the_way)
        self.seen["conditioning"].append(part.numpy())
        self.seen["other"].append((whole.square() - part.square()).clamp_min(0.0).sqrt().numpy())
