"""One run over private series: what is bought, what is trained on what, and what is asked of kept-out units."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from understudy.data.table import Table
from understudy.errors import ReleaseError
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.base import Progress
from understudy.synthesizers.frame.encoding import Encoding, linear_scales
from understudy.synthesizers.frame.facts import Facts, classes_of
from understudy.synthesizers.ppem import donors, drawing, effects, modes, purchases, sketch, statements, targets
from understudy.synthesizers.ppem.attributes import Partition, parse
from understudy.synthesizers.ppem.contest import Contest, Energies, Generators, made
from understudy.synthesizers.ppem.training import train_plainly, train_privately
from understudy.synthesizers.spectral.learning import Learning
from understudy.training import UnitWindows
from understudy.training.plan import TRAINING, charged_config

if TYPE_CHECKING:
    from understudy.synthesizers.ppem.method import Ppem

CHECK, CONDITIONAL = "check", "conditional"  # labels of charges
HELD_OUT = 0.2  # share of units that are kept out for a check
RELEASED = 8192  # x′ that a check compares kept-out units with
_POINTS = 4096  # of the sketch
_AIM = 1.15  # a generator aims a little farther than the check asks for


def training_label(number: int) -> str:
    """Returns the label of one of several trainings."""
    return TRAINING if number == 0 else f"{TRAINING} {number + 1}"


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Series as networks see them. Private; each row is its own series'.

    Attributes:
        values: Sensitive columns in the user's units.
        sensitive, rest: x′ and x*.
    """

    values: np.ndarray
    sensitive: np.ndarray
    rest: np.ndarray

    @classmethod
    def of(cls, private: PrivateSeries, partition: Partition) -> "Rows":
        panel, classes = private.panel, classes_of(private.panel)
        series = partition.encoding.series(panel, slice(None))
        static = partition.encoding.static(panel, slice(None))
        values = partition.sensitive_values(panel, series, classes)
        return cls(values, partition.encoded(values), partition.rest(series, static, classes))


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """One call of `Ppem.learn`.

    Privacy: kept-out units are chosen by a coin each, and are looked at by the check only; all others by `purchases`,
    `sketch` and `train` only, or by `spectral` alone where donors come from it. Each is charged to every unit.
    """

    method: "Ppem"
    private: PrivateSeries
    grant: Grant
    progress: Progress

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns what is released."""
        method, checked = self.method, self.method.effect is not None
        learned, kept_out = _split(self.private, HELD_OUT) if checked else (self.private, None)
        if method.conditional == "spectral":
            return self._from_donors(learned, kept_out)
        schema = learned.panel.schema
        sets = parse(schema, method.sets)
        attributes = tuple(attribute for group in sets for attribute in group)
        masked = purchases.masked(learned, attributes)
        learning = Learning(masked, self.grant, 0, lambda stage, share: None)
        bought = purchases.buy(learning, purchases.free_places(schema, attributes))
        partition = Partition(purchases.encoding_of(schema.without_context(), bought, attributes), attributes)
        rows = Rows.of(learned, partition)
        bounded = sketch.buy(rows.values, partition.columns, learned, self.grant)
        points = bounded.draw(_POINTS, np.random.default_rng(method.seed))
        self.progress("sketch", 0.1)
        judged = effects.effects_of(method.metric, sets, partition.encoded(points), method.seed)
        trial = _Trial(self, learned, partition, rows, points, judged)
        generators, values = self._accepted(trial, kept_out)
        return self._released(trial, bought, generators, values)

    def _from_donors(self, learned: PrivateSeries, kept_out: PrivateSeries | None) -> dict[str, np.ndarray]:
        """Returns series whose x* given x′ is that of `spectral`; past its releases nothing private is looked at."""
        method = self.method
        schema = learned.panel.schema.without_context()
        sets = parse(schema, method.sets)
        attributes = tuple(attribute for group in sets for attribute in group)
        pools = donors.bought_pools(learned, self.grant, attributes, method.seed, self.progress)
        partition = Partition(Encoding.of(schema, (), linear_scales(schema, None)), attributes)
        apart = [(pool.panel, Rows.of(pool, partition)) for pool in pools]
        rows = apart[0][1]
        points = partition.decoded(rows.sensitive)
        judged = effects.effects_of(method.metric, sets, rows.sensitive, method.seed)
        _, values = self._accepted(_Trial(self, pools[0], partition, rows, points, judged), kept_out)
        said = statements.figures(method, partition, values, points)
        return {**donors.series_for(values, apart, partition), statements.FIGURES: said}

    def _accepted(self, trial: "_Trial", kept_out: PrivateSeries | None) -> tuple[Generators, np.ndarray]:
        """Trains until the check passes; nothing of the other attempts leaves."""
        method = self.method
        asked = None
        if kept_out is not None and method.effect is not None:
            asked = self.grant.above_threshold(CHECK, method.attempts, effects.MISTAKE / 2)
            held = Rows.of(kept_out, trial.partition).sensitive
        for number in range(method.attempts):
            generators = trial.trained(number)
            given = targets.given_values(method.target, trial.partition)
            rng = np.random.default_rng([method.seed, number])
            values = drawing.marginal(method, trial.partition, generators, given, RELEASED, rng)
            if asked is None or kept_out is None or method.effect is None:
                return generators, values
            released = trial.partition.encoded(values)
            if asked(*effects.figure(trial.effects, method.effect, released, held, kept_out)):
                return generators, values
        tries = "1 attempt" if method.attempts == 1 else f"{method.attempts} attempts"
        instead = "state a target" if method.has_generator else "state another target"
        raise ReleaseError(
            f"effect: no marginal at least {method.effect:g} away ({method.metric}) was found in {tries}, so nothing "
            f"is released; what was charged stays charged. Ask for a smaller effect, {instead}, or bring a larger "
            "epsilon: `understudy plan` says from which effect on a check passes."
        )

    def _released(
        self, trial: "_Trial", bought: Facts, generators: Generators, values: np.ndarray
    ) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(self.method.seed)
        nodes = drawing.measured_nodes(trial.partition, generators, trial.points, rng)
        given = targets.given_values(self.method.target, trial.partition)
        said = statements.figures(self.method, trial.partition, values, trial.points)
        return {**drawing.arrays_of(bought, nodes, given, generators), statements.FIGURES: said}


@dataclass(frozen=True, eq=False, repr=False)
class _Trial:
    """What every attempt starts from."""

    run: Run
    private: PrivateSeries
    partition: Partition
    rows: Rows
    points: np.ndarray
    effects: tuple[effects.Effect, ...]

    def trained(self, number: int) -> Generators:
        """Returns the generators of one attempt."""
        method, label = self.run.method, training_label(number)
        seed = method.seed + 1000 * number
        donated = method.conditional == "spectral"
        generators = made(self.partition, method.recipe, seed, marginal=method.has_generator, conditional=not donated)
        if donated:  # rows are of the pool
            if method.has_generator:
                train_plainly(self._contest(generators, seed, conditional=False), self._arrays, self._told(0.1, 1.0))
        elif method.mode == "marginal-dp":
            self._privately(self._contest(generators, seed, conditional=False), label, 0.1, 0.5)
            self._plainly(self._contest(generators, seed, marginal=False), CONDITIONAL, 0.5, 1.0)
        elif method.mode in modes.PRIVATE:
            self._privately(self._contest(generators, seed), label, 0.1, 1.0)
        else:
            self._plainly(self._contest(generators, seed), label, 0.1, 1.0)
        return generators

    def _contest(
        self, generators: Generators, seed: int, *, marginal: bool = True, conditional: bool = True
    ) -> Contest:
        method = self.run.method
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed + 1)
            wanted = marginal and method.has_generator
            energies = Energies(self.partition, method.recipe, marginal=wanted, conditional=conditional)
        raw = method.mode == "lmdp" or not marginal
        references = self.rows.sensitive if raw and len(self.rows.sensitive) else self.partition.encoded(self.points)
        return Contest(
            energies=energies,
            generators=generators,
            references=torch.from_numpy(np.array(references)),
            codes=tuple(code for effect in self.effects for code in effect.codes),
            recipe=method.recipe,
            seed=seed,
            penalised=method.mode in modes.HIDING,
            apart=self._apart(),
        )

    def _apart(self) -> Callable[[Tensor, Tensor], Tensor] | None:
        """Returns what a marginal generator lacks of the effect from which the check passes; public."""
        method = self.run.method
        if method.effect is None or not method.has_generator:
            return None
        units, epsilon = HELD_OUT * self.run.private.population, statements.check_epsilon(self.run.grant)
        aims = [
            _AIM * effects.needed(effect, method.effect, units, epsilon, method.attempts, RELEASED)
            for effect in self.effects
        ]

        def lacking(drawn: Tensor, references: Tensor) -> Tensor:
            parts = [
                (aim - effect.smooth(drawn, references)).clamp_min(0)
                for aim, effect in zip(aims, self.effects, strict=True)
            ]
            return torch.stack(parts).sum()

        return lacking

    def _privately(self, contest: Contest, label: str, begin: float, end: float) -> None:
        private, method = self.private, self.run.method
        rule = method.draw_rule(private.panel.schema, private.influence)
        event = self.run.grant.plan.event(label)
        plan = charged_config(event, private.population, method.recipe.clip_norm, rule).plan()
        unit = None if private.panel.schema.unit.kind == "event" else private.panel.unit
        windows = UnitWindows(self._arrays, unit, rule, np.random.default_rng())
        train_privately(contest, windows, plan, self.run.grant, label, self._told(begin, end))

    def _plainly(self, contest: Contest, label: str, begin: float, end: float) -> None:
        self.run.grant.without_privacy(label)
        train_plainly(contest, self._arrays, self._told(begin, end))

    @property
    def _arrays(self) -> dict[str, np.ndarray]:
        return {"sensitive": self.rows.sensitive, "rest": self.rows.rest}

    def _told(self, begin: float, end: float) -> Callable[[float], None]:
        return lambda share: self.run.progress("training", begin + (end - begin) * share)


def _split(private: PrivateSeries, share: float) -> tuple[PrivateSeries, PrivateSeries]:
    """Returns (series to learn from, series to check on): every unit is kept out on a coin of its own."""
    learned, kept_out = (
        replace(private, table=Table.of(panel), view=None, population=max(1, round(size * private.population)))
        for panel, size in zip(private.panel.split(share, np.random.default_rng()), (1 - share, share), strict=True)
    )
    return learned, kept_out
