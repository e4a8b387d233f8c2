"""θ_T as a pack: what public signals know about every step, frozen before any private series is seen."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from understudy.synthesizers.packs import Pack
from understudy.synthesizers.pub2priv.networks import KnowledgeTransformer

METHOD, GENERAL = "pub2priv", "general"
GENERAL_PACK = Path(__file__).parent / "packs" / "general.safetensors"
DIRECTIONS = "directions"  # array of the pack beside the network's own: what moves most in z, strongest first
MOST_STEPS = 160  # that θ_T sees at once, as in training


@dataclass(frozen=True, eq=False)
class Knowledge:
    """A frozen θ_T.

    Attributes:
        directions: Orthonormal columns [width, direction] of z, in the order of how much public signals move them.
    """

    transformer: KnowledgeTransformer
    directions: np.ndarray

    @classmethod
    def of(cls, pack: Pack) -> "Knowledge":
        """Returns the network that a pack holds, without dropout and without gradients."""
        transformer = KnowledgeTransformer(**pack.shape, dropout=0.0)
        weights = {name: torch.from_numpy(array) for name, array in pack.arrays.items() if name != DIRECTIONS}
        transformer.load_state_dict(weights)
        transformer.requires_grad_(False).train(False)
        return cls(transformer, pack.arrays[DIRECTIONS])

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
