"""θ_T of Pub2Priv (section 5.1): trained on public signals by masked reconstruction, packed and frozen.

Two-axis self-attention over entries [step, feature]: first along time, then along features. Positions are sines on both
axes, so any number of steps and of features fits. Public signals come from a file, or are simulated. Nothing here may
be given private data.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from understudy.errors import InputError
from understudy.nn.attention import SelfAttention, positions
from understudy.synthesizers.packs import Pack, versions
from understudy.synthesizers.pub2priv.context import standardised
from understudy.synthesizers.pub2priv.recipe import KnowledgeRecipe
from understudy.training.networks import load_arrays, to_arrays, train_on_public_data

METHOD = "pub2priv"
MIN_STEPS, MAX_FEATURES = 8, 7
_FEWEST_STEPS = 24  # of simulated windows

Windows = Callable[[int, np.random.Generator], np.ndarray]  # (number, rng) → standardised windows, NaN where missing


def plane_positions(num_steps: int, num_features: int, width: int) -> Tensor:
    """Returns codes [step, feature, width]: the first half says the step, the second the feature."""
    shape = (num_steps, num_features, -1)
    steps, features = positions(num_steps, width // 2), positions(num_features, width - width // 2)
    return torch.cat([steps[:, None].expand(shape), features[None].expand(shape)], dim=2)


class EncoderLayer(nn.Module):
    """Attention along one axis and a two-layer network, each added to its input and normalised."""

    def __init__(self, width: int, num_heads: int, feed_forward: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.attention = SelfAttention(width, num_heads)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, feed_forward), nn.GELU(), nn.Dropout(dropout), nn.Linear(feed_forward, width)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, present: Tensor | None = None) -> Tensor:
        """Returns [row, position, width]; `present` [row, position] as in `SelfAttention`."""
        x = self.first(x + self.dropout(self.attention(x, present)))
        output: Tensor = self.second(x + self.dropout(self.feed_forward(x)))
        return output


class TwoAxisLayer(nn.Module):
    """Entries [unit, step, feature, width] look along time, then along features; an axis of one is skipped."""

    def __init__(self, width: int, num_heads: int, feed_forward: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.over_time, self.over_features = (EncoderLayer(width, num_heads, feed_forward, dropout) for _ in range(2))

    def forward(self, x: Tensor, present: Tensor | None = None) -> Tensor:
        """Args: `present` [unit, step, feature] is False for entries that are not there."""
        for layer in (self.over_time, self.over_features):
            x = x.transpose(1, 2)  # the axis that is looked along comes last
            present = None if present is None else present.transpose(1, 2)
            if x.shape[2] > 1:
                here = None if present is None else present.flatten(0, 1)
                x = layer(x.flatten(0, 1), here).unflatten(0, x.shape[:2])
        return x


class KnowledgeTransformer(nn.Module):
    """θ_T: public context c [unit, step, feature] → z [unit, step, width]. Missing entries of c are NaN."""

    def __init__(
        self, *, width: int, num_heads: int, depth: int, feed_forward: int, most_steps: int = 160, dropout: float = 0.05
    ) -> None:
        super().__init__()
        self.shape = {"width": width, "num_heads": num_heads, "depth": depth, "feed_forward": feed_forward}
        self.shape["most_steps"] = most_steps  # that it sees at once
        self.embed = nn.Linear(2, width)  # the value, and whether it was hidden
        self.layers = nn.ModuleList(TwoAxisLayer(width, num_heads, feed_forward, dropout) for _ in range(depth))
        self.summarise = nn.Linear(width, width)
        self.reconstruct = nn.Linear(width, 1)  # g_φ of section 5.1

    def entries(self, context: Tensor, hidden: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Returns (entries [unit, step, feature, width], which of them are there); `hidden` ones show no value."""
        present = ~context.isnan()
        hidden = torch.zeros_like(present) if hidden is None else hidden & present
        values = torch.where(present & ~hidden, context, 0.0)
        x = self.embed(torch.stack([values, hidden.to(values)], dim=3))
        x = x + plane_positions(*x.shape[1:]).to(x)
        for layer in self.layers:
            x = layer(x, present)
        return x, present

    def forward(self, context: Tensor) -> Tensor:
        """Returns z: the mean over the features that are there; 0 at a step without any."""
        x, present = self.entries(context)
        weight = present.to(x).unsqueeze(3)
        mean = (x * weight).sum(2) / weight.sum(2).clamp(min=1)
        output: Tensor = self.summarise(mean) * present.any(2, keepdim=True)
        return output

    def filling_loss(self, context: Tensor, hidden: Tensor) -> Tensor:
        """Returns the mean squared error of hidden entries, each in units of its feature's variance (section 5.1)."""
        x, present = self.entries(context, hidden)
        guesses, asked = self.reconstruct(x).squeeze(3), hidden & present
        spread = (context - context.nanmean((0, 1))).square().nanmean((0, 1)).nan_to_num(1.0)  # of each feature
        error = torch.where(asked, (guesses - context.nan_to_num()).square() / (spread + 1e-6), 0.0)
        return error.sum() / asked.sum().clamp(min=1)


def hide(present: Tensor, generator: torch.Generator, *, share: float = 0.15, longest: int = 20) -> Tensor:
    """Returns which entries [unit, step, feature] to hide: single ones, and in each row one span of 5 to `longest`."""
    (num_units, num_steps, num_features), single = present.shape, torch.rand(present.shape, generator=generator) < share
    rows = (num_units, 1, num_features)
    length = torch.randint(min(5, num_steps), min(longest, num_steps) + 1, rows, generator=generator)
    start = (torch.rand(rows, generator=generator) * (num_steps - length + 1)).long()
    step = torch.arange(num_steps)[None, :, None]
    return (single | ((step >= start) & (step < start + length))) & present


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

        z is 0 where the context is at rest. A context that many series met is seen once.
        """
        first = place = np.arange(len(context))
        if context.size > 0:
            rows = np.ascontiguousarray(context).reshape(len(context), -1)
            kinds = rows.view(np.dtype((np.void, rows[0].nbytes)))[:, 0]  # bytes, so that NaN equals NaN
            _, first, place = np.unique(kinds, return_index=True, return_inverse=True)
        return np.asarray(self._of_any_length(context[first])[place])

    def _of_any_length(self, context: np.ndarray) -> np.ndarray:
        """Returns z; long windows are seen as short as in training: neighbouring steps as one, z drawn between them."""
        steps = context.shape[1]
        together = -(-steps // self.transformer.shape["most_steps"])
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

        Privacy: in one batch, one unit more would move z of all others in its last bits, which is everything that a
        context at rest has.
        """
        at_rest = self.transformer(torch.zeros(1, *context.shape[1:]))
        parts = [self.transformer(torch.tensor(one[None], dtype=torch.float32)) - at_rest for one in context]
        return np.asarray(torch.cat([at_rest[:0], *parts]))


# --- training on public signals ---------------------------------------------------------------------------------------


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
    """Returns a pack of θ_T trained on public windows; its quality is that on `held_out`, which these never show."""
    torch.manual_seed(seed)
    rng, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    model = KnowledgeTransformer(**recipe.network)
    quality = {"error_untrained": filling_error(model, held_out, seed)}

    def loss(iteration: int) -> Tensor:
        context = torch.from_numpy(windows(recipe.batch, rng))
        return model.filling_loss(context, hide(~context.isnan(), generator))

    train_on_public_data(
        model.train(), loss, iterations=recipe.iterations, learning_rate=1e-3, last_rate=1e-4,
        progress=lambda done, planned: progress("knowledge transformer", done / planned),
    )  # fmt: skip
    quality["error"] = filling_error(model, held_out, seed)
    told = {"quality": {name: round(error, 4) for name, error in quality.items()}, "effort": asdict(recipe)}
    facts = {**provenance, **told, "seed": seed, "versions": versions()}
    return Pack(method=METHOD, arrays=to_arrays(model, ""), shape=model.shape, provenance=facts)


@torch.no_grad()
def filling_error(model: KnowledgeTransformer, windows: np.ndarray, seed: int) -> float:
    """Returns the error of hidden entries in units of their feature's variance; guessing the mean has error one."""
    context, generator = torch.from_numpy(windows).float(), torch.Generator().manual_seed(seed)
    return float(model.train(False).filling_loss(context, hide(~context.isnan(), generator)))


# --- simulated signals ------------------------------------------------------------------------------------------------


def simulated(num_windows: int, rng: np.random.Generator, most_steps: int = 160) -> np.ndarray:
    """Returns standardised windows of one length and number of features, both drawn again each time.

    Features share part of their movement, as stocks of one market or stations of one region do.
    """
    num_steps, num_features = int(rng.integers(_FEWEST_STEPS, most_steps)), int(rng.integers(1, MAX_FEATURES + 1))
    drawn = _signals(num_windows, num_steps, 1 + num_features, rng)
    shared = rng.uniform(0.0, 0.95, (num_windows, 1, num_features))
    sign = np.where(rng.random((num_windows, 1, num_features)) < 0.8, 1.0, -1.0)
    mixed = sign * np.sqrt(shared) * drawn[:, :, :1] + np.sqrt(1 - shared) * drawn[:, :, 1:]
    return standardised(mixed).astype(np.float32)


def _signals(number: int, steps: int, features: int, rng: np.random.Generator) -> np.ndarray:
    """Returns sums [window, step, feature] of a season, sharp peaks, a random walk, lasting steps and noise.

    Most windows have one or two of these, those of a window in all of its features.
    """
    shape, single = (number, steps, features), (number, 1, features)
    period = np.exp(rng.uniform(np.log(6), np.log(max(steps, 8)), single))
    season = np.sin(2 * np.pi * (np.arange(steps)[:, None] / period + rng.random(single)))
    noise, walk, jumps = rng.standard_normal((3, *shape))
    parts = [
        season,
        np.exp(1.5 * season),
        walk.cumsum(axis=1),
        (jumps * (rng.random(shape) < 0.05)).cumsum(axis=1),
        noise,
    ]
    strength = rng.dirichlet(np.full(len(parts), 0.5), number).T[:, :, None, None]
    return standardised(sum(own * standardised(part) for own, part in zip(strength, parts, strict=True)))
