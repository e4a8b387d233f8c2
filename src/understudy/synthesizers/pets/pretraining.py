"""Trains a module pack on public series: the autoencoder of variations, TS2Vec, and its small replacement."""

import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from understudy.errors import InputError
from understudy.synthesizers.pets.distillation import distil
from understudy.synthesizers.pets.generation import RuleBased, levels_of, spread, standardised
from understudy.synthesizers.pets.modules import Generation, ModulePack, Variation
from understudy.synthesizers.pets.networks import ConvVAE, PooledConv, TS2Vec, train_ts2vec
from understudy.synthesizers.pets.rules import coloured_noise
from understudy.synthesizers.pets.vae_training import explained, train_vae
from understudy.synthesizers.pets.variation import VAEVariation
from understudy.synthesizers.pets.waveforms import shape_and_level

Progress = Callable[[str, float], None]
Encoder = Literal["pooled-conv", "ts2vec"]
MIN_SERIES, MIN_STEPS = 32, 8
MAX_ENCODER_STEPS = 256  # the small encoder reads longer series at this length
GENERAL_STEPS = 128
_DEGREES = (5, 60)  # of variations that the small encoder sees while it learns


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long each part is trained.

    Attributes:
        autoencoder_iterations, ts2vec_iterations, distillation_iterations: Updates of each network.
        distillation_series: Series on which the small encoder learns the large one's embeddings.
        latent: Dimension of the autoencoder's latent space.
    """

    autoencoder_iterations: int = 3000
    ts2vec_iterations: int = 600
    distillation_iterations: int = 4000
    distillation_series: int = 12_000
    latent: int = 64


@dataclass(frozen=True, kw_only=True)
class GeneralRules:
    """Series of both presets and irregular ones, in equal parts; final, implements `Generation`."""

    num_steps: int = GENERAL_STEPS

    def __call__(self, num_series: int, rng: np.random.Generator) -> np.ndarray:
        numbers = [(num_series + place) // 3 for place in range(3)]
        parts = [
            RuleBased(num_steps=self.num_steps, preset=preset, rescale="spread")(number, rng)
            for preset, number in zip(("rich", "pets"), numbers, strict=False)
        ]
        irregular = standardised(coloured_noise(numbers[2], self.num_steps, rng))[:, :, None]
        parts.append(spread(irregular, rng).astype(np.float32))
        return np.concatenate(parts)[rng.permutation(num_series)]


def pretrain(
    public: Generation,
    *,
    held_out: np.ndarray,
    effort: Effort,
    seed: int,
    encoder: Encoder = "pooled-conv",
    provenance: dict[str, Any],
    progress: Progress,
) -> ModulePack:
    """Returns a pack of modules for series such as `public` draws.

    Args:
        held_out: Public series [series, step, channel] that `public` does not draw; quality is measured on them.
        encoder: "pooled-conv" keeps the small encoder, "ts2vec" the large one as published.
        provenance: Where the public series come from; quality, seed and versions are added.
    """
    _, num_steps, num_channels = held_out.shape
    if num_steps < MIN_STEPS:
        raise InputError(f"Public series: at least {MIN_STEPS} steps are expected, got {num_steps}.")
    autoencoder = train_vae(
        public, iterations=effort.autoencoder_iterations, batch=128, seed=seed, latent=effort.latent,
        progress=_stage(progress, "autoencoder", 0.0, 0.45),
    )  # fmt: skip
    train = _train_small if encoder == "pooled-conv" else _train_published
    trained = train(public, autoencoder, num_steps, effort, seed, progress)
    quality = {"autoencoder_explains": explained(autoencoder, held_out), **trained.quality}
    facts = {"seed": seed, "effort": asdict(effort), "versions": _versions()}
    return ModulePack(
        weights={**_weights(autoencoder, "variation."), **_weights(trained.network, "similarity.")},
        variation=autoencoder.shape,
        similarity={"kind": encoder, **trained.reading, **trained.network.shape},
        num_steps=num_steps,
        num_channels=num_channels,
        provenance={**provenance, **facts, "quality": {name: round(share, 4) for name, share in quality.items()}},
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Trained:
    """An encoder, how it has to be shown series, and how good it is."""

    network: TS2Vec | PooledConv
    reading: dict[str, float | int | None]
    quality: dict[str, float]


def _train_published(
    public: Generation, autoencoder: ConvVAE, num_steps: int, effort: Effort, seed: int, progress: Progress
) -> _Trained:
    """Returns TS2Vec trained on series as they are."""
    series = public(effort.distillation_series // 2, np.random.default_rng(seed + 1))
    report = _stage(progress, "TS2Vec", 0.45, 1.0)
    network = train_ts2vec(series, iterations=effort.ts2vec_iterations, batch=16, seed=seed, progress=report)
    return _Trained(network=network, reading={"level_weight": None, "num_steps": num_steps}, quality={})


def _train_small(
    public: Generation, autoencoder: ConvVAE, num_steps: int, effort: Effort, seed: int, progress: Progress
) -> _Trained:
    """Returns the small encoder that learned from a TS2Vec of shapes; levels are put beside its embedding."""
    rng = np.random.default_rng(seed + 1)
    series, report = public(effort.distillation_series // 2, rng), _stage(progress, "TS2Vec", 0.45, 0.7)
    teacher = train_ts2vec(_shapes(series), iterations=effort.ts2vec_iterations, batch=16, seed=seed, progress=report)
    seen = seen_by_voters(public, VAEVariation(network=autoencoder), effort.distillation_series, rng)
    small_steps = min(num_steps, MAX_ENCODER_STEPS)
    small = distil(
        teacher, _shapes(seen), iterations=effort.distillation_iterations, batch=64, seed=seed, num_steps=small_steps,
        progress=_stage(progress, "small encoder", 0.7, 1.0),
    )  # fmt: skip
    reading: dict[str, float | int | None] = {"level_weight": 1.0, "num_steps": small_steps}
    return _Trained(network=small.network, reading=reading, quality={"encoder_explains": small.explained})


def seen_by_voters(public: Generation, variation: Variation, num_series: int, rng: np.random.Generator) -> np.ndarray:
    """Returns what an encoder meets in a run: series such as the public ones, their variations, and rule-based ones."""
    plain = public(num_series - 2 * (num_series // 4), rng)
    parents = public(num_series // 4, rng)
    parts = np.array_split(parents, 8)
    varied = [variation(part, degree, rng) for part, degree in zip(parts, np.linspace(*_DEGREES, 8), strict=True)]
    rules = RuleBased(
        num_steps=plain.shape[1], num_channels=plain.shape[2], rescale="public", public_levels=levels_of(plain)
    )
    everything = np.concatenate([plain, *varied, rules(num_series // 4, rng)])
    return everything[rng.permutation(len(everything))]


def _shapes(series: np.ndarray) -> np.ndarray:
    return shape_and_level(torch.as_tensor(series))[0].numpy()


def _stage(progress: Progress, name: str, begin: float, end: float) -> Callable[[int, int], None]:
    return lambda done, planned: progress(name, begin + (end - begin) * done / planned)


def _weights(network: nn.Module, prefix: str) -> dict[str, np.ndarray]:
    return {f"{prefix}{name}": weight.detach().numpy() for name, weight in network.state_dict().items()}


def _versions() -> dict[str, str]:
    import understudy

    return {
        "understudy": understudy.__version__,
        "torch": torch.__version__.split("+")[0],
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
