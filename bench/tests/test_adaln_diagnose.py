"""Diagnostics of gradients: right norms, of public series only."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from understudy_bench.__main__ import main
from understudy_bench.adaln.diagnose import Norms, conditioning_names, diagnose, ratios

from tests.e2e.commands import run
from understudy import simulate_households
from understudy.data import Panel
from understudy.errors import InputError
from understudy.synthesizers.dit import DiT
from understudy.synthesizers.dit.pretraining import public_examples
from understudy.synthesizers.dit.published import MaskedDiT
from understudy.synthesizers.dit.recipe import Network, Recipe
from understudy.training.clipping.engine import PerUnitClipper

SMALL = DiT(recipe=Recipe(network=Network(width=16, depth=1, num_heads=2, patch=24), iterations=4, batch=16, draws=1))


def _public(number: int = 40) -> Panel:
    return replace(simulate_households(number), private=False)


def _silent(*_: object) -> None:
    return None


def test_conditioning_and_the_rest_share_a_gradient_without_overlap() -> None:
    model = MaskedDiT(channels=2, width=16, depth=2, num_heads=4, num_classes=2)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    values, shown = torch.randn(2, 3, 12, 2)
    model(values, torch.arange(3), values, (shown > 0).float()).square().sum().backward()
    names = conditioning_names(model)
    squares = {name: parameter.grad.square().sum() for name, parameter in model.named_parameters()}
    on_the_way = sum(square for name, square in squares.items() if name in names)
    rest = sum(square for name, square in squares.items() if name not in names)
    assert on_the_way > 0
    assert rest > 0
    assert float(on_the_way + rest) == pytest.approx(float(sum(squares.values())))
    assert {name.split(".")[0] for name in squares} - {name.split(".")[0] for name in names} == {"embed", "predict"}
    assert "blocks.0.condition.linear.weight" in names
    assert "blocks.0.attention.project_in.weight" not in names


def test_norms_of_a_part_are_those_of_every_units_own_backward() -> None:
    """The engine's split beside one ordinary backward per unit."""
    public = _public()
    examples, neighbours = public_examples(public, SMALL)
    model = SMALL.empty_network(public.schema)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    batch = {name: torch.from_numpy(np.array(array[:6])) for name, array in examples.items()}
    loss = SMALL.denoising(public.schema, neighbours).loss
    names = conditioning_names(model)
    chosen = {id(parameter) for name, parameter in model.named_parameters() if name in names}
    gradients = PerUnitClipper(model, 1.0).collect(lambda: loss(model, batch, torch.Generator().manual_seed(3)), 6)
    found = gradients.norms(chosen), gradients.norms()
    for unit, each in enumerate(loss(model, batch, torch.Generator().manual_seed(3))):
        own = torch.autograd.grad(each, list(model.parameters()), retain_graph=True)
        squares = {name: part.square().sum() for (name, _), part in zip(model.named_parameters(), own, strict=True)}
        part = float(sum(square for name, square in squares.items() if name in names))
        assert part > 0
        assert float(found[0][unit]) == pytest.approx(part**0.5, rel=1e-4)
        assert float(found[1][unit]) == pytest.approx(float(sum(squares.values())) ** 0.5, rel=1e-4)
    for parameter in model.parameters():
        parameter.grad = None


def test_a_run_is_watched_with_bounds_and_without() -> None:
    stages: list[str] = []
    found = diagnose(_public(), SMALL, noise_multiplier=1.0, progress=lambda stage, share: stages.append(stage))
    assert list(found) == ["vanilla", "aware"]
    assert set(stages) == {"vanilla", "aware"}
    for norms in found.values():
        assert norms.total.shape == (4 * 64,)
        assert norms.losses.shape == (4,)
        assert (norms.losses > 0).all()
        assert np.isfinite(norms.total).all()
        assert np.median(norms.total) > 0  # a series of which nothing known was hidden has none
    told = ratios(found["aware"], found["vanilla"])
    assert set(told) == {"rho_emp_p95", "rho_cond_p95", "rho_emp_p99", "rho_cond_p99"}


def test_figures_are_quantiles_and_what_the_clip_leaves() -> None:
    falling = np.array([8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    norms = Norms(conditioning=np.full(100, 3.0), other=np.full(100, 4.0), clip=2.5, losses=falling)
    told = norms.figures()
    assert told["s_total_p95"] == pytest.approx(5.0)
    assert told["clipped"] == 1.0
    assert told["eta_mean"] == told["eta_p50"] == pytest.approx(0.5)
    assert told["loss_last"] == 1.5
    halved = replace(norms, conditioning=norms.conditioning / 2)
    assert ratios(halved, norms)["rho_cond_p99"] == pytest.approx(0.5)
    assert halved.figures()["s_cond_p99"] == pytest.approx(1.5)


def test_private_series_are_refused() -> None:
    with pytest.raises(InputError, match="public or simulated"):
        diagnose(replace(_public(), private=True), SMALL, noise_multiplier=1.0, progress=_silent)


def test_a_handful_of_series_is_refused() -> None:
    with pytest.raises(InputError, match="at least 20"):
        diagnose(_public(5), SMALL, noise_multiplier=1.0, progress=_silent)


def test_gradients_on_simulated_series_are_told_and_drawn(tmp_path: Path) -> None:
    outcome = run("diagnose", "--iterations", "2", "--pictures", tmp_path / "drawn", "--json", main=main)
    assert outcome.code == 0, outcome.err
    assert outcome.facts["internal"] is True
    assert outcome.facts["vanilla"]["s_total_p95"] > 0
    assert outcome.facts["ratios"]["rho_emp_p95"] > 0
    assert [Path(path).suffix for path in outcome.facts["pictures"]] == [".svg", ".png"]
    half = run("diagnose", "--public", tmp_path / "towns.parquet", main=main)
    assert half.code == 2
    assert "both or none" in half.err
