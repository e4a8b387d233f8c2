"""Train a module pack on public series: the autoencoder of variations (Eq. 3), TS2Vec, and its small replacement."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from understudy.data import Panel
from understudy.errors import InputError
from understudy.statistics.encoding import WORKING_BOUND, Encoding, linear_scales
from understudy.statistics.series import filled
from understudy.synthesizers.packs import Pack, versions
from understudy.synthesizers.pets.modules import (
    ConvVAE,
    EncoderSimilarity,
    Generation,
    PooledConv,
    TS2Vec,
    VAEVariation,
    Variation,
    resampled,
    shape_and_level,
)
from understudy.synthesizers.pets.rules import RuleBased, in_turn, levels_of
from understudy.training.networks import to_arrays, train_on_public_data

KL_WEIGHT, FREQUENCY_WEIGHT, DIFFERENCE_WEIGHT, PEAK_WEIGHT = 1e-3, 0.1, 0.5, 0.1
WARM_UP = 0.2  # share of the iterations in which the weight of the KL term grows to its full size
PEAK_SHARE = 0.05  # of the steps stand out
MIN_SERIES, MIN_STEPS = 32, 8
MAX_ENCODER_STEPS = 256  # the small encoder reads longer series at this length
_DEGREES = (5, 60)  # of variations that the small encoder sees while it learns
_HELD_OUT = 0.1
Report = Callable[[int, int], None]  # iterations executed, iterations planned
Encoder = Literal["pooled-conv", "ts2vec"]


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long each part is trained."""

    autoencoder_iterations: int = 3000
    ts2vec_iterations: int = 600
    distillation_iterations: int = 4000
    distillation_series: int = 12_000  # on which the small encoder learns the large one's embeddings
    latent: int = 64  # dimension of the autoencoder's latent space


_OF_DOMAINS = Effort()  # for a pack that is trained at the start of a run


def pretrain(
    public: Generation,
    *,
    held_out: np.ndarray,
    effort: Effort,
    seed: int,
    encoder: Encoder = "pooled-conv",
    provenance: dict[str, Any],
    progress: Callable[[str, float], None],
) -> Pack:
    """Return a pack of modules for series such as `public` draws.

    Args:
        held_out: Public series [series, step, channel] that `public` does not draw; quality is measured on them.
        encoder: "pooled-conv" keeps the small encoder, "ts2vec" the large one as published.
        provenance: Where the public series come from; quality, seed and versions are added.
    """

    def stage(name: str, begin: float, end: float) -> Report:
        return lambda done, planned: progress(name, begin + (end - begin) * done / planned)

    _, num_steps, num_channels = held_out.shape
    if num_steps < MIN_STEPS:
        raise InputError(f"Public series: at least {MIN_STEPS} steps are expected, got {num_steps}.")
    autoencoder = train_vae(
        public, iterations=effort.autoencoder_iterations, batch=128, seed=seed, latent=effort.latent,
        progress=stage("autoencoder", 0.0, 0.45),
    )  # fmt: skip
    quality = {"autoencoder_explains": explained(autoencoder, held_out)}
    rng = np.random.default_rng(seed + 1)
    series = public(effort.distillation_series // 2, rng)
    train = partial(train_ts2vec, iterations=effort.ts2vec_iterations, batch=16, seed=seed)
    network: TS2Vec | PooledConv
    reading: dict[str, Any] = {"level_weight": None, "num_steps": num_steps}  # as published, series as they are
    if encoder == "ts2vec":
        network = train(series, progress=stage("TS2Vec", 0.45, 1.0))
    else:  # the small encoder learns from a TS2Vec of shapes; levels are appended to its embedding
        reading = {"level_weight": 1.0, "num_steps": min(num_steps, MAX_ENCODER_STEPS)}
        teacher = train(_shapes(series), progress=stage("TS2Vec", 0.45, 0.7))
        seen = seen_by_voters(public, VAEVariation(network=autoencoder), effort.distillation_series, rng)
        network, quality["encoder_explains"] = distil(
            teacher, _shapes(seen), iterations=effort.distillation_iterations, batch=64, seed=seed,
            num_steps=reading["num_steps"], progress=stage("small encoder", 0.7, 1.0),
        )  # fmt: skip
    facts = {"seed": seed, "effort": asdict(effort), "versions": versions()}
    rounded = {name: round(share, 4) for name, share in quality.items()}
    return Pack(
        method="pets",
        arrays={**to_arrays(autoencoder, "variation."), **to_arrays(network, "similarity.")},
        shape={
            "num_steps": num_steps,
            "num_channels": num_channels,
            "variation": autoencoder.shape,
            "similarity": {"kind": encoder, **reading, **network.shape},
        },
        provenance={**provenance, **facts, "quality": rounded},
    )


@lru_cache(maxsize=2)
def domain_pack(public: Panel, encoder: Encoder, seed: int) -> Pack:
    """Return a pack trained on the series of a public panel, in working scale by declared bounds."""
    encoding = Encoding.of(public.schema, (), linear_scales(public.schema, None))
    series = encoding.series(public, slice(None))[np.random.default_rng(seed).permutation(public.num_series)]
    require_enough(*series.shape[:2])
    held = max(1, round(_HELD_OUT * len(series)))
    return pretrain(
        drawn_from(series[held:]), held_out=series[:held], effort=_OF_DOMAINS, seed=seed, encoder=encoder,
        provenance={"public": "the run's public table"}, progress=lambda stage, share: None,
    )  # fmt: skip


def require_enough(num_series: int, num_steps: int) -> None:
    """Refuse public series that are too few or too short to learn from."""
    if num_series < MIN_SERIES or num_steps < MIN_STEPS:
        raise InputError(
            f"Public series: at least {MIN_SERIES} of {MIN_STEPS} steps are expected to train modules on, got "
            f"{num_series} of {num_steps}. Bring more, or choose pack = 'general'."
        )


def train_vae(
    public: Generation, *, iterations: int, batch: int, seed: int, latent: int, progress: Report | None = None
) -> ConvVAE:
    """Return an autoencoder of public series, which are standardised one by one and channel by channel."""
    rng = np.random.default_rng(seed)
    _, steps, channels = public(1, np.random.default_rng(seed)).shape
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = ConvVAE(channels=channels, steps=steps, latent=latent)

        def loss(iteration: int) -> Tensor:
            x = standardise(torch.as_tensor(public(batch, rng)))
            mean, log_variance = network.encode(x)
            z = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
            warm = min(1.0, (iteration + 1) / (WARM_UP * iterations))
            return vae_loss(x, network.decode(z), mean, log_variance, KL_WEIGHT * warm)

        train_on_public_data(network, loss, iterations=iterations, learning_rate=1e-3, last_rate=0.0, progress=progress)
    return network.train(False)


def vae_loss(x: Tensor, decoded: Tensor, mean: Tensor, log_variance: Tensor, kl_weight: float) -> Tensor:
    """Return Eq. 3; x and decoded are standardised series [series, step, channel]."""
    squared = (x - decoded).square()
    kl = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean()
    strength, decoded_strength = (torch.fft.rfft(v, dim=1, norm="ortho").abs() for v in (x, decoded))
    frequency = (strength - decoded_strength).square().mean()
    difference = (x.diff(dim=1) - decoded.diff(dim=1)).square().mean()
    peaks = x.abs() >= torch.quantile(x.abs(), 1 - PEAK_SHARE, dim=1, keepdim=True)
    return (
        squared.mean()  # Eq. 3, term by term; the last two are L_aux
        + kl_weight * kl
        + FREQUENCY_WEIGHT * frequency
        + DIFFERENCE_WEIGHT * difference
        + PEAK_WEIGHT * squared[peaks].mean()
    )


def standardise(x: Tensor) -> Tensor:
    """Return series [series, step, channel] with mean 0 and deviation 1 in every channel; flat ones become 0."""
    centred = x - x.mean(1, keepdim=True)
    return centred / centred.square().mean(1, keepdim=True).sqrt().clamp(min=1e-3)


@torch.no_grad()
def explained(network: ConvVAE, series: np.ndarray) -> float:
    """Return the share of the variance of standardised public series that survives encoding and decoding."""
    x = standardise(torch.as_tensor(np.asarray(series, dtype=np.float32)))
    error = x - network.decode(network.encode(x)[0])
    return float(1 - error.square().mean() / x.square().mean())


def train_ts2vec(
    series: np.ndarray, *, iterations: int, batch: int, seed: int, progress: Report | None = None, **shape: int
) -> TS2Vec:
    """Return an encoder trained on series [series, step, channel], NaN where missing; weights are averaged.

    TS2Vec is published with 200 iterations on arrays of up to 100,000 numbers and 600 on larger ones, and with batches
    of 8 or 16. `shape` is its depth, hidden and output width.
    """
    rng = np.random.default_rng(seed)
    data = torch.as_tensor(np.asarray(series, dtype=np.float32))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = TS2Vec(channels=data.shape[2], **shape)

        def loss(iteration: int) -> Tensor:
            drawn = rng.choice(len(data), size=min(batch, len(data)), replace=False)
            first, second, overlap = overlapping_crops(data[torch.as_tensor(drawn)], rng)
            return hierarchical_loss(network(first)[:, -overlap:], network(second)[:, :overlap])

        mean = train_on_public_data(
            network, loss, iterations=iterations, learning_rate=1e-3, averaged=True, progress=progress
        )
    return mean.train(False)


def overlapping_crops(x: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor, int]:
    """Return two crops that share `overlap` steps: the last ones of the first, the first ones of the second."""
    num_series, num_steps = x.shape[:2]
    overlap = int(rng.integers(2, num_steps + 1))
    left = int(rng.integers(num_steps - overlap + 1))
    right = left + overlap
    far_left = int(rng.integers(left + 1))
    far_right = int(rng.integers(right, num_steps + 1))
    offset = rng.integers(-far_left, num_steps - far_right + 1, size=num_series)

    def crop(start: int, end: int) -> Tensor:
        return x[torch.arange(num_series)[:, None], torch.as_tensor(offset[:, None] + np.arange(start, end))]

    return crop(far_left, right), crop(left, far_right), overlap


def hierarchical_loss(ours: Tensor, theirs: Tensor) -> Tensor:
    """Mean over scales of instance-wise and temporal contrast (sections 3.2, 3.3); both are [series, step, width]."""
    loss, levels = ours.new_zeros(()), 0
    while True:
        loss = loss + 0.5 * contrast(ours.transpose(0, 1), theirs.transpose(0, 1))  # among series, at each step
        loss = loss + 0.5 * contrast(ours, theirs)  # among steps, in each series; 0 at the last level
        levels += 1
        if ours.shape[1] == 1:
            return loss / levels
        ours, theirs = (functional.max_pool1d(z.transpose(1, 2), 2).transpose(1, 2) for z in (ours, theirs))


def contrast(ours: Tensor, theirs: Tensor) -> Tensor:
    """Return how hard it is to find each vector's twin among all others; both are [group, candidate, width]."""
    num_candidates = ours.shape[1]
    if num_candidates == 1:
        return ours.new_zeros(())
    together = torch.cat([ours, theirs], dim=1)
    itself = torch.eye(2 * num_candidates, dtype=torch.bool, device=ours.device)
    twin = torch.arange(2 * num_candidates, device=ours.device).roll(num_candidates)
    logits = (together @ together.transpose(1, 2)).masked_fill(itself, -torch.inf)
    return functional.cross_entropy(logits.flatten(0, 1), twin.repeat(len(logits)))


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
) -> tuple[PooledConv, float]:
    """Return a small encoder of series [series, step, channel] whose distances follow the teacher's.

    It learns the teacher's embeddings in `output` principal components and sees series resampled to `num_steps`. The
    second value is the share of the components' variance that it reproduces on series held out from its training.
    """
    rng = np.random.default_rng(seed)
    goal = torch.as_tensor(principal_components(EncoderSimilarity(network=teacher)(series), output))
    inputs = resampled(torch.as_tensor(np.asarray(series, dtype=np.float32)), num_steps)
    held_out = int(_HELD_OUT * len(series))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = PooledConv(channels=series.shape[2], output=output)

    def loss(iteration: int) -> Tensor:
        drawn = torch.as_tensor(rng.integers(held_out, len(series), batch))
        return (network(inputs[drawn]) - goal[drawn]).square().sum(1).mean()

    train_on_public_data(network, loss, iterations=iterations, learning_rate=2e-3, last_rate=0.0, progress=progress)
    with torch.no_grad():
        error = (network.train(False)(inputs[:held_out]) - goal[:held_out]).square().sum(1).mean()
    return network, float(1 - error / goal.square().sum(1).mean())


def principal_components(embeddings: np.ndarray, output: int) -> np.ndarray:
    """Return centred embeddings in their first components [series, output]; mean squared distance 1."""
    centred = embeddings - embeddings.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    components = centred @ directions[:output].T
    components = np.pad(components, ((0, 0), (0, output - components.shape[1])))
    return np.asarray(components / np.sqrt(2 * components.var(axis=0).sum()), dtype=np.float32)


def seen_by_voters(public: Generation, variation: Variation, num_series: int, rng: np.random.Generator) -> np.ndarray:
    """Return what an encoder meets in a run: series such as the public ones, their variations, and rule-based ones."""
    plain = public(num_series - 2 * (num_series // 4), rng)
    parts = np.array_split(public(num_series // 4, rng), 8)
    varied = [variation(part, degree, rng) for part, degree in zip(parts, np.linspace(*_DEGREES, 8), strict=True)]
    rules = RuleBased(num_steps=plain.shape[1], num_channels=plain.shape[2], levels=levels_of(plain))
    return rng.permutation(np.concatenate([plain, *varied, rules(num_series // 4, rng)]))


def _shapes(series: np.ndarray) -> np.ndarray:
    return shape_and_level(torch.as_tensor(series))[0].numpy()


def drawn_from(series: np.ndarray) -> Generation:
    """Return a generation that draws from public series [series, step, channel] in working scale."""
    return lambda num_series, rng: series[in_turn(np.arange(len(series)), num_series, rng)].astype(np.float32)


def scaled_panel(panel: Panel) -> np.ndarray:
    """Return the series of a public panel: gaps bridged, codes as one-hot groups, channels standardised as a whole."""
    if panel.private:
        raise InputError("A public panel is expected: modules are never trained on the series that they will protect.")
    return Encoding.of(panel.schema, (), linear_scales(panel.schema, panel)).series(panel, slice(None))


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
    windows = np.lib.stride_tricks.sliding_window_view(series, num_steps, axis=1)[:, :: max(num_steps // 4, 1)]
    return np.ascontiguousarray(windows.swapaxes(2, 3)).reshape(-1, num_steps, series.shape[2])


def one_channel_each(series: np.ndarray) -> np.ndarray:
    """Return every channel as a series of its own, [series · channel, step, 1]."""
    return np.ascontiguousarray(series.transpose(0, 2, 1)).reshape(-1, series.shape[1], 1)
