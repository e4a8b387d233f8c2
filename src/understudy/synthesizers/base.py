"""What every method shares: a frozen configuration with one verb, `fit`, that returns a `Release`.

A method says what it will spend (`plan`, from public facts only), how it learns under a grant (`learn`) and how it
samples series from what it learned (`sample`). The order *check, plan, charge, look* is written once, in `fit`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from understudy.data import Panel, Population, Schema, windows
from understudy.data.table import Table
from understudy.data.type_checks import require_argument
from understudy.errors import BudgetExceeded, InputError
from understudy.privacy.budget import Guarantee, check_delta
from understudy.privacy.certificate import issue
from understudy.privacy.events import PureDP
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.release import PUBLIC_CONTEXT, Release, unused_directory
from understudy.synthesizers.sampling import SampleRequest
from understudy.workers import Workers, require_workers, trusted_workers

_COUNT = "population"  # label under which a population's count is bought
Progress = Callable[[str, float], None]  # (what is being done, share of the work done); public facts only


@dataclass(frozen=True, kw_only=True)
class Synthesizer(ABC):
    """A method and its model options. Options that change the guarantee are arguments of `fit`, not fields.

    Attributes:
        window_steps: Cut longer series into windows of this many steps; None takes series whole.
        window_stride: Steps from one window to the next; None puts them side by side.
    """

    name: ClassVar[str]
    continues: ClassVar[bool] = False  # whether series can be sampled longer than those that were learned from
    whole_windows: ClassVar[bool] = False  # whether windows of events that have an empty step are left out
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}}  # keyword arguments by the preset's name
    needs: ClassVar[str] = "nothing but a table"  # what a user has to bring, in words
    rehearsed: ClassVar[str] = ""  # the option that counts a run's updates, such as "recipe.iterations"
    window_steps: int | None = None
    window_stride: int | None = None

    @classmethod
    def from_preset(cls, preset: str = "default", **options: Any) -> Self:
        """Returns the method with the options of a preset ("paper": as published), some of them replaced."""
        if preset not in cls.presets:
            unpublished = " No paper describes it." if preset == "paper" else ""
            raise InputError(
                f"preset: one of {', '.join(cls.presets)} is expected for '{cls.name}', got '{preset}'.{unpublished}"
            )
        return cls(**{**cls.presets[preset], **options})

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """Returns every option by name, as scikit-learn's `clone` asks for them."""
        return {option.name: getattr(self, option.name) for option in fields(self) if option.init}

    def set_params(self, **options: Any) -> Self:
        """Returns the method with some options replaced; this one stays as it is."""
        for unknown in options.keys() - self.get_params():
            raise InputError(f"{self.name}: one of {', '.join(self.get_params())} is expected, got '{unknown}'.")
        return replace(self, **options)

    @abstractmethod
    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """Returns every event of a run, calibrated to `guarantee`, from public facts only."""

    def planned(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """Returns `plan` for the schema of a table, whose series are cut into windows before they are learned from."""
        return self.plan(self.learned_schema(schema), guarantee)

    @abstractmethod
    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Returns what is released, as arrays; looks at private data through `grant` only."""

    @abstractmethod
    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        """Returns synthetic series from what `learn` returned."""

    def check_context(self, schema: Schema, context: np.ndarray) -> None:
        """Refuses, before anything is charged, public context [step, context] that the method can't use."""
        return

    def needs_context(self, schema: Schema) -> bool:
        """Says whether series can be drawn only for a context that the caller brings."""
        return False

    def outlook(self, schema: Schema, guarantee: Guarantee) -> tuple[str, ...]:
        """Returns what public facts foretell about a run, a sentence each, for the person who plans it."""
        return ()

    def gradient_noise(self, schema: Schema, guarantee: Guarantee) -> float | None:
        """Returns the noise on a summed gradient over the largest possible sum; None without noisy gradients."""
        return None

    def findings(self, schema: Schema, arrays: Mapping[str, np.ndarray]) -> tuple[str, ...]:
        """Returns what the data holder should know of a release, a sentence each; made from the release alone."""
        return ()

    def rehearsal(self, schema: Schema, guarantee: Guarantee) -> "Synthesizer":
        """Returns the method to time on a few invented series: with the sizes of this run, and no check they'd fail."""
        return self

    def own_inputs(self) -> Mapping[str, str]:
        """Returns sha256 of public files that the method itself brings (trained modules), by name."""
        return {}

    def trust(self, schema: Schema, plan: SpendingPlan) -> tuple[str, ...]:
        """Returns who has to be trusted, and what is not protected, a sentence each; the certificate prints them."""
        parties = {column.party for column in (*schema.channels, *schema.static) if column.party is not None}
        if len(parties) < 2:
            return ()
        return (
            f"Columns of {len(parties)} organisations were brought together in one place, which saw all of them and "
            "added the noise: an aggregator that each of them trusts. Not protected against that aggregator.",
        )

    def obfuscation(self) -> tuple[str, ...]:
        """Returns what the certificate says about a distribution to be hidden, a sentence each; no part of epsilon."""
        return ()

    def spending_plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """Returns the whole run's plan: the method's own, after the population's count if that has to be bought."""
        price = schema.population.count_epsilon
        if price is None:
            return self.planned(schema, guarantee)
        if price >= guarantee.epsilon:
            raise InputError(
                f"population.count_epsilon = {price:g} leaves nothing of epsilon = {guarantee.epsilon:g}. "
                "Ask for a larger epsilon, or declare the population."
            )
        own = self.planned(schema, Guarantee(guarantee.epsilon - price, guarantee.delta))
        return SpendingPlan((PlanEntry(_COUNT, PureDP(price)), *own.entries), guarantee)

    def fit(
        self,
        panel: Panel | Table,
        ledger: Ledger,
        *,
        workers: Workers = 1,
        guarantee: Guarantee | None = None,
        noise: NoiseSource | None = None,
        progress: Progress | None = None,
        public_inputs: Mapping[str, str] | None = None,
        overrides: Mapping[str, str] | None = None,
        save_to: str | Path | None = None,
    ) -> Release:
        """Charges the ledger, learns, and returns what may leave the building.

        Args:
            panel: The series, in memory or opened with `open_table`.
            workers: Processes that add up partitions, or a `Cluster`.
            save_to: Directory to save the release to; one that exists is refused before the charge.
            guarantee: What this run may cost; None takes all that is left.
            noise: Secure unless told otherwise; seeded noise marks the certificate *not private*.
            public_inputs: sha256 of public files used, by name, for the certificate.
            overrides: Rules a person lifted by name, with the reason, for the certificate.

        Privacy: the whole run is charged before any statistic is computed; a crash gives nothing back.
        """
        remedy = "Use us.synthesize(df, schema, epsilon=1, ledger=…), or read the table first: read_panel(df, schema)."
        require_argument(panel, Panel | Table, "fit: panel", remedy)
        if not hasattr(ledger, "charge"):  # an audit hands over a ledger that listens
            require_argument(ledger, Ledger, "fit: ledger", "Open it first: Ledger.open_for(schema).")
        require_argument(guarantee, Guarantee | None, "fit: guarantee", "Write guarantee=Guarantee(1.0, 1e-6).")
        require_argument(noise, NoiseSource | None, "fit: noise", "Leave it out.")
        require_workers(workers)
        schema = panel.schema
        schema.require_declared()
        directory = None if save_to is None else unused_directory(save_to)
        self._check(schema, ledger)
        if schema.context and panel.shared_context is not None:  # public; nothing private is looked at
            self.check_context(schema, np.array(panel.shared_context))
        guarantee = guarantee or _all_that_is_left(ledger, self.name)
        check_delta(guarantee.delta, schema.protected_units, reproduction=ledger.reproduction)
        plan = self.spending_plan(schema, guarantee)
        grant = ledger.charge(plan, label=self.name, noise=noise or NoiseSource.secure())
        table = Table.of(panel) if isinstance(panel, Panel) else panel
        population = _population(PrivateSeries(table, schema, 1, 1, workers=workers), grant, ledger)
        private = self.private_series(table, population.size or 1, workers)
        learned = self.learn(private, grant, progress or (lambda stage, share: None))
        arrays = {**learned, PUBLIC_CONTEXT: shared_context(private)}
        released = replace(private.schema, population=population)
        certificate = issue(
            grant,
            replace(schema, population=population),
            method=self.name,
            public_inputs={**self.own_inputs(), **(public_inputs or {})},
            overrides=overrides,
            trust=(*self.trust(schema, grant.plan), *trusted_workers(workers)),
            marginal_obfuscation=self.obfuscation(),
        )
        release = Release(synthesizer=self, schema=released, arrays=arrays, certificate=certificate)
        return release if directory is None else release.save(directory)

    def learned_schema(self, schema: Schema) -> Schema:
        """Returns the contract of what is learned from: the schema, or that of its windows."""
        steps, stride = self._window(schema)
        return schema if steps == schema.num_steps else windows.window_schema(schema, steps, stride)

    def influence(self, schema: Schema) -> int:
        """Returns by how many series' worth one unit can move a sum of one bounded vector per series."""
        if schema.unit.kind != "event":
            return 1
        touched = windows.stability(schema, *self._window(schema))
        # An event takes its windows away where those with an empty step are left out. Otherwise it changes them: from
        # one bounded vector to another, twice as far.
        return touched if self.whole_windows else 2 * touched

    def num_contributions(self, schema: Schema, population: int) -> int:
        """Returns the public number of series that are learned from: units, or for events all their windows."""
        steps, stride = self._window(schema)
        return population * ((schema.num_steps - steps) // stride + 1 if schema.unit.kind == "event" else 1)

    def _check(self, schema: Schema, ledger: Ledger) -> None:
        """Refuses, before anything is charged, what no charge could make right."""
        if ledger.path is not None:
            ledger.check_belongs_to(schema)
        self.check_windows(schema)
        if schema.unit.kind == "event":
            windows.check_events(schema, self._window(schema)[0], whole_windows=self.whole_windows)

    def check_windows(self, schema: Schema) -> None:
        """Refuses windows that do not fit into the series."""
        for option, most in (("window_steps", schema.num_steps), ("window_stride", self.window_steps or 0)):
            given = getattr(self, option)
            require_argument(given, int | None, option, "Write a number of steps.")
            if given is not None and not 1 <= given <= most:
                longest = "time.steps" if option == "window_steps" else "window_steps"
                raise InputError(f"{option}: 1 to {longest} = {most} expected, got {given}.")

    def _window(self, schema: Schema) -> tuple[int, int]:
        """Returns the steps of a window and the steps from one to the next."""
        steps = schema.num_steps if self.window_steps is None else self.window_steps
        return steps, steps if self.window_stride is None else self.window_stride

    def private_series(self, panel: Panel | Table, population: int, workers: Workers = 1) -> PrivateSeries:
        """Returns the series as the method sees them: cut into windows, and without those that are empty."""
        table = Table.of(panel) if isinstance(panel, Panel) else panel
        schema, kind = table.schema, table.schema.unit.kind
        number, steps = self.num_contributions(schema, population), self._window(schema)[0]
        whole = PrivateSeries(table, schema, self.influence(schema), number, kind == "event", workers=workers)
        if steps == schema.num_steps and kind == "entity":
            return whole
        return whole.seen_as(self.learned_schema(schema), partial(_cut, *self._window(schema), self.whole_windows))


def _cut(steps: int, stride: int, whole_windows: bool, panel: Panel) -> Panel:
    """Returns the windows of a panel that are learned from."""
    kind = panel.schema.unit.kind
    cut = panel if steps == panel.num_steps else windows.cut(panel, steps, stride)
    if kind == "event":  # a unit that has no row without the event would leave all its windows
        cut = windows.without_empty(cut, every_step=whole_windows)
    if kind == "overlapping-window":  # the unit is a window, so no two share one
        cut = replace(cut, unit=np.arange(cut.num_series, dtype=np.int64), unit_ids=None)
    return cut


def _population(private: PrivateSeries, grant: Grant, ledger: Ledger) -> Population:
    """Returns the public number of units: as declared, or counted under the grant if its plan has paid for that."""
    schema = private.schema
    if all(entry.label != _COUNT for entry in grant.plan.entries):
        return schema.population
    counted = grant.count(_COUNT, private)
    population = Population(max(counted, 1))
    units = replace(schema, population=population).protected_units
    check_delta(grant.plan.guarantee.delta, units, reproduction=ledger.reproduction)
    return population


def shared_context(private: PrivateSeries) -> np.ndarray:
    """Returns the public context [step, context] to release; empty if there is none or each series has its own."""
    return np.zeros((0, 0), dtype=np.float32) if private.shared_context is None else np.array(private.shared_context)


def _all_that_is_left(ledger: Ledger, label: str) -> Guarantee:
    left = ledger.remaining()
    if left.epsilon <= 0:
        raise BudgetExceeded(
            f"Nothing is left in the ledger of '{ledger.name}'. Use a release already made.",
            requested=None,
            remaining=0.0,
            label=label,
        )
    return Guarantee(left.epsilon, left.delta)
