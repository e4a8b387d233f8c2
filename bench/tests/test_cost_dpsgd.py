"""The cost benchmark says what it measured, beside a control and beside Opacus."""

import json

import pytest
import torch
from understudy_bench.cost import dpsgd as cost_dpsgd
from understudy_bench.cost.dpsgd_engines import ENGINES, PRIVATE
from understudy_bench.cost.dpsgd_models import MODELS

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_takes_a_step_that_moves_the_model(engine: str) -> None:
    work = MODELS["mlp"]()
    before = [parameter.detach().clone() for parameter in work.model.parameters()]
    ENGINES[engine](work)()
    for old, new in zip(before, work.model.parameters(), strict=True):
        assert torch.isfinite(new).all()
        assert not torch.equal(old, new)


def test_the_ratio_is_that_of_medians_with_a_spread() -> None:
    times = {"non-private": [1.0, 2.0, 3.0], "ours": [2.0, 3.0, 30.0]}
    ratio = cost_dpsgd._ratio(times, "ours")["ratio"]
    assert ratio["mean"] == 1.5
    assert ratio["low"] <= 1.5 <= ratio["high"]


def test_the_rows_are_named_as_the_targets_are() -> None:
    assert set(MODELS) == {"dit-8x256", "dit-4x128", "conv-4x256", "mlp", "lstm"}
    assert PRIVATE == ("ours", "opacus-hooks", "opacus-ghost")


@pytest.mark.slow
def test_one_network_gives_a_row_per_engine_and_a_control() -> None:
    result = json.loads(json.dumps(cost_dpsgd.run("quick", models=("mlp",))))
    assert (result["name"], result["scale"]) == ("cost-dpsgd", "quick")
    assert [(row["model"], row["engine"]) for row in result["rows"]] == [
        ("mlp", "ours"),
        ("mlp", "opacus-hooks"),
        ("mlp", "opacus-ghost"),
    ]
    ours, hooks, _ = (row["metrics"] for row in result["rows"])
    assert ours["ratio"]["low"] <= ours["ratio"]["mean"] <= ours["ratio"]["high"]
    assert ours["ratio"]["mean"] < hooks["ratio"]["mean"]
    assert ours["memory_ratio"] < 1.5
    (control,) = result["controls"]
    assert set(control) == set(result["rows"][0])
    assert 0.5 < control["metrics"]["ratio"]["mean"] < 2
