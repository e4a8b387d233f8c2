"""`ppem`: series whose sensitive marginal differs from the real one, and everything else given it does not.

Idea. Sensitive attributes x′ (columns, the label, or levels of a series) and the rest x* are modelled apart. The
marginal of x′ is replaced by one that the user states, or by one that a generator was trained to make different; x*
given x′ is kept (PPEM: privacy-preserving energy models).

In the mode `sound`, private data is read by one release of `spectral` and by a check on held-out units; all else is
made from synthetic series (`hot_deck`). The mode `lmdp` runs the paper's algorithm on real rows (`published`): it
protects no unit, and its certificate says so first.

Cost: a minute. Choose it where an aggregate is a secret of its own; where only people have to be protected, `spectral`
is better. That two distributions differ does not bound what can be learned (`docs/ppem.md`).

References: PPEM; Zhao et al., arXiv:1609.03126 (EBGAN); Liu, Lee and Jordan, arXiv:1602.03253 (KSD); Dwork and Roth
(2014), Algorithm 1 (AboveThreshold); Andridge and Little (2010) (hot-deck imputation).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from understudy.data import Panel, Schema
from understudy.data.table import Table
from understudy.errors import InputError, ReleaseError
from understudy.privacy.budget import Guarantee
from understudy.privacy.canonical import file_sha256
from understudy.privacy.events import NonPrivate, PureDP
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.encoding import linear_scales
from understudy.statistics.facts import facts_of
from understudy.synthesizers.base import Progress, SampleRequest, Synthesizer
from understudy.synthesizers.options import recipe_of, require_no_guarantee, require_one_of
from understudy.synthesizers.ppem import attributes, effect_size, hot_deck, published
from understudy.synthesizers.ppem.attributes import DIFFERENT, UNIFORM, Partition, Rows, Target
from understudy.synthesizers.ppem.effect_size import share_without_support, transformed_copies
from understudy.synthesizers.ppem.published import CONDITIONAL, MARGINAL, AdversarialTraining, Lacking
from understudy.synthesizers.ppem.recipe import DEFAULT, PAPER, Recipe
from understudy.synthesizers.registry import METHODS
from understudy.synthesizers.sampling import panel_of
from understudy.training.networks import load_arrays, to_arrays
from understudy.training.plan import TRAINING

Mode = Literal["sound", "lmdp"]
FarEnough = Callable[[np.ndarray], bool]
NOT_PRIVATE = "a marginal is obfuscated, which protects no person; gradients were not noised"
CHECK = "check"  # label of a charge
HELD_OUT = 0.2  # share of units that are held out for a check
NUM_RELEASED = 8192  # x′ that a check compares held-out units with
NO_GUARANTEE = (
    "This is obfuscation of an aggregate, not protection of a person, and no part of epsilon. It does not hide what a "
    "reader can infer from the other columns, nor from how well they fit a value of x′."
)
FIGURES = "obfuscation"  # array of a release: share of x′ far from any pool row, then one flag per transformed column
GENERATORS, LINEAR, TARGET = "generator.", "linear", "target"  # arrays of a release of the published mode
_CHECK_SHARE = 0.1  # of epsilon that a check on held-out units costs
_NON_PRIVATE_CHECK = 1e3  # epsilon of a check in the mode that protects no unit
_FEWEST_UNITS, _MOST_ATTEMPTS = 100, 10
_FREQUENT = 0.05  # share of x′ without support from which the sentence is a caution
_AIM = 1.15  # a generator aims a little farther than the check asks for
_CHOICES = 8  # rows of which the one nearest to an asked label is taken


@dataclass(frozen=True, kw_only=True)
class PPEM(Synthesizer):
    """Privacy-preserving energy models.

    Attributes:
        sensitive: Sets of sensitive attributes; a set is one name or several joined by "+". A name is a static column,
            the label, a channel, or mean(…), first(…), last(…) of a channel of numbers.
        mode: "sound" is differentially private; "lmdp", the paper's, is not.
        target: "different" for a marginal that a generator is trained to make different, "uniform", a public table
            with the same columns, or a list of values for each attribute.
        effect: Effect size that every set must reach, checked on held-out units: the Wasserstein distance in shares of
            the declared range, or the total variation distance for categories. None checks nothing.
        attempts: Trainings that are tried until the check passes; nothing of the others is released.
        recipe: Networks and training loop.
        seed: Seed of everything but privacy noise and the choice of held-out units.
    """

    name: ClassVar[str] = "ppem"
    needs: ClassVar[str] = "the extra neural; the sensitive attribute"
    rehearsed: ClassVar[str] = "recipe.iterations"
    whole_windows: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}, "paper": {"recipe": PAPER, "mode": "lmdp"}}
    sensitive: str | tuple[str, ...] = ()
    mode: Mode = "sound"
    target: Target = DIFFERENT
    effect: float | None = None
    attempts: int = 1
    recipe: Recipe = DEFAULT
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "recipe", recipe_of(self.recipe, Recipe))
        object.__setattr__(self, "sensitive", self.sets)
        require_one_of(self, mode=("sound", "lmdp"))
        if self.effect is not None and not 0 < self.effect < 1:
            raise InputError(f"effect: above 0 and below 1, the declared range, is expected, got {self.effect:g}.")
        repeatable = self.effect is not None and self.has_generator
        if not 1 <= self.attempts <= (_MOST_ATTEMPTS if repeatable else 1):
            raise InputError(
                f"attempts: 1 to {_MOST_ATTEMPTS} are expected with an effect to reach, and 1 without or with a stated "
                f"target, which another training does not change; got {self.attempts}."
            )

    @property
    def sets(self) -> tuple[str, ...]:
        """The sensitive sets, as they were named."""
        return (self.sensitive,) if isinstance(self.sensitive, str) else tuple(self.sensitive)

    @property
    def has_generator(self) -> bool:
        """Whether x′ is generated, not sampled from a stated target."""
        return self.target == DIFFERENT

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """Return the check and the releases of `spectral`; in the mode that protects no unit, the training."""
        attributes.check_target(self.target, self._partition(schema).attributes)
        if self.mode != "sound":
            require_no_guarantee(guarantee, self.mode, NOT_PRIVATE)
            entries = [PlanEntry(CHECK, PureDP(_NON_PRIVATE_CHECK))] if self.effect is not None else []
            return SpendingPlan((*entries, PlanEntry(TRAINING, NonPrivate(NOT_PRIVATE))), guarantee)
        if schema.population.size is not None and schema.population.size < _FEWEST_UNITS:
            raise InputError(
                f"population: at least {_FEWEST_UNITS} units are expected, because fewer can't be hidden in a crowd; "
                f"got {schema.population.size}."
            )
        checks = []
        if self.effect is not None:
            checks = [PlanEntry(CHECK, PureDP(_CHECK_SHARE * guarantee.epsilon))]
            units, least = self._units_and_least_effect(schema, guarantee)
            if units and least > 1:
                raise InputError(
                    f"effect: at most 1 is expected, but a check on about {units:.0f} held-out units at epsilon = "
                    f"{guarantee.epsilon:g} passes only from {least:.3g} on. Ask for less, or a larger epsilon."
                )
        left = Guarantee((1 - _CHECK_SHARE * len(checks)) * guarantee.epsilon, guarantee.delta)
        whole = METHODS.create("spectral").plan(schema.without_context(), left)
        return SpendingPlan((*checks, *whole.entries), guarantee)

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Return finished series, or in the mode that protects no unit the generators.

        Privacy: unit and neighbours as the schema says. Held-out units are chosen by a coin each and read by the check
        only; all others by `spectral` only. Both are charged to every unit. `docs/claims/ppem.md` has the proof.
        """
        learned, held_out = (private, None) if self.effect is None else _split(private, HELD_OUT)
        partition, pools = self._partition(learned.schema), []
        if self.mode == "sound":
            panels = hot_deck.released_pools(learned, grant, partition, self.seed, progress)
            pools = [(panel, partition.rows(panel)) for panel in panels]
            rows = pools[0][1]
        else:
            grant.without_privacy(TRAINING)
            linear = _linear(learned.panel, partition)
            partition = self._partition(learned.schema, linear)
            rows = partition.rows(learned.panel)
        table = attributes.target_table(self.target, partition)
        checks = self._checks(partition, grant, learned.population, held_out)
        generators, values = self._accepted(partition, rows, table, checks, progress)
        points = partition.decoded(rows.sensitive)
        copies = transformed_copies(partition.columns, values, points) if self.has_generator else ()
        unsupported = share_without_support(partition.encoded(values), partition.encoded(points))
        found = {
            FIGURES: np.array([unsupported, *(column.name in copies for column in partition.columns)], dtype=float)
        }
        if pools:
            return {**hot_deck.imputed(values, pools, partition), **found}
        return {LINEAR: linear, TARGET: table, **to_arrays(generators, GENERATORS), **found}

    def _accepted(
        self,
        partition: Partition,
        rows: Rows,
        table: np.ndarray,
        checks: tuple[FarEnough, Lacking | None],
        progress: Progress,
    ) -> tuple[nn.ModuleDict, np.ndarray]:
        """Train on rows of the pool of donors, or real ones where no unit is protected, until the check passes.

        Nothing of the other attempts leaves.
        """
        far_enough, lacking = checks
        for number in range(self.attempts):
            generators = self.generators(partition, seed := self.seed + 1000 * number)
            if len(generators):
                training = AdversarialTraining(generators, partition, rows.at_least_one(), self.recipe, seed, lacking)
                training.run(lambda share: progress("training", 0.1 + 0.9 * share))
            rng = np.random.default_rng([self.seed, number])
            values = self.values(partition, generators, table, NUM_RELEASED, rng)
            if far_enough(values):
                return generators, values
        raise ReleaseError(
            f"effect: no marginal at least {self.effect:g} away was found in {self.attempts} attempts, so nothing is "
            "released; what was charged stays charged. Ask for a smaller effect, state a target, or bring a larger "
            "epsilon: `understudy plan` says from which effect on a check passes."
        )

    def _checks(
        self, partition: Partition, grant: Grant, population: int, held_out: PrivateSeries | None
    ) -> tuple[FarEnough, Lacking | None]:
        """Return whether released values are far enough from held-out units, and what generated ones lack (public).

        Privacy: held-out units are read through AboveThreshold.
        """
        effect = self.effect
        if held_out is None or effect is None:
            return (lambda values: True), None
        sizes, event = effect_size.effect_sizes_of(partition.sets), grant.plan.event(CHECK)
        assert isinstance(event, PureDP)
        above = grant.above_threshold(CHECK, self.attempts, effect_size.ERROR / 2)
        held, units = partition.rows(held_out.panel).sensitive, HELD_OUT * population / (1 - HELD_OUT)
        told = effect, units, event.epsilon, self.attempts, NUM_RELEASED
        aims = torch.tensor([_AIM * effect_size.needed(size, *told) for size in sizes])

        def far_enough(values: np.ndarray) -> bool:
            return above(*effect_size.figure(sizes, effect, partition.encoded(values), held, held_out))

        def lacking(generated: Tensor, references: Tensor) -> Tensor:
            reached = torch.stack([size.differentiable(generated, references) for size in sizes])
            return (aims - reached).clamp_min(0).sum()

        return far_enough, lacking

    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        """Return series with x′ by the released marginal."""
        if self.mode == "sound":
            return hot_deck.sample(arrays, schema, request)
        partition = self._partition(schema, arrays[LINEAR])
        generators = self.generators(partition, self.seed)
        load_arrays(generators, arrays, GENERATORS)
        series, static, classes = partition.joined(*self._sampled_rows(partition, generators, arrays[TARGET], request))
        if request.label is not None:
            classes = np.full(request.num_series, request.label)
        missing = np.zeros(len(partition.encoding.static_columns))
        complete = facts_of([], np.ones(1), missing, np.zeros((0, 1)), np.zeros(0))
        return panel_of(schema, request, partition.encoding, complete, classes, (series, static))

    def obfuscation(self) -> tuple[str, ...]:
        """Return what was hidden, what was checked, and what that does not protect; the same text whatever the data."""
        released = "a distribution that was stated from public knowledge"
        if self.has_generator:
            released = "samples of a generator that was trained to differ from it"
        elif self.target == UNIFORM:
            released = "the uniform distribution over the declared bounds"
        checked = "No effect size was asked for and none was checked: the two distributions may be as good as equal."
        if self.effect is not None:
            checked = (
                f"Checked with differential privacy on held-out units: every set is at least {self.effect:g} away "
                f"(Wasserstein distance in shares of the range), with an error probability of {effect_size.ERROR:g}. "
                "The check is among the charges."
            )
        return (
            f"Hidden: the distribution of {', '.join(self.sets)}. Released: {released}.",
            checked,
            f"What probes found, for transformed copies and values without support, is in the release (array "
            f"'{FIGURES}').",
            NO_GUARANTEE,
        )

    def findings(self, schema: Schema, arrays: Mapping[str, np.ndarray]) -> tuple[str, ...]:
        """Return what probes found in a release: transformed copies of the secret, and x′ without support."""
        unsupported, *flags = arrays[FIGURES]
        copies = [column.name for column, flag in zip(self._partition(schema).columns, flags, strict=True) if flag > 0]
        found = []
        if copies:
            found.append(
                f"Caution: {', '.join(copies)} came out as the real distribution moved, stretched, mirrored or "
                "renamed. A reader who guesses the map has the original."
            )
        share = f"{unsupported:.0%} of the released values of x′ lie where the conditional model saw almost no unit"
        caution = unsupported > _FREQUENT
        found.append(f"Caution: {share}; what was generated for them is a guess." if caution else f"{share}.")
        return tuple(found)

    def outlook(self, schema: Schema, guarantee: Guarantee) -> tuple[str, ...]:
        """Say from which effect size on a check passes."""
        if self.mode != "sound":
            return (f"Not private: {NOT_PRIVATE}.",)
        units, least = self._units_and_least_effect(schema, guarantee)
        if self.effect is None or not units:
            return ()
        return (f"The check for {self.effect:g} passes, more often than not, from an effect of {least:.3g} on.",)

    def rehearsal(self, schema: Schema, guarantee: Guarantee) -> "PPEM":
        """Return the method without an effect to reach."""
        return replace(self, effect=None, attempts=1)

    def own_inputs(self) -> Mapping[str, str]:
        """Return the hash of the public table that x′ are sampled from."""
        if not isinstance(self.target, str) or self.target in (DIFFERENT, UNIFORM):
            return {}
        return {"ppem target": file_sha256(self.target)}

    def _partition(self, schema: Schema, linear: np.ndarray | None = None) -> Partition:
        return Partition.of(schema.without_context(), self.sets, linear)

    def generators(self, partition: Partition, seed: int) -> nn.ModuleDict:
        """Return generators before they learned anything: of x′ unless a target is stated, of x* as published."""
        pairs = ([MARGINAL] if self.has_generator else []) + ([CONDITIONAL] if self.mode == "lmdp" else [])
        return published.generators_of(pairs, partition, self.recipe, seed)

    def values(
        self, partition: Partition, generators: nn.ModuleDict, table: np.ndarray, number: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Return sensitive columns [series, column] by the released marginal."""
        if self.has_generator:
            return partition.decoded(published.sampled(generators[MARGINAL], number, rng))
        return attributes.sample_target(self.target, partition, table, number, rng)

    def _sampled_rows(
        self, partition: Partition, generators: nn.ModuleDict, table: np.ndarray, request: SampleRequest
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (sensitive columns, x*) of the asked number of series, and of the asked label."""
        number, rng, label = request.num_series, request.rng, request.label
        times = 1 if label is None or partition.hides_label else _CHOICES
        values = self.values(partition, generators, table, times * number, rng)
        if label is not None and partition.hides_label:
            place = [column.name for column in partition.columns].index(partition.schema.label or "")
            values[:, place] = label
        rest = published.sampled(generators[CONDITIONAL], len(values), rng, partition.encoded(values))
        if times == 1:
            return values, rest
        asked = rest[:, rest.shape[1] - partition.num_classes + (label or 0)].reshape(number, times)
        best = np.arange(number) * times + asked.argmax(axis=1)
        return values[best], rest[best]

    def _units_and_least_effect(self, schema: Schema, guarantee: Guarantee) -> tuple[float, float]:
        """Return how many units a check expects (0 if not known yet), and from which effect size on it passes."""
        size = schema.population.size
        units = 0.0 if size is None else HELD_OUT * self.num_contributions(schema, size)
        (asked,) = effect_size.effect_sizes_of((self._partition(self.learned_schema(schema)).attributes,))
        epsilon = _CHECK_SHARE * guarantee.epsilon
        return units, effect_size.needed(asked, self.effect or 0.0, units, epsilon, self.attempts, NUM_RELEASED)


def _linear(panel: Panel, partition: Partition) -> np.ndarray:
    """Return scales that standardise the columns of x* as the paper does; sensitive columns keep declared bounds.

    Privacy: reads private data without any; for the mode that protects no unit.
    """
    schema = partition.schema
    columns = [*schema.channels, *partition.encoding.static_columns]
    hidden = [(schema.static if own.is_static else schema.channels)[own.place] for own in partition.attributes]
    return np.where(
        [[column in hidden] for column in columns], linear_scales(schema, None), linear_scales(schema, panel)
    )


def _split(private: PrivateSeries, share: float) -> tuple[PrivateSeries, PrivateSeries]:
    """Return (series to learn from, series to check on): every unit is held out on a coin of its own."""
    learned, held_out = (
        replace(private, table=Table.of(panel), view=None, population=max(1, round(size * private.population)))
        for panel, size in zip(private.panel.split(share, np.random.default_rng()), (1 - share, share), strict=True)
    )
    return learned, held_out
