"""The replaceable modules of PETS: variation (Eq. 4), similarity, and the pack that holds trained ones.

Series are float32 [series, step, channel] in *working scale*: no gaps, each channel roughly within [−4, 4] by public
facts alone. A categorical channel of K codes is a group of K one-hot channels.

Notation: α degree, s posterior noise scale, κ direction noise scale, ρ share of the prior, γ share of the input.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from einops import rearrange
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as dump_tensors
from torch import Tensor, nn
from torch.nn import functional

from understudy.errors import InputError, MissingData
from understudy.synthesizers.packs import header, write_new
from understudy.synthesizers.pets.networks import ConvVAE, PooledConv, TS2Vec

SOFTENING = 0.1  # a channel that moves much less than this in working scale has no shape worth comparing
PEAK_SHARE = 0.05  # of the steps stand out


def resampled(x: Tensor, num_steps: int) -> Tensor:
    """Return [row, num_steps, channel]: averages where steps get fewer, straight lines where they get more."""
    if x.shape[1] == num_steps:
        return x
    mode = "area" if num_steps < x.shape[1] else "linear"
    return functional.interpolate(x.transpose(1, 2), size=num_steps, mode=mode).transpose(1, 2)


def shape_and_level(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return series without level and scale, and [series, 2 · channel] means and deviations.

    Division by the deviation is softened, so that a channel which hardly moves is nearly flat and not magnified noise.
    """
    mean = x.mean(1, keepdim=True)
    deviation = (x - mean).square().mean(1, keepdim=True).sqrt()
    return (x - mean) / (deviation + SOFTENING), torch.cat([mean, deviation], dim=2).squeeze(1)


def peaks(standard: Tensor) -> Tensor:
    """Return where standardised series [series, step, channel] are furthest from their mean."""
    distance = standard.abs()
    return distance >= torch.quantile(distance, 1 - PEAK_SHARE, dim=1, keepdim=True)


POSTERIOR_MAX, DIRECTION, PRIOR_MAX, BLEND_MAX = 4.0, 0.5, 1.0, 0.25
_LEVEL_JITTER = 0.25  # how far mean and deviation of a series move, as a share of s
_FLAT = 0.05  # deviation given to a channel that does not move, so that it can start to
_VARIED_TOGETHER = 256


@dataclass(frozen=True, kw_only=True)
class Strengths:
    """The four numbers of Eq. 4."""

    posterior: float
    direction: float
    prior: float
    blend: float


def strengths(degree: float) -> Strengths:
    """Return s, κ, ρ, γ: s and ρ grow with the degree, γ falls; at 100 nothing of the input's shape is left."""
    if not 0 <= degree <= 100:
        raise InputError(f"degree: a number from 0 to 100 is expected, got {degree:g}.")
    a = degree / 100
    return Strengths(
        posterior=POSTERIOR_MAX * a, direction=DIRECTION, prior=PRIOR_MAX * a**2, blend=BLEND_MAX * (1 - a)
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class VAEVariation:
    """Perturbs series in the latent space of an autoencoder; final, implements `Variation`.

    A network of one channel is applied to each channel by itself. Noise is then drawn with the correlation of the
    series' own channels, so that what moves together is moved together. Series of another length are resampled to
    the network's, and back.

    Attributes:
        network: Trained on public series, each standardised.
        as_published: Else what the network can't express is kept and slowly moved, and the mean and the deviation of a
            series move too. As published, each iteration draws the population towards what the network can express.
    """

    network: ConvVAE
    as_published: bool = False

    def __call__(self, series: np.ndarray, degree: float, rng: np.random.Generator) -> np.ndarray:
        return self.vary(series, strengths(degree), rng)

    @torch.no_grad()
    def vary(self, series: np.ndarray, by: Strengths, rng: np.random.Generator) -> np.ndarray:
        """Return a relative of each series [series, step, channel]."""
        varied = np.empty(series.shape, dtype=np.float32)
        for start in range(0, len(series), _VARIED_TOGETHER):
            chunk = torch.as_tensor(np.asarray(series[start : start + _VARIED_TOGETHER], dtype=np.float32))
            varied[start : start + _VARIED_TOGETHER] = self._vary(chunk, by, rng).numpy()
        return varied

    def _vary(self, x: Tensor, by: Strengths, rng: np.random.Generator) -> Tensor:
        distinct, which = _runs(x)
        mean, deviation = distinct.mean(1, keepdim=True), distinct.std(1, keepdim=True, correction=0).clamp(min=_FLAT)
        standard = (distinct - mean) / deviation
        mu, spread, unexpressed = self._encoded(standard)
        together = _joint_factor(standard) if mu.shape[1] > 1 else torch.ones(len(mu), 1, 1)
        decoded = self._decoded(_moved(mu[which], spread[which], together[which], by, rng), x.shape[1])
        wobble = torch.zeros(2, len(x), 1, x.shape[2])
        if not self.as_published:
            decoded = decoded + _drifted(unexpressed[which], by.prior, rng)
            noise = rng.standard_normal(tuple(wobble.shape), dtype=np.float32)
            wobble = _LEVEL_JITTER * by.posterior * torch.as_tensor(noise)
        decoded = decoded * (deviation[which] * torch.exp(wobble[0])) + (mean[which] + wobble[1])
        return (1 - by.blend) * decoded + by.blend * x  # Eq. 4

    def _encoded(self, standard: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean and deviation [series, group, latent] of each posterior, and what the network can't express."""
        groups = standard.shape[2] // self.network.channels
        rows = rearrange(standard, "n step (group channel) -> (n group) step channel", group=groups)
        encoded = self.network.encode(resampled(rows, self.network.steps))
        mu, log_variance = (part.unflatten(0, (-1, groups)) for part in encoded)
        return mu, torch.exp(0.5 * log_variance), standard - self._decoded(mu, standard.shape[1])

    def _decoded(self, z: Tensor, num_steps: int) -> Tensor:
        rows = resampled(self.network.decode(z.flatten(0, 1)), num_steps)
        return rearrange(rows, "(n group) step channel -> n step (group channel)", group=z.shape[1])


def _runs(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the series without those that equal the one before, and which of them each series is.

    Relatives of one series are asked for together, so that what they share is encoded once.
    """
    new = torch.ones(len(x), dtype=torch.bool)
    new[1:] = (x[1:] != x[:-1]).flatten(1).any(dim=1)
    return x[new], new.cumsum(0) - 1


def _joint_factor(standard: Tensor) -> Tensor:
    """Return a Cholesky factor [series, channel, channel] of each series' correlation between channels."""
    products = standard.transpose(1, 2) @ standard / standard.shape[1]
    products = products + 1e-2 * torch.eye(standard.shape[2])
    size = products.diagonal(dim1=1, dim2=2).sqrt()
    return torch.linalg.cholesky(products / size.unsqueeze(1) / size.unsqueeze(2))


def _moved(mu: Tensor, spread: Tensor, together: Tensor, by: Strengths, rng: np.random.Generator) -> Tensor:
    """Return latents [series, group, latent] near those of the series; `together` correlates noise of groups."""
    drawn = torch.as_tensor(rng.standard_normal((3, *mu.shape), dtype=np.float32))
    post, direct, prior = together @ drawn if mu.shape[1] > 1 else drawn
    z = mu + by.posterior * (spread * post + by.direction * direct)  # Eq. 4
    return (1 - by.prior) * z + by.prior * prior  # Eq. 4


def _drifted(residual: Tensor, rho: float, rng: np.random.Generator) -> Tensor:
    """Lets the prior's share ρ of the residual come from elsewhere in the series: same texture, another place."""
    num_series, num_steps = residual.shape[:2]
    rotations = torch.cat([residual, residual], dim=1).unfold(1, num_steps, 1)  # [series, offset, channel, step]
    offset = torch.as_tensor(rng.integers(num_steps, size=num_series))
    elsewhere = rotations[torch.arange(num_series), offset].transpose(1, 2)
    return (1 - rho) * residual + (1 - (1 - rho) ** 2) ** 0.5 * elsewhere


_CHUNK = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class EncoderSimilarity:
    """Embeds series by a trained network; final, implements `Similarity`.

    A network of one channel is applied to each channel by itself and the embeddings are put side by side.

    Attributes:
        network: A `TS2Vec`, pooled by its maximum over the steps, or a network that embeds whole series.
        level_weight: If given, the network sees series without their level and scale, which are appended to its
            embedding with this weight: 1 makes a difference of 1 in working scale count as much as the distance
            between the shapes of two arbitrary public series. None, as published, shows the network series as they are.
        num_steps: Length that series are resampled to first, if given.
    """

    network: TS2Vec | PooledConv
    level_weight: float | None = None
    num_steps: int | None = None

    @torch.no_grad()
    def __call__(self, series: np.ndarray) -> np.ndarray:
        pieces = [self._embed(chunk)[:used] for chunk, used in equal_chunks(series)]
        return torch.cat(pieces).numpy() if pieces else self._embed(_no_series(series))[:0].numpy()

    def _embed(self, x: Tensor) -> Tensor:
        shapes, levels = (x, None) if self.level_weight is None else shape_and_level(x)
        rows = rearrange(shapes, "n step (group channel) -> (n group) step channel", channel=self.network.channels)
        embedded = self.network(rows if self.num_steps is None else resampled(rows, self.num_steps))
        if isinstance(self.network, TS2Vec):
            embedded = embedded.amax(dim=1)
        embedded = rearrange(embedded, "(n group) d -> n (group d)", n=len(x))
        if levels is None or self.level_weight is None:
            return embedded
        return torch.cat([embedded, self.level_weight * levels], dim=1)


def equal_chunks(series: np.ndarray) -> Iterator[tuple[Tensor, int]]:
    """Yields (chunk, rows used): chunks of one size, the last one filled up.

    Libraries choose their order of summation by shape; with one shape, a series' embedding does not depend on how many
    others there are.
    """
    for start in range(0, len(series), _CHUNK):
        part = np.asarray(series[start : start + _CHUNK], dtype=np.float32)
        room = np.zeros((_CHUNK, *series.shape[1:]), dtype=np.float32)
        room[: len(part)] = part
        yield torch.as_tensor(room), len(part)


def _no_series(series: np.ndarray) -> Tensor:
    return torch.zeros((1, *series.shape[1:]))


FORMAT = 1
METADATA_KEY = "understudy-pets-pack"  # one key: the order of several would change the file's hash
GENERAL_PACK = Path(__file__).parent / "packs" / "general.safetensors"


class Generation(Protocol):
    """Draws series without looking at private data."""

    def __call__(self, num_series: int, rng: np.random.Generator) -> np.ndarray: ...


class Variation(Protocol):
    """Return a relative of each series; `degree` runs from 0 (near copies) to 100 (nearly unrelated)."""

    def __call__(self, series: np.ndarray, degree: float, rng: np.random.Generator) -> np.ndarray: ...


class Similarity(Protocol):
    """Embeds series as [series, dimension] float32; near in L2 means alike."""

    def __call__(self, series: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True, kw_only=True)
class Modules:
    """A pack's modules made to fit one panel.

    Attributes:
        adaptation: How the pack was made to fit, in words for plans and certificates.
    """

    variation: Variation
    similarity: Similarity
    adaptation: str


@dataclass(frozen=True, eq=False, kw_only=True)
class ModulePack:
    """Weights of a variation and a similarity module, trained on public data only.

    Attributes:
        weights: Arrays by name, `variation.…` and `similarity.…`.
        variation: Shape of the variation network.
        similarity: Kind and shape of the similarity network.
        num_steps: Length of the series it was trained on.
        num_channels: Channels it was trained on; 1 means each channel is treated alike and on its own.
        provenance: Where it comes from: command, public files with hashes, seed, versions.
    """

    weights: dict[str, np.ndarray]
    variation: dict[str, Any]
    similarity: dict[str, Any]
    num_steps: int
    num_channels: int
    provenance: dict[str, Any] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the pack as one safetensors file; equal packs give equal bytes."""
        facts = {
            "format": FORMAT,
            "variation": self.variation,
            "similarity": self.similarity,
            "num_steps": self.num_steps,
            "num_channels": self.num_channels,
            "provenance": self.provenance,
        }
        arrays = {name: np.ascontiguousarray(array) for name, array in sorted(self.weights.items())}
        return dump_tensors(arrays, metadata={METADATA_KEY: json.dumps(facts, sort_keys=True)})

    @property
    def sha256(self) -> str:
        """Hash of the file `save` writes; certificates name it."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def save(self, path: str | Path) -> None:
        """Writes the pack; an existing file is never overwritten."""
        write_new(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> "ModulePack":
        """Reads a pack that `save` wrote."""
        source = Path(path)
        if not source.is_file():
            raise MissingData(f"'{source}' does not exist. Make a pack with `understudy pretrain pets`.")
        return cls.from_bytes(source.read_bytes(), f"'{source}'")

    @classmethod
    def from_bytes(cls, content: bytes, name: str = "This") -> "ModulePack":
        """Return the pack that `to_bytes` wrote; `name` says in errors where it came from."""
        try:
            facts = header(content, METADATA_KEY)
            if facts.pop("format") != FORMAT:
                raise InputError(f"{name} was written by another version of Understudy. Make the pack again.")
            return cls(weights=load_tensors(content), **facts)
        except (SafetensorError, KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as problem:
            raise InputError(f"{name} is no PETS module pack. Make one with `understudy pretrain pets`.") from problem

    @classmethod
    def general(cls) -> "ModulePack":
        """Return the pack that ships with Understudy, trained on rule-based series: any length, any channels."""
        return cls.load(GENERAL_PACK)

    def fit_to(self, num_steps: int, num_channels: int, *, as_published: bool = False) -> Modules:
        """Return modules for series [series, num_steps, num_channels], or refuse and say why."""
        return _fitted(self, num_steps, num_channels, as_published)


ENCODERS: Mapping[str, Callable[..., nn.Module]] = {"pooled-conv": PooledConv, "ts2vec": TS2Vec}
MIN_STEPS = 4
_MAX_STRETCH = 2  # an encoder reads series of up to twice or half the length it was trained on as they are


def _fitted(pack: ModulePack, num_steps: int, num_channels: int, as_published: bool) -> Modules:
    """Return the modules: other lengths are resampled, other channel counts refused."""
    if num_steps < MIN_STEPS:
        raise InputError(f"PETS needs series of at least {MIN_STEPS} steps, got {num_steps}. Use another method.")
    if pack.num_channels not in (1, num_channels):
        raise InputError(
            f"The pack was trained on {pack.num_channels} channels together and these series have {num_channels}. "
            "Nothing was adapted. Train one with `understudy pretrain pets`, or use the general pack."
        )
    shape = dict(pack.similarity)
    kind, level_weight, steps = shape.pop("kind"), shape.pop("level_weight"), shape.pop("num_steps")
    if kind not in ENCODERS:
        raise InputError("The pack was written by another version of Understudy. Make the pack again.")
    encoder = _network(ENCODERS[kind], shape, pack.weights, "similarity.")
    autoencoder = _network(ConvVAE, pack.variation, pack.weights, "variation.")
    as_is = steps == pack.num_steps and steps / _MAX_STRETCH <= num_steps <= steps * _MAX_STRETCH
    return Modules(
        variation=VAEVariation(network=autoencoder, as_published=as_published),
        similarity=EncoderSimilarity(network=encoder, level_weight=level_weight, num_steps=None if as_is else steps),
        adaptation=_sentence(pack, num_steps, num_channels, None if as_is else steps),
    )


def _network(make: Callable[..., Any], shape: Mapping[str, Any], weights: dict[str, np.ndarray], prefix: str) -> Any:
    network = make(**shape)
    own = {name: array for name, array in weights.items() if name.startswith(prefix)}
    try:
        network.load_state_dict({name.removeprefix(prefix): torch.as_tensor(array) for name, array in own.items()})
    except RuntimeError as problem:
        raise InputError("The pack is damaged: its weights do not fit its description. Train it again.") from problem
    return network.train(False)


def _sentence(pack: ModulePack, num_steps: int, num_channels: int, resampled_to: int | None) -> str:
    parts = []
    if num_steps == pack.num_steps:
        parts.append(f"series have the {num_steps} steps the pack was trained on")
    else:
        parts.append(f"series of {num_steps} steps are varied at the pack's {pack.num_steps}, finer detail kept apart")
    if resampled_to is not None:
        parts.append(f"and compared at {resampled_to}")
    if num_channels > 1:
        alone = f"each of the {num_channels} channels is embedded by itself"
        parts.append(alone if pack.num_channels == 1 else f"all {num_channels} channels are embedded together")
    return "; ".join(parts) + "."
