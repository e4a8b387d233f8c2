"""Simulated portfolios over real or simulated prices, with the public market as context (Pub2Priv, Appendix C.1).

A portfolio holds four stocks for 360 business days from its own first day. At every review it trades: a contrarian buys
what did worse than the portfolio and sells what did better (Eq. 13); a follower of momentum holds each stock in
proportion to its last return. Recorded is the number of shares, in shares that all the money could buy at the start.
"""

from dataclasses import dataclass

import numpy as np

from understudy.data import Continuous, Population, PrivacyUnit, Schema, Time
from understudy.data.panel import Panel

STEPS = 360
REVIEW_DAYS = (5, 10, 20, 40, 60)
HELD = ("JPM", "WMT", "XOM", "CAT")  # components of the Dow Jones composite
SHOWN = ("SP500", "AAPL", "AMZN", "MSFT", "NVDA")  # public context
GROWTH = 2.0  # bounds of the context: prices between 1/7 and 7 times the first
_START = "2013-01-01T00:00:00"


@dataclass(frozen=True, eq=False, kw_only=True)
class Market:
    """Public daily prices: of the stocks that are held [day, stock], and of those that are shown [day, shown]."""

    held: np.ndarray
    shown: np.ndarray
    stand_in: bool


def portfolio_schema(num_portfolios: int, steps: int = STEPS) -> Schema:
    """Returns the public contract: every portfolio starts on a day of its own and sees the market from there."""
    return Schema(
        name="portfolios",
        population=Population(num_portfolios),
        unit=PrivacyUnit(column="portfolio", dtype="int64"),
        time=Time(column="day", frequency="1d", start=_START, steps=steps, align="relative"),
        channels=tuple(Continuous(f"shares_{name.lower()}", 0.0, 2.0, out_of_bounds="clip") for name in HELD),
        context=tuple(Continuous(name, -GROWTH, GROWTH, out_of_bounds="clip") for name in SHOWN),
    )


def simulate_portfolios(
    market: Market,
    num_portfolios: int,
    *,
    review_days: tuple[int, ...] = REVIEW_DAYS,
    steps: int = STEPS,
    first_days: np.ndarray | None = None,
    seed: int = 7,
) -> Panel:
    """Returns portfolios of both strategies and all review periods, each over a window of its own.

    Context is the logarithm of the price of what is shown over its first price in the window.

    Args:
        review_days: Review periods, each with both strategies: 2 · len(review_days) different ways to trade.
        first_days: First day of each portfolio; None draws them. Portfolios of the same days see the same context.
    """
    rng = np.random.default_rng(seed)
    drawn, contrarian = _drawn(rng, len(market.held) - steps + 1, num_portfolios)
    first = drawn if first_days is None else np.asarray(first_days)
    days = first[:, None] + np.arange(steps)
    prices = market.held[days]
    review = rng.choice(review_days, num_portfolios)
    shares = hold(prices, contrarian, review, rng.dirichlet(np.full(len(HELD), 4.0), num_portfolios))
    schema = portfolio_schema(num_portfolios, steps)
    return Panel(
        schema=schema,
        values=np.clip(shares, 0.0, 2.0).astype(np.float32),
        lengths=np.full(num_portfolios, steps, dtype=np.int32),
        unit=np.arange(num_portfolios, dtype=np.int64),
        static=np.zeros((num_portfolios, 0), dtype=np.float32),
        context=market_windows(market, first, steps),
        private=False,
    )


def portfolio_strategies(num_portfolios: int, *, num_starts: int, seed: int = 7) -> np.ndarray:
    """Returns which of the portfolios that `simulate_portfolios` makes with this seed are contrarian.

    Args:
        num_starts: Days on which a portfolio may begin: those of the market less the steps of a portfolio, plus one.
    """
    return _drawn(np.random.default_rng(seed), num_starts, num_portfolios)[1]


def _drawn(rng: np.random.Generator, num_starts: int, num_portfolios: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns (first days, whether contrarian)."""
    first = rng.integers(0, num_starts, num_portfolios)
    return first, rng.random(num_portfolios) < 0.5


def market_windows(market: Market, first: np.ndarray, steps: int = STEPS) -> np.ndarray:
    """Returns the public context [window, step, shown] of windows that begin on the given days."""
    days = first[:, None] + np.arange(steps)
    growth = np.log(market.shown[days] / market.shown[first][:, None])
    windows: np.ndarray = np.clip(growth, -GROWTH, GROWTH).astype(np.float32)
    return windows


def hold(prices: np.ndarray, contrarian: np.ndarray, review: np.ndarray, allocation: np.ndarray) -> np.ndarray:
    """Returns shares [portfolio, day, stock], in shares that the whole start capital buys of that stock.

    Args:
        prices: [portfolio, day, stock].
        contrarian: Strategy of each portfolio; the others follow momentum.
        review: Days between two reviews of each portfolio.
        allocation: Share of the start capital in each stock [portfolio, stock].
    """
    relative = prices / prices[:, :1]  # one share of the start capital in a stock is worth this
    shares: np.ndarray = np.empty_like(relative)
    held = np.array(allocation, dtype=np.float64)
    for day in range(relative.shape[1]):
        due = (day > 0) & (day % review == 0)
        if due.any():
            before = relative[np.arange(len(review)), day - np.minimum(review, day)]
            held[due] = trade(held, relative[:, day], before, contrarian)[due]
        shares[:, day] = held
    return shares


def trade(held: np.ndarray, now: np.ndarray, before: np.ndarray, contrarian: np.ndarray) -> np.ndarray:
    """Returns shares after a review; what is bought costs what is sold."""
    value, growth = held * now, now / before  # X_i and k_i, both over the same review period
    total = value.sum(1, keepdims=True)
    of_portfolio = (growth * value).sum(1, keepdims=True) / total  # K_p
    against = value + (of_portfolio - growth) * value  # Eq. 13
    along = growth / growth.sum(1, keepdims=True) * total  # X_i = k_i V_t, made to sum to V_t
    after: np.ndarray = np.where(contrarian[:, None], against, along) / now
    return after


def simulate_market(num_days: int = 1259, seed: int = 7) -> Market:
    """Returns a stand-in for real prices: correlated geometric Brownian motion with one common factor."""
    rng = np.random.default_rng([seed, 3])
    number = len(HELD) + len(SHOWN)
    exposure = np.concatenate([np.full(len(HELD), 0.009), [0.010], np.full(len(SHOWN) - 1, 0.011)])
    own = np.concatenate([np.full(len(HELD), 0.008), [0.001], np.full(len(SHOWN) - 1, 0.012)])
    returns = 3e-4 + exposure * rng.standard_normal((num_days, 1)) + own * rng.standard_normal((num_days, number))
    prices = 100 * np.exp(np.cumsum(returns, axis=0))
    return Market(held=prices[:, : len(HELD)], shown=prices[:, len(HELD) :], stand_in=True)
