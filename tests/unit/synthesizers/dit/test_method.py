"""`dit` spends as it says, leaves frozen weights alone, and its intervals cover what they say."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.unit.synthesizers.dit.small import SMALL, waves
from tests.unit.synthesizers.spectral.recording import MUCH, Tape, listening
from understudy.data import Panel, Population, PrivacyUnit
from understudy.data.masks import MASKS
from understudy.errors import InputError, MissingData
from understudy.evaluation.fillings import counted, interval_coverage, squared_error
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import SubsampledGaussian
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.completing import fillings
from understudy.synthesizers.contract.panels import make_panel, rich_schema
from understudy.synthesizers.dit import DiT
from understudy.synthesizers.dit import method as dit_method
from understudy.synthesizers.dit.interpolation import NO_AUTOCOVARIANCE
from understudy.synthesizers.dit.method import NETWORK
from understudy.synthesizers.dit.pretraining import measured_reference, pretrain, public_marginals
from understudy.synthesizers.dit.recipe import PAPER, Network, Recipe
from understudy.synthesizers.dit.scores import NormalScores
from understudy.synthesizers.packs import Pack
from understudy.training import DPSGDConfig, PrivateGradient, UnitWindows
from understudy.training.networks import num_parameters
from understudy.training.plan import noise_ratio

GUARANTEE, LOOSE = Guarantee(1.0, 1e-6), Guarantee(8.0, 1e-6)


def _silent(stage: str, share: float) -> None:
    """Shows nothing."""


def _pack(path: Path, *, with_weights: bool = True) -> Pack:
    pack = pretrain(
        replace(waves(64), private=False), SMALL, iterations=3, with_weights=with_weights,
        provenance={"command": "a test"}, progress=_silent,
    )  # fmt: skip
    pack.save(path)
    return pack


def test_intervals_cover_what_they_say_on_series_that_were_not_learned_from() -> None:
    """The 90 % interval of 19 fillings covers 85 to 95 % of held-out gaps, for each way of hiding steps.

    300 series of 24 steps: some 2000 hidden values for each way, whose share moves by about 0.01 from one draw of
    series and masks to the next. And fillings come from what is around a gap: their error is less than five sixths of
    what series with the same distribution of values would have.
    """
    method = DiT(
        recipe=Recipe(network=Network(width=32, depth=1, num_heads=2), iterations=60, batch=256), sampling_steps=20
    )
    release = method.fit(waves(2000), Ledger.in_memory(LOOSE), guarantee=LOOSE)
    unseen, rng = waves(300, seed=9), np.random.default_rng(4)
    for kind in ("random", "stride", "block"):
        hidden = MASKS[kind](300, 24, rng)[:, :, None]
        drawn = fillings(release, unseen, hidden, num_draws=19, rng=rng)
        assert 0.85 <= interval_coverage(*counted(unseen.values, drawn, hidden)) <= 0.95
        anybody = np.stack([waves(300, seed=seed).values for seed in range(20, 39)])
        assert (
            squared_error(*counted(unseen.values, drawn, hidden))
            < squared_error(*counted(unseen.values, anybody, hidden)) / 1.2
        )


def test_units_are_drawn_and_the_rest_of_the_guarantee_goes_into_training() -> None:
    schema = waves(3000).schema
    plan = SMALL.spending_plan(schema, GUARANTEE)
    event = plan.event("training")
    assert isinstance(event, SubsampledGaussian)
    assert event.sampling_rate == pytest.approx(64 / 3000)
    assert 0.99 * GUARANTEE.epsilon < plan.epsilon() <= GUARANTEE.epsilon


def test_bounds_do_not_change_what_is_spent() -> None:
    schema = waves(3000).schema
    tight, none = (
        replace(SMALL, recipe=replace(SMALL.recipe, network=replace(SMALL.recipe.network, tightness=tightness)))
        for tightness in ("too-tight", "none")
    )
    assert tight.spending_plan(schema, GUARANTEE) == none.spending_plan(schema, GUARANTEE)


def test_the_batch_follows_the_declared_population_and_not_the_series_that_are_there() -> None:
    few, many = (waves(number, population=Population(3000)).schema for number in (10, 500))
    assert SMALL.spending_plan(few, GUARANTEE) == SMALL.spending_plan(many, GUARANTEE)


@pytest.mark.parametrize("max_series", [1, 3])
def test_one_unit_moves_each_statistic_by_at_most_its_bound(max_series: int) -> None:
    panel = make_panel(rich_schema(unit=PrivacyUnit(column="home", max_series=max_series)), 12)
    first = _tape(panel, None)
    assert set(first.sums) == {"marginals", "labels", "absence", "autocovariance"}
    for left_out in (0, 5, 11):
        fewer = panel.take_units([unit for unit in range(12) if unit != left_out])
        other = _tape(fewer, first)
        for label in first.sums:
            assert 0 < first.distance(other, label) <= 1 + 1e-9


def test_steps_are_the_shorter_the_louder_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[float] = []
    monkeypatch.setattr(dit_method, "fit_network", lambda *task, **options: None)
    monkeypatch.setattr(dit_method, "adam", lambda rate, weight_decay: heard.append(rate))
    for guarantee in (GUARANTEE, LOOSE, Guarantee(1000.0, 1e-6)):
        method = replace(SMALL, recipe=replace(SMALL.recipe, learning_rate=1.0))
        method.fit(waves(200), Ledger.in_memory(guarantee), guarantee=guarantee)
    assert heard[0] < heard[1] < heard[2] == 1.0
    model = SMALL.empty_network(waves(1).schema)
    noise = SMALL.spending_plan(waves(200).schema, LOOSE).event("training").noise_multiplier  # type: ignore[union-attr]
    assert heard[1] == pytest.approx(1 / noise_ratio(noise, num_parameters(model), 64.0))


def _tape(panel: Panel, frozen: Tape | None) -> Tape:
    with listening(frozen) as tape:
        SMALL.fit(panel, Ledger.in_memory(MUCH), noise=NoiseSource.constant(0))
    return tape


@pytest.mark.parametrize("num_units", [3, 150])
def test_the_noisy_sum_is_divided_by_the_declared_batch(num_units: int, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[DPSGDConfig] = []
    monkeypatch.setattr(dit_method, "fit_network", lambda *task, **options: heard.append(task[4]))
    panel = waves(num_units, population=Population(3000))
    SMALL.fit(panel, Ledger.in_memory(GUARANTEE), guarantee=GUARANTEE)
    assert heard[0].expected_batch == pytest.approx(64)


def test_the_clip_bounds_a_unit_however_often_it_is_shown() -> None:
    """One unit with huge losses, shown with eight masks: its gradient is as long as the clip, not longer."""
    panel = waves(1)
    method = replace(SMALL, recipe=replace(SMALL.recipe, draws=8, clipping_norm=0.5))
    model = method.empty_network(panel.schema)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=2.0)
    columns = NormalScores(panel.schema, public_marginals(panel), model.patch, np.zeros(0))
    examples = columns.examples(panel.values, panel.static, np.zeros(1, dtype=np.int64), None)
    windows = UnitWindows(examples, panel.unit, np.random.default_rng(0))
    plan = DPSGDConfig(sampling_rate=1.0, iterations=1, expected_batch=1.0, clipping_norm=0.5, noise_multiplier=1.0)
    gradient = PrivateGradient(model, plan, NoiseSource.constant(0))
    loss = method.denoising(panel.schema, np.array(NO_AUTOCOVARIANCE)[:, None]).loss
    gradient.write(loss, windows, np.array([0]), torch.Generator().manual_seed(0))
    assert float(gradient.flat.gradient.norm()) == pytest.approx(0.5 * (1 - 2**-10), rel=2**-11)


def test_a_pack_gives_bounds_and_first_weights_and_is_named_in_the_certificate(tmp_path: Path) -> None:
    pack = _pack(tmp_path / "waves.safetensors")
    reference = pack.arrays["reference"]
    assert (reference > 0).all()
    assert set(pack.provenance["quality"]) == {"error_untrained", "error_without_bounds", "error"}
    method = replace(SMALL, pack=str(tmp_path / "waves.safetensors"), recipe=replace(SMALL.recipe, iterations=1))
    release = method.fit(waves(200), Ledger.in_memory(GUARANTEE), guarantee=GUARANTEE)
    assert release.certificate.public_inputs["dit pack"] == pack.sha256
    model = method.released(release.schema, release.arrays).model
    assert model.radius == pytest.approx(0.9 * reference[0])
    assert model.condition.bounds.scale == pytest.approx(0.9 * reference[1])
    distance = max(
        np.abs(weight.numpy() - pack.arrays[f"{NETWORK}{name}"]).max() for name, weight in model.state_dict().items()
    )
    assert distance < 0.01  # one step of Adam away


def test_a_pack_that_does_not_fit_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    weights, bounds = tmp_path / "weights.safetensors", tmp_path / "bounds.safetensors"
    _pack(weights)
    assert list(_pack(bounds, with_weights=False).arrays) == ["reference"]
    wrong = [
        (
            replace(SMALL, pack=str(weights), recipe=Recipe(network=Network(width=16, num_heads=2))),
            InputError,
            "width 8 instead of 16",
        ),
        (replace(SMALL, pack=str(tmp_path / "none")), MissingData, "is not there"),
    ]
    for method, kind, told in wrong:
        ledger = Ledger.in_memory(GUARANTEE)
        with pytest.raises(kind, match=told):
            method.fit(waves(200), ledger, guarantee=GUARANTEE)
        assert not ledger.entries()


def test_magnitudes_are_those_that_most_conditions_stay_below() -> None:
    panel, network = waves(64), replace(SMALL.recipe.network, tightness="none")
    model = replace(SMALL, recipe=replace(SMALL.recipe, network=network)).empty_network(panel.schema)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    columns = NormalScores(panel.schema, public_marginals(panel), model.patch, np.zeros(0))
    examples = columns.examples(panel.values, panel.static, np.zeros(64, dtype=np.int64), None)
    found = measured_reference(
        model, SMALL.denoising(panel.schema, np.array(NO_AUTOCOVARIANCE)[:, None]), examples, seed=0
    )
    larger = measured_reference(
        _scaled(model, 3.0), SMALL.denoising(panel.schema, np.array(NO_AUTOCOVARIANCE)[:, None]), examples, seed=0
    )
    assert all(size > 0 for size in found)
    assert larger[1:] == pytest.approx([3 * size for size in found[1:]], rel=1e-4)


def _scaled(model: object, factor: float) -> object:
    for name, parameter in model.named_parameters():  # type: ignore[attr-defined]
        if ".condition." in f".{name}":
            parameter.data *= factor
    return model


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"width": 12, "num_heads": 8}, "width"),
        ({"patch": 0}, "patch"),
        ({"tightness": "looser"}, "tightness"),
    ],
)
def test_a_network_that_makes_no_sense_is_refused(options: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Network(**options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"iterations": 0}, "iterations"),
        ({"ema": 1.0}, "ema"),
        ({"predicts": "x"}, "predicts"),
        ({"clipping_norm": 0.0}, "clipping_norm"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(options: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Recipe(**options)


@pytest.mark.parametrize(("steps", "patch"), [(168, 12), (96, 6), (24, 2), (8, 1), (1, 1), (97, 7)])
def test_a_token_is_a_few_steps_and_divides_the_series_if_it_can(steps: int, patch: int) -> None:
    assert Network().patch_for(steps) == patch


def test_the_paper_runs_at_small_size() -> None:
    """Section 5.1: width 256, depth 8, 8 heads, a token per step, noise prediction, AdamW; fewer iterations."""
    published = DiT(**DiT.presets["paper"])
    assert published.recipe == PAPER
    method = replace(published, sampling_steps=2, recipe=replace(PAPER, iterations=1, batch=4))
    panel = waves(12, steps=6)
    release = method.fit(panel, Ledger.in_memory(GUARANTEE), guarantee=GUARANTEE)
    assert "autocovariance" not in {entry.label for entry in method.spending_plan(panel.schema, GUARANTEE).entries}
    model = method.released(release.schema, release.arrays).model
    assert (model.patch, len(model.blocks), model.embed.out_features) == (1, 8, 256)
    assert release.sample(2).values.shape == (2, 6, 1)
