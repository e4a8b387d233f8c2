"""Modules that need no training, for tests: series move at random, and moments stand for an embedding."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from understudy.synthesizers import METHODS
from understudy.synthesizers.pets import PETS, two_places
from understudy.synthesizers.pets import method as pets_method
from understudy.synthesizers.pets.modules import Modules


@dataclass(eq=False)
class Counter:
    """How many series each module was shown."""

    varied: list[int] = field(default_factory=list)
    embedded: list[int] = field(default_factory=list)

    def vary(self, series: np.ndarray, degree: float, rng: np.random.Generator) -> np.ndarray:
        """Moves level, size and steps of each series by chance."""
        self.varied.append(len(series))
        share = degree / 100
        level, size = (rng.standard_normal((len(series), 1, series.shape[2])) for _ in range(2))
        moved = series * np.exp(share * size) + share * (level + rng.standard_normal(series.shape) / 2)
        return moved.astype(np.float32)

    def embed(self, series: np.ndarray) -> np.ndarray:
        """Level, size, roughness and ends of each channel."""
        self.embedded.append(len(series))
        rough = np.abs(np.diff(series, axis=1, prepend=series[:, :1])).mean(axis=1)
        parts = (series.mean(axis=1), series.std(axis=1), rough, series[:, 0], series[:, -1])
        return np.concatenate(parts, axis=1).astype(np.float32)


class StandInPack:
    """A pack without weights."""

    sha256 = "0" * 64


def use_stand_in(monkeypatch: pytest.MonkeyPatch) -> Counter:
    """Replaces every pack by the stand-in and returns what it was shown."""
    counter = Counter()
    modules = Modules(variation=counter.vary, similarity=counter.embed, adaptation="A stand-in.")
    for place in (pets_method, two_places):
        monkeypatch.setattr(place, "load_pack", lambda pack, method: StandInPack())
    monkeypatch.setattr(pets_method, "fitted", lambda *arguments, **options: modules)
    monkeypatch.setitem(METHODS, "pets", PETS)
    return counter
