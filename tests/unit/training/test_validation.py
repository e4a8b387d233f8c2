"""Networks that mix units are refused by name or by trial, before anything is spent."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.unit.training.toy import grant_for, plan_of, regression_task, windows_of
from understudy.errors import InputError, UnsafeModule
from understudy.training import Task, check_task, train, validate_module
from understudy.training.private_gradient import Loss

OFFENDERS = {
    "BatchNorm1d": (nn.BatchNorm1d(4), "GroupNorm or LayerNorm"),
    "BatchNorm2d": (nn.BatchNorm2d(4), "GroupNorm or LayerNorm"),
    "SyncBatchNorm": (nn.SyncBatchNorm(4), "GroupNorm or LayerNorm"),
    "InstanceNorm1d": (nn.InstanceNorm1d(4, track_running_stats=True), "track_running_stats=False"),
    "LSTM": (nn.LSTM(4, 4), "batch_first=True"),
    "GRU": (nn.GRU(4, 4), "batch_first=True"),
    "MultiheadAttention": (nn.MultiheadAttention(4, 2), "batch_first=True"),
    "RNN": (nn.RNN(4, 4, batch_first=True), "GRU or LSTM"),
    "EmbeddingBag": (nn.EmbeddingBag(4, 4), "Embedding followed by a mean"),
    "LazyLinear": (nn.LazyLinear(4), "sizes given"),
    "Embedding": (nn.Embedding(4, 4, max_norm=1.0), "max_norm=None"),
}


@pytest.mark.parametrize("name", OFFENDERS)
def test_an_offending_layer_is_refused_by_name_with_its_replacement(name: str) -> None:
    layer, replacement = OFFENDERS[name]
    with pytest.raises(UnsafeModule, match=f"got {name} at '1'.*{replacement}"):
        validate_module(nn.Sequential(nn.Identity(), layer))


def test_layers_that_treat_units_alone_pass() -> None:
    validate_module(nn.Sequential(nn.Linear(4, 4), nn.GroupNorm(2, 4), nn.LSTM(4, 4, batch_first=True)))


class Centred(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x - x.mean(0))


class Remembers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        self.seen += x.detach().sum(0)
        return self.layer(x)


class Shuffled(nn.Module):
    """Separate losses, but a layer that sees the rows of all units interleaved."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        twice = torch.cat([x, 2 * x])  # step-major: all units, then all units again
        first, second = self.layer(twice).chunk(2)
        return first + second


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Centred, "depend on that unit alone"),
        (Remembers, "changed by a forward pass"),
        (Shuffled, "agree with one backward per unit"),
    ],
)
def test_a_network_of_unknown_make_that_mixes_units_is_found_out(model: type[nn.Module], message: str) -> None:
    with pytest.raises(UnsafeModule, match=message):
        check_task(regression_task(model=model()))


def averaged(model: nn.Module, batch: dict[str, Tensor], generator: torch.Generator) -> Tensor:
    return (model(batch["x"]) - batch["y"]).square() / len(batch["x"])


def test_a_loss_divided_by_the_size_of_the_batch_is_refused() -> None:
    with pytest.raises(UnsafeModule, match="independent of other units in the batch"):
        check_task(regression_task(loss=averaged))


class CentresInTraining(nn.Module):
    """Remembers private means, and only in training mode."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().reshape(-1, 3).mean(0)
        return self.layer(x)


def test_what_a_network_does_in_training_mode_only_is_found_out_before_training() -> None:
    plan = plan_of()
    with pytest.raises(UnsafeModule, match="changed by a forward pass"):
        train(regression_task(model=CentresInTraining().eval()), plan, grant_for(plan))


def test_a_loss_with_hidden_randomness_is_refused() -> None:
    def loss(model: nn.Module, batch: dict[str, Tensor], generator: torch.Generator) -> Tensor:
        return model(batch["x"]) * torch.tensor(np.random.default_rng().normal(size=(3, 1)), dtype=torch.float32)

    with pytest.raises(InputError, match="generator it is handed"):
        check_task(regression_task(loss=loss))


def test_random_losses_dropout_and_attention_pass_the_trial() -> None:
    encoder = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.3, batch_first=True)
    model = nn.Sequential(encoder, nn.Dropout(0.5), nn.Linear(4, 4))

    def loss(network: nn.Module, batch: dict[str, Tensor], generator: torch.Generator) -> Tensor:
        noise = torch.randn(batch["x"].shape, generator=generator)
        return (network(batch["x"] + noise) - noise).square()

    windows = windows_of({"x": np.zeros((9, 6, 4), np.float32)})
    check_task(Task(model=model, loss=loss, windows=windows))
    assert model.training
    assert encoder.self_attn.training


def test_a_refused_network_costs_nothing() -> None:
    plan = plan_of()
    grant = grant_for(plan)
    with pytest.raises(UnsafeModule):
        train(regression_task(model=nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))), plan, grant)
    assert grant.executed == {"training": 0}


def _noisy_output(model: nn.Module, batch: dict[str, Tensor], generator: torch.Generator) -> Tensor:
    x = batch["x"]
    shown = torch.rand(len(x), 1, generator=generator, dtype=x.dtype)
    return model(x + torch.randn(x.shape, generator=generator, dtype=x.dtype) * shown).square().sum(1)


def by_the_size_of_the_batch(model: nn.Module, batch: dict[str, Tensor], generator: torch.Generator) -> Tensor:
    return _noisy_output(model, batch, generator) / len(batch["x"])


def by_class_weights(model: nn.Module, batch: dict[str, Tensor], generator: torch.Generator) -> Tensor:
    """Every class counts as much as every other, by how many of it are in the batch."""
    return _noisy_output(model, batch, generator) / torch.bincount(batch["class"])[batch["class"]]


def by_other_units(model: nn.Module, batch: dict[str, Tensor], generator: torch.Generator) -> Tensor:
    other = torch.randperm(len(batch["x"]), generator=generator)
    return (model(batch["x"]) - batch["x"][other].sum(1, keepdim=True)).square().sum(1)


def by_the_mean_of_the_batch(model: nn.Module, batch: dict[str, Tensor], generator: torch.Generator) -> Tensor:
    losses = _noisy_output(model, batch, generator)
    return losses - losses.mean()


def each_alone(model: nn.Module, batch: dict[str, Tensor], generator: torch.Generator) -> Tensor:
    """One level of noise for the whole batch, and dropout, are no coupling."""
    level = torch.rand(1, generator=generator)
    return nn.functional.dropout(_noisy_output(model, batch, generator) * level, 0.5)


def _task(loss: Loss, model: nn.Module | None = None) -> Task:
    rng = np.random.default_rng(0)
    arrays = {"x": rng.random((8, 6)).astype(np.float32), "class": rng.integers(0, 3, 8)}
    return Task(model=model or nn.Linear(6, 2), loss=loss, windows=windows_of(arrays))


@pytest.mark.parametrize("loss", [by_the_size_of_the_batch, by_class_weights, by_other_units, by_the_mean_of_the_batch])
def test_a_randomised_loss_that_couples_units_is_refused(loss: Loss) -> None:
    with pytest.raises(UnsafeModule):
        check_task(_task(loss))


def test_a_randomised_loss_that_couples_nobody_passes() -> None:
    check_task(_task(each_alone))


def test_coupling_behind_layers_that_start_at_zero_is_found_out_and_they_stay_at_zero() -> None:
    """Two such layers in a row: neither losses nor gradients depend on what comes before them."""
    model = nn.Sequential(nn.Linear(6, 3), Centred(), nn.Linear(1, 2), nn.Linear(2, 2))
    zeros = [*model[2].parameters(), model[3].weight]
    for parameter in zeros:
        nn.init.zeros_(parameter)
    with pytest.raises(UnsafeModule):
        check_task(_task(_noisy_output, model))
    assert not any(parameter.any() for parameter in zeros)
