"""How the PETS benchmarks measure one experiment: methods at several epsilons, controls, and what may be said."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np

from understudy.data import Schema
from understudy.privacy.border import Statistic
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import DiscreteGaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.columns import num_labels
from understudy.synthesizers.pets import PETS
from understudy.synthesizers.pets.method import Setup
from understudy.synthesizers.pets.published import Vote
from understudy.synthesizers.pets.selection import VOTES
from understudy.synthesizers.registry import METHODS
from understudy_bench.cells import Cells
from understudy_bench.pets.experiment import EPSILONS, SEEDS, Experiment
from understudy_bench.result import Progress, Row

IMPROVES = "private votes improve the result"
BOUGHT = "private data improve the result, by what was bought beside the votes and not by the votes"
CHANCE = "no more than chance"
UNJUDGED = "not judged: one seed"
_RIVALS = ("spectral", "gs-wgan")
CENTRAL = 1.0  # the epsilon that is measured first, with every seed
_SHOWN, _DRAWN = 4, 2  # series of each side in the picture, and contenders that are a side


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A method and the epsilons at which it is measured."""

    name: str
    method: PETS
    epsilons: tuple[float, ...] = EPSILONS


@dataclass(frozen=True, kw_only=True, eq=False)
class Contest:
    """One experiment's contenders.

    Attributes:
        key: Names the experiment among finished parts.
        paper: The paper's figures by epsilon.
        rivals: Its figures of what it compares with, by method and epsilon.
        all_seeds: Every epsilon with three seeds and controls; else the central one, and seeds at least and largest.
    """

    experiment: Experiment
    contenders: Sequence[Contender]
    key: str
    paper: Mapping[float, dict[str, float]] = field(default_factory=dict)
    rivals: Mapping[tuple[str, float], dict[str, float]] = field(default_factory=dict)
    all_seeds: bool = False

    def run(self, cells: Cells, progress: Progress) -> tuple[list[Row], list[Row]]:
        """Returns (rows with verdicts, controls); what matters most is measured first."""
        controls, turns = self._without_learning(cells), self._turns()
        found: dict[tuple[int, float], Row] = {}
        for done, (place, epsilon) in enumerate(turns):
            one = self.contenders[place]
            line, beside = self._measured(one, epsilon, cells)
            found[place, epsilon] = {**line, "paper": self.paper.get(epsilon, {}), "verdict": verdict(line, beside)}
            controls += beside
            progress(f"{one.name}, epsilon {epsilon:g}", (done + 1) / (len(turns) + 1))
        for name in _RIVALS:
            for epsilon in EPSILONS:
                printed = self.rivals.get((name, epsilon), {})
                seeds = SEEDS if printed else 1  # what the paper compares with counts as much as what it proposes
                measured = partial(self.experiment.row, name, METHODS[name](), epsilon, seeds)
                controls.append({**cells(f"{self.key} {name} {epsilon} {seeds}", measured), "paper": printed})
        return [line for _, line in sorted(found.items())], controls

    def _turns(self) -> list[tuple[int, float]]:
        """Returns (contender, epsilon): the central epsilon first, contenders that are there for comparison last."""

        def late(turn: tuple[int, float]) -> tuple[bool, bool, float, int]:
            place, epsilon = turn
            return len(self.contenders[place].epsilons) == 1, epsilon != CENTRAL, epsilon, place

        turns = [(place, epsilon) for place, one in enumerate(self.contenders) for epsilon in one.epsilons]
        return sorted(turns, key=late)

    def samples(self, cells: Cells) -> dict[str, Any]:
        """Returns a few series of each side for a picture (PETS, Fig. 4)."""
        return cells(f"{self.key} samples", self._samples)

    def _samples(self) -> dict[str, Any]:
        rng, reference = np.random.default_rng(0), self.experiment.reference
        real = reference.take_units(np.sort(rng.permutation(reference.num_units)[:_SHOWN]))
        first = self.experiment.private.schema.channels[0].name
        sides = {"real": real.values[:, :, 0]}
        for one in self.contenders[:_DRAWN]:
            drawn = self.experiment.sampled_from(one.method, CENTRAL, seed=0, number=_SHOWN)
            sides[one.name] = drawn.values[:, :, 0]
        return {
            "channel": first,
            "epsilon": CENTRAL,
            "series": {side: [_numbers(one) for one in values[:_SHOWN]] for side, values in sides.items()},
        }

    def _without_learning(self, cells: Cells) -> list[Row]:
        experiment = self.experiment
        lines = [cells(f"{self.key} holdout", lambda: experiment.control("other real series", experiment.unseen))]
        if experiment.public is not None:
            number = min(experiment.sampled, experiment.public.num_units)
            passed = experiment.public.take_units(np.arange(number))
            lines.append(cells(f"{self.key} public", lambda: experiment.control("public passed through", passed)))
        return lines

    def _measured(self, one: Contender, epsilon: float, cells: Cells) -> tuple[Row, list[Row]]:
        """Returns a row and, at the central epsilon or where all seeds are asked for, its own controls.

        These are the method without private data and, where it buys facts beside the votes, without votes alone.
        """
        controlled = self.all_seeds or epsilon == CENTRAL
        seeds = SEEDS if controlled or epsilon in (min(one.epsilons), max(one.epsilons)) else 1
        methods = {one.name: one.method}
        if controlled:
            methods[f"no_private of {one.name}"] = without_private_data(one.method)
            if one.method.scale == "bought":
                methods[f"no votes in {one.name}"] = without_votes(one.method)
        lines = [
            cells(f"{self.key} {name} {epsilon}", partial(self.experiment.row, name, method, epsilon, seeds))
            for name, method in methods.items()
        ]
        return lines[0], lines[1:]


def without_private_data(method: PETS) -> PETS:
    """Returns the control that sees no private data at all: noise for votes, bounds for bought distributions."""
    control = without_votes(method)
    return replace(control, scale="bounds") if method.scale == "bought" else control


@dataclass(frozen=True, kw_only=True)
class WithoutVotes(PETS):
    """The control whose histograms, or whose mean embedding, are noise alone, of the size that PETS is charged for.

    Unless distributions are bought it reads no private data at all: classes are even, and there are no gaps.
    """

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Evolves without votes."""
        if self.scale == "bought" or self.class_shares is not None:
            return PETS.learn(self, private, grant, progress)
        number = num_labels(private.panel.schema)
        return replace(self, class_shares=(1 / number,) * number).learn(private, grant, progress)

    def _fact_entries(self, schema: Schema, guarantee: Guarantee) -> tuple[PlanEntry, ...]:
        return PETS._fact_entries(self, schema, guarantee) if self.scale == "bought" else ()

    def _mean(self, private: PrivateSeries, grant: Grant, statistic: Statistic) -> np.ndarray:
        noise, rng = grant.deviation(statistic.label, private.reach), np.random.default_rng(self.seed)
        return rng.normal(0.0, noise, statistic.shape)

    def _vote(self, private: PrivateSeries, grant: Grant, here: Setup) -> Vote:
        event = grant.plan.event(VOTES)
        assert isinstance(event, DiscreteGaussian)
        noise, rng = event.noise_multiplier * private.influence, np.random.default_rng(self.seed)
        return lambda embeddings, group: rng.normal(0.0, noise, len(group))


def without_votes(method: PETS) -> PETS:
    """Returns the control whose histograms are noise alone."""
    return WithoutVotes(**{option.name: getattr(method, option.name) for option in fields(method)})


def verdict(line: Row, controls: Sequence[Row]) -> str:
    """Returns what may be said of a row beside its own controls; without any, nothing.

    The first control saw no private data; the second, if there is one, bought the same facts and had no votes.
    """
    if not controls:
        return UNJUDGED
    beaten = [improves(line, control) for control in controls]
    return IMPROVES if all(beaten) else BOUGHT if beaten[0] else CHANCE


def improves(line: Row, control: Row) -> bool:
    """Whether every seed of a row is better than every one of the control, by more than the wider of the two ranges."""
    ours, theirs = line["metrics"]["c_fid"], control["metrics"]["c_fid"]
    widest = max(figures["high"] - figures["low"] for figures in (ours, theirs))
    return bool(ours["high"] < theirs["low"] and theirs["mean"] - ours["mean"] > widest)


def notes(rows: Sequence[Row]) -> list[str]:
    """Returns one line for every row that was judged, to be printed below the table."""
    judged = [line for line in rows if line["verdict"] != UNJUDGED]
    return [f"{line['method']}, {line['unit']}, epsilon {line['epsilon']:g}: {line['verdict']}." for line in judged]


def _numbers(series: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else round(float(value), 4) for value in series]
