"""Pictures of a benchmark's result: one for what it holds, none for what it does not."""

import numpy as np
import pytest
from typer.testing import CliRunner
from understudy_bench.cli import app
from understudy_bench.data.portfolios import simulate_market, simulate_portfolios
from understudy_bench.pictures.draw import draw, drawings
from understudy_bench.pub2priv.pictures import pictures
from understudy_bench.registry import BENCHMARKS


@pytest.fixture(scope="module")
def found():
    """What pictures of a stand-in show that is as good as can be: the real series themselves."""
    real = simulate_portfolios(simulate_market(200), 30, steps=30, seed=1)
    return pictures(real, real, 1.0)


def line(method, epsilon, figure):
    metrics = {name: {"mean": figure} for name in ("corr_meta", "predictive", "nearer_to_real")}
    return {"method": method, "epsilon": epsilon, "unit": "entity", "metrics": metrics}


def swept(**more):
    rows = [line("pub2priv", epsilon, 0.3 / epsilon) for epsilon in (0.5, 1.0, 1e5)]
    return {"rows": rows, "controls": [line("second real series", None, 0.2), line("spectral", 1.0, 0.4)], **more}


def test_the_curve_over_epsilon_is_drawn_from_rows_alone():
    (curve,) = drawings(swept())
    assert curve.name == "epsilon"
    assert [row[0] for row in curve.rows] == ["0.5", "1", "50"]


def test_errors_of_filling_are_drawn_over_epsilon_beside_what_anybody_could_say():
    def filled(method, epsilon, figure):
        metrics = {f"{task}_rmse": figure for task in ("impute", "stride", "forecast")}
        return {"method": method, "epsilon": epsilon, "unit": "event", "metrics": metrics}

    rows = [filled("dp-aware", epsilon, 1 / epsilon) for epsilon in (1.0, 8.0, 1e6)]
    controls = [filled("straight lines", None, 0.5), filled("what is bought, no network", 8.0, 0.2)]
    (drawing,) = drawings({"rows": rows, "controls": controls})
    aware = drawing.figure.axes[0].lines[0]
    assert list(aware.get_xdata()) == [1.0, 8.0]  # an epsilon in the millions is no guarantee
    assert [row[0] for row in drawing.rows][-2:] == ["straight lines", "what is bought, no network"]


def test_the_curve_is_of_one_kind_of_data():
    rows = [{**line("pub2priv", epsilon, 0.3), "correlation": 0.9, "series": 100} for epsilon in (0.5, 1.0)]
    others = [{**line("pub2priv", 1.0, 0.7), "correlation": given, "series": 100} for given in (0.0, 0.3, 0.6)]
    second = [{**line("second real series", None, given), "correlation": given} for given in (0.0, 0.9)]
    (curve,) = drawings({"rows": [*others, *rows], "controls": second})
    assert [row[0] for row in curve.rows] == ["0.5", "1"]
    assert list(curve.figure.axes[0].lines[-1].get_ydata()) == [0.9, 0.9]  # of the same data


def test_losses_over_a_run_are_drawn_noise_by_noise():
    seen = {f"{name}, noise {noise}": [3.0, 2.0, noise] for noise in (0.1, 0.2) for name in ("vanilla", "aware")}
    (drawing,) = drawings({"rows": [], "controls": [], "losses": seen})
    assert [axes.get_title(loc="left") for axes in drawing.figure.axes] == ["noise 0.1", "noise 0.2"]
    assert [row[-1] for row in drawing.rows] == ["0.1", "0.1", "0.2", "0.2"]


def test_a_result_without_a_curve_gives_no_picture():
    assert drawings({"rows": [line("pub2priv", 1.0, 0.3)], "controls": []}) == []


def test_clouds_pairs_and_distributions_are_drawn_for_a_result_that_holds_them(found):
    names = [drawing.name for drawing in drawings(swept(pictures=found))]
    assert names == ["epsilon", "pca", "tsne", "same-condition", "distributions"]


def test_every_picture_is_written_twice(tmp_path):
    paths = draw(swept(), tmp_path)
    assert [path.name for path in paths] == ["epsilon.svg", "epsilon.png"]
    assert all(path.stat().st_size > 1000 for path in paths)


def test_distributions_of_equal_series_overlap_entirely(found):
    for shares in found["distributions"].values():
        assert np.minimum(shares["real"], shares["synthetic"]).sum() > 0.99


def test_the_command_draws_what_a_benchmark_found(tmp_path, monkeypatch):
    monkeypatch.setitem(
        BENCHMARKS, "spectral-stock", lambda *_: {"name": "spectral-stock", "scale": "quick", **swept()}
    )
    done = CliRunner().invoke(app, ["run", "spectral-stock", "--pictures", str(tmp_path / "drawn")])
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "drawn").iterdir()) == ["epsilon.png", "epsilon.svg"]
