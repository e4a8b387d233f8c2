"""What `pub2priv` promises: who moves what by how much, what a run costs, where conditions come from."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.unit.synthesizers.pub2priv.panels import correlation, fit, following, following_schema, smooth
from understudy.data import Panel, Population, PrivacyUnit, Schema
from understudy.privacy import accounting
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import MixtureOfGaussians, SubsampledGaussian
from understudy.privacy.keys import SigningKey
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers import Release, Synthesizer
from understudy.synthesizers.contract import checks as contract
from understudy.synthesizers.contract.checks import expect_same_view, new_key
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema
from understudy.synthesizers.packs import load_pack
from understudy.synthesizers.pub2priv import Pub2Priv, published
from understudy.synthesizers.pub2priv.knowledge import Knowledge
from understudy.synthesizers.pub2priv.published import NETWORK, denoising_loss, schedule
from understudy.synthesizers.pub2priv.recipe import PAPER, Recipe
from understudy.training import DPSGDConfig, PrivateGradient, UnitWindows
from understudy.training.networks import to_arrays
from understudy.training.plan import TRAINING

GUARANTEE = Guarantee(2.0, 1e-6)
SMALL = Recipe(
    model="diffusion", iterations=2, learning_rate=0.01, width=8, layers=1, heads=2, diffusion_steps=10,
    sampling_steps=4,
)  # fmt: skip
VARIANTS = {
    "regression": Pub2Priv(recipe=Recipe(model="regression")),
    "correlation": Pub2Priv(recipe=Recipe(model="correlation")),
    "diffusion, pack": Pub2Priv(recipe=SMALL),
    "diffusion, direct": Pub2Priv(recipe=SMALL, knowledge="direct"),
    "diffusion, none": Pub2Priv(recipe=SMALL, knowledge="none"),
}
SPENT_AND_KEPT = (
    contract.check_fit_spends_what_the_certificate_says,
    contract.check_units_may_have_several_series,
    contract.check_the_release_holds_no_reference_to_the_panel,
    contract.check_no_array_is_as_long_as_the_panel,
    contract.check_save_and_load_change_nothing,
)
# The checks that bring a context; the suite itself makes all of them without one.
GIVEN = (contract.check_context_can_be_given, contract.check_the_context_of_the_fit_is_the_default)
WITH_CONTEXT = {
    "regression": (*SPENT_AND_KEPT, *GIVEN),
    "correlation": (*SPENT_AND_KEPT, *GIVEN),
    "diffusion, pack": SPENT_AND_KEPT,
    "diffusion, direct": GIVEN,
    "diffusion, none": (contract.check_units_may_have_several_series,),
}


@pytest.mark.parametrize(
    ("variant", "check"), [(name, check) for name, checks in WITH_CONTEXT.items() for check in checks]
)
def test_every_variant_keeps_the_contract_with_a_context(variant: str, check: Callable[[Synthesizer], None]) -> None:
    check(VARIANTS[variant])


@pytest.mark.parametrize("schema", [rich_schema(), following_schema(40)], ids=["shared", "own"])
@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "diffusion, none"])
def test_nobody_looks_like_somebody_where_series_have_contexts(variant: str, schema: Schema) -> None:
    """The contract's own check has no context; one that fails on no contexts would tell that the table is empty."""
    expect_same_view(VARIANTS[variant], make_panel(schema, 0), make_panel(schema, 1))


# --- what a run costs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["regression", "correlation", "diffusion"])
def test_the_plan_costs_the_guarantee_and_never_more(model: str) -> None:
    plan = Pub2Priv(recipe=Recipe(model=model)).plan(following_schema(2000), GUARANTEE)
    cost = accounting.epsilon(plan.events, GUARANTEE.delta)
    assert 0.99 * GUARANTEE.epsilon < cost <= GUARANTEE.epsilon


def test_rate_and_batch_are_public_numbers() -> None:
    event = Pub2Priv(recipe=replace(PAPER, batch=200)).plan(following_schema(2000), GUARANTEE).event(TRAINING)
    assert isinstance(event, SubsampledGaussian)
    assert (event.sampling_rate, event.iterations) == (0.1, PAPER.iterations)
    bought = Pub2Priv(recipe=PAPER).plan(following_schema(1, population=Population(count_epsilon=0.1)), GUARANTEE)
    assert bought.event(TRAINING).sampling_rate == 1.0  # type: ignore[union-attr]


def test_an_event_is_priced_for_every_window_it_may_change_twice() -> None:
    unit = PrivacyUnit(column="home", kind="event", event_steps=2)
    schema = plain_schema(unit=unit)
    event = Pub2Priv(recipe=replace(PAPER, batch=10), knowledge="none").plan(schema, GUARANTEE).event(TRAINING)
    assert isinstance(event, MixtureOfGaussians)
    assert (event.sampling_rate, event.max_windows) == (1.0, 2)


def test_what_a_sum_is_divided_by_does_not_follow_the_private_number(monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[DPSGDConfig] = []
    monkeypatch.setattr(published, "fit_network", lambda *task, **rest: plans.append(task[4]))
    panel = following(60, 0.9)
    for units in (60, 31):
        fit(Pub2Priv(knowledge="direct", recipe=replace(SMALL, batch=20)), panel.take_units(np.arange(units)))
    assert [plan.expected_batch for plan in plans] == [20.0, 20.0]


def test_private_series_reach_the_network_through_private_training_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that training it is what it was before it saw anything. Control: with it, it is not."""
    chosen, panel = VARIANTS["diffusion, direct"], following(60, 0.9)
    trained = fit(chosen, panel).arrays
    monkeypatch.setattr(published, "fit_network", lambda *task, **rest: None)
    untrained = fit(chosen, panel).arrays
    empty = to_arrays(chosen.diffusion(panel.schema).network(), NETWORK)
    for name, weights in empty.items():
        assert np.array_equal(untrained[name], weights)
    assert any(not np.array_equal(trained[name], weights) for name, weights in empty.items())


# --- presets --------------------------------------------------------------------------------------------------------


def test_the_paper_is_table_3() -> None:
    assert (PAPER.width, PAPER.layers, PAPER.diffusion_steps, PAPER.batch, PAPER.learning_rate) == (
        256, 4, 400, 128, 1e-4,
    )  # fmt: skip
    betas = schedule(PAPER.diffusion_steps).betas()
    assert (float(betas[0]), float(betas[-1])) == pytest.approx((1e-4, 0.2))
    assert PAPER.sampling_steps >= PAPER.diffusion_steps  # DDPM


def test_the_paper_runs_at_small_size() -> None:
    published_form = Pub2Priv(**Pub2Priv.presets["paper"])
    chosen = replace(published_form, recipe=replace(published_form.recipe, iterations=1, batch=4))
    release = fit(chosen, following(12, 0.9))
    assert chosen.diffusion(release.schema).network().blocks[0].widen.in_features == 256
    assert release.sample(2, context=np.linspace(0, 1, 24)[:, None]).values.shape == (2, 24, 1)


# --- who moves what by how much -----------------------------------------------------------------------------------


def test_one_unit_moves_the_sum_of_gradients_by_at_most_the_clipping_norm() -> None:
    """Units with one to three windows, one of them with values at the bounds."""
    chosen, panel = VARIANTS["diffusion, direct"], _uneven(following(12, 0.9))
    core = chosen.diffusion(panel.schema)
    encoding = core.encoding(fit(chosen, panel, noise=NoiseSource.seeded(1)).arrays)
    examples = core.examples(panel, encoding)
    config = DPSGDConfig(sampling_rate=1, iterations=1, expected_batch=1, clipping_norm=0.5, noise_multiplier=1.0)

    def total(units: np.ndarray) -> torch.Tensor:
        model = core.network()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3, generator=torch.Generator().manual_seed(2))
        windows = UnitWindows(examples, panel.unit, np.random.default_rng(0))
        gradient = PrivateGradient(model, config, NoiseSource.constant(0), max_units=1)
        gradient.write(denoising_loss(schedule(10)), windows, units, torch.Generator().manual_seed(3))
        return gradient.flat.gradient.clone()

    for unit in range(12):
        assert 0 < float(total(np.array([unit])).norm()) <= 0.5


def test_one_more_unit_changes_no_other_units_rows() -> None:
    chosen, panel = VARIANTS["diffusion, direct"], following(30, 0.9)
    core = chosen.diffusion(panel.schema)
    encoding = core.encoding(fit(chosen, panel, noise=NoiseSource.seeded(1)).arrays)
    whole = core.examples(panel, encoding)
    fewer = core.examples(panel.take_units(np.arange(29)), encoding)
    for name, array in whole.items():
        assert np.allclose(array[:29], fewer[name], atol=1e-5)


def test_gaps_are_masked_in_the_loss() -> None:
    """A network that predicts no noise has the mean square of the noise as its loss: of what is known only."""
    chosen, panel = VARIANTS["diffusion, direct"], make_panel(rich_schema(), 20)
    core = chosen.diffusion(panel.schema)
    encoding = core.encoding(fit(chosen, panel, noise=NoiseSource.seeded(1)).arrays)
    examples = core.examples(panel, encoding)
    batch = {name: torch.from_numpy(np.array(array)) for name, array in examples.items()}
    with torch.no_grad():
        loss = denoising_loss(schedule(10))(core.network(), batch, torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(0)
    schedule(10).draw_times(20, generator)
    squares, known = torch.randn(batch["x"].shape, generator=generator).square(), batch["known"]
    assert 0 < known.float().mean() < 1
    assert torch.allclose(loss, (squares * known).sum((1, 2)) / known.sum((1, 2)), atol=1e-5)
    assert not torch.allclose(loss, squares.mean((1, 2)), atol=1e-2)


# --- where conditions come from -----------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["regression", "correlation", "diffusion, direct"])
def test_a_release_holds_no_context_of_its_training_series(variant: str) -> None:
    """Two neighbouring values of a context side by side: by chance below 1e-6. Control: the context itself."""
    panel = following(60, 0.9)
    arrays = fit(VARIANTS[variant], panel).arrays
    assert arrays["public_context"].size == 0
    assert np.isin(_pairs(panel.context), _pairs(panel.context[:1])).any()
    for name, array in arrays.items():
        assert not np.isin(_pairs(array), _pairs(panel.context)).any(), name


def _pairs(array: np.ndarray) -> np.ndarray:
    """Neighbouring float32 numbers as one whole number each, along the last axis and along the first."""
    bits = array.astype(np.float32).view(np.uint32).astype(np.uint64)
    return np.concatenate([(flat[:-1] << np.uint64(32)) | flat[1:] for flat in (bits.ravel(), bits.T.ravel())])


@pytest.mark.parametrize("model", ["regression", "correlation"])
def test_series_follow_the_context_that_the_caller_brings(model: str) -> None:
    """400 units at epsilon 8 learn most of a correlation of 0.9; without context, nothing. A standard error is 0.02."""
    panel, other = following(400, 0.9), smooth(300, np.random.default_rng(9))[:, :, None].astype(np.float32)
    found = {}
    for kind in ("direct", "none"):
        release = fit(replace(VARIANTS[model], knowledge=kind), panel, epsilon=8.0, noise=NoiseSource.seeded(2))
        found[kind] = correlation(release.sample(300, context=other, rng=np.random.default_rng(1)))
    assert found["direct"] > 0.6
    assert abs(found["none"]) < 0.12


@pytest.mark.parametrize("shared", [True, False], ids=["one context for all", "a context for each"])
@pytest.mark.parametrize("variant", ["regression", "correlation", "diffusion, none"])
def test_without_context_samples_do_not_depend_on_it(variant: str, shared: bool) -> None:
    panel = make_panel(rich_schema(constraints=()), 60) if shared else following(60, 0.9)
    release = fit(replace(VARIANTS[variant], knowledge="none"), panel, noise=NoiseSource.seeded(1))
    context = np.ones((panel.schema.num_steps, len(panel.schema.context)))
    first, second = (release.sample(20, context=value * context, rng=np.random.default_rng(3)) for value in (0.1, 0.9))
    assert np.array_equal(first.values, second.values, equal_nan=True)


def test_the_knowledge_transformer_receives_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit by bit the same after private training, and none of its parameters among those that were trained."""
    held = Knowledge.of(load_pack("general", "pub2priv"))
    monkeypatch.setattr(Knowledge, "of", classmethod(lambda cls, pack: held))
    before = {name: weight.clone() for name, weight in held.transformer.state_dict().items()}
    release = fit(VARIANTS["diffusion, pack"], following(60, 0.9))
    for name, weight in held.transformer.state_dict().items():
        assert torch.equal(weight, before[name])
    assert all(not p.requires_grad and p.grad is None for p in held.transformer.parameters())
    assert not [name for name in release.arrays if name.startswith(NETWORK) and "reconstruct" in name]


# --- releases ------------------------------------------------------------------------------------------------------


def test_a_release_works_in_a_process_that_never_saw_the_table(tmp_path: Path, key: SigningKey) -> None:
    """Also with a pack of one's own whose file is gone, and drawing exactly the same series."""
    file = tmp_path / "own.safetensors"
    load_pack("general", "pub2priv").save(file)
    release = fit(Pub2Priv(pack=str(file), recipe=SMALL), following(60, 0.9))
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
