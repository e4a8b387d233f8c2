"""`metrics-catch`: which metric catches which fake, and that real series pass for real.

Fakes are made of real series that nothing else uses, so that only what was done to them differs: reversed in time,
shuffled in time, collapsed to a few modes. The last fake is the training set itself.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from understudy.data import Panel, concatenate, simulate_households
from understudy.evaluation.metric import QUICK, metrics_of
from understudy.evaluation.panels import Panels
from understudy.evaluation.scorecard import Scorecard, scorecard_of
from understudy_bench.cells import Cells
from understudy_bench.result import Progress, Row, Stopwatch, result, row

_UNTRAINED = ("general", "ppem", "conditional", "adaln")  # suites that train no network
_SCALES = {"quick": (300, _UNTRAINED), "target": (300, ()), "full": (2_000, ())}
_MODES = 5


def caught(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Simulated homes: the metrics that see each fake, and none that sees other real homes."""
    size, suites = _SCALES[scale]
    homes = simulate_households(6 * size)
    real, holdout, fresh = (
        homes.take_units(np.arange(first * size, last * size)) for first, last in ((0, 2), (2, 4), (4, 6))
    )
    rows = []
    for place, (name, make) in enumerate(FAKES.items()):
        fake = real if name == "training set copied" else make(fresh, np.random.default_rng(place))
        rows.append(cells(f"{scale} {name}", partial(_judge, name, real, fake, holdout, suites)))
        progress(name, (place + 1) / (len(FAKES) + 1))
    control = cells(f"{scale} other real homes", partial(_judge, "other real homes", real, fresh, holdout, suites))
    data = {"name": "households", "sha256": None, "stand_in": False, "simulated": True}
    return result("metrics-catch", scale, data, rows, [control])


def _judge(name: str, real: Panel, fake: Panel, holdout: Panel, suites: tuple[str, ...]) -> Row:
    """Returns how many metrics say that a fake is not like real series, and which."""
    watch = Stopwatch()
    card = scorecard_of(Panels.prepare(real, fake, holdout, max_series=QUICK.max_series), metrics_of(suites), QUICK)
    beyond = beyond_real(card)
    judged = [score for score in card.scores if score.like_real is not None]
    return row(name, {"metrics": len(judged), "beyond": len(beyond)}, seconds=watch.seconds, caught_by=beyond)


def beyond_real(card: Scorecard) -> list[str]:
    """Returns the metrics by which the candidate is not like other real series, the clearest first."""
    found = [score for score in card.scores if score.like_real is False]
    return [score.name for score in sorted(found, key=lambda score: -abs(score.position or 0.0))]


def reversed_in_time(panel: Panel, rng: np.random.Generator) -> Panel:
    """Returns the series backwards, gaps and lengths kept in place."""
    values = np.array(panel.values)
    for series, length in enumerate(panel.lengths):
        values[series, :length] = values[series, :length][::-1]
    return panel.with_values(values)


def shuffled_in_time(panel: Panel, rng: np.random.Generator) -> Panel:
    """Returns the series with their steps in random order, channels kept together."""
    values = np.array(panel.values)
    for series, length in enumerate(panel.lengths):
        values[series, :length] = values[series, rng.permutation(length)]
    return panel.with_values(values)


def mode_collapsed(panel: Panel, rng: np.random.Generator) -> Panel:
    """Returns as many series, all of them repetitions of a few."""
    kept = panel.take_units(rng.choice(panel.num_units, _MODES, replace=False))
    copies = concatenate([kept] * (-(-panel.num_units // _MODES)))
    return copies.take_units(np.arange(panel.num_units))


FAKES: dict[str, Callable[[Panel, np.random.Generator], Panel]] = {
    "reversed in time": reversed_in_time,
    "shuffled in time": shuffled_in_time,
    "collapsed to five modes": mode_collapsed,
    "training set copied": lambda panel, rng: panel,
}
