"""`dit`: one private diffusion transformer that generates, imputes and forecasts.

Idea. A transformer learns, with private gradients, to fill what is hidden of a series from what is shown (paper 003,
after TimeDiT): with everything hidden it generates, with gaps it imputes, with the last steps hidden it forecasts. Its
condition (diffusion time, a summary of what is shown, the class) is projected onto a ball, and what it makes of that is
kept inside intervals (DP-aware AdaLN-Zero), so that no unit's gradient is large only because its series is odd.

Private data is touched by the small releases of `facts` (distributions of the columns, shares of the classes, gaps and
lengths) and of `memory` (how much of a score is level, movement and noise), and by clipped sums of gradients over
units. Bounds come from constants or public data, and are an aid to utility: noise is what it is without them.

Cost: minutes on two cores for some thousand series of a week of hours; filling costs tens of passes of the network.
Choose it when gaps have to be filled or forecasts made by whoever receives the release. For series alone try `spectral`
first, which needs far fewer units.
Not to be confused with the published noise levels, which promise nothing (an ε of hundreds or more), nor with a smaller
sensitivity: the clip bounds it, nothing else does.

References: paper 003 (DP-aware AdaLN-Zero); Peebles & Xie, arXiv:2212.09748 (DiT); Song et al., arXiv:2010.02502
(DDIM); Salimans & Ho, arXiv:2202.00512 (velocity); Ho & Salimans, arXiv:2207.12598 (classifier-free guidance); Abadi et
al., arXiv:1607.00133 (DP-SGD).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from understudy.data import Panel, Schema
from understudy.data.timegrid import parse_frequency
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry, SpendingPlan, noise_multipliers
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics import facts
from understudy.statistics.columns import classes_of, num_labels
from understudy.statistics.encoding import linear_scales
from understudy.statistics.facts import Facts
from understudy.synthesizers.base import CompletionRequest, Progress, SampleRequest, Synthesizer
from understudy.synthesizers.dit import drawing, memory, packs, scale
from understudy.synthesizers.dit.bridge import NOTHING
from understudy.synthesizers.dit.columns import Columns
from understudy.synthesizers.dit.denoising import Denoising
from understudy.synthesizers.dit.model import (
    MEMORY,
    NETWORK,
    REFERENCE,
    SCALES,
    Released,
    empty_network,
    freeze_all_but_conditioning,
)
from understudy.synthesizers.dit.recipe import Network, Recipe
from understudy.training import DPSGDConfig, Optimisation, Task, UnitBatches, UnitWindows, WindowBatches, adam, train
from understudy.training.networks import meta_device, num_parameters, to_arrays
from understudy.training.plan import MOSTLY_NOISE, TRAINING, charged_config, noise_ratio

_UNKNOWN_RATE = 0.1  # of units in an iteration, where the population is not known before it is bought
_DAY = 86_400_000_000  # microseconds
_BOUGHT = 0.3  # share of the progress that purchases take


@dataclass(frozen=True, kw_only=True)
class Dit(Synthesizer):
    """A diffusion transformer with bounded AdaLN-Zero conditioning.

    Attributes:
        network: Shape of the network, and how small its condition is kept.
        recipe: How it learns.
        pack: File of a pack from `understudy pretrain dit`: reference magnitudes for the bounds and, unless it holds
            magnitudes only, weights to start from, of the shape of `network`.
        sampling_steps: Steps of DDIM.
        guidance: How far samples go beyond what class and context say; 0 for as they say.
        seed: Of the network's first weights.
    """

    name: ClassVar[str] = "dit"
    rehearsed: ClassVar[str] = "recipe.iterations"
    whole_windows: ClassVar[bool] = True
    completes: ClassVar[bool] = True
    network: Network = field(default_factory=Network)
    recipe: Recipe = field(default_factory=Recipe)
    pack: str | None = None
    sampling_steps: int = 25
    guidance: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, kind in (("network", Network), ("recipe", Recipe)):
            if isinstance(getattr(self, name), dict):  # options of a release that was loaded
                object.__setattr__(self, name, kind(**getattr(self, name)))
        if self.sampling_steps < 1 or not self.guidance >= 0:
            raise InputError("sampling_steps: at least 1 is expected; guidance: 0 or more.")

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """What is bought beforehand, then DP-SGD with all that is left, for series that are not cut."""
        return self._plan(schema, self._config(schema), guarantee)

    def planned(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """The same for a table that may be cut: an event is priced by the windows it can touch."""
        return self._plan(self.learned_schema(schema), self._config(schema), guarantee)

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Buys the facts, trains the network, and returns both.

        Privacy: unit and neighbours as the schema says. `facts.buy` and `train` look at private series through the
        grant. A unit's windows are shown several times and averaged before the clip; an event takes away at most
        `influence` windows, because windows with an empty step take no part.
        """
        schema = private.schema
        bought = _bought(private, grant, lambda stage, share: progress(stage, _BOUGHT * share))
        pack = packs.load(self.pack)
        model = empty_network(self.shape(schema), schema, packs.reference(pack, self.shape(schema)), self.seed)
        packs.start_from(pack, model)
        if self.recipe.tuned == "conditioning":
            freeze_all_but_conditioning(model)
        sizes = scale.buy(private, grant)
        columns = Columns(schema, tuple(bought.marginals), model.patch, sizes)
        examples = columns.examples(private.panel, classes_of(private.panel))
        neighbours = memory.buy(private, examples, columns.variances, season_of(schema), grant)
        draw = self._draw(schema, private.influence)
        unit = None if schema.unit.kind == "event" else private.panel.unit
        windows = UnitWindows(examples, unit, draw, np.random.default_rng())
        plan = charged_config(grant.plan.event(TRAINING), private.population, self.recipe.clip, draw).plan()
        louder = noise_ratio(plan.noise_multiplier, num_parameters(model), plan.expected_batch)
        train(
            Task(model=model, loss=self.denoising(schema, neighbours).loss, windows=windows),
            plan,
            grant,
            label=TRAINING,
            optimisation=Optimisation(
                make=adam(self.recipe.learning_rate / max(1.0, louder)),
                warm_up=self.recipe.warm_up,
                average_decay=self.recipe.ema or None,
            ),
            progress=lambda done, planned: progress("private training", _BOUGHT + (1 - _BOUGHT) * done / planned),
        )
        reference = np.array(packs.reference(pack, self.shape(schema)))
        arrays = {**bought.to_arrays(), **to_arrays(model, NETWORK), REFERENCE: reference}
        arrays |= {MEMORY: neighbours, SCALES: sizes}
        rng = np.random.default_rng(self.seed)
        nodes = drawing.measured_nodes(self, Released.of(self, schema, arrays), private.shared_context, rng)
        return {**arrays, drawing.NODES: nodes}

    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        """Returns series with everything hidden and filled."""
        return drawing.draw(self, arrays, schema, request)

    def complete(self, arrays: dict[str, np.ndarray], schema: Schema, gaps: CompletionRequest) -> np.ndarray:
        """Returns one filling of the hidden entries of somebody's series."""
        return drawing.complete(self, arrays, schema, gaps)

    def outlook(self, schema: Schema, guarantee: Guarantee) -> tuple[str, ...]:
        """Says how the gradients' noise compares with what a batch can say, and what an event is."""
        learned, config = self.learned_schema(schema), self._config(schema)
        ratio = self._ratio(schema, guarantee)
        told = (
            f"{self._num_parameters(learned)} parameters learn in {config.iterations} iterations of "
            f"{config.expected_batch:.0f} expected; the noise on a summed gradient is {ratio:.2g} times the largest "
            "possible sum" + (", so most of what is learned is noise." if ratio > MOSTLY_NOISE else ".")
        )
        if schema.unit.kind != "event":
            return (told,)
        protected = f"any {schema.unit.event_steps} consecutive steps of {schema.time.frequency} of one series"
        return (f"Protected: {protected}, which up to {self.influence(schema)} windows can touch.", told)

    def gradient_noise(self, schema: Schema, guarantee: Guarantee) -> float | None:
        """That of the transformer; none with a pack: what public weights are worth beside noise was not measured."""
        return self._ratio(schema, guarantee) if self.pack is None else None

    def _ratio(self, schema: Schema, guarantee: Guarantee) -> float:
        learned, config = self.learned_schema(schema), self._config(schema)
        noise = self._calibrated(learned, config, guarantee).noise_multiplier or 0.0
        return noise_ratio(noise, self._num_parameters(learned), config.expected_batch)

    def own_inputs(self) -> Mapping[str, str]:
        """The pack."""
        return {} if self.pack is None else {"dit pack": packs.sha256(self.pack)}

    def shape(self, schema: Schema) -> Network:
        """Returns the shape of the network, with the patch that a series of the schema is cut into."""
        return replace(self.network, patch=self.network.patch_for(schema.num_steps))

    def denoising(self, schema: Schema, neighbours: np.ndarray) -> Denoising:
        """Returns how the network is trained and asked, given what `memory` bought."""
        return Denoising(
            memory=neighbours if self.recipe.bridged else np.tile(np.array(NOTHING)[:, None], neighbours.shape[1]),
            season=season_of(schema),
            num_channels=schema.num_channels,
            num_classes=num_labels(schema),
            draws=self.recipe.draws,
            predicts=self.recipe.predicts,
        )

    def _plan(self, learned: Schema, config: DPSGDConfig, guarantee: Guarantee) -> SpendingPlan:
        packs.check(self.pack, self.shape(learned), self.recipe.tuned, learned)
        training = self._calibrated(learned, config, guarantee).plan().event
        return SpendingPlan((*_fact_entries(learned, guarantee), PlanEntry(TRAINING, training)), guarantee)

    def _num_parameters(self, learned: Schema) -> int:
        with meta_device():
            model = empty_network(self.shape(learned), learned, packs.reference(None, self.shape(learned)), self.seed)
        if self.recipe.tuned == "conditioning":
            freeze_all_but_conditioning(model)
        return num_parameters(model)

    def _calibrated(self, learned: Schema, config: DPSGDConfig, guarantee: Guarantee) -> DPSGDConfig:
        return config.calibrated(guarantee, others=[entry.event for entry in _fact_entries(learned, guarantee)])

    def _config(self, schema: Schema) -> DPSGDConfig:
        """DP-SGD before its noise is known, for the schema of a table."""
        recipe, size = self.recipe, schema.population.size
        contributions = None if size is None else self.num_contributions(schema, size)
        rate = _UNKNOWN_RATE if contributions is None else min(1.0, recipe.batch / contributions)
        return DPSGDConfig(
            sampling_rate=rate,
            iterations=recipe.iterations,
            expected_batch=rate * contributions if contributions else float(recipe.batch),
            clip_norm=recipe.clip,
            batches=self._draw(schema, self.influence(schema)),
        )

    def _draw(self, schema: Schema, influence: int) -> UnitBatches | WindowBatches:
        """One window of each drawn unit; for events single windows, of which one event can take away `influence`."""
        return WindowBatches(influence) if schema.unit.kind == "event" else UnitBatches()


def season_of(schema: Schema) -> int:
    """Returns the steps of a day; 0 where a series is no longer than that, or its steps do not make up days."""
    width = parse_frequency(schema.time.frequency).microseconds
    day = _DAY // width if width and _DAY % width == 0 else 0
    return day if 1 < day < schema.num_steps else 0


def _fact_entries(schema: Schema, guarantee: Guarantee) -> tuple[PlanEntry, ...]:
    shares = {**facts.shares_of(schema, marginals=True), memory.LABEL: memory.SHARE}
    if scale.scaled_channels(schema):
        shares |= {scale.LABEL: scale.SHARE, "marginals": scale.MARGINALS}
    return tuple(PlanEntry(label, Gaussian(noise)) for label, noise in noise_multipliers(guarantee, shares).items())


def _bought(private: PrivateSeries, grant: Grant, progress: Progress) -> Facts:
    """Returns the facts; context is public and nothing about it has to be bought."""
    bare = private.without_context()
    return facts.buy(bare, grant, linear_scales(bare.schema, None))
