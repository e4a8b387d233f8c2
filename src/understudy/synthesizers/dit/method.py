"""`dit`: one private diffusion transformer that generates, imputes and forecasts.

Idea. A transformer learns, with private gradients, to fill what is hidden of a series from what is shown (DP-aware
AdaLN-Zero, after TimeDiT): with everything hidden it generates, with gaps it imputes, with the last steps hidden it
forecasts. Its conditioning is bounded (`published`), so that no odd series has a gradient that is large for that alone.

Private data is touched by the small releases of `facts` and autocovariances (`interpolation`), and by clipped sums of
gradients over units. Bounds come from constants or public data, and are an aid to utility: noise is what it is without.

Cost: minutes on two cores for some thousand series of a week of hours; filling costs tens of passes of the network.
Choose it when recipients of the release have to fill gaps or make forecasts. For series alone try `spectral` first,
which needs far fewer units.
Not to be confused with the published noise levels, which promise nothing (an ε of hundreds or more), nor with a smaller
sensitivity: the clip bounds it, nothing else does.

References: DP-aware AdaLN-Zero; Peebles & Xie, arXiv:2212.09748 (DiT); Song et al., arXiv:2010.02502
(DDIM); Salimans & Ho, arXiv:2202.00512 (velocity); Abadi et al., arXiv:1607.00133 (DP-SGD).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from understudy.data import Panel, Schema
from understudy.data.panel import broadcast_context
from understudy.data.timegrid import steps_per_day
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.grant import Grant
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics import facts
from understudy.statistics.columns import classes_of, num_labels, single_columns
from understudy.statistics.facts import Facts
from understudy.synthesizers.base import Progress, SampleRequest, Synthesizer
from understudy.synthesizers.dit import interpolation, scores
from understudy.synthesizers.dit.denoising import Denoising, mirrored_noise
from understudy.synthesizers.dit.interpolation import NO_AUTOCOVARIANCE, release_autocovariance
from understudy.synthesizers.dit.published import MaskedDiT
from understudy.synthesizers.dit.recipe import DEFAULT, PAPER, Recipe
from understudy.synthesizers.dit.scores import NormalScores, ranks_by_nodes, release_scales
from understudy.synthesizers.options import recipe_of, require_above_zero
from understudy.synthesizers.packs import Pack
from understudy.synthesizers.sampling import CompletionRequest, num_pooled, sample_classes, score_nodes
from understudy.training import DPSGDConfig, Optimisation, adam
from understudy.training.loop import fit_network, foretold
from understudy.training.networks import load_arrays, num_parameters, to_arrays
from understudy.training.plan import TRAINING, charged_config, noise_ratio, training_plan

NETWORK = "network."  # prefix of the released weights
REFERENCE = "reference"  # array of the magnitudes (C₀, Γ₀, B₀, A₀) that bounds are shares of
NODES = "nodes"  # array of quantiles of what the network samples, by which its marginals are corrected
_AUTOCOVARIANCE, _SCALES = "autocovariance", "scales"  # arrays as `interpolation.ROWS` and `release_scales` have them
_MEASURED = 256  # series that the quantiles are measured on
_UNKNOWN_RATE = 0.1  # of units in an iteration, where the population is not known before it is bought


@dataclass(frozen=True, eq=False)
class Released:
    """A release put together again: what a trained network needs to be asked."""

    model: MaskedDiT
    facts: Facts
    encoding: NormalScores
    denoising: Denoising


@dataclass(frozen=True, kw_only=True)
class DiT(Synthesizer):
    """A diffusion transformer with bounded AdaLN-Zero conditioning.

    Attributes:
        recipe: Shape and training of the network; the preset "paper" has the published numbers.
        pack: File of a pack from `understudy pretrain dit`: reference magnitudes for the bounds and, unless it holds
            magnitudes only, weights to start from, of the shape of the recipe's network.
        sampling_steps: Steps of DDIM.
        seed: Seed for weight initialisation.
    """

    name: ClassVar[str] = "dit"
    needs: ClassVar[str] = "the extra neural; fills gaps and forecasts, too"
    rehearsed: ClassVar[str] = "recipe.iterations"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}, "paper": {"recipe": PAPER}}
    whole_windows: ClassVar[bool] = True
    recipe: Recipe = DEFAULT
    pack: str | None = None
    sampling_steps: int = 25
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "recipe", recipe_of(self.recipe, Recipe))
        require_above_zero(self, "sampling_steps")

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """What is bought beforehand, then DP-SGD with the rest; an event is priced by the windows it can touch."""
        learned = self.learned_schema(schema)
        self._check_pack(learned)
        shares = facts.shares_of(learned, marginals=True)
        if self.recipe.interpolated:
            shares |= {interpolation.LABEL: interpolation.SHARE}
        if scores.scaled_channels(learned):
            shares |= {scores.SCALE_LABEL: scores.SCALE_SHARE, "marginals": scores.MARGINALS_SHARE}
        return training_plan(self._config(schema), shares, guarantee)

    def planned(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """The same: windows are counted in the table before it is cut."""
        return self.plan(schema, guarantee)

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Buys the facts, trains the network, and returns both.

        Privacy: private series are looked at through the grant. A unit's windows are shown several times and averaged
        before the clip; an event takes away at most `influence` windows: those with an empty step take no part.
        """
        schema, recipe, bare = private.schema, self.recipe, private.without_context()
        released = facts.buy(bare, grant)
        reference = self.reference()
        model = self.empty_network(schema, reference)
        pack = self._loaded_pack()
        if pack is not None and _has_weights(pack):
            load_arrays(model, pack.arrays, NETWORK)
        sizes = release_scales(private, grant)
        encoding = NormalScores(schema, tuple(released.marginals), model.patch, sizes)
        panel, autocovariance = private.panel, None
        examples = encoding.examples(panel.values, panel.static, classes_of(panel), panel.context)
        if recipe.interpolated:
            autocovariance = release_autocovariance(private, examples, encoding.variances, season_of(schema), grant)
        denoising = self.denoising(schema, autocovariance)
        config = charged_config(grant.plan.event(TRAINING), private.population, recipe.clipping_norm)
        louder = noise_ratio(config.event.noise_multiplier, num_parameters(model), config.expected_batch)
        rate = recipe.learning_rate / (max(1.0, louder) if recipe.rate_by_noise else 1.0)
        optimisation = Optimisation(
            make=adam(rate, recipe.weight_decay), warm_up=recipe.warm_up_iterations, average_decay=recipe.ema or None
        )
        fit_network(
            model, denoising.loss, examples, private, config, grant, optimisation=optimisation, progress=progress
        )
        arrays = {**released.to_arrays(), **to_arrays(model, NETWORK), REFERENCE: reference}
        arrays |= {_AUTOCOVARIANCE: denoising.autocovariance, _SCALES: sizes}
        number, shared = num_pooled(schema, _MEASURED), private.shared_context
        context = None if shared is None else broadcast_context(shared, number)
        request = SampleRequest(num_series=number, rng=np.random.default_rng(self.seed), context=context)
        sampled = self._whole(self.released(schema, arrays), sample_classes(released, request), request)
        return {**arrays, NODES: score_nodes(sampled[:, : schema.num_steps].astype(np.float64))}

    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        """Returns series with everything hidden and filled."""
        released, channels = self.released(schema, arrays), schema.num_channels
        classes = sample_classes(released.facts, request)
        sampled = self._whole(released, classes, request)
        ranks, scores = ranks_by_nodes(sampled, arrays[NODES]), sampled[:, : schema.num_steps, :channels]
        values, single = released.encoding.values(ranks), ranks[:, 0, channels:]
        return request.panel(schema, *released.facts.completed(schema, values, scores, classes, single, request.rng))

    def complete(self, arrays: dict[str, np.ndarray], schema: Schema, gaps: CompletionRequest) -> np.ndarray:
        """Returns one filling of the hidden entries of the caller's series, the others as they were."""
        released = self.released(schema, arrays)
        label = np.full(len(gaps.values), -1) if gaps.label is None else gaps.label
        classes = np.where(label < 0, released.denoising.num_classes, label)
        rows = released.encoding.examples(gaps.values, gaps.static, classes, gaps.context)
        hidden = np.zeros(rows["x"].shape, dtype=bool)
        hidden[:, : schema.num_steps, : schema.num_channels] = gaps.hidden
        start = mirrored_noise(hidden.shape, gaps.rng, gaps.draws)
        drawn = released.denoising.fill(released.model, {**rows, "hidden": hidden}, start, self.sampling_steps)
        filled = released.encoding.values_of_scores(drawn)
        return np.where(gaps.hidden, filled, gaps.values)

    def outlook(self, schema: Schema, guarantee: Guarantee) -> tuple[str, ...]:
        """Says how the gradients' noise compares with what a batch can say, and what an event is."""
        told = self._foretold(schema, guarantee)[1]
        if schema.unit.kind != "event":
            return (told,)
        protected = f"any {schema.unit.event_steps} consecutive steps of {schema.time.frequency} of one series"
        return (f"Protected: {protected}, which up to {self.influence(schema)} windows can touch.", told)

    def gradient_noise(self, schema: Schema, guarantee: Guarantee) -> float | None:
        """That of the transformer; none with a pack: what public weights are worth under noise was not measured."""
        return self._foretold(schema, guarantee)[0] if self.pack is None else None

    def own_inputs(self) -> Mapping[str, str]:
        """The pack."""
        pack = self._loaded_pack()
        return {} if pack is None else {"dit pack": pack.sha256}

    def empty_network(self, schema: Schema, reference: np.ndarray | None = None) -> MaskedDiT:
        """Returns the network for a schema before it learned anything, the same for the same seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return MaskedDiT(**self.pack_shape(schema), bounds=self.recipe.network.bounds(reference))

    def reference(self) -> np.ndarray:
        """Returns the pack's magnitudes, or the constants that stand for them."""
        pack = self._loaded_pack()
        return self.recipe.network.reference if pack is None else pack.arrays[REFERENCE]

    def denoising(self, schema: Schema, autocovariance: np.ndarray | None) -> Denoising:
        """Returns how the network is trained and asked, given released autocovariances if they are used."""
        if autocovariance is None or not self.recipe.interpolated:
            autocovariance = np.tile(np.array(NO_AUTOCOVARIANCE)[:, None], _num_columns(schema))
        return Denoising(
            autocovariance=autocovariance,
            season=season_of(schema),
            num_channels=schema.num_channels,
            num_classes=num_labels(schema),
            draws=self.recipe.draws,
            predicts=self.recipe.predicts,
        )

    def released(self, schema: Schema, arrays: Mapping[str, np.ndarray]) -> Released:
        """Returns what the arrays of a release describe."""
        model, bought = self.empty_network(schema, arrays[REFERENCE]), Facts.from_arrays(arrays)
        load_arrays(model, arrays, NETWORK)
        encoding = NormalScores(schema, tuple(bought.marginals), model.patch, arrays[_SCALES])
        return Released(model.train(False), bought, encoding, self.denoising(schema, arrays[_AUTOCOVARIANCE]))

    def pack_shape(self, schema: Schema) -> dict[str, int]:
        """Returns what weights have to agree on with the run that starts from them."""
        network = self.recipe.network
        own = {name: getattr(network, name) for name in ("width", "depth", "num_heads")}
        public = {"channels": _num_columns(schema), "context": len(schema.context), "num_classes": num_labels(schema)}
        return {**own, "patch": network.patch_for(schema.num_steps), **public}

    def _whole(self, released: Released, classes: np.ndarray, request: SampleRequest) -> np.ndarray:
        """Returns scores [series, step, column] of whole series of the given classes."""
        schema, encoding = released.encoding.schema, released.encoding
        shape = (len(classes), encoding.num_steps, _num_columns(schema))
        empty = np.full((len(classes), schema.num_steps, schema.num_channels), np.nan, np.float32)
        nothing = np.full((len(classes), len(schema.static)), np.nan, np.float32)
        hidden = np.broadcast_to((np.arange(shape[1]) < schema.num_steps)[None, :, None], shape)
        rows = {**encoding.examples(empty, nothing, classes, request.context), "hidden": hidden}
        start = mirrored_noise(shape, request.rng)
        return released.denoising.fill(released.model, rows, start, self.sampling_steps)

    def _loaded_pack(self) -> Pack | None:
        return None if self.pack is None else Pack.load(self.pack, self.name)

    def _check_pack(self, schema: Schema) -> None:
        """Refuses, before anything is charged, a pack that does not fit."""
        pack, wanted = self._loaded_pack(), self.pack_shape(schema)
        if pack is None or not _has_weights(pack):
            return
        wrong = [name for name in wanted if pack.shape.get(name) != wanted[name]]
        if wrong:
            told = ", ".join(f"{name} {pack.shape.get(name)} instead of {wanted[name]}" for name in wrong)
            raise InputError(
                f"pack: weights for another network: {told}. Train one on public series with the same columns "
                "(`understudy pretrain dit`), or set the network's options as the pack has them."
            )

    def _foretold(self, schema: Schema, guarantee: Guarantee) -> tuple[float, str]:
        plan, batch = self.plan(schema, guarantee), self._config(schema).expected_batch
        return foretold(plan, batch, lambda: self.empty_network(self.learned_schema(schema)))

    def _config(self, schema: Schema) -> DPSGDConfig:
        """DP-SGD before its noise is known, for the schema of a table."""
        recipe, size = self.recipe, schema.population.size
        contributions = None if size is None else self.num_contributions(schema, size)
        rate = _UNKNOWN_RATE if contributions is None else min(1.0, recipe.batch / contributions)
        return DPSGDConfig(
            sampling_rate=rate,
            iterations=recipe.iterations,
            expected_batch=rate * contributions if contributions else float(recipe.batch),
            clipping_norm=recipe.clipping_norm,
            max_windows=self.influence(schema) if schema.unit.kind == "event" else None,
        )


def season_of(schema: Schema) -> int:
    """Returns the steps of a day; 0 where a series is no longer than that, or its steps do not make up days."""
    day = steps_per_day(schema.time)
    return day if 1 < day < schema.num_steps else 0


def _num_columns(schema: Schema) -> int:
    """Returns the number of columns that the network sees: channels and static columns but the label."""
    return schema.num_channels + len(single_columns(schema, with_context=False))


def _has_weights(pack: Pack) -> bool:
    return any(name.startswith(NETWORK) for name in pack.arrays)
