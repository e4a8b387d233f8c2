"""Real daily prices for simulated portfolios and monthly semiconductor prices, from the user's own copies.

Pub2Priv shows the S&P 500, the Dow Jones index, AAPL, AMZN, MSFT, NVDA and TSLA. The public file of five years of bars
has no TSLA and no Dow Jones index; what is shown here is the rest, and nothing stands in for the two.
"""

import csv
import gzip
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from understudy.errors import DataError
from understudy_bench.data.datasets import DatasetInfo, file_sha256, find_file
from understudy_bench.data.portfolios import HELD, SHOWN, Market

BARS = ("sp500/all_stocks_5yr.parquet", "daily bars of S&P 500 members 2013 to 2018, kaggle.com/camnugent/sandp500")
INDEX = ("indices/sp500_index.csv.gz", "S&P 500 daily close, columns Date and SP500, Yahoo Finance ^GSPC")
SEMICONDUCTORS = ("indices/davephlin_SOX.csv", "Philadelphia semiconductor index, Yahoo Finance ^SOX")


def load_market(root: str | Path | None = None) -> tuple[Market, DatasetInfo]:
    """Returns five years of real daily prices: of the stocks held, and of the index and stocks shown."""
    bars, index = (find_file("portfolios", *file, root) for file in (BARS, INDEX))
    prices = _closes(bars, (*HELD, *SHOWN[1:]))
    level = _column(index, "SP500")
    days = sorted(set.intersection(set(level), *map(set, prices.values())))
    if not days:
        raise DataError(f"'{bars.name}' and '{index.name}' share no day. Check both files.", column="date")
    held = np.array([[prices[name][day] for name in HELD] for day in days])
    shown = np.array([[level[day], *(prices[name][day] for name in SHOWN[1:])] for day in days])
    info = DatasetInfo(name="portfolios", path=bars, sha256=file_sha256(bars), stand_in=False)
    return Market(held=held, shown=shown, stand_in=False), info


def semiconductor_months(root: str | Path | None = None) -> tuple[dict[str, float], DatasetInfo]:
    """Returns the last close of the semiconductor index in each month, by "2010-05"."""
    path = find_file("semiconductors", *SEMICONDUCTORS, root)
    closes = _column(path, "Close")
    months = {day[:7]: closes[day] for day in sorted(closes)}
    return months, DatasetInfo(name="semiconductors", path=path, sha256=file_sha256(path), stand_in=False)


def _closes(path: Path, names: tuple[str, ...]) -> dict[str, dict[str, float]]:
    table = pq.read_table(path, columns=["date", "close", "Name"])
    prices = {}
    for name in names:
        own = table.filter(pc.equal(table["Name"], name))
        prices[name] = dict(zip(own["date"].to_pylist(), own["close"].to_pylist(), strict=True))
        if not prices[name]:
            raise DataError(f"'{path.name}' has no rows of '{name}'. Bring the file with all members.", column="Name")
    return prices


def _column(path: Path, column: str) -> dict[str, float]:
    """Returns a column by ISO date; days without a number are left out."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        rows = [(row["Date"], row[column]) for row in csv.DictReader(file)]
    return {day: float(number) for day, number in rows if number not in ("", "null")}
