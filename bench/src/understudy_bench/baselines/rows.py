"""What the adversarial baselines share: series as rows of numbers, a generator of such rows, and the way back.

Working scale, shares of the classes, gaps and lengths are bought beside, as for other methods (`frame.facts`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from understudy.data import Panel, Schema
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry, noise_multipliers
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics import facts
from understudy.statistics.columns import classes_of, num_labels
from understudy.statistics.encoding import Encoding, linear_scales
from understudy.statistics.facts import Facts
from understudy.synthesizers.ppem.published import SLOPE, RowGenerator
from understudy.synthesizers.sampling import (
    SampleRequest,
    calibrated,
    num_pooled,
    panel_of,
    sample_classes,
    score_nodes,
)
from understudy.training.networks import load_arrays, to_arrays

LATENT = 32
_GENERATOR, _NODES = "generator.", "nodes"
_POOL, _CHUNK = 2048, 4096
_KERNEL, _STRIDE = 8, 4
_TAPS = 5


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


class TemporalGenerator(nn.Module):
    """A perceptron that draws a short series, stretched and refined by convolutions; single values come beside it.

    Rows leave flat: [step · channel, single values].
    """

    def __init__(
        self, num_latent: int, num_conditions: int, shape: tuple[int, int], num_single: int, width: int
    ) -> None:
        super().__init__()
        self._shape, self._coarse, self._width = shape, max(1, -(-shape[0] // 4)), width // 2
        self.row = RowGenerator(num_latent, num_conditions, self._coarse * self._width + num_single, width)
        self.layers = nn.ModuleList(nn.Conv1d(self._width, self._width, _TAPS, padding="same") for _ in range(2))
        self.head = nn.Conv1d(self._width, shape[1], _TAPS, padding="same")

    def forward(
        self, latent: Float[Tensor, "row latent"], condition: Float[Tensor, "row condition"] | None = None
    ) -> Float[Tensor, "row output"]:
        drawn = self.row(latent, condition)
        cut = self._coarse * self._width
        hidden = drawn[:, :cut].unflatten(1, (self._width, self._coarse))
        hidden = functional.interpolate(hidden, size=self._shape[0], mode="linear", align_corners=False)
        for layer in self.layers:
            hidden = hidden + functional.leaky_relu(layer(hidden), SLOPE)
        return torch.cat([self.head(hidden).transpose(1, 2).flatten(1), drawn[:, cut:]], 1)


def fact_entries(schema: Schema, guarantee: Guarantee, core: str | None = None) -> tuple[PlanEntry, ...]:
    """Returns what is bought beside; with `core`, one more Gaussian that gets all that is left of mu²."""
    shares = facts.shares_of(schema, marginals=True)
    if core is not None:
        shares[core] = 1 - sum(shares.values())
    return tuple(PlanEntry(label, Gaussian(noise)) for label, noise in noise_multipliers(guarantee, shares).items())


def buy_facts(private: PrivateSeries, grant: Grant) -> Facts:
    """Releases distributions of the columns, classes, gaps and lengths; context is public and not modelled."""
    bare = private.without_context()
    return facts.buy(bare, grant)


@dataclass(frozen=True, eq=False)
class Layout:
    """How series of a schema lie in rows: [step · channel, columns that stand still], beside their class."""

    encoding: Encoding
    num_classes: int

    @classmethod
    def of(cls, schema: Schema, bought: Facts) -> "Layout":
        """Returns the layout for released distributions."""
        labels = num_labels(schema)
        return cls(Encoding.of(schema, bought.marginals, linear_scales(schema, None)), labels if labels > 1 else 0)

    @property
    def shape(self) -> tuple[int, int]:
        """Steps and working channels."""
        return self.encoding.schema.num_steps, self.encoding.num_channels

    def rows(self, private: PrivateSeries) -> dict[str, np.ndarray]:
        """Returns rows and their classes (one-hot). Private; each series' own."""
        panel, every = private.panel, slice(None)
        series, static = self.encoding.series(panel, every), self.encoding.static(panel, every)
        flat = series.reshape(len(series), self.shape[0] * self.shape[1])
        return {"row": np.concatenate([flat, static], axis=1), "class": self.one_hot(classes_of(private.panel))}

    def one_hot(self, classes: np.ndarray) -> np.ndarray:
        """Returns classes as [row, class]; nothing beside a row where there is one class only."""
        known = np.clip(classes, 0, max(self.num_classes, 1) - 1)
        return np.eye(max(self.num_classes, 1), dtype=np.float32)[known][:, : self.num_classes]

    def generator(self, width: int, seed: int) -> nn.Module:
        """Returns a new generator, the same for the same seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return TemporalGenerator(LATENT, self.num_classes, self.shape, self.encoding.num_static, width)

    def critic(self, width: int, seed: int) -> RowCritic:
        """Returns a new critic, the same for the same seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return RowCritic(self.shape, self.encoding.num_static, self.num_classes, width)


def generated(generator: nn.Module, classes: Tensor, source: torch.Generator) -> Tensor:
    """Returns rows for classes [row, class]."""
    latent = torch.randn(len(classes), LATENT, generator=source)
    made: Tensor = generator(latent, classes if classes.shape[1] else None)
    return made


def scored(critic: nn.Module, rows: Tensor, classes: Tensor) -> Tensor:
    """Returns a critic's numbers for rows of given classes."""
    scores: Tensor = critic(rows, classes if classes.shape[1] else None)
    return scores


def some_classes(bought: Facts, layout: Layout, number: int, rng: np.random.Generator) -> Tensor:
    """Returns classes [row, class] in released proportions."""
    share = bought.label_share
    drawn = rng.choice(len(share), size=number, p=share / share.sum())
    return torch.from_numpy(layout.one_hot(drawn))


def arrays_of(bought: Facts, layout: Layout, generator: nn.Module, seed: int) -> dict[str, np.ndarray]:
    """Returns what is released: facts, the generator, and quantiles of a large draw, by which scores are ranked."""
    rng = np.random.default_rng(seed)
    series, _ = _drawn(
        layout, generator, some_classes(bought, layout, num_pooled(layout.encoding.schema, _POOL), rng), rng
    )
    return {**bought.to_arrays(), _NODES: score_nodes(series), **to_arrays(generator, _GENERATOR)}


def draw(arrays: Mapping[str, np.ndarray], schema: Schema, request: SampleRequest, width: int) -> Panel:
    """Returns series of a released generator."""
    bought = Facts.from_arrays(arrays)
    layout = Layout.of(schema, bought)
    generator = layout.generator(width, 0)
    load_arrays(generator, arrays, _GENERATOR)
    classes = sample_classes(bought, request)
    series, static = _drawn(layout, generator, torch.from_numpy(layout.one_hot(classes)), request.rng)
    series = calibrated(series, arrays[_NODES], layout.encoding)
    return panel_of(schema, request, layout.encoding, bought, classes, (series, static))


@torch.no_grad()
def _drawn(
    layout: Layout, generator: nn.Module, classes: Tensor, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Returns (series [row, step, channel], columns that stand still) in working scale."""
    source = torch.Generator().manual_seed(int(rng.integers(2**62)))
    parts = [generated(generator, part, source).numpy() for part in classes.split(_CHUNK)]
    flat, (steps, channels) = np.concatenate(parts), layout.shape
    return flat[:, : steps * channels].reshape(-1, steps, channels), flat[:, steps * channels :]
