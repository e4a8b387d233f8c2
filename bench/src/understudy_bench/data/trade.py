"""Monthly imports of integrated circuits with the semiconductor index as public context (Pub2Priv, Appendix C.3).

Ten countries, ten random starts of 120 months each. The imports are UN Comtrade's and have to be brought by the user;
a simulated stand-in has the same shape. Any two windows of a country overlap, so a window protects no country, and ten
countries are too few to hide one among them.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.csv as pacsv

from understudy.data import Continuous, Population, PrivacyUnit, Schema, Time
from understudy.data.panel import Panel
from understudy.errors import DataError
from understudy_bench.data.datasets import DatasetInfo, file_sha256, find_file
from understudy_bench.data.markets import semiconductor_months

STEPS = 120
COUNTRIES = (
    "Spain", "USA", "Germany", "Japan", "United Kingdom", "France", "Brazil", "Italy", "Canada", "Australia",
)  # fmt: skip
FILE = (
    "comtrade/imports_8542.csv",
    "UN Comtrade, comtradeplus.un.org: monthly imports of HS 8542, columns period, reporterDesc, primaryValue",
)
_LOW, _HIGH = 4.0, 11.0  # logarithm to base 10 of dollars in a month


@dataclass(frozen=True, eq=False, kw_only=True)
class Trade:
    """Months that both tables know: imports [importer, month] in dollars, and the index [month]."""

    imports: np.ndarray
    index: np.ndarray
    stand_in: bool


def load_trade(root: str | Path | None = None) -> tuple[Trade, DatasetInfo]:
    """Returns the real imports of the ten countries, over the months that the index covers as well."""
    path = find_file("trade", *FILE, root)
    table = pacsv.read_csv(path)
    found: dict[str, dict[str, float]] = {country: {} for country in COUNTRIES}
    columns = [table[name].to_pylist() for name in ("period", "reporterDesc", "primaryValue")]
    for period, country, dollars in zip(*columns, strict=True):
        if country in found and dollars is not None:
            found[country][f"{str(period)[:4]}-{str(period)[4:6]}"] = float(dollars)
    index, _ = semiconductor_months(root)
    months = sorted(set.intersection(set(index), *map(set, found.values())))
    if len(months) < STEPS:
        raise DataError(
            f"'{path.name}' and the semiconductor index share fewer than {STEPS} months. Bring longer files.",
            column="period",
        )
    imports = np.array([[found[country][month] for month in months] for country in COUNTRIES])
    trade = Trade(imports=imports, index=np.array([index[month] for month in months]), stand_in=False)
    return trade, DatasetInfo(name="trade", path=path, sha256=file_sha256(path), stand_in=False)


def simulate_trade(num_importers: int = len(COUNTRIES), *, num_months: int = 168, seed: int = 7) -> Trade:
    """Returns a stand-in: importers of very different size follow an invented index, late and not equally."""
    rng = np.random.default_rng([seed, 5])
    index = 400 * np.exp(np.cumsum(0.012 + 0.055 * rng.standard_normal(num_months)))
    level = np.log(index / index[0])
    size = rng.normal(np.log(3e8), 1.2, (num_importers, 1))
    follows = rng.normal(0.4, 0.2, (num_importers, 1))
    lag = rng.integers(0, 4, num_importers)
    late = np.stack([np.concatenate([np.zeros(k), level[: num_months - k]]) for k in lag])
    season = 0.05 * np.sin(2 * np.pi * (np.arange(num_months) / 12 + rng.random((num_importers, 1))))
    own = np.cumsum(0.04 * rng.standard_normal((num_importers, num_months)), axis=1)
    noise = 0.08 * rng.standard_normal((num_importers, num_months))
    return Trade(imports=np.exp(size + follows * late + season + own + noise), index=index, stand_in=True)


def trade_panel(
    trade: Trade, unit: str = "overlapping-window", *, windows: int = 10, steps: int = STEPS, seed: int = 7
) -> Panel:
    """Returns random windows of every importer: the logarithm of imports, and the index over its first month.

    Args:
        unit: "entity" protects importers, "overlapping-window" the paper's single windows, which protects none of them.
    """
    rng = np.random.default_rng(seed)
    num_importers, num_months = trade.imports.shape
    first = rng.integers(0, num_months - steps + 1, (num_importers, windows))
    months = (first[:, :, None] + np.arange(steps)).reshape(-1, steps)
    owner = np.repeat(np.arange(num_importers, dtype=np.int64), windows)
    values = np.log10(np.maximum(trade.imports[owner[:, None], months], 1.0))
    context = trade.index[months] / trade.index[months[:, :1]]
    entity = unit == "entity"
    return Panel(
        schema=trade_schema(num_importers, unit, windows, steps),
        values=np.clip(values, _LOW, _HIGH).astype(np.float32)[:, :, None],
        lengths=np.full(len(owner), steps, dtype=np.int32),
        unit=owner if entity else np.arange(len(owner), dtype=np.int64),
        static=np.zeros((len(owner), 0), dtype=np.float32),
        context=np.clip(context, 0.0, 20.0).astype(np.float32)[:, :, None],
        private=False,
    )


def trade_schema(num_importers: int, unit: str, windows: int = 10, steps: int = STEPS) -> Schema:
    """Returns the public contract, for importers or for windows as units."""
    entity = unit == "entity"
    kind = PrivacyUnit(column="importer", dtype="int64", max_series=windows)
    return Schema(
        name="trade",
        population=Population(num_importers if entity else num_importers * windows),
        unit=kind if entity else PrivacyUnit(kind="overlapping-window", column="window", dtype="int64"),
        time=Time(
            column="month" if entity else None,
            frequency="1mo",
            start="2010-01-01T00:00:00",
            steps=steps,
            align="relative",
            series_column="window" if entity else None,
        ),
        channels=(Continuous("log_imports", _LOW, _HIGH, out_of_bounds="clip"),),
        context=(Continuous("semiconductor_index", 0.0, 20.0),),
    )
