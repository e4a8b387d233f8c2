"""`dit`: one private diffusion transformer that generates, imputes and forecasts.

Idea. A transformer learns, with private gradients, to fill what is hidden of a series from what is shown (DP-aware
AdaLN-Zero, after TimeDiT): with everything hidden it generates, with gaps it imputes, with the last steps hidden it
forecasts. Its condition (diffusion time, a summary of what is shown, the class) is projected onto a ball, and
what it makes of that is kept inside intervals, so that no unit's gradient is large only because its series is odd.

Private data is touched by the small releases of `facts` (distributions of the columns, shares of the classes, gaps and
lengths) and autocovariances (`interpolation`), and by clipped sums of gradients over
units. Bounds come from constants or public data, and are an aid to utility: noise is what it is without them.

Cost: minutes on two cores for some thousand series of a week of hours; filling costs tens of passes of the network.
Choose it when gaps have to be filled or forecasts made by whoever receives the release. For series alone try `spectral`
first, which needs far fewer units.
Not to be confused with the published noise levels, which promise nothing (an ε of hundreds or more), nor with a smaller
sensitivity: the clip bounds it, nothing else does.

References: DP-aware AdaLN-Zero; Peebles & Xie, arXiv:2212.09748 (DiT); Song et al., arXiv:2010.02502
(DDIM); Salimans & Ho, arXiv:2202.00512 (velocity); Ho & Salimans, arXiv:2207.12598 (classifier-free guidance); Abadi et
al., arXiv:1607.00133 (DP-SGD).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

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
from understudy.statistics.columns import classes_of, num_labels, static_values
from understudy.statistics.encoding import linear_scales
from understudy.statistics.facts import Facts
from understudy.synthesizers.base import Progress, SampleRequest, Synthesizer
from understudy.synthesizers.dit import interpolation, scores
from understudy.synthesizers.dit.denoising import Asked, Denoising
from understudy.synthesizers.dit.interpolation import NO_AUTOCOVARIANCE, release_autocovariance
from understudy.synthesizers.dit.model import (
    AUTOCOVARIANCE,
    NETWORK,
    REFERENCE,
    SCALES,
    Released,
    check_pack,
    empty_network,
    load_pack,
    num_columns,
    pack_sha256,
    reference_of,
    start_from,
)
from understudy.synthesizers.dit.recipe import DEFAULT, PAPER, Network, Recipe
from understudy.synthesizers.dit.scores import NormalScores, nodes_of, ranks_by_nodes, release_scales
from understudy.synthesizers.options import require_above_zero
from understudy.synthesizers.sampling import CompletionRequest, num_pooled
from understudy.training import DPSGDConfig, Optimisation, Task, UnitBatches, UnitWindows, WindowBatches, adam, train
from understudy.training.networks import meta_device, num_parameters, to_arrays
from understudy.training.plan import MOSTLY_NOISE, TRAINING, charged_config, noise_ratio

_UNKNOWN_RATE = 0.1  # of units in an iteration, where the population is not known before it is bought
_DAY = 86_400_000_000  # microseconds
_BOUGHT = 0.3  # share of the progress that purchases take


NODES = "nodes"  # array of quantiles of what the network samples, by which its marginals are corrected
_MEASURED = 256  # series that these quantiles are measured on


@dataclass(frozen=True, kw_only=True)
class DiT(Synthesizer):
    """A diffusion transformer with bounded AdaLN-Zero conditioning.

    Attributes:
        recipe: Shape and training of the network; the preset "paper" has the published numbers.
        pack: File of a pack from `understudy pretrain dit`: reference magnitudes for the bounds and, unless it holds
            magnitudes only, weights to start from, of the shape of the recipe's network.
        sampling_steps: Steps of DDIM.
        guidance: Weight of classifier-free guidance by class and context; 0 for none.
        seed: Seed for weight initialisation.
    """

    name: ClassVar[str] = "dit"
    rehearsed: ClassVar[str] = "recipe.iterations"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}, "paper": {"recipe": PAPER}}
    whole_windows: ClassVar[bool] = True
    recipe: Recipe = DEFAULT
    pack: str | None = None
    sampling_steps: int = 25
    guidance: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.recipe, dict):  # options of a release that was loaded
            object.__setattr__(self, "recipe", Recipe(**self.recipe))
        require_above_zero(self, "sampling_steps")
        if not self.guidance >= 0:
            raise InputError(f"guidance: 0 or more is expected, got {self.guidance}.")

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
        schema, recipe = private.schema, self.recipe
        released = _release_facts(private, grant, lambda stage, share: progress(stage, _BOUGHT * share))
        pack = load_pack(self.pack)
        reference = reference_of(pack, self.shape(schema))
        model = empty_network(self.shape(schema), schema, reference, self.seed)
        start_from(pack, model)
        sizes = release_scales(private, grant)
        encoding = NormalScores(schema, tuple(released.marginals), model.patch, sizes)
        examples = encoding.examples(private.panel, classes_of(private.panel))
        autocovariance = no_autocovariance(schema)
        if recipe.interpolated:
            autocovariance = release_autocovariance(private, examples, encoding.variances, season_of(schema), grant)
        batches = self._batches(schema, private.influence)
        unit = None if schema.unit.kind == "event" else private.panel.unit
        windows = UnitWindows(examples, unit, batches, np.random.default_rng())
        plan = charged_config(grant.plan.event(TRAINING), private.population, recipe.clipping_norm, batches)
        louder = noise_ratio(plan.event.noise_multiplier, num_parameters(model), plan.expected_batch)
        rate = recipe.learning_rate / (max(1.0, louder) if recipe.rate_by_noise else 1.0)
        train(
            Task(model=model, loss=self.denoising(schema, autocovariance).loss, windows=windows),
            plan,
            grant,
            label=TRAINING,
            optimisation=Optimisation(
                make=adam(rate, recipe.weight_decay),
                warm_up=recipe.warm_up_iterations,
                average_decay=recipe.ema or None,
            ),
            progress=lambda done, planned: progress("private training", _BOUGHT + (1 - _BOUGHT) * done / planned),
        )
        arrays = {**released.to_arrays(), **to_arrays(model, NETWORK), REFERENCE: np.array(reference)}
        arrays |= {AUTOCOVARIANCE: autocovariance, SCALES: sizes}
        rng = np.random.default_rng(self.seed)
        nodes = self._measured_nodes(Released.of(self, schema, arrays), private.shared_context, rng)
        return {**arrays, NODES: nodes}

    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        """Returns series with everything hidden and filled."""
        released, rng, number = Released.of(self, schema, arrays), request.rng, request.num_series
        facts, channels = released.facts, schema.num_channels
        labels = np.full(number, request.label if request.label is not None else 0)
        if request.label is None:
            labels = rng.choice(len(facts.label_share), size=number, p=facts.label_share / facts.label_share.sum())
        sampled = self._whole(released, labels, request.context, rng)
        ranks = ranks_by_nodes(sampled, arrays[NODES])
        lengths = facts.sample_lengths(schema, number, rng)
        values = released.encoding.values(ranks)
        values[facts.sample_missing(schema, sampled[:, : schema.num_steps, :channels], lengths, rng)] = np.nan
        single = released.encoding.marginals[channels:]
        static = static_values(schema, labels, ranks[:, 0, channels:], single, facts.static_missing, rng)
        return request.panel(schema, values, lengths, static)

    def _whole(
        self, released: Released, labels: np.ndarray, context: np.ndarray | None, rng: np.random.Generator
    ) -> np.ndarray:
        """Returns scores [series, step, column] of whole series of the given classes."""
        schema = released.encoding.schema
        shape = (len(labels), released.encoding.num_steps, num_columns(schema))
        asked = Asked(
            scores=np.broadcast_to(np.float32(np.nan), shape),
            hidden=np.broadcast_to((np.arange(shape[1]) < schema.num_steps)[None, :, None], shape),
            label=labels.astype(np.int64),
            context=_context(released, context, len(labels)),
            rng=rng,
        )
        return self._filled(released, asked)

    def _filled(self, released: Released, asked: Asked) -> np.ndarray:
        return released.denoising.fill(released.model, asked, num_steps=self.sampling_steps, guidance=self.guidance)

    def _measured_nodes(self, released: Released, context: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
        """Returns quantiles [column, node] of what the network samples; post-processing."""
        shares, schema = released.facts.label_share, released.encoding.schema
        labels = rng.choice(len(shares), size=num_pooled(schema, _MEASURED), p=shares / shares.sum())
        return nodes_of(self._whole(released, labels, context, rng)[:, : schema.num_steps])

    def complete(self, arrays: dict[str, np.ndarray], schema: Schema, gaps: CompletionRequest) -> np.ndarray:
        """Returns one filling of the hidden entries of the caller's series, the others as they were."""
        released = Released.of(self, schema, arrays)
        known = released.encoding.scores(gaps.values, gaps.static)
        hidden = np.zeros(known.shape, dtype=bool)
        hidden[:, : schema.num_steps, : schema.num_channels] = gaps.hidden
        none = released.denoising.num_classes
        label = np.full(len(known), none) if gaps.label is None else np.where(gaps.label < 0, none, gaps.label)
        asked = Asked(
            scores=known,
            hidden=hidden,
            label=label.astype(np.int64),
            context=_context(released, gaps.context, len(known)),
            rng=gaps.rng,
            draws=gaps.draws,
        )
        filled = released.encoding.values_of_scores(self._filled(released, asked))
        return np.where(gaps.hidden, filled, gaps.values)

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
        return {} if self.pack is None else {"dit pack": pack_sha256(self.pack)}

    def shape(self, schema: Schema) -> Network:
        """Returns the shape of the network, with the patch that a series of the schema is cut into."""
        network = self.recipe.network
        return replace(network, patch=network.patch_for(schema.num_steps))

    def denoising(self, schema: Schema, autocovariance: np.ndarray) -> Denoising:
        """Returns how the network is trained and asked, given released autocovariances."""
        return Denoising(
            autocovariance=autocovariance if self.recipe.interpolated else no_autocovariance(schema),
            season=season_of(schema),
            num_channels=schema.num_channels,
            num_classes=num_labels(schema),
            draws=self.recipe.draws,
            predicts=self.recipe.predicts,
        )

    def _plan(self, learned: Schema, config: DPSGDConfig, guarantee: Guarantee) -> SpendingPlan:
        check_pack(self.pack, self.shape(learned), learned)
        training = self._calibrated(learned, config, guarantee).event
        return SpendingPlan((*_fact_entries(learned, self.recipe, guarantee), PlanEntry(TRAINING, training)), guarantee)

    def _num_parameters(self, learned: Schema) -> int:
        with meta_device():
            model = empty_network(self.shape(learned), learned, reference_of(None, self.shape(learned)), self.seed)
        return num_parameters(model)

    def _calibrated(self, learned: Schema, config: DPSGDConfig, guarantee: Guarantee) -> DPSGDConfig:
        return config.calibrated(
            guarantee, others=[entry.event for entry in _fact_entries(learned, self.recipe, guarantee)]
        )

    def _config(self, schema: Schema) -> DPSGDConfig:
        """DP-SGD before its noise is known, for the schema of a table."""
        recipe, size = self.recipe, schema.population.size
        contributions = None if size is None else self.num_contributions(schema, size)
        rate = _UNKNOWN_RATE if contributions is None else min(1.0, recipe.batch / contributions)
        return DPSGDConfig(
            sampling_rate=rate,
            iterations=recipe.iterations,
            expected_batch=rate * contributions if contributions else float(recipe.batch),
            clip_norm=recipe.clipping_norm,
            batches=self._batches(schema, self.influence(schema)),
        )

    def _batches(self, schema: Schema, influence: int) -> UnitBatches | WindowBatches:
        """One window of each unit; for events single windows, of which one event can take away `influence`."""
        return WindowBatches(influence) if schema.unit.kind == "event" else UnitBatches()


def season_of(schema: Schema) -> int:
    """Returns the steps of a day; 0 where a series is no longer than that, or its steps do not make up days."""
    width = parse_frequency(schema.time.frequency).microseconds
    day = _DAY // width if width and _DAY % width == 0 else 0
    return day if 1 < day < schema.num_steps else 0


def no_autocovariance(schema: Schema) -> np.ndarray:
    """Returns the autocovariance [7, column] that says nothing."""
    return np.tile(np.array(NO_AUTOCOVARIANCE)[:, None], num_columns(schema))


def _fact_entries(schema: Schema, recipe: Recipe, guarantee: Guarantee) -> tuple[PlanEntry, ...]:
    shares = facts.shares_of(schema, marginals=True)
    if recipe.interpolated:
        shares |= {interpolation.LABEL: interpolation.SHARE}
    if scores.scaled_channels(schema):
        shares |= {scores.SCALE_LABEL: scores.SCALE_SHARE, "marginals": scores.MARGINALS_SHARE}
    return tuple(PlanEntry(label, Gaussian(noise)) for label, noise in noise_multipliers(guarantee, shares).items())


def _release_facts(private: PrivateSeries, grant: Grant, progress: Progress) -> Facts:
    """Releases distributions of the columns; context is public and costs nothing."""
    bare = private.without_context()
    return facts.buy(bare, grant, linear_scales(bare.schema, None))


def _context(released: Released, context: np.ndarray | None, number: int) -> np.ndarray | None:
    """Returns the context as the network takes it: all missing where a declared one is not given."""
    schema = released.encoding.schema
    if not schema.context:
        return None
    given = np.full((schema.num_steps, len(schema.context)), np.nan) if context is None else context
    return released.encoding.context(given, number)
