"""All sides of a run on one machine, each a process with its own keys, its own ledger and its own home."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from understudy.errors import InputError
from understudy.federated.certificates import AGGREGATOR, make_identities
from understudy.federated.config import Simulation
from understudy.files import whole_file

_POLL_SECONDS, _GRACE_SECONDS = 0.2, 20.0
_FILE = """\
contract = "{contract}"
keys = "{folder}/keys/{side}"
address = "127.0.0.1:{port}"
state = "{folder}/{side}"
out = "{folder}/{side}/release"
ledger = {{ name = "{people}-{side}" }}
"""


@dataclass(frozen=True)
class Side:
    """One process; what it prints is in its log."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path


def simulate(plan: Simulation) -> Path:
    """Runs all sides to the end and returns the release; starting it again resumes a run that was stopped."""
    with started(plan) as sides:
        while any(side.process.poll() is None for side in sides):
            if any(side.process.poll() not in (None, 0) for side in sides):
                break
            time.sleep(_POLL_SECONDS)
        _wait(sides)
    failed = [side for side in sides if side.process.returncode != 0]
    if failed:
        told = " ".join(_last_line(side.log) for side in failed)
        raise InputError(
            f"{', '.join(side.name for side in failed)} stopped: {told} Logs are in '{plan.folder}'. Start the "
            "simulation again to go on."
        )
    return plan.folder / AGGREGATOR / "release"


@contextmanager
def started(plan: Simulation) -> Iterator[list[Side]]:
    """Starts all sides; whoever still runs when the block ends is stopped."""
    keys = plan.folder / "keys"
    if not keys.exists():
        make_identities(keys, plan.contract.parties, host="127.0.0.1")
    sides: list[Side] = []
    try:
        port = _free_port()
        for name in (AGGREGATOR, *plan.contract.parties):
            sides.append(_start(plan, name, port))
        yield sides
    finally:
        for side in sides:
            if side.process.poll() is None:
                side.process.terminate()
        _wait(sides)


def _start(plan: Simulation, name: str, port: int) -> Side:
    home = plan.folder / name / "home"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    people = plan.contract.schema.name
    text = _FILE.format(contract=plan.contract_file, folder=plan.folder, side=name, port=port, people=people)
    if name != AGGREGATOR:
        text += f'table = "{plan.tables[name]}"\n'
    file = plan.folder / f"{name}.toml"
    with whole_file(file) as draft:
        draft.write_text(text, encoding="utf-8")
    log = plan.folder / f"{name}.log"
    role = "server" if name == AGGREGATOR else "party"
    with log.open("ab") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "understudy.cli.main", "federate", role, str(file)],
            env={**os.environ, "UNDERSTUDY_HOME": str(home), "NO_COLOR": "1"},
            stdout=sink,
            stderr=sink,
        )
    return Side(name, process, log)


def _wait(sides: list[Side]) -> None:
    """Gives the rest time to hear that one is gone; then they are stopped."""
    until = time.monotonic() + _GRACE_SECONDS
    for side in sides:
        try:
            side.process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            side.process.kill()
            side.process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing."
