"""The replaceable modules of PETS: variation (Eq. 4) and similarity, their networks, and how they fit a schema.

Series are float32 [series, step, channel] in *working scale*: no gaps, each channel roughly within [−4, 4] by public
facts alone. A categorical channel of K codes is a group of K one-hot channels.

TS2Vec: Yue et al., AAAI 2022, arXiv:2106.10466v4. `ConvVAE`: strided convolutions over time (Kingma & Welling,
arXiv:1312.6114v11). `PooledConv`: the same, pooled at every scale, at a few percent of the cost of a TS2Vec. Each
knows its `shape`: the arguments that make one like it.

Notation: α degree, s posterior noise scale, κ direction noise scale, ρ share of the prior, γ share of the input.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional

from understudy.errors import InputError
from understudy.synthesizers.packs import Pack
from understudy.training.networks import load_arrays

Generation = Callable[[int, np.random.Generator], np.ndarray]  # number → series; looks at no private data
Variation = Callable[[np.ndarray, float, np.random.Generator], np.ndarray]  # series, degree (0–100) → relatives
Similarity = Callable[[np.ndarray], np.ndarray]  # series → float32 [series, dimension]; near in L2 means alike
SOFTENING = 0.1  # a channel that moves much less than this in working scale has no shape worth comparing
POSTERIOR_MAX, DIRECTION, PRIOR_MAX, BLEND_MAX = 4.0, 0.5, 1.0, 0.25
_LEVEL_JITTER = 0.25  # how far mean and deviation of a series move, as a share of s
_FLAT = 0.05  # deviation given to a channel that does not move, so that it can start to
_VARIED_TOGETHER, _EMBEDDED_TOGETHER = 256, 64
_MAX_STRETCH = 2  # an encoder reads series of up to twice or half the length it was trained on as they are
_GROUPS = 8  # of GroupNorm


class SameConv(nn.Conv1d):
    """Convolution of three taps that keeps the length; taps which can only see padding are not computed."""

    def __init__(self, width_in: int, width_out: int, dilation: int) -> None:
        super().__init__(width_in, width_out, 3, padding=dilation, dilation=dilation)

    def forward(self, x: Tensor) -> Tensor:
        if self.dilation[0] >= x.shape[-1]:  # both outer taps fall outside the series: the middle one is exact
            return functional.conv1d(x, self.weight[:, :, 1:2], self.bias)
        return super().forward(x)


class ConvBlock(nn.Module):
    """GELU → convolution, twice, plus a skip connection; x is [series, width, step]."""

    def __init__(self, width_in: int, width_out: int, dilation: int, *, last: bool) -> None:
        super().__init__()
        self.first = SameConv(width_in, width_out, dilation)
        self.second = SameConv(width_out, width_out, dilation)
        self.skip = nn.Conv1d(width_in, width_out, 1) if last or width_in != width_out else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.second(functional.gelu(self.first(functional.gelu(x)))) + self.skip(x)


class TS2Vec(nn.Module):
    """Represents every step of x [series, step, channel] as [series, step, output].

    While training, steps are hidden at random (p = 0.5) behind the input projection; one with a missing channel (NaN)
    is always hidden.
    """

    def __init__(self, *, channels: int, depth: int = 10, hidden: int = 64, output: int = 320) -> None:
        super().__init__()
        self.channels = channels
        self.shape: dict[str, Any] = {"channels": channels, "depth": depth, "hidden": hidden, "output": output}
        self.project_in = nn.Linear(channels, hidden)
        widths = [*[hidden] * (depth + 1), output]
        self.blocks = nn.Sequential(
            *(ConvBlock(widths[k], widths[k + 1], 2**k, last=k == depth) for k in range(depth + 1))
        )
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        present = ~x.isnan().any(-1)
        hidden = self.project_in(torch.where(present.unsqueeze(-1), x, 0.0))
        if self.training:
            present = present & (torch.rand(present.shape, device=x.device) < 0.5)
        hidden = hidden * present.unsqueeze(-1)
        output: Tensor = self.dropout(self.blocks(hidden.transpose(1, 2))).transpose(1, 2)
        return output


class ConvVAE(nn.Module):
    """Maps series [series, step, channel] to one latent vector each, and back; `widths` are multiples of 8."""

    def __init__(self, *, channels: int, steps: int, latent: int, widths: tuple[int, ...] = (32, 64, 128, 128)) -> None:
        super().__init__()
        self.channels, self.steps = channels, steps
        self.shape: dict[str, Any] = {"channels": channels, "steps": steps, "latent": latent, "widths": list(widths)}
        self.short = -(-steps // 2 ** len(widths))  # steps of the shortest layer, rounded up
        self.padding = self.short * 2 ** len(widths) - steps
        up = [*reversed(widths), widths[0]]
        self.encoder = nn.Sequential(
            *(_normed(nn.Conv1d(i, o, 5, stride=2, padding=2)) for i, o in pairwise([channels, *widths]))
        )
        self.to_latent = nn.Linear(widths[-1] * self.short, 2 * latent)
        self.from_latent = nn.Linear(latent, widths[-1] * self.short)
        self.decoder = nn.Sequential(
            *(_normed(nn.ConvTranspose1d(i, o, 4, stride=2, padding=1)) for i, o in pairwise(up)),
            nn.Conv1d(widths[0], channels, 5, padding=2),
        )

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log-variance [series, latent] of q(z | x)."""
        hidden = functional.pad(x.transpose(1, 2), (0, self.padding), mode="replicate")
        mean, log_variance = self.to_latent(self.encoder(hidden).flatten(1)).chunk(2, dim=1)
        return mean, log_variance.clamp(-10, 4)

    def decode(self, z: Tensor) -> Tensor:
        """Return the mean of p(x | z)."""
        hidden = self.from_latent(z).unflatten(1, (-1, self.short))
        output: Tensor = self.decoder(hidden).transpose(1, 2)[:, : self.steps]
        return output


def _normed(layer: nn.Conv1d | nn.ConvTranspose1d) -> nn.Module:
    return nn.Sequential(layer, nn.GELU(), nn.GroupNorm(_GROUPS, layer.out_channels))


class PooledConv(nn.Module):
    """Embeds x [series, step, channel] as [series, output], by maximum and mean of every layer but the first."""

    def __init__(self, *, channels: int, output: int = 64, widths: tuple[int, ...] = (32, 64, 64, 128, 128)) -> None:
        super().__init__()
        self.channels = channels
        self.shape: dict[str, Any] = {"channels": channels, "output": output, "widths": list(widths)}
        self.layers = nn.ModuleList(nn.Conv1d(i, o, 5, stride=2, padding=2) for i, o in pairwise([channels, *widths]))
        self.head = nn.Linear(2 * sum(widths[1:]), output)

    def forward(self, x: Tensor) -> Tensor:
        hidden, pooled = x.transpose(1, 2), []
        for place, layer in enumerate(self.layers):
            hidden = functional.gelu(layer(hidden))
            if place:
                pooled += [hidden.amax(2), hidden.mean(2)]
        embedding: Tensor = self.head(torch.cat(pooled, dim=1))
        return embedding


ENCODERS: dict[str, type[TS2Vec] | type[PooledConv]] = {"pooled-conv": PooledConv, "ts2vec": TS2Vec}


@dataclass(frozen=True, kw_only=True)
class Modules:
    """Modules that fit one schema; `adaptation` says how they were made to fit, for plans and certificates.

    Attributes:
        generation: Makes first candidates in place of rules, unless public series are the start.
    """

    variation: Variation
    similarity: Similarity
    adaptation: str
    generation: Generation | None = None


class Strengths(NamedTuple):
    """s, κ, ρ and γ of Eq. 4."""

    posterior: float
    direction: float
    prior: float
    blend: float


def strengths(degree: float) -> Strengths:
    """Return s, κ, ρ, γ: s and ρ grow with the degree, γ falls; at 100 nothing of the input's shape is left."""
    a = degree / 100
    return Strengths(POSTERIOR_MAX * a, DIRECTION, PRIOR_MAX * a**2, BLEND_MAX * (1 - a))


@dataclass(frozen=True, kw_only=True, eq=False)
class VAEVariation:
    """Perturbs series in the latent space of an autoencoder, at its own length.

    A network of one channel is applied to each channel by itself; noise then has the correlation of the series' own
    channels, so that what moves together is moved together.

    Attributes:
        as_published: Else what the network can't express is kept and slowly moved, and the mean and the deviation of a
            series move too. As published, each iteration draws the population towards what the network can express.
    """

    network: ConvVAE
    as_published: bool = False

    @torch.no_grad()
    def __call__(self, series: np.ndarray, degree: float, rng: np.random.Generator) -> np.ndarray:
        """Return a relative of each series [series, step, channel]."""
        chunks = torch.as_tensor(np.asarray(series, dtype=np.float32)).split(_VARIED_TOGETHER)
        by = strengths(degree)
        return torch.cat([self._vary(chunk, by, rng) if len(chunk) else chunk for chunk in chunks]).numpy()

    def _vary(self, x: Tensor, by: Strengths, rng: np.random.Generator) -> Tensor:
        new = torch.ones(len(x), dtype=torch.bool)  # relatives of one series come in a row and are encoded once
        new[1:] = (x[1:] != x[:-1]).flatten(1).any(dim=1)
        distinct, which = x[new], new.cumsum(0) - 1
        mean, deviation = distinct.mean(1, keepdim=True), distinct.std(1, keepdim=True, correction=0).clamp(min=_FLAT)
        standard = (distinct - mean) / deviation
        groups = x.shape[2] // self.network.channels
        rows = rearrange(standard, "n step (group channel) -> (n group) step channel", group=groups)
        encoded = self.network.encode(resampled(rows, self.network.steps))
        mu, spread = (part.unflatten(0, (-1, groups)) for part in (encoded[0], torch.exp(0.5 * encoded[1])))
        noise = torch.as_tensor(rng.standard_normal((3, len(x), *mu.shape[1:]), dtype=np.float32))
        post, direct, prior = noise if groups == 1 else _joint_factor(standard)[which] @ noise
        z = mu[which] + by.posterior * (spread[which] * post + by.direction * direct)  # Eq. 4
        z = (1 - by.prior) * z + by.prior * prior  # Eq. 4
        decoded = self._decoded(z, x.shape[1])
        wobble = torch.zeros(2, len(x), 1, x.shape[2])
        if not self.as_published:
            unexpressed = standard - self._decoded(mu, x.shape[1])
            decoded = decoded + _drifted(unexpressed[which], by.prior, rng)
            jitter = rng.standard_normal(tuple(wobble.shape), dtype=np.float32)
            wobble = _LEVEL_JITTER * by.posterior * torch.as_tensor(jitter)
        decoded = decoded * (deviation[which] * torch.exp(wobble[0])) + (mean[which] + wobble[1])
        return (1 - by.blend) * decoded + by.blend * x  # Eq. 4

    def _decoded(self, z: Tensor, num_steps: int) -> Tensor:
        rows = resampled(self.network.decode(z.flatten(0, 1)), num_steps)
        return rearrange(rows, "(n group) step channel -> n step (group channel)", group=z.shape[1])


def _joint_factor(standard: Tensor) -> Tensor:
    """Return a Cholesky factor [series, channel, channel] of each series' correlation between channels."""
    products = standard.transpose(1, 2) @ standard / standard.shape[1] + 1e-2 * torch.eye(standard.shape[2])
    size = products.diagonal(dim1=1, dim2=2).sqrt()
    return torch.linalg.cholesky(products / size.unsqueeze(1) / size.unsqueeze(2))


def _drifted(residual: Tensor, rho: float, rng: np.random.Generator) -> Tensor:
    """Take the prior's share ρ of the residual from elsewhere in the series: same texture, another place."""
    num_series, num_steps = residual.shape[:2]
    offset = torch.as_tensor(rng.integers(num_steps, size=(num_series, 1)))
    elsewhere = residual[torch.arange(num_series)[:, None], (torch.arange(num_steps) + offset) % num_steps]
    return (1 - rho) * residual + (1 - (1 - rho) ** 2) ** 0.5 * elsewhere


@dataclass(frozen=True, kw_only=True, eq=False)
class EncoderSimilarity:
    """Embeds series by a trained network; one of one channel embeds each channel by itself, side by side.

    Attributes:
        level_weight: If given, the network sees series without their level and scale, which are appended to its
            embedding with this weight: 1 makes a difference of 1 in working scale count as much as the distance
            between the shapes of two arbitrary public series. None, as published, shows the network series as they are.
        num_steps: Length that series are resampled to first.
    """

    network: TS2Vec | PooledConv
    level_weight: float | None = None
    num_steps: int | None = None

    @torch.no_grad()
    def __call__(self, series: np.ndarray) -> np.ndarray:
        return in_equal_batches(lambda batch: self._embed(torch.as_tensor(batch)).numpy(), _EMBEDDED_TOGETHER, series)

    def _embed(self, x: Tensor) -> Tensor:
        shapes, levels = (x, x[:, 0, :0]) if self.level_weight is None else shape_and_level(x)
        rows = rearrange(shapes, "n step (group channel) -> (n group) step channel", channel=self.network.channels)
        embedded = self.network(rows if self.num_steps is None else resampled(rows, self.num_steps))
        if isinstance(self.network, TS2Vec):  # which embeds every step
            embedded = embedded.amax(dim=1)
        embedded = rearrange(embedded, "(n group) d -> n (group d)", n=len(x))
        return torch.cat([embedded, (self.level_weight or 0.0) * levels], dim=1)


def in_equal_batches(embed: Callable[..., np.ndarray], size: int, *arrays: np.ndarray) -> np.ndarray:
    """Return the embeddings of rows that are shown in batches of one size, the last one filled up with zeros.

    Privacy: libraries choose their order of summation by shape; with one shape, a series' embedding does not depend on
    how many others there are.
    """
    number = len(arrays[0])
    missing = max(-(-number // size), 1) * size - number
    rooms = [np.concatenate([array, np.zeros((missing, *array.shape[1:]))], dtype=np.float32) for array in arrays]
    batches = (slice(begin, begin + size) for begin in range(0, number + missing, size))
    return np.concatenate([embed(*(room[batch] for room in rooms)) for batch in batches])[:number]


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


def fitted(pack: Pack, num_steps: int, num_channels: int, *, as_published: bool = False) -> Modules:
    """Return the modules of a pack for series [series, num_steps, num_channels].

    Other lengths than the pack's are resampled; another number of channels is refused unless the pack has one.
    """
    own_steps, own_channels = pack.shape["num_steps"], pack.shape["num_channels"]
    if own_channels not in (1, num_channels):
        raise InputError(
            f"The pack was trained on {own_channels} channels together and these series have {num_channels}. "
            "Nothing was adapted. Train one with `understudy pretrain pets`, or use the general pack."
        )
    shape: dict[str, Any] = dict(pack.shape["similarity"])
    kind, level_weight, steps = (shape.pop(name) for name in ("kind", "level_weight", "num_steps"))
    autoencoder, encoder = ConvVAE(**pack.shape["variation"]), ENCODERS[kind](**shape)
    try:
        load_arrays(autoencoder, pack.arrays, "variation.")
        load_arrays(encoder, pack.arrays, "similarity.")
    except RuntimeError as problem:
        raise InputError("The pack is damaged: its weights do not fit its description. Train it again.") from problem
    told = f"series of {num_steps} steps are varied at the pack's {own_steps}, finer detail kept apart"
    if num_steps == own_steps:
        told = f"series have the {num_steps} steps the pack was trained on"
    if steps == own_steps and steps / _MAX_STRETCH <= num_steps <= steps * _MAX_STRETCH:
        steps = None
    else:
        told += f"; and compared at {steps}"
    if num_channels > 1:
        alone = f"each of the {num_channels} channels is embedded by itself"
        told += f"; {alone if own_channels == 1 else f'all {num_channels} channels are embedded together'}"
    variation = VAEVariation(network=autoencoder.train(False), as_published=as_published)
    similarity = EncoderSimilarity(network=encoder.train(False), level_weight=level_weight, num_steps=steps)
    return Modules(variation=variation, similarity=similarity, adaptation=f"{told}.")
