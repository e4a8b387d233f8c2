"""A benchmark that was cut goes on where it was."""

from importlib import import_module
from pathlib import Path

import pytest
from understudy_bench.cells import Cells
from understudy_bench.registry import BENCHMARKS
from understudy_bench.result import SCALES, row, spread


def test_a_finished_part_is_not_computed_again(tmp_path: Path) -> None:
    calls = []
    compute = lambda: calls.append(1) or {"figure": 1.5}  # noqa: E731
    assert Cells(tmp_path / "cells")("quick spectral 2.0", compute) == {"figure": 1.5}
    assert Cells(tmp_path / "cells")("quick spectral 2.0", compute) == {"figure": 1.5}
    assert len(calls) == 1


def test_a_part_that_failed_leaves_nothing_behind(tmp_path: Path) -> None:
    cells = Cells(tmp_path / "cells")

    def fails() -> dict[str, float]:
        raise RuntimeError("cut")

    with pytest.raises(RuntimeError):
        cells("part", fails)
    assert cells("part", lambda: {"figure": 2.0}) == {"figure": 2.0}


def test_parts_of_another_name_are_separate_and_removed_with_the_rest(tmp_path: Path) -> None:
    cells = Cells(tmp_path / "cells")
    assert cells("a", lambda: {"figure": 1}) != cells("b", lambda: {"figure": 2})
    cells.remove()
    assert not (tmp_path / "cells").exists()


def test_without_a_folder_everything_is_computed_anew() -> None:
    assert Cells()("a", lambda: {"figure": 1}) == {"figure": 1}
    assert Cells()("a", lambda: {"figure": 2}) == {"figure": 2}


def test_rows_carry_what_every_reader_of_a_result_expects() -> None:
    line = row("spectral", {"ratio": spread([1.0, 3.0])}, epsilon=2.0, delta=1e-6, unit="entity")
    assert set(line) == {"method", "epsilon", "delta", "unit", "metrics", "paper", "seconds", "peak_rss_mb"}
    assert line["metrics"]["ratio"] == {"mean": 2.0, "low": 1.0, "high": 3.0}


def test_every_benchmark_says_in_a_line_what_it_shows() -> None:
    assert all(benchmark.about.strip() for benchmark in BENCHMARKS.values())
    assert SCALES == ("quick", "target", "full")


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_is_where_the_list_says(name: str) -> None:
    module, function = BENCHMARKS[name].place.rsplit(".", 1)
    assert callable(getattr(import_module(f"understudy_bench.{module}"), function))
