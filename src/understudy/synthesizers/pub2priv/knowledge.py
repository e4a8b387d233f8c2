"""θ_T of Pub2Priv (section 5.1): trained on public signals by masked reconstruction, packed and frozen.

Public signals come from a file, or are simulated: prices, weather, load, tariffs, seasons, noise. Features of a
simulated window share part of their movement, as stocks of one market or stations of one region do. Nothing here may be
given private data.
"""

import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from understudy.errors import InputError
from understudy.synthesizers.packs import Pack
from understudy.synthesizers.pub2priv.context import standardised
from understudy.synthesizers.pub2priv.networks import KnowledgeTransformer, hide
from understudy.synthesizers.pub2priv.recipe import KnowledgeRecipe
from understudy.training.networks import load_arrays, to_arrays

METHOD, GENERAL = "pub2priv", "general"
GENERAL_PACK = Path(__file__).parent / "packs" / "general.safetensors"
MOST_STEPS = 160  # that θ_T sees at once, as in training
MIN_STEPS, MAX_FEATURES = 8, 7
_FEWEST_STEPS = 24  # of simulated windows

Windows = Callable[[int, np.random.Generator], np.ndarray]  # (number, rng) → standardised windows, NaN where missing


@dataclass(frozen=True, eq=False)
class Knowledge:
    """A frozen θ_T."""

    transformer: KnowledgeTransformer

    @classmethod
    def of(cls, pack: Pack) -> "Knowledge":
        """Returns the network that a pack holds, without dropout and without gradients."""
        transformer = KnowledgeTransformer(**pack.shape, dropout=0.0)
        load_arrays(transformer, {name: pack.arrays[name] for name in transformer.state_dict()}, "")
        transformer.requires_grad_(False).train(False)
        return cls(transformer)

    def embed(self, context: np.ndarray) -> np.ndarray:
        """Returns z [series, step, width] of standardised context [series, step, feature], NaN where missing.

        What the position alone would say is taken out, so that z is 0 where the context is at rest. A context that many
        series met is seen once.
        """
        first, place = _distinct(context)
        return np.asarray(self._of_any_length(context[first])[place])

    def _of_any_length(self, context: np.ndarray) -> np.ndarray:
        """Returns z; long windows are seen as short as in training: neighbouring steps as one, z drawn between them."""
        steps = context.shape[1]
        together = -(-steps // MOST_STEPS)
        if together == 1:
            return self._embedded(context)
        starts = np.arange(0, steps, together)
        known = ~np.isnan(context)
        count = np.add.reduceat(known, starts, axis=1, dtype=np.int64)
        total = np.add.reduceat(np.where(known, context, 0), starts, axis=1)
        coarse = np.where(count > 0, total / np.maximum(count, 1), np.nan).astype(np.float32)
        middle = np.minimum(starts + (together - 1) / 2, steps - 1)
        between = np.stack([np.interp(np.arange(steps), middle, one) for one in np.eye(len(middle))], axis=1)
        return np.asarray(between.astype(np.float32) @ self._embedded(coarse))

    @torch.no_grad()
    def _embedded(self, context: np.ndarray) -> np.ndarray:
        """Returns z of contexts that go through the network one by one.

        Privacy: how many rows are multiplied at once decides in which order products are added up. In one batch, one
        unit more would move z of all others in its last bits, which is everything that a context at rest has.
        """
        at_rest = self.transformer(torch.zeros(1, *context.shape[1:]))
        parts = [self.transformer(torch.tensor(one[None], dtype=torch.float32)) - at_rest for one in context]
        return torch.cat(parts).numpy() if parts else np.zeros((0, context.shape[1], at_rest.shape[2]), np.float32)


def _distinct(windows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns (rows that are the first of their kind, in order; which of these each row equals, NaN by NaN)."""
    if windows.size == 0:
        return np.arange(len(windows)), np.arange(len(windows))
    rows = np.ascontiguousarray(windows).reshape(len(windows), -1)
    _, first, place = np.unique(
        rows.view(np.dtype((np.void, rows[0].nbytes)))[:, 0], return_index=True, return_inverse=True
    )
    order = np.argsort(first)
    return first[order], np.argsort(order)[place]


def load_pack(pack: str) -> Pack:
    """Returns the pack of that name or file."""
    if pack == GENERAL:
        return _general()
    return Pack.load(pack, METHOD)


@lru_cache(maxsize=1)
def _general() -> Pack:
    return Pack.load(GENERAL_PACK, METHOD)


def pack_from_bytes(content: bytes) -> Pack:
    """Returns the pack that a release carries."""
    return Pack.from_bytes(content, METHOD, "The release's pack")


# --- training on public signals ---------------------------------------------------------------------------------------


def simulated(num_windows: int, rng: np.random.Generator) -> np.ndarray:
    """Returns simulated windows of one length and number of features, both drawn again each time."""
    return simulate_signals(
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


def split(signals: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns (signals to learn from, signals kept out): whole series, or the end of a single one."""
    if len(signals) > 1:
        kept = max(1, round(share * len(signals)))
        return signals[:-kept], signals[-kept:]
    kept = max(1, round(share * signals.shape[1]))
    return signals[:, :-kept], signals[:, -kept:]


def pretrain(
    windows: Windows,
    held_out: np.ndarray,
    *,
    recipe: KnowledgeRecipe,
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
    model = KnowledgeTransformer(**recipe.shape)
    untrained = filling_error(model, held_out, seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, recipe.iterations, eta_min=1e-4)
    for iteration in range(recipe.iterations):
        context = torch.from_numpy(windows(recipe.batch, rng))
        optimiser.zero_grad()
        model.filling_loss(context, hide(~context.isnan(), generator)).backward()
        optimiser.step()
        rate.step()
        progress("knowledge transformer", (iteration + 1) / recipe.iterations)
    quality = {"error": filling_error(model, held_out, seed), "error_untrained": untrained}
    facts = {"seed": seed, "effort": asdict(recipe), "versions": _versions()}
    return Pack(
        method=METHOD,
        arrays=to_arrays(model, ""),
        shape=recipe.shape,
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


def _versions() -> dict[str, str]:
    import understudy

    return {
        "understudy": understudy.__version__,
        "torch": torch.__version__.split("+")[0],
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


# --- simulated signals ------------------------------------------------------------------------------------------------


def simulate_signals(num_windows: int, num_steps: int, num_features: int, rng: np.random.Generator) -> np.ndarray:
    """Returns windows [window, step, feature], each feature with mean 0 and deviation 1."""
    kinds = rng.integers(0, len(_KINDS), num_windows)
    common = _drawn(kinds, num_steps, rng)[:, :, None]
    own = np.stack([_drawn(kinds, num_steps, rng) for _ in range(num_features)], axis=2)
    shared = rng.uniform(0.0, 0.95, (num_windows, 1, num_features))
    sign = np.where(rng.random((num_windows, 1, num_features)) < 0.8, 1.0, -1.0)
    mixed = sign * np.sqrt(shared) * common + np.sqrt(1 - shared) * own
    return standardised(mixed).astype(np.float32)


def _drawn(kinds: np.ndarray, num_steps: int, rng: np.random.Generator) -> np.ndarray:
    windows = np.empty((len(kinds), num_steps))
    for kind, draw in enumerate(_KINDS):
        rows = np.flatnonzero(kinds == kind)
        windows[rows] = draw(len(rows), num_steps, rng)
    return standardised(windows[:, :, None])[:, :, 0]


def _price(number: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """Geometric random walks whose volatility comes in clusters."""
    calm = _autoregressive(number, steps, 0.97, rng)
    return np.cumsum(np.exp(0.5 * calm) * rng.standard_normal((number, steps)), axis=1)


def _weather(number: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """A day, slow fronts and a slow season."""
    return _season(number, steps, rng) + 1.5 * _autoregressive(number, steps, 0.97, rng) + _slope(number, steps, rng)


def _load(number: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """Sharp daily peaks with noise that grows with them."""
    peaks = np.exp(1.5 * _season(number, steps, rng))
    return peaks * (1 + 0.3 * rng.standard_normal((number, steps))) + 0.5 * _season(number, steps, rng)


def _tariff(number: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """Steps that last, with a spike now and then."""
    jumps = (rng.random((number, steps)) < 0.05) * rng.standard_normal((number, steps))
    spikes = (rng.random((number, steps)) < 0.02) * rng.exponential(3.0, (number, steps))
    return np.cumsum(jumps, axis=1) + spikes + 0.1 * rng.standard_normal((number, steps))


def _waves(number: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """Two seasons over each other."""
    noise = rng.uniform(0.05, 0.5, (number, 1)) * rng.standard_normal((number, steps))
    return _season(number, steps, rng) + 0.7 * _season(number, steps, rng) + noise


def _noise(number: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """From nearly independent steps to nearly a random walk."""
    return _autoregressive(number, steps, rng.uniform(0.2, 0.99, (number, 1)), rng)


def _season(number: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    period = np.exp(rng.uniform(np.log(6), np.log(max(steps, 8)), (number, 1)))
    phase = rng.uniform(0, 2 * np.pi, (number, 1))
    return np.sin(2 * np.pi * np.arange(steps) / period + phase)


def _slope(number: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((number, 1)) * np.linspace(-1, 1, steps)


def _autoregressive(number: int, steps: int, persistence: float | np.ndarray, rng: np.random.Generator) -> np.ndarray:
    noise = rng.standard_normal((number, steps)) * np.sqrt(1 - np.square(persistence))
    series = np.empty((number, steps))
    before = rng.standard_normal((number, 1))
    for step in range(steps):
        before = persistence * before + noise[:, step : step + 1]
        series[:, step : step + 1] = before
    return series


_KINDS = (_price, _weather, _load, _tariff, _waves, _noise)
