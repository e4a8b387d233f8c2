"""Shadows trained in a stack are the shadows that a run of their own would be."""

import math
from dataclasses import replace

import numpy as np
import pytest
from understudy_bench.audit import stack
from understudy_bench.audit.canaries import random_panel
from understudy_bench.audit.stack import Job, train_stack
from understudy_bench.audit.subjects import small_schema
from understudy_bench.audit.vertical_shadows import VerticalShadows

from understudy.auditing.shadows import fit_shadows
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.vflgan_ts import protocol
from understudy.synthesizers.vflgan_ts.method import VFLGANTS, _Nearest
from understudy.synthesizers.vflgan_ts.recipe import Recipe

PANEL = random_panel(small_schema(parties=True), 30, np.random.default_rng(0))
RECIPE = Recipe(iterations=5, batch=8, features=16, learning_rate=2e-4)
PLAIN = VFLGANTS(mode="plain", scale="bounds", recipe=RECIPE)
NOBODY = Guarantee(math.inf, 1e-6)


@pytest.fixture(autouse=True)
def nothing_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks of a stack are other ones than those of a run of its own."""
    for module in (protocol, stack):
        monkeypatch.setattr(module, "DROPOUT", 0.0)


def test_a_stacked_shadow_is_the_shadow_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weight by weight, for shadows of different seeds and rows.

    Weights have moved by 1e-3. At the beginning gradients are small, and Adam makes much of their last digits.
    """
    monkeypatch.setattr(_Nearest, "restore", lambda self: None)  # the last iterate
    jobs = [Job(seed=seed, units=np.arange(30 - seed % 2)) for seed in range(3)]
    for job, trained in zip(jobs, train_stack(PLAIN, PANEL, jobs), strict=True):
        alone = replace(PLAIN, seed=job.seed).fit(
            PANEL.take_units(job.units), Ledger.in_memory(NOBODY), guarantee=NOBODY
        )
        for place, module in enumerate(trained.generators):
            for name, weight in module.state_dict().items():
                np.testing.assert_allclose(weight.numpy(), alone.arrays[f"party{place}.{name}"], atol=1e-4)
        assert [own.shape for own in trained.features] == [(len(job.units), 16)] * 2


def test_shadows_of_a_stack_do_not_meet() -> None:
    """What one of them becomes does not depend on who else is in the stack."""
    first, other = Job(seed=0, units=np.arange(30)), Job(seed=1, units=np.arange(12, 30))
    alone, beside = train_stack(PLAIN, PANEL, [first])[0], train_stack(PLAIN, PANEL, [other, first])[1]
    for one, same in zip(alone.generators, beside.generators, strict=True):
        for name, weight in one.state_dict().items():
            np.testing.assert_allclose(weight.numpy(), same.state_dict()[name].numpy(), atol=1e-6)


def test_noise_goes_on_first_layers_where_the_paper_has_it_and_changes_what_is_learned() -> None:
    job = [Job(seed=0, units=np.arange(30))]
    quiet, loud = train_stack(PLAIN, PANEL, job), train_stack(replace(PLAIN, mode="paper"), PANEL, job, 10.0)
    moved = np.abs(quiet[0].features[0] - loud[0].features[0]).max()
    assert moved > 1e-4


@pytest.mark.parametrize(
    "method",
    [
        VFLGANTS(mode="sound", recipe=RECIPE),
        VFLGANTS(mode="plain", recipe=RECIPE),
    ],
    ids=["sound", "bought scale"],
)
def test_what_a_stack_does_not_compute_is_refused(method: VFLGANTS) -> None:
    with pytest.raises(InputError, match="stack of shadows"):
        train_stack(method, PANEL, [Job(seed=0, units=np.arange(30))])


def test_vertical_shadows_are_measured_by_release_and_by_transcript(tmp_path) -> None:
    made = VerticalShadows(method=PLAIN, panel=PANEL, target=7, per_arm=5, num_samples=60, transcript=True, at_once=4)
    features = fit_shadows(made, tmp_path)
    told = {f"F{party} {name}" for party in (1, 2) for name in ("naive", "correlation")}
    assert set(features["absent"]) == {"naive", "correlation", "knn", *told}
    assert features["present"]["F1 naive"].shape == (5, 48)
    assert len(list(tmp_path.glob("*.safetensors"))) == 10
    assert not np.array_equal(features["present"]["knn"][0], features["present"]["knn"][1])  # seeds differ
