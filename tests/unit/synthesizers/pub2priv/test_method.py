"""What `pub2priv` promises: who moves what by how much, what a run costs, where conditions come from."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch

from tests.unit.synthesizers.pub2priv.panels import correlation, fit, following, following_schema, smooth
from understudy.data import Panel, Population, PrivacyUnit, Schema, panel_to_arrow
from understudy.privacy import accounting
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import MixtureOfGaussians, SubsampledGaussian
from understudy.privacy.keys import SigningKey
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers import Release, Synthesizer, contract
from understudy.synthesizers.contract.expectations import expect_same_view, new_key
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema, shared_context
from understudy.synthesizers.pub2priv import drawing, method
from understudy.synthesizers.pub2priv.denoising import denoising_loss, schedule, weights_of
from understudy.synthesizers.pub2priv.knowledge import Knowledge, load_pack
from understudy.synthesizers.pub2priv.method import TRAINING, Pub2Priv
from understudy.training import DPSGDConfig, MechanismPlan, Performance, PrivateGradient, UnitBatches, UnitWindows

GUARANTEE = Guarantee(2.0, 1e-6)
QUICK = {"network": "projected", "iterations": 2, "draws": 2, "diffusion_steps": 10, "sampling_steps": 4}
PAPER = {**QUICK, "network": "paper", "width": 8, "layers": 1}
VARIANTS = {
    "moments, pack": Pub2Priv(network="moments"),
    "moments, direct": Pub2Priv(network="moments", knowledge="direct"),
    "followed": Pub2Priv(network="followed"),
    "pack": Pub2Priv(**QUICK),
    "direct": Pub2Priv(knowledge="direct", **QUICK),
    "a network beside the Gaussian": Pub2Priv(knowledge="direct", layers=1, width=8, **QUICK),
    "paper, pack": Pub2Priv(**PAPER),
    "paper, direct": Pub2Priv(knowledge="direct", **PAPER),
    "paper, none": Pub2Priv(knowledge="none", **PAPER),
}
SPENT_AND_KEPT = (
    contract.check_fit_spends_what_the_certificate_says,
    contract.check_units_may_have_several_series,
    contract.check_the_release_holds_no_reference_to_the_panel,
    contract.check_no_array_is_as_long_as_the_panel,
    contract.check_save_and_load_change_nothing,
)
# The checks that bring a context; the suite itself makes all of them without one.
WITH_CONTEXT = {
    "moments, pack": SPENT_AND_KEPT,
    "followed": (
        *SPENT_AND_KEPT,
        contract.check_context_can_be_given,
        contract.check_the_context_of_the_fit_is_the_default,
    ),
    "moments, direct": (
        contract.check_context_can_be_given,
        contract.check_the_context_of_the_fit_is_the_default,
    ),
    "pack": (
        *SPENT_AND_KEPT,
        contract.check_context_can_be_given,
    ),
    "direct": (contract.check_context_can_be_given, contract.check_the_context_of_the_fit_is_the_default),
    "a network beside the Gaussian": (contract.check_context_can_be_given,),
    "paper, pack": (
        contract.check_fit_spends_what_the_certificate_says,
        contract.check_save_and_load_change_nothing,
        contract.check_no_array_is_as_long_as_the_panel,
    ),
    "paper, direct": (contract.check_context_can_be_given,),
    "paper, none": (contract.check_units_may_have_several_series,),
}


@pytest.mark.parametrize(
    ("variant", "check"), [(name, check) for name, checks in WITH_CONTEXT.items() for check in checks]
)
def test_every_variant_keeps_the_contract_with_a_context(variant: str, check: Callable[[Synthesizer], None]) -> None:
    check(VARIANTS[variant])


@pytest.mark.parametrize("schema", [rich_schema(), following_schema(40)], ids=["shared", "own"])
@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "paper, none"])
def test_nobody_looks_like_somebody_where_series_have_contexts(variant: str, schema: Schema) -> None:
    """The contract's own check has no context; one that fails on no contexts would tell that the table is empty."""
    expect_same_view(VARIANTS[variant], make_panel(schema, 0), make_panel(schema, 1))


# --- what a run costs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "chosen",
    [Pub2Priv(), Pub2Priv(network="followed"), Pub2Priv(network="projected"), Pub2Priv(network="paper", layers=1)],
    ids=["moments", "followed", "projected", "paper"],
)
def test_the_plan_costs_the_guarantee_and_never_more(chosen: Pub2Priv) -> None:
    plan = chosen.plan(following_schema(2000), GUARANTEE)
    cost = accounting.epsilon(plan.events, GUARANTEE.delta)
    assert 0.99 * GUARANTEE.epsilon < cost <= GUARANTEE.epsilon


def test_rate_and_batch_are_public_numbers() -> None:
    event = Pub2Priv(network="projected", batch=200).plan(following_schema(2000), GUARANTEE).event(TRAINING)
    assert isinstance(event, SubsampledGaussian)
    assert (event.sampling_rate, event.iterations) == (0.1, Pub2Priv().iterations)
    bought = Pub2Priv(network="projected").plan(
        following_schema(1, population=Population(count_epsilon=0.1)), GUARANTEE
    )
    assert bought.event(TRAINING).sampling_rate == 1.0  # type: ignore[union-attr]


def test_an_event_is_priced_for_every_window_it_may_change_twice() -> None:
    unit = PrivacyUnit(column="home", kind="event", event_steps=2)
    schema = plain_schema(unit=unit)
    event = Pub2Priv(network="projected", knowledge="none", batch=10).plan(schema, GUARANTEE).event(TRAINING)
    assert isinstance(event, MixtureOfGaussians)
    assert (event.sampling_rate, event.max_windows) == (1.0, 2)


def test_what_a_sum_is_divided_by_does_not_follow_the_private_number(monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[MechanismPlan] = []
    monkeypatch.setattr(method, "train", lambda task, plan, grant, **rest: plans.append(plan))
    panel = following(60, 0.9)
    for units in (60, 31):
        fit(Pub2Priv(knowledge="direct", batch=20, **QUICK), panel.take_units(np.arange(units)))
    assert [plan.expected_batch for plan in plans] == [20.0, 20.0]


def test_private_series_reach_the_network_through_private_training_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that training it is what it was before it saw anything. Control: with it, it is not."""
    chosen, panel = VARIANTS["a network beside the Gaussian"], following(60, 0.9)
    trained = fit(chosen, panel).arrays
    monkeypatch.setattr(method, "train", lambda task, plan, grant, **rest: None)
    untrained = fit(chosen, panel).arrays
    empty = weights_of(chosen.empty_network(chosen.core(panel.schema, untrained)), drawing.NETWORK)
    for name, weights in empty.items():
        assert np.array_equal(untrained[name], weights)
    assert any(not np.array_equal(trained[name], weights) for name, weights in empty.items())


@pytest.mark.parametrize("variant", ["direct", "paper, direct"])
def test_public_series_may_teach_the_network_first(
    variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any private gradient the network has learned from the public table, which the certificate names."""
    monkeypatch.setattr(method, "train", lambda task, plan, grant, **rest: None)
    panel, file = make_panel(rich_schema(), 40), tmp_path / "public.parquet"
    pyarrow.parquet.write_table(_with_context(make_panel(rich_schema(), 40, seed=8)), file)
    chosen = replace(VARIANTS[variant], public=str(file), public_iterations=3)
    release = fit(chosen, panel)
    empty = weights_of(chosen.empty_network(chosen.core(panel.schema, release.arrays)), drawing.NETWORK)
    assert any(not np.array_equal(release.arrays[name], weights) for name, weights in empty.items())
    assert "pub2priv public table" in release.certificate.public_inputs


# --- who moves what by how much -----------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["direct", "a network beside the Gaussian", "paper, direct"])
def test_one_unit_moves_the_sum_of_gradients_by_at_most_the_clip_however_often_it_is_noised(variant: str) -> None:
    """Eight draws per window, units with one to three windows, one of them with values at the bounds."""
    chosen = replace(VARIANTS[variant], draws=8, clip=0.5)
    panel = _uneven(following(12, 0.9))
    core = chosen.core(panel.schema, fit(chosen, panel, noise=NoiseSource.seeded(1)).arrays)
    examples = core.examples(panel, np.zeros(panel.num_series, dtype=np.int64))
    config = DPSGDConfig(sampling_rate=1, iterations=1, expected_batch=1, clip_norm=0.5, noise_multiplier=1.0)

    def total(units: np.ndarray) -> torch.Tensor:
        model = chosen.empty_network(core)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3, generator=torch.Generator().manual_seed(2))
        windows = UnitWindows(examples, panel.unit, UnitBatches(), np.random.default_rng(0))
        gradient = PrivateGradient(model, config.plan(), NoiseSource.constant(0), Performance(max_units_in_memory=1))
        loss = denoising_loss(schedule(10), 8, core.loss_weight)
        gradient.write(loss, windows, units, torch.Generator().manual_seed(3))
        return gradient.flat.gradient.clone()

    for unit in range(12):
        assert 0 < float(total(np.array([unit])).norm()) <= 0.5


@pytest.mark.parametrize("variant", ["direct", "paper, direct"])
def test_one_more_unit_changes_no_other_units_rows(variant: str) -> None:
    chosen, panel = VARIANTS[variant], following(30, 0.9)
    core = chosen.core(panel.schema, fit(chosen, panel, noise=NoiseSource.seeded(1)).arrays)
    classes = np.zeros(30, dtype=np.int64)
    whole, fewer = core.examples(panel, classes), core.examples(panel.take_units(np.arange(29)), classes[:29])
    for name, array in whole.items():
        assert np.allclose(array[:29], fewer[name], atol=1e-5)


def test_gaps_are_masked_in_the_loss() -> None:
    """A network that predicts no noise has the mean square of the noise as its loss: of what is known only."""
    chosen, panel = VARIANTS["paper, direct"], make_panel(rich_schema(), 20)
    core = chosen.core(panel.schema, fit(chosen, panel, noise=NoiseSource.seeded(1)).arrays)
    examples = core.examples(panel, np.zeros(20, dtype=np.int64))
    batch = {name: torch.from_numpy(np.array(array)) for name, array in examples.items()}
    with torch.no_grad():
        loss = denoising_loss(schedule(10), 1)(chosen.empty_network(core), batch, torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(0)
    schedule(10).draw_times(20, generator)
    squares, known = torch.randn(batch["x"].shape, generator=generator).square(), batch["known"]
    assert 0 < known.float().mean() < 1
    assert torch.allclose(loss, (squares * known).sum((1, 2)) / known.sum((1, 2)), atol=1e-5)
    assert not torch.allclose(loss, squares.mean((1, 2)), atol=1e-2)


# --- where conditions come from -----------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["moments, direct", "direct", "paper, direct"])
def test_a_release_holds_no_context_of_its_training_series(variant: str) -> None:
    """Two neighbouring values of a context side by side: by chance below 1e-6. Control: the context itself."""
    panel = following(60, 0.9)
    arrays = fit(VARIANTS[variant], panel).arrays
    assert arrays["public_context"].size == 0
    assert np.isin(_pairs(panel.context), _pairs(panel.context[:1])).any()
    for name, array in arrays.items():
        assert not np.isin(_pairs(array), _pairs(panel.context)).any(), name


def test_nobody_knows_which_windows_were_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two fits of one seed. With a known stream one unit more would show other windows of everybody else."""
    seen: list[float] = []
    genuine = method.UnitWindows

    def listening(arrays: Any, unit: Any, draw: Any, rng: np.random.Generator) -> Any:
        seen.append(float(rng.random()))
        return genuine(arrays, unit, draw, rng)

    monkeypatch.setattr(method, "UnitWindows", listening)
    for _ in range(2):
        fit(Pub2Priv(knowledge="none", seed=3, **QUICK), following(30, 0.9))
    assert seen[0] != seen[1]


def _pairs(array: np.ndarray) -> np.ndarray:
    """Neighbouring float32 numbers as one whole number each, along the last axis and along the first."""
    bits = array.astype(np.float32).view(np.uint32).astype(np.uint64)
    return np.concatenate([(flat[:-1] << np.uint64(32)) | flat[1:] for flat in (bits.ravel(), bits.T.ravel())])


@pytest.mark.parametrize("network", ["moments", "followed", "projected"])
def test_series_follow_the_context_that_the_caller_brings(network: str) -> None:
    """400 units at epsilon 8 learn most of a correlation of 0.9; without context, nothing. A standard error is 0.02."""
    panel, other = following(400, 0.9), smooth(300, np.random.default_rng(9))[:, :, None].astype(np.float32)
    found = {}
    for kind in ("direct", "none"):
        release = fit(Pub2Priv(network=network, knowledge=kind), panel, epsilon=8.0, noise=NoiseSource.seeded(2))
        found[kind] = correlation(release.sample(300, context=other, rng=np.random.default_rng(1)))
    assert found["direct"] > 0.6
    assert abs(found["none"]) < 0.12


@pytest.mark.parametrize("shared", [True, False], ids=["one context for all", "a context for each"])
@pytest.mark.parametrize("network", ["moments", "followed", "projected", "paper"])
def test_without_context_samples_do_not_depend_on_it(network: str, shared: bool) -> None:
    options = {"moments": {}, "followed": {}, "projected": QUICK, "paper": PAPER}[network]
    panel = make_panel(rich_schema(constraints=()), 60) if shared else following(60, 0.9)
    release = fit(Pub2Priv(knowledge="none", **options), panel, noise=NoiseSource.seeded(1))
    context = np.ones((panel.schema.num_steps, len(panel.schema.context)))
    first, second = (release.sample(20, context=value * context, rng=np.random.default_rng(3)) for value in (0.1, 0.9))
    assert np.array_equal(first.values, second.values, equal_nan=True)


def test_the_knowledge_transformer_receives_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit by bit the same after private training, and none of its parameters among those that were trained."""
    held = Knowledge.of(load_pack("general"))
    monkeypatch.setattr(Knowledge, "of", classmethod(lambda cls, pack: held))
    before = {name: weight.clone() for name, weight in held.transformer.state_dict().items()}
    release = fit(Pub2Priv(**QUICK), following(60, 0.9))
    for name, weight in held.transformer.state_dict().items():
        assert torch.equal(weight, before[name])
    assert all(not p.requires_grad and p.grad is None for p in held.transformer.parameters())
    assert not [name for name in release.arrays if name.startswith(drawing.NETWORK) and "over_time" in name]


# --- releases ------------------------------------------------------------------------------------------------------


def test_a_release_works_in_a_process_that_never_saw_the_table(tmp_path: Path, key: SigningKey) -> None:
    """Also with a pack of one's own whose file is gone, and drawing exactly the same series."""
    file = tmp_path / "own.safetensors"
    load_pack("general").save(file)
    release = fit(Pub2Priv(pack=str(file), **QUICK), following(60, 0.9))
    release.save(tmp_path / "release", key=key)
    file.unlink()
    context = smooth(5, np.random.default_rng(1))[:, :, None]
    np.save(tmp_path / "context.npy", context)
    code = """
import json, sys, numpy as np
from understudy.synthesizers import Release
release = Release.load(sys.argv[1])
drawn = release.sample(5, context=np.load(sys.argv[2]), rng=np.random.default_rng(7))
print(json.dumps(drawn.values.tolist()))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "release", tmp_path / "context.npy"],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    here = Release.load(tmp_path / "release").sample(5, context=context, rng=np.random.default_rng(7))
    assert np.array_equal(np.array(json.loads(done.stdout), dtype=np.float32), here.values)


@pytest.fixture
def key() -> SigningKey:
    return new_key()


def _with_context(panel: Panel) -> pa.Table:
    """Returns a panel as a table that holds its public context too."""
    table, context = panel_to_arrow(panel), shared_context(panel.schema)
    step = np.unique(np.array(table["when"].to_pylist()), return_inverse=True)[1]
    for place, channel in enumerate(panel.schema.context):
        table = table.append_column(channel.name, pa.array(context[step, place]))
    return table


def _uneven(panel: Panel) -> Panel:
    """Returns the panel with units of one to three series, one of them at the bounds."""
    rows = np.concatenate([np.full(1 + unit % 3, unit) for unit in range(panel.num_series)])
    values = np.array(panel.values[rows])
    values[:3] = 6.0
    return replace(
        panel,
        schema=replace(panel.schema, unit=replace(panel.schema.unit, max_series=3)),
        values=values, lengths=panel.lengths[rows], unit=rows.astype(np.int64), static=panel.static[rows],
        context=panel.context[rows],  # type: ignore[index]
    )  # fmt: skip
