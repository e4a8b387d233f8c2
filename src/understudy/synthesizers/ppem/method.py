"""`ppem`: series whose sensitive marginal differs from the real one, and everything else given it does not.

Idea. Sensitive attributes x′ (columns, the label, or levels of a series) and the rest x* are modelled apart: an energy
and a generator for the marginal of x′, another pair for x* given x′. The marginal is then made to differ, or replaced
by one that the user states, while the conditional pair is left alone (paper 002, PPEM).

Private data is touched by the small releases of `purchases`, by the `sketch` of x′, by clipped sums of gradients of
both energies, clipped together, and by a check on units that were kept out. Generators see the energies and points of
the sketch. Only generators and what `purchases` bought are released, and none of that holds the sketch. With
`conditional="spectral"` one release of `spectral` takes the place of all of these but the check (`donors`).

Cost: a minute. Choose it where an aggregate is a secret of its own: where a bank is active, what its clients are like.
Where only people have to be protected, `spectral` is better at any epsilon.
Not to be confused with privacy: that two distributions differ bounds nothing that anybody can learn (`docs/ppem.md`).

References: paper 002 (PPEM); Zhao et al., arXiv:1609.03126 (EBGAN); Liu, Lee and Jordan, arXiv:1602.03253 (KSD); Dwork
and Roth (2014), Algorithm 1 (AboveThreshold); Abadi et al., arXiv:1607.00133 (DP-SGD).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from understudy.data import Panel, Schema
from understudy.data.datasets import file_sha256
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian, NonPrivate, PureDP
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry, SpendingPlan, noise_multipliers
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.base import Draw, Progress, Synthesizer
from understudy.synthesizers.options import require_one_of
from understudy.synthesizers.ppem import drawing, effects, modes, purchases, sketch, statements, targets
from understudy.synthesizers.ppem.attributes import Attribute, parse
from understudy.synthesizers.ppem.learning import CHECK, CONDITIONAL, HELD_OUT, RELEASED, Run, training_label
from understudy.synthesizers.ppem.recipe import Recipe
from understudy.synthesizers.ppem.targets import Target
from understudy.synthesizers.spectral import Spectral
from understudy.training import DPSGDConfig, UnitBatches, WindowBatches
from understudy.training.plan import TRAINING

_RATE_OF_UNKNOWN = 0.02  # with which units are drawn where the population is still to be counted
_UNNOISED = 1e-3  # noise multiplier of what is bought in modes that protect nobody
_SURE = 1e3  # epsilon of a check in these modes
_CHECK_SHARE = 0.1  # of epsilon that a check on kept-out units costs
_FEWEST_UNITS = 100
CONDITIONALS = ("energies", "spectral")
_MOST_ATTEMPTS = 10


@dataclass(frozen=True, kw_only=True)
class Ppem(Synthesizer):
    """Privacy-preserving energy models.

    Attributes:
        sensitive: Sets of sensitive attributes; a set is one name or several joined by "+". A name is a static column,
            the label, a channel, or mean(…), first(…), last(…) of a channel of numbers.
        mode: "both" hides the marginal and is differentially private; "dp" is private and hides nothing; "lmdp" and
            "marginal-dp" (appendix D.4) protect nobody and say so.
        target: "different" for a marginal that was taught to differ, "uniform", a public table with the same columns,
            or a list of values for each attribute.
        effect: How far every set must be from the real one; checked on kept-out units. None checks nothing.
        metric: Effect size: "mmd", from 0 to √2, or "wasserstein", in shares of the declared range.
        attempts: Trainings that are tried, and paid for, until the check passes; none of the others is released.
        conditional: Where x* given x′ comes from: "energies" (paper 002), or one release of "spectral", the nearer one
            at any epsilon; then nothing else is bought, and a release holds finished series.
        scale: Working scale of columns that are not sensitive: "bought" distributions, or declared "bounds".
        claimed_epsilon: What "marginal-dp" is to claim for the marginal alone.
        recipe: Networks, losses and loop.
        seed: Of everything but privacy noise and draws.
    """

    name: ClassVar[str] = "ppem"
    rehearsed: ClassVar[str] = "recipe.iterations"
    whole_windows: ClassVar[bool] = True
    sensitive: str | tuple[str, ...] = ()
    mode: modes.Mode = "both"
    target: Target = targets.DIFFERENT
    effect: float | None = None
    metric: effects.Metric = "mmd"
    attempts: int = 1
    conditional: Literal["energies", "spectral"] = "energies"
    scale: Literal["bought", "bounds"] = "bought"
    claimed_epsilon: float = 1.0
    recipe: Recipe = field(default_factory=Recipe)
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.recipe, dict):  # options of a release that was loaded
            object.__setattr__(self, "recipe", Recipe(**self.recipe))
        object.__setattr__(self, "sensitive", self.sets)
        modes.check(self.mode, self.target, self.effect)
        if self.conditional == "spectral" and self.mode != "both":
            raise InputError(f"conditional: 'spectral' goes with the mode 'both', got '{self.mode}'.")
        require_one_of(self, metric=effects.LARGEST, scale=("bought", "bounds"), conditional=CONDITIONALS)
        if self.effect is not None and not 0 < self.effect < effects.LARGEST[self.metric]:
            raise InputError(
                f"effect: above 0 and below {effects.LARGEST[self.metric]:.3g}, the largest {self.metric} there is, is "
                f"expected, got {self.effect:g}."
            )
        repeatable = self.effect is not None and self.target == targets.DIFFERENT
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
        """Whether x′ is generated, not drawn from a stated target."""
        return self.target == targets.DIFFERENT

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """For series that are not cut."""
        return self._plan(schema, self._config(schema), guarantee)

    def planned(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """For a table that may be cut: facts, the sketch, the check, then every training that may be tried."""
        return self._plan(self.learned_schema(schema), self._config(schema), guarantee)

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Buys facts and sketch, trains until the check passes, and returns the generators.

        Privacy: unit and neighbours as the schema says; see `learning.Run`, and `docs/claims/ppem.md` for the proof.
        """
        return Run(self, private, grant, progress).arrays()

    def draw(self, arrays: dict[str, np.ndarray], schema: Schema, request: Draw) -> Panel:
        """Returns series with x′ by the released marginal."""
        return drawing.draw(self, arrays, schema, request)

    def obfuscation(self, schema: Schema, arrays: Mapping[str, np.ndarray]) -> tuple[str, ...]:
        """What was hidden, what was checked, and what that does not protect; the same text whatever the data."""
        return statements.sentences(self) if self.mode in modes.HIDING else ()

    def findings(self, schema: Schema, arrays: Mapping[str, np.ndarray]) -> tuple[str, ...]:
        """Returns what probes found in a release: moved copies of the secret, and x′ that the model never saw."""
        return statements.findings(self._attributes(schema), arrays)

    def outlook(self, schema: Schema, guarantee: Guarantee) -> tuple[str, ...]:
        """Says what noise does to gradients and to the sketch, and what a check can see."""
        if self.mode not in modes.PRIVATE:
            return (f"Not private: {modes.NOT_PRIVATE[self.mode]}.",)
        learned, plan = self.learned_schema(schema), self.planned(schema, guarantee)
        return statements.outlook(self, learned, self._attributes(learned), plan, self._held_out(schema))

    def gradient_noise(self, schema: Schema, guarantee: Guarantee) -> float | None:
        """That of the energies; none where x* comes from `spectral`."""
        if self.mode not in modes.PRIVATE or self.conditional == "spectral":
            return None
        learned, plan = self.learned_schema(schema), self.planned(schema, guarantee)
        return statements.gradient_noise(self, learned, self._attributes(learned), plan)

    def rehearsal(self, schema: Schema, guarantee: Guarantee) -> "Ppem":
        """Without an effect to reach; one attempt."""
        return replace(self, effect=None, attempts=1)

    def own_inputs(self) -> Mapping[str, str]:
        """The public table that x′ are drawn from."""
        table = isinstance(self.target, str) and self.target not in (targets.DIFFERENT, targets.UNIFORM)
        named = table and Path(str(self.target)).is_file()
        return {"ppem target": file_sha256(str(self.target))} if named else {}

    def _attributes(self, schema: Schema) -> tuple[Attribute, ...]:
        return tuple(attribute for group in parse(schema, self.sets) for attribute in group)

    def _plan(self, schema: Schema, config: DPSGDConfig, guarantee: Guarantee) -> SpendingPlan:
        attributes = self._attributes(schema)
        targets.check(self.target, schema, attributes)
        bought = purchases.shares(schema, attributes, marginals=self.scale == "bought")
        columns = sum(len(attribute.columns) for attribute in attributes)
        labels = {**bought, **sketch.shares(columns)}
        if self.mode not in modes.PRIVATE:
            return self._plan_without_privacy(config, guarantee, tuple(labels))
        if schema.population.size is not None and schema.population.size < _FEWEST_UNITS:
            raise InputError(
                f"population: at least {_FEWEST_UNITS} units are expected, because fewer can't be hidden in a crowd; "
                f"got {schema.population.size}."
            )
        checks = []
        if self.effect is not None:
            checks = [PlanEntry(CHECK, PureDP(_CHECK_SHARE * guarantee.epsilon))]
            self._check_reachable(schema, attributes, guarantee)
        if self.conditional == "spectral":
            left = Guarantee((1 - _CHECK_SHARE * len(checks)) * guarantee.epsilon, guarantee.delta)
            return SpendingPlan((*checks, *Spectral().plan(schema.without_context(), left).entries), guarantee)
        entries = [PlanEntry(label, Gaussian(m)) for label, m in noise_multipliers(guarantee, labels).items()] + checks
        all_tries = replace(config, iterations=config.iterations * self.attempts)
        noise = all_tries.calibrated(guarantee, others=[entry.event for entry in entries]).noise_multiplier
        event = replace(config, noise_multiplier=noise).plan().event
        tries = (PlanEntry(training_label(number), event) for number in range(self.attempts))
        return SpendingPlan((*entries, *tries), guarantee)

    def _plan_without_privacy(self, config: DPSGDConfig, guarantee: Guarantee, labels: tuple[str, ...]) -> SpendingPlan:
        reason = modes.NOT_PRIVATE[self.mode]
        if guarantee.epsilon < math.inf:
            raise InputError(
                f"mode: '{self.mode}' protects nobody ({reason}), so it needs a ledger and a guarantee with "
                "epsilon = inf. Use 'both' for private data."
            )
        entries = [PlanEntry(label, Gaussian(_UNNOISED)) for label in labels]
        entries += [PlanEntry(CHECK, PureDP(_SURE))] if self.effect is not None else []
        if self.mode == "marginal-dp":
            claimed = config.calibrated(Guarantee(self.claimed_epsilon, guarantee.delta)).plan().event
            tries = [PlanEntry(TRAINING, claimed), PlanEntry(CONDITIONAL, NonPrivate(reason))]
        else:
            tries = [PlanEntry(training_label(number), NonPrivate(reason)) for number in range(self.attempts)]
        return SpendingPlan((*entries, *tries), guarantee)

    def _check_reachable(self, schema: Schema, attributes: tuple[Attribute, ...], guarantee: Guarantee) -> None:
        """Refuses an effect that a check on so few units could not tell from nothing, before anything is spent."""
        units = self._held_out(schema)
        if units is None:
            return
        least = effects.needed(
            statements.any_effect(self, attributes),
            self.effect or 0.0,
            units,
            _CHECK_SHARE * guarantee.epsilon,
            self.attempts,
            RELEASED,
        )
        if least > effects.LARGEST[self.metric]:
            raise InputError(
                f"effect: a check on about {units:.0f} kept-out units at epsilon = {guarantee.epsilon:g} passes only "
                f"from {least:.3g} on, and there is no {self.metric} above {effects.LARGEST[self.metric]:.3g}. Ask for "
                "less, or bring more units or a larger epsilon."
            )

    def _held_out(self, schema: Schema) -> float | None:
        """Returns how many units (or windows, for events) a check expects; None if the population is not known yet."""
        size = schema.population.size
        return None if size is None else HELD_OUT * self.num_contributions(schema, size)

    def _config(self, schema: Schema) -> DPSGDConfig:
        """DP-SGD before its noise is known, for the schema of a table."""
        recipe, size = self.recipe, schema.population.size
        contributions = None if size is None else self.num_contributions(schema, size)
        rate = _RATE_OF_UNKNOWN if contributions is None else min(1.0, recipe.batch / contributions)
        return DPSGDConfig(
            sampling_rate=rate,
            iterations=recipe.iterations,
            expected_batch=recipe.batch,
            clip_norm=recipe.clip_norm,
            batches=self.draw_rule(schema, self.influence(schema)),
        )

    def draw_rule(self, schema: Schema, influence: int) -> UnitBatches | WindowBatches:
        """One series of each drawn unit; for events single windows, of which one event takes away `influence`."""
        return WindowBatches(influence) if schema.unit.kind == "event" else UnitBatches()
