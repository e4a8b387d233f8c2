"""Pictures of benchmarks of several organisations are made from a result's numbers alone."""

from pathlib import Path
from typing import Any

import pytest
from understudy_bench.pictures.draw import draw, drawings


def line(method: str, epsilon: float | None, **facts: Any) -> dict[str, Any]:
    return {"method": method, "epsilon": epsilon, "metrics": {"awd": 0.1, "aada": 2.0, "tpd": 0.05}, **facts}


CONTROLS = [line("holdout", None), line("independent", 1.0)]
SWEPT = [line(method, epsilon) for method in ("vflgan-ts, sound", "spectral") for epsilon in (2.0, 10.0)]
CLOUDS = {name: {"real": [[0.0, 1.0]], "synthetic": [[1.0, 0.0]]} for name in ("pca", "tsne")}


@pytest.mark.parametrize(
    ("shown", "names"),
    [
        ({"holdout": {"clouds": CLOUDS}, "spectral": {"clouds": CLOUDS}}, ["epsilon", "clouds"]),
        ({"holdout": {"amplitudes": [[0.4, 0.4], [0.6, 0.6]]}}, ["epsilon", "amplitudes"]),
        ({"vflgan-ts": {"awd": [0.3, 0.1, 0.2]}}, ["epsilon", "iterations"]),
    ],
)
def test_methods_stand_side_by_side_beside_what_epsilon_buys(shown: dict[str, Any], names: list[str]) -> None:
    made = drawings({"rows": SWEPT, "controls": CONTROLS, "vertical": shown})
    assert [drawing.name for drawing in made] == names


def test_figures_over_the_number_of_parties_are_drawn(tmp_path: Path) -> None:
    rows = [line(method, 10.0, parties=number) for method in ("vflgan-ts", "spectral") for number in (2, 4, 6)]
    controls = [{**control, "parties": 6} for control in CONTROLS]
    result = {"rows": rows, "controls": controls, "vertical": {}}
    (over,) = drawings(result)
    assert over.name == "parties"
    assert all("6" in row for row in over.rows[2::3])
    (axes, *_) = over.figure.axes
    assert [list(curve.get_xdata()) for curve in axes.lines[:2]] == [[2, 4, 6], [2, 4, 6]]
    assert {path.suffix for path in draw(result, tmp_path)} == {".svg", ".png"}
