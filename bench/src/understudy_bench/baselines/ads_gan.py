"""ADS-GAN, the mode `ads-gan` of `dp-gan`: a generator that is told a real series and paid for staying away from it.

It protects nobody, and its certificate says so first. A generator that moves every series by the same amount stays away
from all of them and reveals each; how far synthetic series are from real ones bounds nothing that anybody can learn. It
is here because papers compare with it.

Reference: Yoon, Drumright & van der Schaar, IEEE JBHI 24(8), 2020 (ADS-GAN).
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from understudy.data import Panel, Schema
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian, NonPrivate
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.statistics import facts
from understudy.statistics.facts import Facts
from understudy.synthesizers.base import SampleRequest
from understudy.synthesizers.options import require_no_guarantee
from understudy.synthesizers.ppem.published import between
from understudy.synthesizers.sampling import calibrated, panel_of, sample_classes, score_nodes
from understudy.training.plan import TRAINING
from understudy_bench.baselines.rows import LATENT, Layout, TemporalGenerator, scored

if TYPE_CHECKING:
    from understudy_bench.baselines.dp_gan import Recipe

NOT_PRIVATE = "ADS-GAN as published: its generator is told real series, and nothing was noised"
_UNNOISED = 1e-3  # noise multiplier of the facts
_PENALTY = 10.0  # on slopes of the critic that are not one (WGAN-GP)
AWAY = 1.0  # weight of the distance from the real row (λ; Pub2Priv, Table 4)
_POOL, _NODES, _CLASSES = "pool", "nodes", "pool_classes"

Told = Callable[[float], None]  # share of the iterations done


def plan(schema: Schema, guarantee: Guarantee) -> SpendingPlan:
    """Returns facts next to without noise, and training that no accountant covers."""
    require_no_guarantee(guarantee, "ads-gan", NOT_PRIVATE, sound="dp")
    bought = (PlanEntry(label, Gaussian(_UNNOISED)) for label in facts.shares_of(schema, marginals=True))
    return SpendingPlan((*bought, PlanEntry(TRAINING, NonPrivate(NOT_PRIVATE))), guarantee)


class Pursuit:
    """A critic against a generator that is told a real row.

    Privacy: none.
    """

    def __init__(self, layout: Layout, recipe: "Recipe", seed: int) -> None:
        self._layout, self._source = layout, torch.Generator().manual_seed(seed)
        self.critic, single = layout.critic(recipe.width, seed + 1), layout.encoding.num_static
        told = layout.shape[0] * layout.shape[1] + single + layout.num_classes
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.generator = TemporalGenerator(LATENT, told, layout.shape, single, recipe.width)
        networks: list[tuple[nn.Module, float]] = [
            (self.critic, recipe.critic_rate),
            (self.generator, recipe.generator_rate),
        ]
        self._optimisers = [torch.optim.Adam(own.parameters(), lr=rate, betas=(0.5, 0.9)) for own, rate in networks]

    def generated(self, real: Tensor, classes: Tensor) -> Tensor:
        """Returns a row for each real one."""
        latent = torch.randn(len(real), LATENT, generator=self._source)
        made: Tensor = self.generator(latent, torch.cat([real, classes], 1))
        return made

    def update_critic(self, real: Tensor, classes: Tensor) -> None:
        """Real rows up, generated ones down, slopes between them towards one."""
        fake = self.generated(real, classes).detach()
        at = between(real, fake, self._source).requires_grad_()
        (slope,) = torch.autograd.grad(scored(self.critic, at, classes).sum(), at, create_graph=True)
        penalty = _PENALTY * ((slope.square().sum(1) + 1e-12).sqrt() - 1).square().mean()
        apart = scored(self.critic, fake, classes).mean() - scored(self.critic, real, classes).mean()
        _step(self._optimisers[0], apart + penalty)

    def update_generator(self, real: Tensor, classes: Tensor) -> None:
        """Generated rows up, and away from the real ones they were made from."""
        fake = self.generated(real, classes)
        away = (fake - real).square().mean().sqrt()
        _step(self._optimisers[1], -scored(self.critic, fake, classes).mean() - AWAY * away)


def arrays_of(
    layout: Layout, bought: Facts, held: Mapping[str, np.ndarray], recipe: "Recipe", pool: int, seed: int, told: Told
) -> dict[str, np.ndarray]:
    """Trains on real rows and returns `pool` rows made from some of them: without any, this generator makes nothing.

    Privacy: none.
    """
    pursuit, rng = Pursuit(layout, recipe, seed), np.random.default_rng(seed)
    shown = (
        held
        if len(held["row"])
        else {name: np.zeros_like(own, shape=(1, *own.shape[1:])) for name, own in held.items()}
    )

    def some(number: int) -> tuple[Tensor, Tensor]:
        rows = rng.integers(0, len(shown["row"]), number)
        return torch.from_numpy(shown["row"][rows]), torch.from_numpy(shown["class"][rows])

    for done in range(1, recipe.iterations + 1):
        pursuit.update_critic(*some(recipe.batch))
        if done % recipe.rounds == 0:
            pursuit.update_generator(*some(recipe.batch))
        told(done / recipe.iterations)
    real, classes = some(pool)
    with torch.no_grad():
        rows = pursuit.generated(real, classes).numpy()
    steps, channels = layout.shape
    chosen = classes.numpy().argmax(axis=1) if layout.num_classes else np.zeros(pool, np.int64)
    nodes = score_nodes(rows[:, : steps * channels].reshape(pool, steps, channels))
    return {**bought.to_arrays(), _POOL: rows, _CLASSES: chosen, _NODES: nodes}


def draw(arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
    """Returns rows of the pool, of the asked class as far as it has any."""
    bought, pool = Facts.from_arrays(arrays), arrays[_POOL]
    layout = Layout.of(schema, bought)
    classes = sample_classes(bought, request)
    rows = np.empty((request.num_series, pool.shape[1]), np.float32)
    for each in np.unique(classes):
        own = np.flatnonzero(arrays[_CLASSES] == each)
        here = np.flatnonzero(classes == each)
        rows[here] = pool[request.rng.choice(own if len(own) else len(pool), size=len(here))]
    steps, channels = layout.shape
    series = calibrated(rows[:, : steps * channels].reshape(-1, steps, channels), arrays[_NODES], layout.encoding)
    return panel_of(schema, request, layout.encoding, bought, classes, (series, rows[:, steps * channels :]))


def _step(optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
