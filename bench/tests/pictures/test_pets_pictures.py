"""Pictures of private evolution are drawn from a result alone."""

from pathlib import Path
from typing import Any

import pytest
from understudy_bench.pictures.draw import draw, drawings


def _line(method: str, epsilon: float | None, figure: float) -> dict[str, Any]:
    metrics = {name: {"mean": figure, "low": figure, "high": figure} for name in ("c_fid", "forecast_rmse")}
    return {"method": method, "epsilon": epsilon, "unit": "entity", "metrics": metrics}


@pytest.fixture
def result() -> dict[str, Any]:
    series = {"real": [[0.0, 1.0, None, 2.0]] * 2, "pets": [[1.0, 0.5, 0.2, 0.1]] * 2}
    return {
        "rows": [_line("pets", epsilon, 1 / epsilon) for epsilon in (0.7, 1.0, 5.0)],
        "controls": [_line("other real series", None, 0.1), _line("spectral", 1.0, 0.7), _line("spectral", 5.0, 0.2)],
        "samples": {"channel": "load_$kw$", "epsilon": 1.0, "series": series},
    }


def test_curves_and_series_say_what_they_show(result: dict[str, Any]) -> None:
    curves, series = drawings(result)
    assert len(curves.rows) == 6
    assert "other real series" in curves.alternative
    assert "2 of real, 2 of pets" in series.alternative
    assert series.caption.startswith("load_$kw$")


def test_each_unit_gets_its_own_curves(result: dict[str, Any]) -> None:
    result["rows"].append({**_line("pets", 1.0, 2.0), "unit": "overlapping-window"})
    assert [drawing.name for drawing in drawings(result)] == ["epsilon-entity", "epsilon-overlapping-window", "series"]


def test_pictures_are_files(result: dict[str, Any], tmp_path: Path) -> None:
    written = draw(result, tmp_path)
    assert sorted(path.name for path in written) == [
        "epsilon-entity.png", "epsilon-entity.svg", "series.png", "series.svg",
    ]  # fmt: skip
    assert all(path.stat().st_size > 1000 for path in written)
