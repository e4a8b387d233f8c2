"""How near a Gaussian comes: the judge prefers real series, and strategies are those of the simulator."""

import numpy as np
from understudy_bench.data.portfolios import (
    hold,
    market_windows,
    portfolio_strategies,
    simulate_market,
    simulate_portfolios,
)
from understudy_bench.pub2priv.experiment import SCALES, Experiment
from understudy_bench.pub2priv.limits import _alone, _smoothed, prediction_error

STEPS, NUMBER = 40, 120


def test_strategies_are_those_that_were_simulated() -> None:
    market = simulate_market(num_days=100, seed=1)
    panel = simulate_portfolios(market, NUMBER, steps=STEPS, review_days=(5,), seed=3)
    contrarian = portfolio_strategies(NUMBER, num_starts=100 - STEPS + 1, seed=3)
    first = np.random.default_rng(3).integers(0, 100 - STEPS + 1, NUMBER)
    prices = market.held[first[:, None] + np.arange(STEPS)]
    again = hold(prices, contrarian, np.full(NUMBER, 5), np.asarray(panel.values[:, 0], dtype=np.float64))
    np.testing.assert_allclose(np.clip(again, 0, 2), panel.values, atol=1e-5)
    assert 0.3 < contrarian.mean() < 0.7


def test_trees_learn_more_from_real_portfolios_than_from_stocks_of_different_ones() -> None:
    market = simulate_market(num_days=300, seed=2)
    train, real = (simulate_portfolios(market, 300, steps=STEPS, review_days=(5,), seed=seed) for seed in (4, 5))
    torn = np.array(train.values)
    torn[:, :, -1] = torn[np.random.default_rng(0).permutation(len(torn)), :, -1]
    assert prediction_error(train, real) < 0.9 * prediction_error(train.with_values(torn), real)


def test_what_is_taken_from_private_portfolios_is_what_is_said() -> None:
    market, starts = simulate_market(num_days=100, seed=1), 100 - STEPS + 1
    private = simulate_portfolios(market, NUMBER, steps=STEPS, review_days=(5,))
    windows = market_windows(market, np.arange(starts), STEPS)
    experiment = Experiment(private=private, real=private, second=private, judge=SCALES["quick"].judge, market=windows)
    np.testing.assert_allclose(_smoothed(experiment, 0, kept=STEPS).values, private.values, atol=1e-5)
    level = _smoothed(experiment, 0, kept=1).values
    np.testing.assert_allclose(
        level, np.broadcast_to(private.values.mean(axis=1, keepdims=True), level.shape), atol=1e-5
    )
    apart = [_alone(experiment, 0, contrarian=which).values for which in (True, False)]
    contrarian = portfolio_strategies(NUMBER, num_starts=starts)
    np.testing.assert_array_equal(apart[0], private.values[contrarian])
    np.testing.assert_array_equal(apart[1], private.values[~contrarian])
