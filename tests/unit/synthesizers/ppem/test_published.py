"""One unit's contribution to a private gradient is its own, bounded over both energies, and noised everywhere."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.unit.synthesizers.ppem.toy import SMALL, panel, schema
from understudy.errors import UnsafeModule
from understudy.privacy.noise import NoiseSource
from understudy.statistics.encoding import Encoding, linear_scales
from understudy.synthesizers.ppem.attributes import Partition, parse
from understudy.synthesizers.ppem.published import (
    AdversarialTraining,
    Energies,
    Generators,
    obfuscation_penalty,
    train_without_noise,
)
from understudy.synthesizers.ppem.recipe import Recipe
from understudy.training import DPSGDConfig, PrivateGradient, UnitBatches, UnitWindows
from understudy.training.clipping.engine import Expand
from understudy.training.validation import try_out

UNITS, CLIP = 9, 1.5
PLAN = DPSGDConfig(sampling_rate=1.0, iterations=1, expected_batch=7.0, clip_norm=CLIP, noise_multiplier=2.0)


def partition() -> Partition:
    contract = schema()
    attributes = tuple(one for group in parse(contract, ("region", "mean(spending)")) for one in group)
    return Partition(Encoding.of(contract, (), linear_scales(contract, None)), attributes)


def arrays(number: int = UNITS, seed: int = 0) -> dict[str, np.ndarray]:
    parts, data = partition(), panel(number, seed)
    assert data.label is not None
    series = parts.encoding.series(data, slice(None))
    values = parts.sensitive_values(data, series, data.label)
    rest = parts.rest(series, parts.encoding.static(data, slice(None)), data.label)
    return {"sensitive": parts.encoded(values), "rest": rest}


def training(
    seed: int = 0, recipe: Recipe = SMALL, *, marginal: bool = True, conditional: bool = True
) -> AdversarialTraining:  # fmt: skip
    parts = partition()
    torch.manual_seed(seed)
    energies = Energies(parts, recipe.width, marginal=marginal, conditional=conditional)
    references = torch.from_numpy(arrays(50, seed=9)["sensitive"])
    return AdversarialTraining(
        energies=energies,
        generators=Generators(parts, recipe.width, seed, marginal=marginal, conditional=conditional),
        references=references,
        codes=((0, 3),),
        recipe=recipe,
        seed=seed,
        penalised=True,
    )


def clipped_rows(held: AdversarialTraining, rows: dict[str, np.ndarray]) -> list[dict[str, Tensor]]:
    """Every unit's clipped contribution, from one pass over all of them with the same random numbers."""
    gradient = PrivateGradient(held.energies, PLAN, NoiseSource.constant(0))
    batch = {name: torch.from_numpy(array) for name, array in rows.items()}
    clipper = gradient._clipper
    collector = clipper.collect(
        lambda: held.private_loss(held.energies, batch, torch.Generator().manual_seed(5)), len(rows["rest"])
    )
    norms, dense = collector.squared_norms(), collector.dense()
    names = {id(parameter): name for name, parameter in held.energies.named_parameters()}
    factors = (CLIP / norms.sqrt()).clamp(max=1)
    return [{names[key]: factors[unit] * whole[unit] for key, whole in dense.items()} for unit in range(len(norms))]


def total(held: AdversarialTraining, rows: dict[str, np.ndarray], noise: NoiseSource) -> Tensor:
    """What one iteration writes: the noisy sum over the public batch, as one vector."""
    gradient = PrivateGradient(held.energies, PLAN, noise)
    units = np.arange(len(rows["rest"]))
    windows = UnitWindows(rows, units, UnitBatches(), np.random.default_rng(0))
    gradient.write(held.private_loss, windows, units, torch.Generator().manual_seed(5))
    return gradient.flat.gradient.clone()


WAYS = {
    "both energies": {},
    "a stated target": {"marginal": False},
    "the marginal alone": {"conditional": False},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("extreme", [0.0, 1.0, 1e4, float("nan")])
def test_perturbing_one_unit_leaves_every_other_units_contribution_bit_identical(extreme: float, way: str) -> None:
    base, other, held = arrays(), arrays(), training(**WAYS[way])  # type: ignore[arg-type]
    other["sensitive"][3], other["rest"][3] = extreme, -extreme
    first, second = clipped_rows(held, base), clipped_rows(held, other)
    for unit in range(UNITS):
        same = all(torch.equal(first[unit][name], second[unit][name]) for name in first[unit])
        assert same == (unit != 3)


def test_a_penalty_on_the_batch_would_be_caught() -> None:
    """The negative control is the paper's own rule: the penalty of real rows inside each row's loss."""
    held = training()

    def coupled(model: nn.Module, batch: dict[str, Tensor], generator: torch.Generator) -> Tensor:
        losses = held.private_loss(model, batch, generator)
        assert isinstance(model, Energies)
        assert model.marginal is not None
        return losses + obfuscation_penalty(model.marginal, batch["sensitive"]) / len(losses) + batch["rest"].mean()

    windows = UnitWindows(arrays(), np.arange(UNITS), UnitBatches(), np.random.default_rng(0))
    made_up = windows.made_up(4, np.random.default_rng(0))
    try_out(held.energies, held.private_loss, made_up, 4)
    with pytest.raises(UnsafeModule):
        try_out(held.energies, coupled, made_up, 4)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
def test_one_unit_moves_both_energies_together_by_at_most_the_clip(scale: float) -> None:
    """One norm over both energies: two separate clips would allow √2 times as much."""
    rows = {name: scale * array for name, array in arrays(40).items()}
    norms = [
        float(torch.cat([g.flatten().double() for g in one.values()]).norm()) for one in clipped_rows(training(), rows)
    ]
    assert max(norms) <= CLIP * (1 + 1e-4)
    alone = {name: array[:1] for name, array in rows.items()}
    moved = total(training(), alone, NoiseSource.constant(0)) * PLAN.expected_batch
    assert float(moved.norm()) <= CLIP * (1 + 1e-6)
    if scale == 1e5:
        parts = {"marginal": 0.0, "conditional": 0.0}
        for name, gradient in clipped_rows(training(), rows)[0].items():
            parts[name.split(".")[0]] += float(gradient.square().sum())
        assert min(parts.values()) > 0  # both energies share the bound


def test_noise_goes_on_every_parameter_of_both_energies() -> None:
    runs = [total(training(), arrays(), NoiseSource.constant(value)) for value in (0, 1)]
    expected = PLAN.noise_scale / PLAN.expected_batch
    assert torch.allclose(runs[1] - runs[0], torch.full_like(runs[0], expected), rtol=1e-4)
    assert runs[0].numel() == sum(p.numel() for p in training().energies.parameters())


def test_the_gradient_penalty_needs_no_copies_of_parameters() -> None:
    held = training()
    gradient = PrivateGradient(held.energies, PLAN, NoiseSource.constant(0))
    batch = {name: torch.from_numpy(array) for name, array in arrays().items()}
    gradient._clipper.collect(lambda: held.private_loss(held.energies, batch, torch.Generator()), UNITS)
    assert gradient._clipper._patch.expand is Expand.UNKNOWN


def test_generators_and_the_public_loss_never_see_a_real_row() -> None:
    """They are handed no batch; what they know of x′ are the references."""
    held = training()
    assert list(inspect.signature(held.public_loss).parameters) == ["model", "generator"]
    assert list(inspect.signature(held.after_iteration).parameters) == ["iteration"]
    before = [p.clone() for p in held.generators.parameters()]
    total(held, arrays(), NoiseSource.constant(0))
    assert all(torch.equal(a, b) for a, b in zip(before, held.generators.parameters(), strict=True))
    held.after_iteration(1)
    assert not all(torch.equal(a, b) for a, b in zip(before, held.generators.parameters(), strict=True))


def trained(penalty: float, ema: float = 0.9) -> AdversarialTraining:
    """A training without noise, from the same start whatever the penalty."""
    recipe = replace(SMALL, iterations=12, batch=16, penalty=penalty, ema=ema)
    held = replace(training(), recipe=recipe)
    train_without_noise(held, arrays(60), lambda share: None)
    return held


def weights(network: nn.Module) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in network.parameters()]


def test_the_penalty_does_not_touch_what_x_star_is_given_x() -> None:
    """Eq. 18 is on the marginal energy alone: with the same coins the conditional pair is the same, bit by bit."""
    with_it, without = trained(10.0), trained(0.0)
    assert with_it.energies.marginal is not None
    assert without.energies.marginal is not None
    moved = zip(weights(with_it.energies.marginal), weights(without.energies.marginal), strict=True)
    assert not all(torch.equal(a, b) for a, b in moved)
    for network in ("energies", "generators"):
        first, second = (getattr(held, network).conditional for held in (with_it, without))
        assert all(torch.equal(a, b) for a, b in zip(weights(first), weights(second), strict=True))


def test_generators_are_released_as_their_running_average() -> None:
    """With no weight on the past that is the last one; with some it lies between the start and the last one."""
    start, last, average = (weights(held.generators) for held in (training(), trained(0.0, ema=0.0), trained(0.0)))
    assert not all(torch.equal(a, b) for a, b in zip(last, average, strict=True))
    moved = [sum(float((a - b).square().sum()) for a, b in zip(start, end, strict=True)) for end in (last, average)]
    assert 0 < moved[1] < moved[0]


def test_a_training_learns_where_the_data_is() -> None:
    """Without noise the marginal generator finds the mean, and what it draws has spread."""
    recipe = replace(SMALL, iterations=500, batch=64, width=32, rounds=2, energy_rate=3e-3, generator_rate=2e-3)
    rows, parts = arrays(400), partition()
    torch.manual_seed(0)
    held = AdversarialTraining(
        energies=Energies(parts, recipe.width, marginal=True, conditional=True),
        generators=Generators(parts, recipe.width, 0, marginal=True, conditional=True),
        references=torch.from_numpy(rows["sensitive"]),
        codes=((0, 3),),
        recipe=recipe,
        seed=0,
    )
    real = torch.from_numpy(rows["sensitive"])

    def drawn() -> Tensor:
        return held._generated_sensitive(400, torch.Generator().manual_seed(1))

    start = float((drawn().mean(0) - real.mean(0)).norm())
    train_without_noise(held, rows, lambda share: None)
    assert float((drawn().mean(0) - real.mean(0)).norm()) < 0.5 * start
    assert float(drawn().std(0).min()) > 0.1
