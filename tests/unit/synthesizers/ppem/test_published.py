"""Both pairs are trained as Algorithm 1 says: the penalty on one of them, generators released as an average."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from tests.unit.synthesizers.ppem.toy import SMALL, method, panel, schema
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.synthesizers import Release
from understudy.synthesizers.ppem.attributes import Partition
from understudy.synthesizers.ppem.published import CONDITIONAL, MARGINAL, AdversarialTraining, generators_of
from understudy.synthesizers.ppem.recipe import LATENT, Recipe


def partition() -> Partition:
    return Partition.of(schema(), ("region", "mean(spending)"))


def training(recipe: Recipe = SMALL, number: int = 60) -> AdversarialTraining:
    parts = partition()
    generators = generators_of((MARGINAL, CONDITIONAL), parts, recipe, 0)
    return AdversarialTraining(generators, parts, parts.rows(panel(number)), recipe, seed=0)


def trained(penalty: float, ema: float = 0.9) -> AdversarialTraining:
    """A training from the same start whatever the penalty."""
    held = training(replace(SMALL, iterations=12, batch=16, penalty=penalty, ema=ema))
    held.run(lambda share: None)
    return held


def test_generators_are_constants_in_the_loss_of_the_energies() -> None:
    held = training()
    real, rest = torch.from_numpy(held.rows.sensitive), torch.from_numpy(held.rows.rest)
    held.energy_loss(real, rest, torch.Generator().manual_seed(0)).backward()
    assert all(parameter.grad is None for parameter in held.generators.parameters())
    for energy in held.energies.values():
        assert all(parameter.grad is not None for parameter in energy.parameters())


def weights(network: nn.Module) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in network.parameters()]


def test_the_penalty_does_not_touch_what_x_star_is_given_x() -> None:
    """Eq. 18 is on the marginal energy alone: with the same coins the conditional pair is the same, bit by bit."""
    with_it, without = trained(10.0), trained(0.0)
    moved = zip(weights(with_it.energies[MARGINAL]), weights(without.energies[MARGINAL]), strict=True)
    assert not all(torch.equal(a, b) for a, b in moved)
    for network in ("energies", "generators"):
        first, second = (getattr(held, network)[CONDITIONAL] for held in (with_it, without))
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
    held = training(recipe, number=400)
    real = torch.from_numpy(held.rows.sensitive)

    def drawn() -> Tensor:
        return held.generated(MARGINAL, 400, None, torch.Generator().manual_seed(1)).detach()

    start = float((drawn().mean(0) - real.mean(0)).norm())
    held.run(lambda share: None)
    assert float((drawn().mean(0) - real.mean(0)).norm()) < 0.5 * start
    assert float(drawn().std(0).min()) > 0.1


def test_generators_of_the_paper_normalise_over_the_batch_and_come_back_from_a_release(tmp_path: Path) -> None:
    """Control: with LayerNorm a row does not follow from the others of its batch."""
    moved = {}
    for norm in ("layer", "batch"):
        generator = training(replace(SMALL, norm=norm)).generators.train()[MARGINAL]
        rows = torch.randn(40, LATENT, generator=torch.Generator().manual_seed(0))
        moved[norm] = not torch.allclose(generator(rows)[:20], generator(rows[:20]), atol=1e-5)
    assert moved == {"layer": False, "batch": True}
    unlimited = Guarantee(math.inf, 1e-6)
    asked = method(mode="lmdp", recipe=replace(SMALL, norm="batch", iterations=8))
    release = asked.fit(panel(), Ledger.in_memory(unlimited), guarantee=unlimited)
    saved = release.save(tmp_path / "release")
    ours, theirs = (
        one.sample(20, rng=np.random.default_rng(0)) for one in (release, Release.load(tmp_path / "release"))
    )
    assert np.array_equal(ours.values, theirs.values)
    assert not saved.certificate.is_private
    assert np.array_equal(ours.values[:5], release.sample(20, rng=np.random.default_rng(0)).values[:5])  # nothing moved
