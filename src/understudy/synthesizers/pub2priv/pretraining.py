"""Trains θ_T on public signals by filling in what was hidden (section 5.1), and packs it."""

import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from understudy.errors import InputError
from understudy.synthesizers.packs import Pack
from understudy.synthesizers.pub2priv.knowledge import DIRECTIONS, METHOD, MOST_STEPS, Knowledge
from understudy.synthesizers.pub2priv.networks import KnowledgeTransformer, hide
from understudy.synthesizers.pub2priv.signals import MAX_FEATURES, draw_signals, standardised

Windows = Callable[[int, np.random.Generator], np.ndarray]  # (how many, rng) → standardised windows, NaN where missing
MIN_STEPS, MIN_WINDOWS = 8, 16
_FEWEST_STEPS = 24  # of simulated windows
_KEPT = 8  # directions of z that a pack names
_ENOUGH = 256  # windows that directions and quality are measured on


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How large θ_T is and how long it learns."""

    iterations: int = 800
    batch: int = 24
    width: int = 64
    num_heads: int = 4
    depth: int = 2
    feed_forward: int = 128


def simulated(num_windows: int, rng: np.random.Generator) -> np.ndarray:
    """Returns simulated windows of one length and number of features, both drawn anew each time."""
    return draw_signals(
        num_windows, int(rng.integers(_FEWEST_STEPS, MOST_STEPS)), int(rng.integers(1, MAX_FEATURES + 1)), rng
    )


def windows_from(series: np.ndarray, num_steps: int) -> Windows:
    """Returns a source of standardised windows of public series [series, step, feature], NaN where missing."""
    if not MIN_STEPS <= num_steps <= series.shape[1]:
        raise InputError(f"window_steps: {MIN_STEPS} to the {series.shape[1]} steps of the public series are expected.")

    def windows(number: int, rng: np.random.Generator) -> np.ndarray:
        row = rng.integers(0, len(series), number)
        start = rng.integers(0, series.shape[1] - num_steps + 1, number)
        chosen = series[row[:, None], start[:, None] + np.arange(num_steps)]
        return standardised(chosen).astype(np.float32)

    return windows


def pretrain(
    windows: Windows,
    held_out: np.ndarray,
    *,
    effort: Effort,
    seed: int,
    provenance: dict[str, Any],
    progress: Callable[[str, float], None],
) -> Pack:
    """Returns a pack of θ_T trained on public windows.

    Args:
        held_out: Windows that `windows` never shows; quality is measured on them.
    """
    torch.manual_seed(seed)
    rng, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    shape = {name: value for name, value in asdict(effort).items() if name not in ("iterations", "batch")}
    model = KnowledgeTransformer(**shape)
    untrained = filling_error(model, held_out, seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, effort.iterations, eta_min=1e-4)
    for iteration in range(effort.iterations):
        context = torch.from_numpy(windows(effort.batch, rng))
        optimiser.zero_grad()
        model.filling_loss(context, hide(~context.isnan(), generator)).backward()
        optimiser.step()
        rate.step()
        progress("knowledge transformer", (iteration + 1) / effort.iterations)
    quality = {"error": filling_error(model, held_out, seed), "error_untrained": untrained}
    facts = {"seed": seed, "effort": asdict(effort), "versions": _versions()}
    return Pack(
        method=METHOD,
        arrays={**_weights(model), DIRECTIONS: _directions(model, windows, rng)},
        shape=shape,
        provenance={**provenance, **facts, "quality": {name: round(error, 4) for name, error in quality.items()}},
    )


@torch.no_grad()
def filling_error(model: KnowledgeTransformer, windows: np.ndarray, seed: int) -> float:
    """Returns the error of hidden entries in units of their feature's variance; guessing the mean has error one."""
    was, generator = model.training, torch.Generator().manual_seed(seed)
    model.train(False)
    context = torch.from_numpy(windows).float()
    error = float(model.filling_loss(context, hide(~context.isnan(), generator)))
    model.train(was)
    return error


def _directions(model: KnowledgeTransformer, windows: Windows, rng: np.random.Generator) -> np.ndarray:
    """Returns the directions of z that public windows move most, each pointing to where the first context rises."""
    model.train(False)
    frozen = Knowledge(model, np.zeros((0, 0)))
    moved: list[np.ndarray] = []
    followed: list[np.ndarray] = []
    for _ in range(_ENOUGH // 32):
        context = windows(32, rng)
        z = frozen.embed(context)
        moved.append(z - z.mean(axis=1, keepdims=True))
        followed.append(np.nan_to_num(context).mean(axis=2))
    flat = np.concatenate([part.reshape(-1, part.shape[2]) for part in moved])
    directions = np.linalg.eigh(flat.T @ flat)[1][:, ::-1][:, :_KEPT]
    rise = np.concatenate([part.ravel() for part in followed]) @ (flat @ directions)
    return np.ascontiguousarray(directions * np.where(rise < 0, -1, 1), dtype=np.float32)


def _weights(model: KnowledgeTransformer) -> dict[str, np.ndarray]:
    return {name: weight.detach().numpy() for name, weight in model.state_dict().items()}


def _versions() -> dict[str, str]:
    import understudy

    return {
        "understudy": understudy.__version__,
        "torch": torch.__version__.split("+")[0],
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
