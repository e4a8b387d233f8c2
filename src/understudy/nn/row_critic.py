"""A critic of series: one strided convolution, then a perceptron. No layer mixes rows."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from understudy.nn.energies import SLOPE

_KERNEL, _STRIDE = 8, 4


class RowCritic(nn.Module):
    """Scores rows that arrive flat, [step · channel, single values], given their class: a number each."""

    def __init__(self, shape: tuple[int, int], num_single: int, num_conditions: int, width: int) -> None:
        super().__init__()
        self._shape, filters = shape, max(1, width // 8)
        self.enter = nn.Conv1d(shape[1], filters, _KERNEL, stride=_STRIDE, padding=_KERNEL // 2)
        places = (shape[0] + 2 * (_KERNEL // 2) - _KERNEL) // _STRIDE + 1
        self.layers = nn.ModuleList(
            [nn.Linear(filters * places + num_single + num_conditions, width), nn.Linear(width, width)]
        )
        self.head = nn.Linear(width, 1)

    def forward(
        self, rows: Float[Tensor, "row input"], condition: Float[Tensor, "row condition"] | None = None
    ) -> Float[Tensor, " row"]:
        steps, channels = self._shape
        series = rows[:, : steps * channels].unflatten(1, (steps, channels)).transpose(1, 2)
        hidden = functional.leaky_relu(self.enter(series), SLOPE).flatten(1)
        beside = [rows[:, steps * channels :], *([] if condition is None else [condition])]
        hidden = torch.cat([hidden, *beside], 1)
        for layer in self.layers:
            hidden = functional.leaky_relu(layer(hidden), SLOPE)
        return self.head(hidden).squeeze(1)
