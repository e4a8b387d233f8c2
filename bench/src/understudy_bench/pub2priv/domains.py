"""`pub2priv-electricity`, `pub2priv-trade` and `pub2priv-trade-simulated` (Pub2Priv, Table 1, Fig. 3 to 5)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from understudy.data import Panel
from understudy.data.io.read import check_units
from understudy.errors import UnderstudyError
from understudy_bench.cells import Cells
from understudy_bench.data.datasets import DatasetInfo
from understudy_bench.data.electricity import (
    STATION,
    Clients,
    electricity_panel,
    load_clients,
    public_context,
    with_weather,
)
from understudy_bench.data.trade import COUNTRIES, Trade, load_trade, simulate_trade, trade_panel
from understudy_bench.pub2priv.experiment import SCALES, Experiment, Scale
from understudy_bench.pub2priv.tables import TABLE, facts, measure
from understudy_bench.result import Progress, Row, result

_TEN = len(COUNTRIES)


def electricity(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Electricity of real clients over a year with the season and stand-in weather; clients, then windows, as units."""
    work = SCALES[scale]
    clients, info = load_clients(data_root)
    clients = with_weather(clients, data_root)
    rows: list[Row] = []
    controls: list[Row] = []
    more: dict[str, Any] = {}
    for unit in ("entity", "overlapping-window"):
        experiment = electricity_experiment(clients, unit, work)
        found = measure(experiment, work, f"{scale} electricity {unit}", cells, progress)
        rows, controls, more = rows + found[0], controls + found[1], more or found[2]
    data = facts(info, "electricity", electricity_panel(clients)) | {"weather": f"{STATION}, half a year later"}
    return result("pub2priv-electricity", scale, data, rows, controls) | more


def trade(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Monthly imports of ten countries with the semiconductor index, windows as units as in the paper."""
    return _trade("pub2priv-trade", *load_trade(data_root), scale, progress, cells)


def trade_simulated(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """The same on a simulated stand-in of the imports and of the index."""
    return _trade("pub2priv-trade-simulated", simulate_trade(3 * _TEN), None, scale, progress, cells)


def electricity_experiment(clients: Clients, unit: str, work: Scale) -> Experiment:
    """Returns 60 % of clients to learn from; the others are two groups with windows over the same steps."""
    order = np.random.default_rng(3).permutation(len(clients.consumption))
    fifth = len(order) // 5
    groups = (order[2 * fifth :], order[:fifth], order[fifth : 2 * fifth])
    panels = [electricity_panel(replace(clients, consumption=clients.consumption[rows]), unit) for rows in groups]
    size = min(panels[1].num_series, panels[2].num_series, work.sampled)
    real, second = (panel.take_units(np.arange(int(panel.unit[size - 1]) + 1)) for panel in panels[1:])
    weather = sliding_window_view(public_context(clients), real.num_steps, axis=0).swapaxes(1, 2)
    return Experiment(
        private=panels[0], real=real, second=second, judge=work.judge, market=weather, paper=TABLE["electricity"]
    )


def trade_experiment(known: Trade, work: Scale) -> Experiment:
    """Returns ten importers' windows, and windows of others over the same months.

    Of real countries there are ten only: as in the paper they are judged on themselves, and the second real series are
    those of the next country over the same months.
    """
    private = trade_panel(_some(known, np.arange(_TEN)))
    others = (np.arange(_TEN, 2 * _TEN), np.arange(2 * _TEN, 3 * _TEN))
    if not known.stand_in:
        others = (np.arange(_TEN), np.roll(np.arange(_TEN), 1))
    real, second = (trade_panel(_some(known, rows), seed=8) for rows in others)
    windows = sliding_window_view(known.index, private.num_steps)
    relative = (windows / windows[:, :1])[:, :, None]
    return Experiment(
        private=private, real=real, second=second, judge=work.judge, market=relative, paper=TABLE["trade"]
    )


def _trade(
    name: str, known: Trade, info: DatasetInfo | None, scale: str, progress: Progress, cells: Cells
) -> dict[str, Any]:
    work = SCALES[scale]
    experiment = trade_experiment(known, work)
    rows, controls, more = measure(experiment, work, f"{scale} trade", cells, progress)
    data = facts(info, "trade", experiment.private)
    refusal = {"entity_level": refused(trade_panel(_some(known, np.arange(_TEN)), "entity"))}
    return result(name, scale, data | refusal, rows, controls) | more


def _some(known: Trade, rows: np.ndarray) -> Trade:
    return replace(known, imports=known.imports[rows])


def refused(panel: Panel) -> str:
    """Returns what a user is told who wants to protect so few."""
    try:
        check_units(panel.num_units, panel.num_series, panel.schema, allow_few_units=False)
    except UnderstudyError as problem:
        return str(problem)
    return ""
