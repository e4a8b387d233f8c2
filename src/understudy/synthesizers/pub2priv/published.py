"""The published way: a diffusion over whole series, by residual layers that receive z at every step (section 5.3)."""

from dataclasses import dataclass

import numpy as np
from torch import nn

from understudy.data import Panel
from understudy.data.channels import num_codes
from understudy.nn.diffusion import Diffusion
from understudy.statistics.columns import num_labels
from understudy.statistics.encoding import Encoding
from understudy.synthesizers.pub2priv.conditions import Conditions
from understudy.synthesizers.pub2priv.denoising import Examples
from understudy.synthesizers.pub2priv.networks import ConditionalDenoiser


@dataclass(frozen=True, eq=False)
class Published:
    """What is diffused: working series [step, channel], with codes as groups of one-hot channels.

    Attributes:
        heads: Of attention, at most; fewer where they would not divide the width.
    """

    conditions: Conditions
    encoding: Encoding
    heads: int

    @property
    def shape(self) -> tuple[int, int]:
        """Steps and working channels."""
        return self.encoding.schema.num_steps, self.encoding.num_channels

    @property
    def loss_weight(self) -> float:
        """The loss as published."""
        return 1.0

    def network(self, diffusion: Diffusion, width: int, depth: int) -> nn.Module:
        """Returns θ_DM, which starts by predicting no noise."""
        heads = next(heads for heads in range(self.heads, 0, -1) if width % heads == 0)
        return ConditionalDenoiser(condition=self._num_conditions(), width=width, depth=depth, num_heads=heads)

    def examples(self, panel: Panel, classes: np.ndarray) -> Examples:
        """Returns what the denoiser is trained on; what was not observed is not known.

        Privacy: private if the panel is; a row follows from its own series, its own context and released arrays.
        """
        widths = [num_codes(channel) or 1 for channel in self.encoding.schema.channels]
        return {
            "x": self.encoding.series(panel, slice(None)),
            "known": np.repeat(~np.isnan(panel.values), widths, axis=2),
            "condition": self.per_step(panel.context, classes),
        }

    def per_step(self, context: np.ndarray | None, classes: np.ndarray) -> np.ndarray:
        """Returns z at every step [series, step, condition], beside the class where there are several."""
        shared = context is not None and context.strides[0] == 0
        z = self.conditions.per_step(
            context[:1] if shared and context is not None else context, 1 if shared else len(classes)
        )
        if shared:
            z = np.broadcast_to(z, (len(classes), *z.shape[1:]))
        number = num_labels(self.encoding.schema)
        if number == 1:
            return z
        own = np.broadcast_to(np.eye(number, dtype=np.float32)[classes][:, None], (*z.shape[:2], number))
        return np.concatenate([z, own], axis=2)

    def _num_conditions(self) -> int:
        steps, context = self.encoding.schema.num_steps, len(self.conditions.schema.context)
        like = np.zeros((1, steps, context), dtype=np.float32) if context else None
        return self.per_step(like, np.zeros(1, dtype=np.int64)).shape[2]
