"""Train a module pack on public series: the autoencoder of variations (Eq. 3), TS2Vec, and its small replacement."""

import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from understudy.data import Panel
from understudy.errors import InputError
from understudy.statistics.encoding import WORKING_BOUND, Encoding, linear_scales
from understudy.statistics.series import filled
from understudy.synthesizers.pets.modules import (
    Generation,
    ModulePack,
    VAEVariation,
    Variation,
    peaks,
    resampled,
    shape_and_level,
)
from understudy.synthesizers.pets.networks import ConvVAE, PooledConv, Report, TS2Vec, encode, train_ts2vec
from understudy.synthesizers.pets.rules import RuleBased, coloured_noise, levels_of, spread, standardised


def scaled_panel(panel: Panel) -> np.ndarray:
    """Return the series of a public panel: gaps bridged, codes as one-hot groups, channels standardised as a whole."""
    if panel.private:
        raise InputError("A public panel is expected: modules are never trained on the series that they will protect.")
    encoding = Encoding.of(panel.schema, (), linear_scales(panel.schema, panel))
    return encoding.series(panel, slice(None))


def scaled_array(array: np.ndarray) -> np.ndarray:
    """Return an array [series, step, channel] or [series, step], NaN where missing, with channels standardised."""
    if array.ndim not in (2, 3) or array.dtype.kind not in "fiu" or 0 in array.shape:
        raise InputError("Public array: numbers [series, step, channel] or [series, step] are expected.")
    values = (array if array.ndim == 3 else array[:, :, None]).astype(np.float64)
    if np.isinf(values).any() or np.isnan(values).all(axis=(0, 1)).any():
        raise InputError("Public array: finite numbers are expected, NaN where missing, and no channel that is empty.")
    width = np.nanstd(values, axis=(0, 1))
    scaled = (values - np.nanmean(values, axis=(0, 1))) / np.where(width > 0, width, 1.0)
    lengths = np.full(len(values), values.shape[1])
    return filled(scaled.clip(-WORKING_BOUND, WORKING_BOUND), lengths).astype(np.float32)


def windows_of(series: np.ndarray, num_steps: int) -> np.ndarray:
    """Return windows [window, step, channel] that begin every quarter of their length, those of a series together."""
    if num_steps > series.shape[1]:
        raise InputError(f"window_steps: at most the {series.shape[1]} steps of the public series are expected.")
    stride = max(num_steps // 4, 1)
    windows = np.lib.stride_tricks.sliding_window_view(series, num_steps, axis=1)[:, ::stride]
    return np.ascontiguousarray(windows.swapaxes(2, 3)).reshape(-1, num_steps, series.shape[2])


def one_channel_each(series: np.ndarray) -> np.ndarray:
    """Return every channel as a series of its own, [series · channel, step, 1]."""
    return np.ascontiguousarray(series.transpose(0, 2, 1)).reshape(-1, series.shape[1], 1)


KL_WEIGHT, FREQUENCY_WEIGHT, DIFFERENCE_WEIGHT, PEAK_WEIGHT = 1e-3, 0.1, 0.5, 0.1
WARM_UP = 0.2  # share of the iterations in which the weight of the KL term grows to its full size


def vae_loss(x: Tensor, decoded: Tensor, mean: Tensor, log_variance: Tensor, kl_weight: float) -> Tensor:
    """Return Eq. 3; x and decoded are standardised series [series, step, channel]."""
    squared = (x - decoded).square()
    kl = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean()
    strength, decoded_strength = (torch.fft.rfft(v, dim=1, norm="ortho").abs() for v in (x, decoded))
    frequency = (strength - decoded_strength).square().mean()
    difference = (x.diff(dim=1) - decoded.diff(dim=1)).square().mean()
    return (
        squared.mean()  # Eq. 3, term by term; the last two are L_aux
        + kl_weight * kl
        + FREQUENCY_WEIGHT * frequency
        + DIFFERENCE_WEIGHT * difference
        + PEAK_WEIGHT * squared[peaks(x)].mean()
    )


def train_vae(
    public: Generation,
    *,
    iterations: int,
    batch: int,
    seed: int,
    latent: int,
    progress: Report | None = None,
) -> ConvVAE:
    """Return an autoencoder of public series, which are standardised one by one and channel by channel."""
    rng = np.random.default_rng(seed)
    _, steps, channels = public(1, np.random.default_rng(seed)).shape
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = ConvVAE(channels=channels, steps=steps, latent=latent)
        optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
        decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, iterations)
        for iteration in range(iterations):
            x = standardise(torch.as_tensor(public(batch, rng)))
            mean, log_variance = network.encode(x)
            z = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
            warm = min(1.0, (iteration + 1) / (WARM_UP * iterations))
            loss = vae_loss(x, network.decode(z), mean, log_variance, KL_WEIGHT * warm)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            decay.step()
            if progress is not None:
                progress(iteration + 1, iterations)
    return network.train(False)


def standardise(x: Tensor) -> Tensor:
    """Return series [series, step, channel] with mean 0 and deviation 1 in every channel; flat ones become 0."""
    centred = x - x.mean(1, keepdim=True)
    deviation = centred.square().mean(1, keepdim=True).sqrt()
    return centred / deviation.clamp(min=1e-3)


@torch.no_grad()
def explained(network: ConvVAE, series: np.ndarray) -> float:
    """Return the share of the variance of standardised public series that survives encoding and decoding."""
    x = standardise(torch.as_tensor(np.asarray(series, dtype=np.float32)))
    error = x - network.decode(network.encode(x)[0])
    return float(1 - error.square().mean() / x.square().mean())


_HELD_OUT = 0.1


@dataclass(frozen=True, eq=False, kw_only=True)
class Distilled:
    """A trained encoder.

    Attributes:
        explained: Share of the variance of the large encoder's principal components that it tells right, on series
            kept out of its training.
    """

    network: PooledConv
    explained: float


def distil(
    teacher: TS2Vec,
    series: np.ndarray,
    *,
    iterations: int,
    batch: int,
    seed: int,
    num_steps: int,
    output: int = 64,
    progress: Report | None = None,
) -> Distilled:
    """Return a small encoder of series [series, step, channel] whose distances follow the teacher's.

    Its embedding is the teacher's in `output` principal components, scaled so that the mean squared distance between
    two series is 1. It sees series resampled to `num_steps`.
    """
    rng = np.random.default_rng(seed)
    goal = torch.as_tensor(principal_components(encode(teacher, series), output))
    inputs = resampled(torch.as_tensor(np.asarray(series, dtype=np.float32)), num_steps)
    held_out = int(_HELD_OUT * len(series))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = PooledConv(channels=series.shape[2], output=output)
        optimiser = torch.optim.Adam(network.parameters(), lr=2e-3)
        decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, iterations)
        for iteration in range(iterations):
            drawn = torch.as_tensor(rng.integers(held_out, len(series), batch))
            loss = (network(inputs[drawn]) - goal[drawn]).square().sum(1).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            decay.step()
            if progress is not None:
                progress(iteration + 1, iterations)
    network.train(False)
    with torch.no_grad():
        error = (network(inputs[:held_out]) - goal[:held_out]).square().sum(1).mean()
    return Distilled(network=network, explained=float(1 - error / goal.square().sum(1).mean()))


def principal_components(embeddings: np.ndarray, output: int) -> np.ndarray:
    """Return centred embeddings in their first components [series, output]; mean squared distance 1."""
    centred = embeddings - embeddings.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    components = centred @ directions[:output].T
    components = np.pad(components, ((0, 0), (0, output - components.shape[1])))
    return np.asarray(components / np.sqrt(2 * components.var(axis=0).sum()), dtype=np.float32)


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
    """Return a pack of modules for series such as `public` draws.

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
    """Return TS2Vec trained on series as they are."""
    series = public(effort.distillation_series // 2, np.random.default_rng(seed + 1))
    report = _stage(progress, "TS2Vec", 0.45, 1.0)
    network = train_ts2vec(series, iterations=effort.ts2vec_iterations, batch=16, seed=seed, progress=report)
    return _Trained(network=network, reading={"level_weight": None, "num_steps": num_steps}, quality={})


def _train_small(
    public: Generation, autoencoder: ConvVAE, num_steps: int, effort: Effort, seed: int, progress: Progress
) -> _Trained:
    """Return the small encoder that learned from a TS2Vec of shapes; levels are appended to its embedding."""
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
    """Return what an encoder meets in a run: series such as the public ones, their variations, and rule-based ones."""
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
