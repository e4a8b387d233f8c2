"""Real prices come from the user's own files; what is missing or does not fit is named."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from understudy_bench.data.markets import BARS, INDEX, SEMICONDUCTORS, load_market, semiconductor_months
from understudy_bench.data.portfolios import HELD, SHOWN, simulate_portfolios

from understudy.errors import DataError, MissingData

DAYS = [f"2013-{month:02d}-{day:02d}" for month in (2, 3) for day in range(1, 21)]


@pytest.fixture
def root(tmp_path):
    """Invented prices in the shape of the public files; the index lacks the first day."""
    names = [*HELD, *SHOWN[1:], "OTHER"]
    rows = [(day, 10.0 * (place + 1) + step, name) for place, name in enumerate(names) for step, day in enumerate(DAYS)]
    for file in (BARS, INDEX, SEMICONDUCTORS):
        (tmp_path / file[0]).parent.mkdir(exist_ok=True)
    dates, closes, who = zip(*rows, strict=True)
    pq.write_table(pa.table({"date": dates, "close": closes, "Name": who}), tmp_path / BARS[0])
    lines = ["Date,SP500", *(f"{day},{1000 + step}" for step, day in enumerate(DAYS[1:]))]
    (tmp_path / INDEX[0]).write_bytes(gzip.compress("\n".join(lines).encode()))
    closes = [f"{day},{step},{step + 0.5}" for step, day in enumerate(DAYS)]
    (tmp_path / SEMICONDUCTORS[0]).write_text("\n".join(["Date,Open,Close", *closes, "2013-04-01,null,null"]))
    return tmp_path


def test_prices_are_those_of_the_days_that_all_files_know(root):
    market, info = load_market(root)
    assert market.held.shape == (len(DAYS) - 1, len(HELD))
    assert market.shown.shape == (len(DAYS) - 1, len(SHOWN))
    np.testing.assert_array_equal(market.held[0], [11, 21, 31, 41])
    assert market.shown[0, 0] == 1000
    assert (market.stand_in, info.stand_in) == (False, False)
    assert simulate_portfolios(market, 5, steps=20).values.shape == (5, 20, len(HELD))


def test_a_month_has_the_index_of_its_last_day(root):
    months, _ = semiconductor_months(root)
    assert months == {"2013-02": 19.5, "2013-03": 39.5}


def test_missing_files_are_named_and_missing_stocks_too(root):
    with pytest.raises(MissingData, match="sp500") as caught:
        load_market(root / "nowhere")
    assert caught.value.exit_code == 3
    pq.write_table(pa.table({"date": DAYS, "close": np.ones(len(DAYS)), "Name": ["OTHER"] * len(DAYS)}), root / BARS[0])
    with pytest.raises(DataError, match=HELD[0]):
        load_market(root)
