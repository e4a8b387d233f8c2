"""`understudy-bench all` as real processes: killed, it goes on where it was, and leaves nothing running behind it."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from understudy_bench.__main__ import main

from tests.e2e.commands import Outcome, finish
from tests.e2e.commands import run as run_command
from tests.e2e.commands import start as start_command

PARTS = 6
# Stands in for benchmarks that take hours: loaded by every process before anything else, as Python does by this name.
SITE = """
import os, sys, time, types
from pathlib import Path
from understudy_bench import registry
from understudy_bench.result import result, row
from understudy.errors import MissingData

def counted(scale, data_root, progress, cells):
    def part(number):
        with Path(os.environ["COUNTED"]).open("a") as file:
            file.write(f"{os.getpid()} {number}\\n")
        time.sleep(0.2)
        return row(f"part {number}", {"figure": float(number)})
    rows = [cells(f"{scale} {number}", lambda: part(number)) for number in range(int(os.environ["PARTS"]))]
    return result("counted", scale, {"name": "numbers"}, rows, [])

def missing(scale, data_root, progress, cells):
    raise MissingData("Numbers are missing.")

def broken(scale, data_root, progress, cells):
    raise ZeroDivisionError

sys.modules["understudy_bench.fake"] = types.SimpleNamespace(counted=counted, missing=missing, broken=broken)
for name in ("counted", "missing", "broken"):
    registry.BENCHMARKS[name] = registry.Benchmark(name, f"fake.{name}")
"""


def run(*arguments: str | Path) -> Outcome:
    """Runs a command of the benchmarks inside this process."""
    return run_command(*arguments, main=main)


def start(*arguments: str | Path, **options: Any) -> "subprocess.Popen[str]":
    """Starts a command of the benchmarks as a process of its own."""
    return start_command(*arguments, module="understudy_bench", **options)


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "sitecustomize.py").write_text(SITE)
    path = os.pathsep.join(part for part in (str(tmp_path), os.environ.get("PYTHONPATH")) if part)
    return {"PYTHONPATH": path, "COUNTED": str(tmp_path / "counted"), "PARTS": str(PARTS)}


def counted(folder: Path) -> list[tuple[int, int]]:
    """Returns process and number of every part that was begun."""
    file = folder / "counted"
    lines = file.read_text().splitlines() if file.exists() else []
    return [(int(line.split()[0]), int(line.split()[1])) for line in lines if len(line.split()) == 2]


def wait_for(folder: Path, parts: int) -> None:
    deadline = time.monotonic() + 60
    while len(counted(folder)) < parts:
        assert time.monotonic() < deadline, "the benchmark does not start"
        time.sleep(0.02)


def ended(process: int) -> bool:
    """Whether a process is gone, or dead and not yet collected."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def all_of(folder: Path, variables: dict[str, str], *only: str, who: Sequence[str] = ("--workers", "2")) -> Outcome:
    words = [*who, *(part for name in only for part in ("--only", name))]
    return finish(start("all", "--into", folder / "results", *words, "--json", variables=variables))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_killed_it_ends_its_benchmarks_and_goes_on_where_it_was(
    tmp_path: Path, variables: dict[str, str], how: signal.Signals
) -> None:
    first = start("all", "--into", tmp_path / "results", "--only", "counted", variables=variables)
    wait_for(tmp_path, 3)
    first.send_signal(how)
    first.communicate(timeout=10)
    worker = counted(tmp_path)[0][0]
    deadline = time.monotonic() + 10
    while not ended(worker):
        assert time.monotonic() < deadline, "the benchmark goes on without who started it"
        time.sleep(0.02)
    before = [number for _, number in counted(tmp_path)]
    assert 3 <= len(before) < PARTS
    second = all_of(tmp_path, variables, "counted")
    assert second.code == 0, second.err
    again = [number for _, number in counted(tmp_path)[len(before) :]]
    assert again in (list(range(len(before), PARTS)), list(range(len(before) - 1, PARTS)))  # the last may have been cut
    rows = json.loads((tmp_path / "results" / "counted.json").read_text())["rows"]
    assert [line["metrics"]["figure"] for line in rows] == list(range(PARTS))
    assert {Path(file).name for file in second.facts["files"]} == {"results.html", "results.md"}


def test_a_second_run_in_the_same_folder_is_refused_while_the_first_lives(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    first = start("all", "--into", tmp_path / "results", "--only", "counted", variables=variables)
    wait_for(tmp_path, 1)
    refused = all_of(tmp_path, variables, "counted")
    first.kill()
    first.communicate(timeout=10)
    assert refused.code == 2
    assert "another process works in it" in refused.err + refused.out
    assert len({process for process, _ in counted(tmp_path)}) == 1
    assert all_of(tmp_path, variables, "counted").code == 0


def test_what_is_finished_is_not_run_again(tmp_path: Path, variables: dict[str, str]) -> None:
    assert all_of(tmp_path, variables, "counted").code == 0
    assert all_of(tmp_path, variables, "counted").code == 0
    assert len(counted(tmp_path)) == PARTS


def test_missing_data_are_named_and_a_defect_is_an_error(tmp_path: Path, variables: dict[str, str]) -> None:
    without = all_of(tmp_path, variables, "missing", "counted")
    assert without.code == 0, without.err
    assert without.facts["failed"] == {"missing": "data are missing"}
    assert "Numbers are missing." in (tmp_path / "results" / "missing.log").read_text()
    defect = all_of(tmp_path, variables, "broken")
    assert defect.code == 1
    assert list(defect.facts["failed"]) == ["broken"]


def test_a_cluster_runs_what_this_machine_would(
    tmp_path: Path, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real scheduler and two workers: benchmarks run below these and below nobody else."""
    distributed = pytest.importorskip("distributed")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        found = all_of(tmp_path, variables, "counted", "missing", who=("--cluster", address))
    assert found.code == 0, found.err
    assert found.facts["failed"] == {"missing": "data are missing"}
    assert [number for _, number in counted(tmp_path)] == list(range(PARTS))
    assert (tmp_path / "results" / "results.html").exists()


@pytest.mark.parametrize("said", ["none", "0", "-1"])
def test_workers_that_are_not_there_are_named(tmp_path: Path, variables: dict[str, str], said: str) -> None:
    refused = all_of(tmp_path, variables, "counted", who=("--workers", said))
    assert refused.code == 2
    assert "workers" in refused.err + refused.out
    assert counted(tmp_path) == []


def test_a_name_that_no_benchmark_has_is_refused(tmp_path: Path, variables: dict[str, str]) -> None:
    refused = all_of(tmp_path, variables, "cuonted")
    assert refused.code == 2
    assert "--only: the beginning of a name" in refused.err + refused.out
    assert not (tmp_path / "results").exists()


def test_results_are_kept_without_the_series_of_their_pictures_and_without_hashes(tmp_path: Path) -> None:
    result = {"name": "pub2priv-toy", "scale": "quick", "day": "2026-01-02", "data": {"name": "toy"}}
    result |= {"rows": [], "controls": []}
    data = {"name": "toy", "sha256": "ab", "public_sha256": "cd"}
    whole = {**result, "data": data, "pictures": {"same_condition": [[0.5]]}}
    (tmp_path / "pub2priv-toy.json").write_text(json.dumps(whole))
    assert run("keep", tmp_path, "--into", tmp_path / "kept").code == 0
    assert json.loads((tmp_path / "kept" / "pub2priv-toy.json").read_text()) == result
    assert run("keep", tmp_path / "nothing", "--into", tmp_path / "kept").code == 3


def test_a_benchmark_that_does_not_exist_is_bad_input() -> None:
    assert run("run", "no-such-benchmark").code == 2
    assert run("list", "--json").facts["benchmarks"]


def test_public_data_that_are_missing_are_named_with_exit_three(tmp_path: Path) -> None:
    outcome = run("run", "spectral-stock", "--data", tmp_path)
    assert outcome.code == 3
    assert "stock_data.csv" in outcome.err
