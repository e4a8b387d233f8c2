"""`pub2priv-portfolio` and `pub2priv-strategies`: portfolios over real prices (Pub2Priv, Table 1, Fig. 3 to 6)."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from understudy_bench.cells import Cells
from understudy_bench.data.markets import load_market
from understudy_bench.data.portfolios import REVIEW_DAYS, Market, market_windows, simulate_portfolios
from understudy_bench.pub2priv.experiment import SCALES, Experiment, Scale
from understudy_bench.pub2priv.tables import FEW_RIVALS, TABLE, facts, measure
from understudy_bench.result import Progress, Row, result

PORTFOLIOS = 1_260
PERIODS = (1, 3, 5)  # review periods, each with both strategies


def portfolio(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Portfolios over real prices, 1,260 of 360 days and 4 stocks, each a unit of its own."""
    work = SCALES[scale]
    market, info = load_market(data_root)
    experiment = portfolio_experiment(market, work)
    rows, controls, more = measure(experiment, work, f"{scale} portfolio", cells, progress)
    return result("pub2priv-portfolio", scale, facts(info, "portfolio", experiment.private), rows, controls) | more


def strategies(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """The same days traded in 2, 6 and 10 different ways: how figures grow with what the context can't tell."""
    work = replace(SCALES[scale], repeated=(1.0,))
    market, info = load_market(data_root)
    rows: list[Row] = []
    controls: list[Row] = []
    more: dict[str, Any] = {}
    for place, periods in enumerate(PERIODS):
        experiment = replace(portfolio_experiment(market, work, REVIEW_DAYS[:periods]), paper=None)
        told = partial(_part, progress, place)
        key = f"{scale} {periods}"
        found = measure(experiment, work, key, cells, told, with_published=False, rivals=FEW_RIVALS)
        for kind, lines in zip((rows, controls), found[:2], strict=True):
            kind += [{**line, "strategies": 2 * periods} for line in lines]
        more = found[2]
    data = facts(info, "portfolio", portfolio_experiment(market, work).private)
    return result("pub2priv-strategies", scale, data, rows, controls) | more


def _part(progress: Progress, place: int, stage: str, share: float) -> None:
    """Tells how far all numbers of strategies are, from how far one is."""
    progress(f"{2 * PERIODS[place]} strategies: {stage}", (place + share) / len(PERIODS))


def portfolio_experiment(
    market: Market, work: Scale, review_days: tuple[int, ...] = REVIEW_DAYS, number: int = PORTFOLIOS
) -> Experiment:
    """Returns portfolios to learn from, and two sets of others that share their days with each other."""
    private = simulate_portfolios(market, number, review_days=review_days)
    first = np.random.default_rng(11).integers(0, len(market.held) - private.num_steps + 1, work.sampled)
    real, second = (
        simulate_portfolios(market, work.sampled, review_days=review_days, first_days=first, seed=seed)
        for seed in (12, 13)
    )
    windows = market_windows(market, np.arange(len(market.held) - private.num_steps + 1), private.num_steps)
    return Experiment(
        private=private, real=real, second=second, judge=work.judge, market=windows, paper=TABLE["portfolio"]
    )
