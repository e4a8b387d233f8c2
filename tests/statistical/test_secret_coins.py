"""Every secret coin falls anew in every run: no public seed, option or earlier run tells it.

Noise comes from a source that is the same in both runs, so that what differs comes from other coins: which windows of a
unit are shown, times and noises of a diffusion, masks of dropout. Two runs agree by chance with less than 2⁻³⁰.
"""

import csv
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from understudy_bench.audit.canaries import random_panel

from tests.e2e.commands import make_clinic, run
from tests.subjects import TRAINED, small_schema
from tests.unit.training.toy import grant_for, plan_of, regression_arrays
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.vflgan_ts.protocol import RunConfig, seeded
from understudy.synthesizers.vflgan_ts.recipe import Recipe
from understudy.training import DPSGDConfig, Optimisation, Task, UnitWindows, train
from understudy.training.loop import _Run

UNITS = 30


def fitted(name: str, noise: NoiseSource) -> dict[str, np.ndarray]:
    """What a method releases about the same panel, with its default public seed."""
    make, schema = TRAINED[name]
    method = make()
    panel = random_panel(schema, UNITS, np.random.default_rng(0))
    guarantee = Guarantee(200.0, 1e-7)  # so much that noise is found in closed form
    return method.fit(panel, Ledger.in_memory(guarantee), guarantee=guarantee, noise=noise).arrays


def same(one: dict[str, np.ndarray], two: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(one[name], two[name], equal_nan=one[name].dtype.kind == "f") for name in one)


def known_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every secret of a process known: those of `secrets`, and generators that nobody seeded."""
    make = np.random.default_rng
    monkeypatch.setattr(secrets, "randbits", lambda bits: 7)
    monkeypatch.setattr(np.random, "default_rng", lambda seed=None: make(7 if seed is None else seed))


@pytest.mark.parametrize("name", TRAINED)
def test_training_has_coins_that_no_public_seed_tells(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = lambda: NoiseSource.constant(0.0)  # noqa: E731
    assert not same(fitted(name, noise()), fitted(name, noise()))
    known_coins(monkeypatch)
    assert same(fitted(name, noise()), fitted(name, noise()))  # the control: nothing else is random


@pytest.mark.parametrize("name", TRAINED)
def test_which_windows_of_a_unit_are_shown_is_secret(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator that chooses them starts elsewhere in every run, with 128 bits of its own."""
    starts: list[int] = []
    begin = UnitWindows.__init__

    def watched(self: UnitWindows, arrays: Any, unit: Any, rng: np.random.Generator, cap: Any = None) -> None:
        starts.append(rng.bit_generator.state["state"]["state"])
        begin(self, arrays, unit, rng, cap)

    monkeypatch.setattr(UnitWindows, "__init__", watched)
    for _ in range(2):
        fitted(name, NoiseSource.constant(0.0))
    assert len(starts) >= 2
    assert len(set(starts)) == len(starts)


def trained_seeds(runs: int, iterations: int = 4) -> list[tuple[int, int]]:
    """Where both of torch's generators start in every iteration: the loss's own and the one that dropout uses."""
    seeds: list[tuple[int, int]] = []

    def loss(model: nn.Module, batch: dict[str, Tensor], generator: torch.Generator) -> Tensor:
        seeds.append((generator.initial_seed() % 2**32, torch.initial_seed() % 2**32))
        return (model(batch["x"]) - batch["y"]).square()

    for _ in range(runs):
        torch.manual_seed(0)
        plan = plan_of(iterations=iterations, sampling_rate=1.0, expected_batch=100.0)
        windows = UnitWindows(regression_arrays(20), np.arange(20), np.random.default_rng(0))
        train(Task(model=nn.Linear(3, 1), loss=loss, windows=windows), plan, grant_for(plan))
    return seeds


def test_generators_start_elsewhere_in_every_iteration_of_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials on made-up inputs come first, by public seeds; iterations are told apart by where they are called."""
    during: list[bool] = []
    iterate = _Run._iterate
    monkeypatch.setattr(_Run, "_iterate", lambda self, drawn: (during.append(True), iterate(self, drawn))[1])
    seeds = trained_seeds(runs=3)
    private = [seed for seed in seeds if seeds.count(seed) == 1]
    assert len(during) == 12
    assert len(private) >= 12
    for which in (0, 1):
        assert len({seed[which] for seed in private}) == len(private)
    assert all(own != dropout for own, dropout in private)


def test_dropout_of_the_same_rows_differs_between_runs() -> None:
    def trained() -> Tensor:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 1))
        plan = plan_of(iterations=1, sampling_rate=1.0, expected_batch=100.0)
        windows = UnitWindows(regression_arrays(20), np.arange(20), np.random.default_rng(0))
        loss = lambda network, batch, _: (network(batch["x"]) - batch["y"]).square()  # noqa: E731
        plainly = Optimisation(make=lambda parameters: torch.optim.SGD(parameters, lr=1.0))  # Adam shows signs only
        task, grant = Task(model=model, loss=loss, windows=windows), grant_for(plan, NoiseSource.constant(0.0))
        train(task, plan, grant, optimisation=plainly)
        return model[1].weight.detach().clone()

    assert not torch.equal(trained(), trained())


def test_batches_differ_between_runs() -> None:
    config = DPSGDConfig(sampling_rate=0.5, iterations=3, expected_batch=100.0)
    runs = [[tuple(drawn) for drawn in config.draw(200, NoiseSource.secure())] for _ in range(2)]
    assert runs[0] != runs[1]
    assert len(set(runs[0])) == 3


def agreed(mode: str, name: str) -> torch.Generator:
    with seeded(0, name):
        return RunConfig(small_schema(parties=True), Recipe(), mode, 0).randomness()


def test_every_owner_of_a_vertical_run_has_coins_of_its_own_in_every_run() -> None:
    owners = ("first", "second", "aggregator")
    starts = [agreed("sound", owner).initial_seed() for _ in range(2) for owner in owners]
    assert len(set(starts)) == len(starts)
    assert agreed("plain", "first").initial_seed() == agreed("plain", "first").initial_seed()  # the control


def test_series_that_ppem_holds_out_are_chosen_by_secret_coins() -> None:
    from understudy.privacy.private_series import PrivateSeries
    from understudy.synthesizers.ppem.method import _split

    panel = random_panel(small_schema(), 200, np.random.default_rng(0))
    private = PrivateSeries.of(panel, 200)
    parts = [_split(private, 0.5)[0].panel.values.tobytes() for _ in range(2)]
    assert parts[0] != parts[1]


def held_out(folder: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> list[str]:
    clinic = make_clinic(folder)
    monkeypatch.setenv("UNDERSTUDY_HOME", str(folder / "home"))
    done = run(*clinic.synth("--holdout", "0.5", "--allow-few-units", "a test", "--n", "3", *more))
    assert done.code == 0, done.err
    with (folder / "release.holdout.csv").open() as file:
        return [row[0] for row in csv.reader(file)][1:]


def test_who_is_kept_out_is_drawn_anew_in_every_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (held_out(tmp_path / name, monkeypatch) for name in ("one", "two"))
    assert one != two
    again = [held_out(tmp_path / name, monkeypatch, "--seed", "3") for name in ("three", "four")]
    assert again[0] == again[1]  # the control: reproducible on demand, and the certificate says not private


SECRET: dict[str, Callable[[NoiseSource], Any]] = {
    "normals": lambda noise: tuple(noise.normal(1.0, 4)),
    "uniforms": lambda noise: tuple(noise.uniform(4)),
    "coins": lambda noise: tuple(noise.bernoulli(0.5, 200)),
    "batches": lambda noise: tuple(noise.poisson_selection(0.5, 200)),
    "discrete Gaussians": lambda noise: tuple(noise.discrete_gaussian(1e3, 20)),
    "discrete Laplace integers": lambda noise: tuple(noise.discrete_laplace(1e3, 20)),
}


@pytest.mark.parametrize("kind", SECRET)
def test_secure_sources_never_agree_and_seeded_ones_do(kind: str) -> None:
    draw = SECRET[kind]
    assert len({draw(NoiseSource.secure()) for _ in range(5)}) == 5
    assert draw(NoiseSource.seeded(2)) == draw(NoiseSource.seeded(2))
