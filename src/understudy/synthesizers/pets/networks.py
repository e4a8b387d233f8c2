"""Networks of PETS, all trained on public series: encoders (TS2Vec, a small one) and a variational autoencoder.

TS2Vec: contrastive representations of time series (Yue et al., AAAI 2022, arXiv:2106.10466v4). `ConvVAE`: strided
convolutions over time (Kingma & Welling, arXiv:1312.6114v11). `PooledConv`: the same, pooled at every scale, at a
few percent of the cost of a TS2Vec.
"""

import hashlib
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel

Report = Callable[[int, int], None]  # iterations executed, iterations planned


class SameConv(nn.Conv1d):
    """Convolution of three taps that keeps the length; taps which can only see padding are not computed."""

    def __init__(self, width_in: int, width_out: int, dilation: int) -> None:
        super().__init__(width_in, width_out, 3, padding=dilation, dilation=dilation)

    def forward(self, x: Tensor) -> Tensor:
        if self.dilation[0] >= x.shape[-1]:  # both outer taps fall outside the series: the middle one is exact
            return functional.conv1d(x, self.weight[:, :, 1:2], self.bias)
        return super().forward(x)


class ConvBlock(nn.Module):
    """GELU → convolution, twice, beside a skip connection; x is [series, width, step]."""

    def __init__(self, width_in: int, width_out: int, dilation: int, *, last: bool) -> None:
        super().__init__()
        self.first = SameConv(width_in, width_out, dilation)
        self.second = SameConv(width_out, width_out, dilation)
        self.skip = nn.Conv1d(width_in, width_out, 1) if last or width_in != width_out else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(functional.gelu(x))
        output: Tensor = self.second(functional.gelu(hidden)) + self.skip(x)
        return output


class TS2Vec(nn.Module):
    """Represents every step of x [series, step, channel] as [series, step, output].

    While training, steps are hidden at random (p = 0.5) behind the input projection. A step with a missing channel
    (NaN) is always hidden.
    """

    def __init__(self, *, channels: int, depth: int = 10, hidden: int = 64, output: int = 320) -> None:
        super().__init__()
        self.channels, self.depth, self.hidden, self.output = channels, depth, hidden, output
        self.project_in = nn.Linear(channels, hidden)
        widths = [hidden] * (depth + 1) + [output]
        self.blocks = nn.Sequential(
            *(ConvBlock(widths[k], widths[k + 1], 2**k, last=k == depth) for k in range(depth + 1))
        )
        self.dropout = nn.Dropout(0.1)

    @property
    def shape(self) -> dict[str, int]:
        """Arguments that make an encoder of this shape."""
        return {"channels": self.channels, "depth": self.depth, "hidden": self.hidden, "output": self.output}

    def forward(self, x: Tensor) -> Tensor:
        present = ~x.isnan().any(-1)
        hidden = self.project_in(torch.where(present.unsqueeze(-1), x, 0.0))
        if self.training:
            present = present & (torch.rand(present.shape, device=x.device) < 0.5)
        hidden = hidden * present.unsqueeze(-1)
        output: Tensor = self.dropout(self.blocks(hidden.transpose(1, 2))).transpose(1, 2)
        return output


def contrast(ours: Tensor, theirs: Tensor) -> Tensor:
    """Return how hard it is to find each vector's twin among all others; both are [group, candidate, width]."""
    num_candidates = ours.shape[1]
    if num_candidates == 1:
        return ours.new_zeros(())
    together = torch.cat([ours, theirs], dim=1)
    similarities = together @ together.transpose(1, 2)
    itself = torch.eye(2 * num_candidates, dtype=torch.bool, device=ours.device)
    twin = torch.arange(2 * num_candidates, device=ours.device).roll(num_candidates)
    logits = similarities.masked_fill(itself, -torch.inf)
    return functional.cross_entropy(logits.flatten(0, 1), twin.repeat(len(logits)))


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


def overlapping_crops(x: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor, int]:
    """Return two crops that share `overlap` steps: the last ones of the first, the first ones of the second."""
    num_series, num_steps = x.shape[:2]
    overlap = int(rng.integers(2, num_steps + 1))
    left = int(rng.integers(num_steps - overlap + 1))
    right = left + overlap
    far_left = int(rng.integers(left + 1))
    far_right = int(rng.integers(right, num_steps + 1))
    offset = rng.integers(-far_left, num_steps - far_right + 1, size=num_series)

    def crop(start: int, length: int) -> Tensor:
        steps = torch.as_tensor((offset + start)[:, None] + np.arange(length))
        return x[torch.arange(num_series)[:, None], steps]

    return crop(far_left, right - far_left), crop(left, far_right - left), overlap


def train_ts2vec(
    series: np.ndarray,
    *,
    iterations: int,
    batch: int,
    seed: int,
    depth: int = 10,
    hidden: int = 64,
    output: int = 320,
    progress: Report | None = None,
) -> TS2Vec:
    """Return an encoder trained on series [series, step, channel], NaN where missing; weights are averaged.

    The paper trains 200 iterations on arrays of up to 100,000 numbers and 600 on larger ones, with batches of 8 or 16.
    """
    rng = np.random.default_rng(seed)
    data = torch.as_tensor(np.asarray(series, dtype=np.float32))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = TS2Vec(channels=data.shape[2], depth=depth, hidden=hidden, output=output)
        averaged = AveragedModel(encoder)
        optimiser = torch.optim.AdamW(encoder.parameters(), lr=1e-3)
        for iteration in range(iterations):
            drawn = rng.choice(len(data), size=min(batch, len(data)), replace=False)
            first, second, overlap = overlapping_crops(data[torch.as_tensor(drawn)], rng)
            loss = hierarchical_loss(encoder(first)[:, -overlap:], encoder(second)[:, :overlap])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            averaged.update_parameters(encoder)
            if progress is not None:
                progress(iteration + 1, iterations)
    trained = averaged.module
    assert isinstance(trained, TS2Vec)
    return trained.train(False)


@torch.no_grad()
def encode(encoder: TS2Vec, series: np.ndarray, chunk: int = 32) -> np.ndarray:
    """Return one vector [series, output] per series: the maximum of its steps' representations."""
    encoder.train(False)
    pieces = [
        encoder(torch.as_tensor(np.asarray(series[start : start + chunk], dtype=np.float32))).amax(dim=1).numpy()
        for start in range(0, len(series), chunk)
    ]
    return np.concatenate(pieces) if pieces else np.empty((0, encoder.output), dtype=np.float32)


def encoder_sha256(encoder: nn.Module) -> str:
    """Hash of all weights with their names and shapes."""
    digest = hashlib.sha256()
    for name, weight in sorted(encoder.state_dict().items()):
        digest.update(f"{name}{tuple(weight.shape)}".encode())
        digest.update(weight.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


_GROUPS = 8


def _down(width_in: int, width_out: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(width_in, width_out, 5, stride=2, padding=2), nn.GELU(), nn.GroupNorm(_GROUPS, width_out)
    )


def _up(width_in: int, width_out: int) -> nn.Module:
    return nn.Sequential(
        nn.ConvTranspose1d(width_in, width_out, 4, stride=2, padding=1), nn.GELU(), nn.GroupNorm(_GROUPS, width_out)
    )


class ConvVAE(nn.Module):
    """Maps series [series, step, channel] to one latent vector each, and back.

    Args:
        steps: Length of the series; lengths that halving does not divide are padded inside.
        widths: Channels after each halving of the time axis, multiples of 8.
    """

    def __init__(self, *, channels: int, steps: int, latent: int, widths: tuple[int, ...] = (32, 64, 128, 128)) -> None:
        super().__init__()
        self.channels, self.steps, self.latent, self.widths = channels, steps, latent, tuple(widths)
        self.short = -(-steps // 2 ** len(widths))  # steps of the shortest layer, rounded up
        down = [channels, *widths]
        up = [*reversed(widths), widths[0]]
        self.encoder = nn.Sequential(*map(_down, down, down[1:]))
        self.to_latent = nn.Linear(widths[-1] * self.short, 2 * latent)
        self.from_latent = nn.Linear(latent, widths[-1] * self.short)
        self.decoder = nn.Sequential(*map(_up, up, up[1:]), nn.Conv1d(widths[0], channels, 5, padding=2))

    @property
    def shape(self) -> dict[str, int | list[int]]:
        """Arguments that make a network of this shape."""
        return {"channels": self.channels, "steps": self.steps, "latent": self.latent, "widths": list(self.widths)}

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log-variance [series, latent] of q(z | x)."""
        padding = self.short * 2 ** len(self.widths) - self.steps
        hidden = functional.pad(rearrange(x, "n step channel -> n channel step"), (0, padding), mode="replicate")
        mean, log_variance = self.to_latent(self.encoder(hidden).flatten(1)).chunk(2, dim=1)
        return mean, log_variance.clamp(-10, 4)

    def decode(self, z: Tensor) -> Tensor:
        """Return the mean of p(x | z)."""
        hidden = rearrange(self.from_latent(z), "n (width step) -> n width step", step=self.short)
        output: Tensor = rearrange(self.decoder(hidden), "n channel step -> n step channel")[:, : self.steps]
        return output


class PooledConv(nn.Module):
    """Embeds x [series, step, channel] as [series, output].

    Each layer halves the time axis; the maximum and the mean of every layer but the first enter the embedding, so
    that short and long patterns both count.
    """

    def __init__(self, *, channels: int, output: int = 64, widths: tuple[int, ...] = (32, 64, 64, 128, 128)) -> None:
        super().__init__()
        self.channels, self.output, self.widths = channels, output, tuple(widths)
        all_widths = [channels, *widths]
        self.layers = nn.ModuleList(
            nn.Conv1d(narrow, wide, 5, stride=2, padding=2) for narrow, wide in pairwise(all_widths)
        )
        self.head = nn.Linear(2 * sum(widths[1:]), output)

    @property
    def shape(self) -> dict[str, int | list[int]]:
        """Arguments that make an encoder of this shape."""
        return {"channels": self.channels, "output": self.output, "widths": list(self.widths)}

    def forward(self, x: Tensor) -> Tensor:
        hidden, pooled = x.transpose(1, 2), []
        for place, layer in enumerate(self.layers):
            hidden = functional.gelu(layer(hidden))
            if place:
                pooled += [hidden.amax(2), hidden.mean(2)]
        embedding: Tensor = self.head(torch.cat(pooled, dim=1))
        return embedding
