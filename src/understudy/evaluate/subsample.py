"""Smaller panels for an evaluation that has little time: fewer channels, shorter series, fewer units, all stated."""

from dataclasses import dataclass, replace

import numpy as np

from understudy.data import Panel, windows
from understudy.data.timegrid import season_steps
from understudy.evaluate.metric import Effort
from understudy.evaluate.panels import MIN_SERIES, Panels

_MIN_SERIES = 100
_MAX_CHANNELS = 64


@dataclass(frozen=True, kw_only=True)
class _Cut:
    """What is kept of each panel; None keeps all."""

    channels: np.ndarray | None
    steps: int | None
    windows_per_unit: int | None
    max_units: int


def prepare(real: Panel, synthetic: Panel, holdout: Panel | None, effort: Effort, *, seed: int = 0) -> Panels:
    """Returns comparable panels of a size that suits the effort; their notes say what was left out.

    Privacy: internal, as the panels themselves.
    """
    same = real.num_steps == synthetic.num_steps and real.schema.num_channels == synthetic.schema.num_channels
    if effort.max_values is None or not same:
        return Panels.prepare(real, synthetic, holdout, max_series=effort.max_series, seed=seed)
    cut = _cut(real, effort, effort.max_values, seed)
    given = [_applied(panel, cut, seed) for panel in (real, synthetic, *(() if holdout is None else (holdout,)))]
    panels = Panels.prepare(
        given[0], given[1], given[2] if holdout is not None else None, max_series=cut.max_units, seed=seed
    )
    return replace(panels, notes=(*_notes(real, cut), *panels.notes))


def _cut(real: Panel, effort: Effort, max_values: int, seed: int) -> _Cut:
    number, steps, channels = real.schema.num_channels, None, None
    if number > _MAX_CHANNELS:
        channels = np.sort(np.random.default_rng(seed).choice(number, _MAX_CHANNELS, replace=False))
    if effort.max_steps is not None and real.num_steps > effort.max_steps:
        season = season_steps(real.schema.time, real.num_steps) or 1  # windows that begin at the same hour of the day
        steps = effort.max_steps // season * season or effort.max_steps
    values = (steps or real.num_steps) * min(number, _MAX_CHANNELS)
    num_series = max(_MIN_SERIES, max_values // values)
    per_unit = max(1, num_series // max(1, min(real.num_units, effort.max_series)))
    own = 1 if steps else max(1.0, real.num_series / max(1, real.num_units))
    max_units = min(effort.max_series, max(2 * MIN_SERIES, int(num_series / own)))
    return _Cut(channels=channels, steps=steps, windows_per_unit=per_unit if steps else None, max_units=max_units)


def _applied(panel: Panel, cut: _Cut, seed: int) -> Panel:
    if cut.channels is not None:
        kept = tuple(panel.schema.channels[place] for place in cut.channels)
        schema = replace(panel.schema, channels=kept, constraints=(), columns=())
        panel = replace(panel, schema=schema, values=panel.values[:, :, cut.channels])
    if cut.steps is None:
        return panel
    if panel.schema.time.variable_length:
        return _beginning(panel, cut.steps)
    rng = np.random.default_rng(seed)
    return windows.cut(panel, cut.steps, cut.steps, cut.windows_per_unit, rng).panel


def _beginning(panel: Panel, steps: int) -> Panel:
    """Returns the first steps of every series: of series of many lengths, windows would leave the short ones out."""
    time = panel.schema.time
    least = None if time.min_steps is None else min(time.min_steps, steps)
    return replace(
        panel,
        schema=replace(panel.schema, time=replace(time, steps=steps, min_steps=least), columns=()),
        values=panel.values[:, :steps],
        lengths=np.minimum(panel.lengths, np.int32(steps)),
        context=None if panel.context is None else panel.context[:, :steps],
        shared_context=None if panel.shared_context is None else panel.shared_context[:steps],
        ticks=None if panel.ticks is None else panel.ticks[:, :steps],
    )


def _notes(real: Panel, cut: _Cut) -> list[str]:
    notes = []
    if cut.channels is not None:
        notes.append(
            f"{_MAX_CHANNELS} of the {real.schema.num_channels} channels, drawn at random; constraints are not judged."
        )
    if cut.steps is not None and real.schema.time.variable_length:
        notes.append(f"The first {cut.steps} of {real.num_steps} steps.")
    elif cut.steps is not None:
        notes.append(
            f"Windows of {cut.steps} of the {real.num_steps} steps, at most {cut.windows_per_unit} of each unit, drawn "
            "at random: nothing longer than a window was judged."
        )
    return notes
