"""The benchmarks of the parts of `pub2priv`: real data is asked for, and untrained networks are told from trained."""

from pathlib import Path

import numpy as np
import pytest
from understudy_bench.cells import Cells
from understudy_bench.pub2priv.design import VARIANTS, filled, knowledge

from understudy.errors import MissingData


def test_without_real_rates_the_benchmark_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="exchange_rate"):
        knowledge("quick", tmp_path, lambda stage, share: None, Cells())


def test_the_pack_and_untrained_networks_stand_in_one_row() -> None:
    walk = np.cumsum(np.random.default_rng(0).standard_normal((300, 2)), axis=0)
    errors = filled("walks", walk, 2, 6)["metrics"]
    assert set(errors) == {"error", "error_untrained_1", "error_untrained_2", "error_untrained_3"}
    assert errors["error"] < min(error for name, error in errors.items() if "untrained" in name)


def test_every_variant_differs_from_the_method_as_it_is() -> None:
    (_, default), *others = VARIANTS.items()
    assert all(other != default for name, other in others if "bought" not in name)
