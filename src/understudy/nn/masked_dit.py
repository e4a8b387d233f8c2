"""Diffusion transformer that fills what is hidden, given what is shown (paper 003, sections 4 and 5).

A token is a few steps: what is known of them, what is noisy, and which is which. The condition of all blocks is the
diffusion time, a summary of what is shown, and a class.
"""

import torch
from einops import rearrange
from torch import Tensor, nn

from understudy.errors import InputError
from understudy.nn.dit import DiTBlock, modulate
from understudy.nn.embeddings import TimeEmbedding
from understudy.nn.knowledge import positions
from understudy.nn.modulation import SHIFT_SCALE, UNBOUNDED, Bounds, Modulation, projected

NUM_STATISTICS = 7


def shown_statistics(values: Tensor, shown: Tensor) -> Tensor:
    """Returns [unit, 7 · channel] of the entries that are shown; zeros for a channel that shows nothing.

    Mean, deviation, least, greatest and last value, mean change from one shown step to the next step if that is
    shown too, and the share that is shown. Args: both [unit, step, channel]; `shown` is 1 or 0.
    """
    number = shown.sum(1).clamp_min(1.0)
    any_shown = (shown.sum(1) > 0).to(values)
    mean = (values * shown).sum(1) / number
    deviation = (((values - mean.unsqueeze(1)) * shown).square().sum(1) / number).clamp_min(1e-12).sqrt() * any_shown
    least = torch.where(shown > 0, values, torch.inf).amin(1)
    greatest = torch.where(shown > 0, values, -torch.inf).amax(1)
    step = torch.arange(values.shape[1], device=values.device)[None, :, None] * (shown > 0)
    last = values.gather(1, step.amax(1, keepdim=True)).squeeze(1) * any_shown
    both = shown[:, 1:] * shown[:, :-1]
    change = (values.diff(dim=1) * both).sum(1) / both.sum(1).clamp_min(1.0)
    ends = (torch.where(any_shown > 0, end, torch.zeros_like(end)) for end in (least, greatest))
    return torch.cat([mean, deviation, *ends, last, change, shown.mean(1)], dim=1)


class MaskedDiT(nn.Module):
    """Predicts noise (or velocity) [unit, step, channel] of the hidden entries.

    Attributes:
        patch: Steps per token; a whole number of patches makes a series. Paper 003: 1.
        num_classes: Classes; the last row of the table stands for "no class said". Without any: 1 row, always that.
    """

    def __init__(
        self,
        *,
        channels: int,
        context: int = 0,
        num_classes: int = 0,
        width: int,
        depth: int,
        num_heads: int = 8,
        patch: int = 1,
        bounds: Bounds = UNBOUNDED,
        literal: bool = False,
    ) -> None:
        super().__init__()
        self.patch, self.num_classes = patch, num_classes
        self.embed = nn.Linear(patch * (3 * channels + context), width)
        self.time = TimeEmbedding(width)
        self.summary = nn.Sequential(nn.Linear(NUM_STATISTICS * channels, width), nn.SiLU(), nn.Linear(width, width))
        self.label = nn.Embedding(num_classes + 1, width)
        self.radius, inside = bounds.condition, bounds.inside_the_ball
        self.blocks = nn.ModuleList(DiTBlock(width, num_heads, bounds=inside, literal=literal) for _ in range(depth))
        self.condition = Modulation(width, SHIFT_SCALE, bounds=inside, literal=literal)
        self.predict = nn.Linear(width, patch * channels)
        nn.init.normal_(self.label.weight, std=0.02)
        nn.init.zeros_(self.predict.weight)
        nn.init.zeros_(self.predict.bias)

    def forward(
        self,
        noisy: Tensor,
        time: Tensor,
        values: Tensor,
        shown: Tensor,
        label: Tensor | None = None,
        context: Tensor | None = None,
    ) -> Tensor:
        """Returns what is in `noisy`, of its shape.

        Args:
            noisy: [unit, step, channel], 0 where nothing is to be filled.
            time: Diffusion time [unit].
            values: What is known; read only where it is shown.
            shown: 1 where `values` are given, else 0.
            label: Class [unit]; None or `num_classes` says none.
            context: Public context [unit, step, context].
        """
        if noisy.shape[1] % self.patch:
            raise InputError(f"Expected a multiple of {self.patch} steps, got {noisy.shape[1]}.")
        given = torch.where(shown > 0, values, torch.zeros_like(values))
        parts = [noisy, given, shown] if context is None else [noisy, given, shown, context]
        tokens = rearrange(torch.cat(parts, dim=2), "unit (token step) c -> unit token (step c)", step=self.patch)
        hidden = self.embed(tokens)
        hidden = hidden + positions(hidden.shape[1], hidden.shape[2]).to(hidden)
        nobody = torch.full((len(noisy),), self.num_classes, device=noisy.device)
        condition = self.time(time) + self.summary(shown_statistics(given, shown))
        condition = condition + self.label(nobody if label is None else label)
        condition = projected(condition, self.radius)  # Eq. 5
        for block in self.blocks:
            hidden = block(hidden, condition)
        output = self.predict(modulate(hidden, *self.condition(condition)))
        filled: Tensor = rearrange(output, "unit token (step c) -> unit (token step) c", step=self.patch)
        return filled


def conditioning_names(model: nn.Module) -> frozenset[str]:
    """Returns names of θ_cond: parameters on the way from the condition to shift, scale and gate.

    The rest is θ_other. Time, summary and label make the condition, so they are on that way.
    """
    makers = ("time.", "summary.", "label.")
    names = (name for name, _ in model.named_parameters())
    return frozenset(name for name in names if name.startswith(makers) or ".condition." in f".{name}")
