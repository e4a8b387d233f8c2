"""Imports with the semiconductor index: read from the user's file, or simulated and named so."""

from dataclasses import replace

import numpy as np
import pytest
from understudy_bench.data.markets import SEMICONDUCTORS
from understudy_bench.data.trade import COUNTRIES, FILE, load_trade, simulate_trade, trade_panel
from understudy_bench.metrics.pub2priv.context import correlations

from understudy.errors import DataError, MissingData

MONTHS = [f"{year}-{month:02d}" for year in range(2010, 2021) for month in range(1, 13)]


def write(root, months=MONTHS, index_months=MONTHS):
    for file in (FILE, SEMICONDUCTORS):
        (root / file[0]).parent.mkdir(exist_ok=True)
    rows = [
        f"{m.replace('-', '')},{c},{1e8 + place}" for c in (*COUNTRIES, "Elsewhere") for place, m in enumerate(months)
    ]
    (root / FILE[0]).write_text("\n".join(["period,reporterDesc,primaryValue", *rows]))
    closes = [f"{month}-15,{100 + place}" for place, month in enumerate(index_months)]
    (root / SEMICONDUCTORS[0]).write_text("\n".join(["Date,Close", *closes]))
    return root


def test_imports_are_read_for_ten_countries_over_the_months_of_the_index(tmp_path):
    trade, info = load_trade(write(tmp_path, index_months=MONTHS[5:]))
    assert trade.imports.shape == (10, len(MONTHS) - 5)
    assert trade.imports[0, 0] == 1e8 + 5
    assert trade.index[0] == 100
    assert not trade.stand_in
    assert not info.stand_in


def test_missing_imports_are_named_with_their_publisher(tmp_path):
    with pytest.raises(MissingData, match="Comtrade") as caught:
        load_trade(tmp_path)
    assert caught.value.exit_code == 3


def test_too_few_months_are_refused(tmp_path):
    with pytest.raises(DataError, match="120 months"):
        load_trade(write(tmp_path, index_months=MONTHS[:50]))


def test_windows_or_importers_are_the_unit_and_their_context_begins_at_one():
    trade = simulate_trade()
    windows, importers = (trade_panel(trade, unit) for unit in ("overlapping-window", "entity"))
    assert windows.values.shape == importers.values.shape == (100, 120, 1)
    assert (windows.num_units, importers.num_units) == (100, 10)
    assert not windows.schema.unit.protects_a_person
    assert importers.schema.unit.max_series == 10
    np.testing.assert_allclose(windows.context[:, 0], 1.0)


def test_the_stand_in_follows_its_index_about_as_the_papers_imports_do():
    sizes = []
    for seed in range(8):
        panel = trade_panel(simulate_trade(100, seed=seed))
        sizes.append(np.abs(correlations(panel.values, panel.context)).mean())
    assert 0.5 < np.mean(sizes) < 0.9  # Table 2: 0.761; ten importers of the default seed have 0.775
    assert simulate_trade().stand_in


def test_equal_seeds_give_equal_months_to_different_importers():
    trade = simulate_trade(20)
    first, second = (
        trade_panel(replace(trade, imports=trade.imports[rows]), seed=8) for rows in np.split(np.arange(20), 2)
    )
    np.testing.assert_array_equal(first.context, second.context)
    assert not np.array_equal(first.values, second.values)
