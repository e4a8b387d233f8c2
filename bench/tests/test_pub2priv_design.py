"""The benchmarks of the parts of `pub2priv`: real data is asked for, and untrained networks are told from trained."""

from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from understudy_bench.cells import Cells
from understudy_bench.pub2priv.design import VARIANTS, filled, knowledge, public_table

from understudy.data.portfolios import simulate_market, simulate_portfolios
from understudy.errors import MissingData
from understudy.synthesizers.pub2priv.purchases import public_panel


def test_without_real_rates_the_benchmark_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="exchange_rate"):
        knowledge("quick", tmp_path, lambda stage, share: None, Cells())


def test_the_pack_and_untrained_networks_stand_in_one_row() -> None:
    walk = np.cumsum(np.random.default_rng(0).standard_normal((300, 2)), axis=0)
    errors = filled("walks", walk, 2, 6)["metrics"]
    assert set(errors) == {"error", "error_untrained_1", "error_untrained_2", "error_untrained_3"}
    assert errors["error"] < min(error for name, error in errors.items() if "untrained" in name)


def test_every_variant_differs_from_the_method_as_it_is() -> None:
    default, *others = VARIANTS.values()
    assert all(other != default for other in others)


def test_a_public_table_holds_every_series_beside_its_own_context(tmp_path: Path) -> None:
    panel = simulate_portfolios(simulate_market(80), 30, steps=20)
    pyarrow.parquet.write_table(public_table(panel), tmp_path / "public.parquet")
    read = public_panel(str(tmp_path / "public.parquet"), panel.schema)
    assert read.context is not None
    assert panel.context is not None
    np.testing.assert_array_equal(read.values, panel.values)
    np.testing.assert_array_equal(read.context, panel.context)
