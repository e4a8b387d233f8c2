"""`pub2priv-portfolio` and `pub2priv-strategies`: portfolios over real prices (paper 000, Table 1, Fig. 3 to 6)."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from understudy.bench.cells import Cells
from understudy.bench.pub2priv_experiment import SCALES, Experiment, Scale, methods
from understudy.bench.pub2priv_tables import TABLE, facts, judged, measure
from understudy.bench.result import Progress, Row, result
from understudy.data.markets import load_market
from understudy.data.portfolios import REVIEW_DAYS, Market, market_windows, simulate_portfolios
from understudy.synthesizers import Synthesizer
from understudy.synthesizers.spectral import Spectral

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
    work = SCALES[scale]
    market, info = load_market(data_root)
    rows: list[Row] = []
    controls: list[Row] = []
    for place, periods in enumerate(PERIODS, start=1):
        experiment = portfolio_experiment(market, work, REVIEW_DAYS[:periods])
        found = _one(experiment, work, f"{scale} {periods}", cells)
        for kind, lines in zip((rows, controls), found, strict=True):
            kind += [{**line, "method": f"{line['method']}, {2 * periods} strategies"} for line in lines]
        progress(f"{2 * periods} strategies", place / len(PERIODS))
    data = facts(info, "portfolio", portfolio_experiment(market, work).private)
    return result("pub2priv-strategies", scale, data, rows, controls)


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


def _one(experiment: Experiment, work: Scale, key: str, cells: Cells) -> tuple[list[Row], list[Row]]:
    """Returns rows at epsilon 1 and controls of one number of strategies."""
    second = cells(f"{key} second", lambda: experiment.control("second real series", experiment.second))
    compared: dict[str, Synthesizer] = {**methods(work), "spectral": Spectral()}
    found = {
        name: cells(f"{key} {name}", partial(experiment.row, name, method, 1.0, work.seeds))
        for name, method in compared.items()
    }
    rows = [judged(found[name], second, found["pub2priv w/o c"]) for name in methods(work)]
    return [{**line, "paper": {}} for line in rows], [second, found["spectral"]]
