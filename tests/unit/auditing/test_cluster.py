"""Shadows on a Dask cluster: a real scheduler and two workers, each a process of its own."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.unit.auditing.test_shadow_models import shadows
from understudy import workers
from understudy.auditing.shadows import ARMS, Arm, Shadows, fit_shadows
from understudy.errors import InputError
from understudy.synthesizers.spectral import Spectral
from understudy.workers import Cluster

distributed = pytest.importorskip("distributed")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Signed(Shadows):
    """Shadows that say which process made them."""

    def fit(self, arm: Arm) -> dict[str, np.ndarray]:
        return {**super().fit(arm), "process": np.array([os.getpid()], dtype=np.float32)}


def signed(per_arm: int) -> Signed:
    return Signed(**vars(shadows(Spectral(), per_arm=per_arm)))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A scheduler with two workers."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as started:
        yield Cluster(started.scheduler_address)


def test_a_cluster_makes_what_this_machine_makes_with_all_its_workers(cluster: Cluster, tmp_path: Path) -> None:
    reported: list[tuple[int, int]] = []
    there = fit_shadows(signed(8), tmp_path / "there", workers=cluster, progress=lambda *now: reported.append(now))
    here = fit_shadows(signed(1), tmp_path / "here")
    assert reported[-1] == (16, 16)
    for arm in ARMS:
        assert there[arm].keys() == here[arm].keys()
        assert all(there[arm][name].shape == (8, *own.shape[1:]) for name, own in here[arm].items())
    processes = {int(number) for arm in ARMS for number in there[arm]["process"].ravel()}
    assert len(processes) == 2
    assert os.getpid() not in processes


def test_a_second_run_on_the_cluster_makes_nothing_again(cluster: Cluster, tmp_path: Path) -> None:
    fit_shadows(signed(2), tmp_path, workers=cluster)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.safetensors")}
    fit_shadows(signed(2), tmp_path, workers=cluster)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.safetensors")} == before


def test_a_scheduler_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_PATIENCE", 1)
    with pytest.raises(InputError, match="scheduler"):
        fit_shadows(signed(1), tmp_path, workers=Cluster("tcp://127.0.0.1:9"))
