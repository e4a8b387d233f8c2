"""What is hidden is noised, and a network says what the noise is: the loss, and how hidden entries are filled.

Notation (DP-aware AdaLN-Zero, sections 3 and 5): x are scores, some shown and some hidden, the hidden ones measured
from what the shown ones say (`interpolation`); x_t = √ᾱ_t x + √(1−ᾱ_t) ε is what the network sees of them. It
predicts ε, or the velocity √ᾱ_t ε − √(1−ᾱ_t) x, whose best guess without further knowledge is 0: a network that has
learned nothing draws from the released distributions.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from understudy.data.masks import Uniform, training_masks, whole
from understudy.nn.diffusion import Diffusion, Prediction
from understudy.synthesizers.dit.interpolation import interpolate
from understudy.training.batches import Batch

DDPM = Diffusion(steps=1000, first_beta=1e-4, last_beta=0.02, schedule="linear")  # section 5.1
_CHUNK_ENTRIES = 1 << 18


def draw_hidden(num_steps: int, num_channels: int, num_static: int, uniform: Uniform) -> np.ndarray:
    """Returns True [series, step, column] where an entry is hidden in training.

    Steps as the paper hides them; every second series in some channels only, as real gaps are. Static columns are
    hidden as a whole by a coin each. Where all steps are hidden, so is all.
    """
    steps = training_masks(num_steps, uniform)
    everything = np.asarray(steps.all(axis=1, keepdims=True))
    some = uniform(num_channels) < 0.5
    some |= ~some.any(axis=1, keepdims=True) | (uniform(1) < 0.5) | everything
    static = (uniform(num_static) < 0.5) | everything
    along = np.repeat(static[:, None], num_steps, axis=1)
    return np.concatenate([some[:, None] & steps[:, :, None], along], axis=2)


@dataclass(frozen=True, eq=False, kw_only=True)
class Denoising:
    """How a network is trained and asked.

    Attributes:
        autocovariance: [7, column] as `interpolation.ROWS` has it; `NO_AUTOCOVARIANCE` for the published diffusion.
        season: Steps of a day; 0 where a series has no day before.
        num_channels: The first columns, which change along a series; the others stand still.
        num_classes: Class that stands for "not said".
        draws: Triples of diffusion time, noise and mask that each window is shown with; their losses are averaged
            before the clip, so they cost no privacy.
        drop: Share of rows whose class, and whose context from some step on, is not said, as when gaps are filled.
    """

    autocovariance: np.ndarray
    num_channels: int
    num_classes: int
    season: int = 0
    draws: int = 1
    drop: float = 0.1
    predicts: Prediction = "velocity"

    def loss(self, model: nn.Module, batch: Batch, generator: torch.Generator) -> Tensor:
        """Returns the mean squared error over hidden, known entries, one for each draw of each window."""
        shown_batch = {name: tensor.repeat_interleave(self.draws, 0) for name, tensor in batch.items()}
        x, known = shown_batch["x"], shown_batch["known"]

        def uniform(columns: int) -> np.ndarray:  # of torch, whose draws the engine can tell apart by unit
            shape, device = (len(x), columns), generator.device
            return np.asarray(torch.rand(shape, generator=generator, dtype=torch.float64, device=device).cpu())

        num_static = x.shape[2] - self.num_channels
        hidden = torch.from_numpy(draw_hidden(x.shape[1], self.num_channels, num_static, uniform)).to(x.device)
        scored, shown = (hidden & known).to(x.dtype), (known & ~hidden).to(x.dtype)
        mean, deviation, level = self._interpolated(x, shown)
        measured = (x - mean) / deviation * scored
        time, noise = DDPM.draw_times(len(x), generator), torch.randn(x.shape, generator=generator).to(x)
        target = DDPM.target(self.predicts, measured, noise, time)
        noisy = DDPM.noised(measured, noise, time) * scored
        found = model(noisy, time, x - level, shown, *self._said(shown_batch, uniform))
        return ((found - target).square() * scored).sum((1, 2)) / scored.sum((1, 2)).clamp_min(1.0)

    def _said(self, batch: Batch, uniform: Uniform) -> tuple[Tensor, Tensor | None]:
        """Returns classes and contexts, some of them left unsaid."""
        label, context = batch["label"], batch.get("context")
        silent = torch.from_numpy(uniform(1)[:, 0] < self.drop).to(label.device)
        label = torch.where(silent, self.num_classes, label)
        if context is None:
            return label, None
        steps = context.shape[1]
        until = np.where(uniform(1) < self.drop, whole(uniform(1), 0, steps - 1), steps)
        said = torch.from_numpy(np.arange(steps) < until).to(context)
        return label, context * said.unsqueeze(2)

    @torch.no_grad()
    def fill(self, model: nn.Module, rows: Mapping[str, np.ndarray], start: np.ndarray, num_steps: int) -> np.ndarray:
        """Returns scores [row, step, column] drawn for hidden entries by DDIM from `start`; others mean nothing.

        Few steps of DDIM draw a little too narrowly, by a factor that is known for numbers nobody can predict; draws
        are widened by it. `rows` are as in training, and "hidden": True where to fill.
        """
        parts = [np.zeros((0, *start.shape[1:]), dtype=np.float32)]
        size = max(1, _CHUNK_ENTRIES // max(1, int(np.prod(start.shape[1:]))))
        for first in range(0, len(start), size):
            some = {name: torch.from_numpy(np.array(array[first : first + size])) for name, array in rows.items()}
            parts.append(self._filled(model, some, torch.from_numpy(start[first : first + size]), num_steps))
        return np.concatenate(parts)

    def _filled(self, model: nn.Module, rows: Batch, start: Tensor, num_steps: int) -> np.ndarray:
        hidden, shown = rows["hidden"], (rows["known"] & ~rows["hidden"]).float()
        mean, deviation, level = self._interpolated(rows["x"], shown)

        def predict(noisy: Tensor, time: Tensor) -> Tensor:
            found = model(noisy * hidden, time, rows["x"] - level, shown, rows["label"], rows.get("context"))
            return DDPM.noise_of(self.predicts, found, noisy, time)

        drawn = DDPM.implicit(predict, start, num_steps) / DDPM.left_by_implicit(num_steps)
        return (mean + deviation * drawn).numpy()

    def _interpolated(self, values: Tensor, shown: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return interpolate(values, shown, torch.from_numpy(self.autocovariance).to(values), self.season)


def mirrored_noise(shape: tuple[int, ...], rng: np.random.Generator, draws: int = 1) -> np.ndarray:
    """Returns the noise that rows are drawn from: the second half of several draws from that of the first, negated.

    Draws then err about their middle alike to both sides, so few tell the middle well.
    """
    mirrored = draws // 2
    first = rng.standard_normal((draws - mirrored, shape[0] // draws, *shape[1:]), dtype=np.float32)
    return np.concatenate([first, -first[:mirrored]]).reshape(shape)
