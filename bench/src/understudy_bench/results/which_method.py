"""Which method when: a rule from public facts, fitted to the record and judged on tables that it was not fitted to.

A rule says one method below a *signal* and one above. Signal is units times epsilon over the numbers in a series: what
every number of a mean curve can still be told apart from noise by.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Any

import numpy as np

from understudy.synthesizers.registry import METHODS
from understudy_bench.judging import ENOUGH_SEEDS

NEAR = 1.1  # of the best error, up to which a choice counts as good
_CONTROLS = ("independent",)  # never released as data
_RECORD = "record-"  # benchmarks of all methods on one table
_FOLLOWED, _JUDGED_AT = "pub2priv-", 1.0  # benchmarks of series with contexts of their own, where all methods meet
_VARIED = ("strategies", "correlation")  # facts of rows that differ within a benchmark: of these none is one table
_SHARED = "one week"  # homes of one context for all
_WORTH = 0.02  # mean logarithm of the error that a second method has to save
FIRST = "spectral"  # where nothing speaks for another
FOLLOWING = "pub2priv"  # where every series met a stretch of public context of its own


def signal_of(units: int, epsilon: float, steps: int, channels: int) -> float:
    """Returns units times epsilon over the numbers in a series: how well a mean curve stands out of the noise."""
    return units * epsilon / (steps * channels)


def no_worse(judged: Mapping[str, int]) -> bool:
    """Whether a choice was near the best at least as often as always taking the first."""
    return judged["rule"] >= judged["rival"]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One table at one epsilon.

    Attributes:
        ratios: Error trained on synthetic over error trained on real, by method.
    """

    table: str
    epsilon: float
    signal: float
    ratios: Mapping[str, float]

    @property
    def source(self) -> str:
        """The table without a number before it: few and many homes of one simulator are not different data."""
        return self.table.lstrip("0123456789 ")

    @property
    def best(self) -> str:
        """The method with the least error."""
        return min(self.ratios, key=lambda name: self.ratios[name])


@dataclass(frozen=True)
class Rule:
    """`below` where the signal is below `threshold`, else `above`."""

    threshold: float
    below: str
    above: str

    def method(self, signal: float) -> str:
        """Returns what to use."""
        return self.below if signal < self.threshold else self.above


@dataclass(frozen=True)
class Chosen:
    """A cell, and what a rule that had not seen its table says."""

    cell: Cell
    method: str

    @property
    def near(self) -> bool:
        """Whether the choice is near the best."""
        return self.cell.ratios[self.method] <= NEAR * self.cell.ratios[self.cell.best]

    @property
    def rival_near(self) -> bool:
        """Whether always taking the same method is."""
        return self.cell.ratios[FIRST] <= NEAR * self.cell.ratios[self.cell.best]


def cells_of(results: Mapping[str, Mapping[str, Any]]) -> list[Cell]:
    """Returns the cells of `record-…` results: one for every epsilon."""
    cells = []
    for result in (result for name, result in results.items() if name.startswith(_RECORD)):
        data = result["data"]
        found: dict[float, dict[str, float]] = {}
        for line in result["rows"]:
            named = line["method"] in METHODS and line["method"] not in _CONTROLS
            seen = int(line.get("seeds") or 0) >= ENOUGH_SEEDS  # one split is enough for a curve, not for a choice
            if named and seen and "ratio" in line["metrics"] and line["epsilon"]:
                found.setdefault(float(line["epsilon"]), {})[line["method"]] = float(line["metrics"]["ratio"])
        cells += [
            Cell(
                table=data["name"],
                epsilon=epsilon,
                signal=signal_of(data["units"], epsilon, data["steps"], data["channels"]),
                ratios=ratios,
            )
            for epsilon, ratios in sorted(found.items())
        ]
    return cells


def context_cells(results: Mapping[str, Mapping[str, Any]]) -> list[Cell]:
    """Returns tables whose series each have a context: errors of forecasters that learned from synthetic series."""
    cells = []
    for result in (result for name, result in results.items() if name.startswith(_FOLLOWED)):
        found: dict[str, dict[str, float]] = {}
        for line in [*result["rows"], *result["controls"]]:
            judged = "predictive" in line["metrics"] and line["epsilon"] == _JUDGED_AT
            if (
                judged
                and not any(fact in line for fact in _VARIED)
                and line["method"] in METHODS
                and line["method"] not in _CONTROLS
                and line.get("homes") != _SHARED
            ):
                figure = line["metrics"]["predictive"]
                found.setdefault(line["unit"], {})[line["method"]] = float(figure["mean"])
        cells += [
            Cell(table=f"{result['data']['name']}, {unit}", epsilon=_JUDGED_AT, signal=0.0, ratios=ratios)
            for unit, ratios in found.items()
            if {FIRST, FOLLOWING} <= set(ratios)
        ]
    return cells


def fit_rule(cells: Sequence[Cell]) -> Rule:
    """Returns the rule with the least mean logarithm of the error; one method alone unless a second is worth it.

    A second method has to be worth it on tables that threshold and methods were not fitted to, by a standard error
    between sources of tables: among many pairs of methods some divide the tables at hand well by chance.
    """
    saved = _unseen_losses(_alone, cells) - _unseen_losses(_divided, cells)
    surely = len(saved) > 1 and saved.mean() - saved.std(ddof=1) / np.sqrt(len(saved)) > _WORTH
    return _divided(cells) if surely else _alone(cells)


def _methods(cells: Sequence[Cell]) -> list[str]:
    return sorted(set.intersection(*(set(cell.ratios) for cell in cells)))


def _alone(cells: Sequence[Cell]) -> Rule:
    """Returns the best rule of one method."""
    return min((Rule(0.0, name, name) for name in _methods(cells)), key=lambda rule: _loss(rule, cells))


def _divided(cells: Sequence[Cell]) -> Rule:
    """Returns the best rule of two methods."""
    signals = sorted({cell.signal for cell in cells})
    thresholds = [float(np.sqrt(low * high)) for low, high in pairwise(signals)]
    pairs = permutations(_methods(cells), 2)
    rules = (Rule(threshold, *pair) for pair in pairs for threshold in thresholds)
    return min(rules, key=lambda rule: _loss(rule, cells), default=_alone(cells))


def _unseen_losses(fit: Callable[[Sequence[Cell]], Rule], cells: Sequence[Cell]) -> np.ndarray:
    """Returns for each source the loss of the rule that was fitted to all others; nothing where there is no other."""
    losses = []
    for source in sorted({cell.source for cell in cells}):
        own, others = ([cell for cell in cells if (cell.source == source) == same] for same in (True, False))
        if others:
            losses.append(_loss(fit(others), own))
    return np.array(losses)


def left_out(cells: Sequence[Cell]) -> list[Chosen]:
    """Returns what rules that were fitted without a table, and others of the same source, say about it."""
    sources = sorted({cell.source for cell in cells})
    chosen = []
    for source in sources if len(sources) > 1 else []:
        rule = fit_rule([cell for cell in cells if cell.source != source])
        chosen += [Chosen(cell, rule.method(cell.signal)) for cell in cells if cell.source == source]
    return [one for one in chosen if one.method in one.cell.ratios]


def contexts_left_out(cells: Sequence[Cell]) -> list[Chosen]:
    """Returns what is said of each table whose series have contexts, by what was near on other data."""
    chosen = []
    for cell in cells:
        others = [other for other in cells if _data(other) != _data(cell)]
        chosen.append(Chosen(cell, FOLLOWING if no_worse(counted(followed(others))) else FIRST))
    return chosen


def followed(cells: Sequence[Cell]) -> list[Chosen]:
    """Returns the method that follows contexts, on every table."""
    return [Chosen(cell, FOLLOWING) for cell in cells]


def _data(cell: Cell) -> str:
    """Returns the data of a cell; windows and entities of one table are the same data."""
    return cell.table.rpartition(", ")[0]


def _loss(rule: Rule, cells: Sequence[Cell]) -> float:
    """Mean logarithm of the error over the best, tables weighing the same."""
    tables = sorted({cell.table for cell in cells})
    means = [
        np.mean([np.log(c.ratios[rule.method(c.signal)] / c.ratios[c.best]) for c in cells if c.table == table])
        for table in tables
    ]
    return float(np.mean(means))


def shipped(cells: Sequence[Cell], contexts: Sequence[Cell]) -> dict[str, Any]:
    """Returns the rule of `understudy.synthesizers.auto`, what it was fitted to, and how good it was."""
    return {
        "rule": vars(fit_rule(cells)),
        "left_out": counted(left_out(cells)),
        "own_contexts": counted(followed(contexts)),
        "own_contexts_left_out": counted(contexts_left_out(contexts)),
        "cells": [_plain(cell) for cell in cells],
        "context_cells": [_plain(cell) for cell in contexts],
    }


def _plain(cell: Cell) -> dict[str, Any]:
    return {**vars(cell), "ratios": dict(sorted(cell.ratios.items()))}


def counted(judged: Sequence[Chosen]) -> dict[str, int]:
    """Returns in how many cells a choice and its rival are near the best."""
    return {
        "cells": len(judged),
        "rule": sum(one.near for one in judged),
        "rival": sum(one.rival_near for one in judged),
    }
