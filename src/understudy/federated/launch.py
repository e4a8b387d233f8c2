"""Ways to start a run: one side as a process, all sides on one machine, or an app that Flower launches.

What was charged stays charged, however a side ends. Flower's packages exclude ours (typer, rich), so its environment is
another one and the app calls `understudy` as a program; its nodes start the sides, which use a stream of their own.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from understudy.data import read_panel
from understudy.errors import InputError, MissingData, ReleaseError, UnderstudyError
from understudy.extras import require_extra
from understudy.federated.config import PartyConfig, SideConfig, load
from understudy.federated.runs import FAREWELL, AggregatorRun, PartyRun, Progress, kept
from understudy.federated.transport import (
    AGGREGATOR,
    GrpcAggregatorLink,
    Identity,
    connect,
    refuse,
    serve,
)
from understudy.files import whole_folder
from understudy.privacy import keys
from understudy.privacy.certificate import Certificate, Check, file_hashes, verify
from understudy.privacy.keys import read_public
from understudy.synthesizers.vflgan_ts.partition import own_schema
from understudy.synthesizers.vflgan_ts.protocol import preside, take_part

_DIGEST = "contract.sha256"
_PACKAGE = "understudy_flower"
_POLL_SECONDS, _GRACE_SECONDS = 0.2, 20.0
_HOMES = "homes"  # of the sides that run on one machine: their signing keys, and what they printed


def run_aggregator(config: SideConfig, progress: Progress) -> Certificate:
    """Leads one run to its release, and returns the certificate."""
    identity, parties = _prepared(config, (AGGREGATOR,)), config.contract.parties
    run = AggregatorRun(**_own(config, progress))
    link = GrpcAggregatorLink(parties, config.patience_seconds)
    with _charge_noted(config), serve(link, identity, config.address, len(parties)):
        progress("waiting for parties", 0.0)
        preside(run.side(), link.gather, link.scatter, FAREWELL)
    return Certificate.load(config.out)


def run_party(config: PartyConfig, progress: Progress) -> Certificate:
    """Takes part in one run with one's own table, and returns the certificate of the release.

    Privacy: the table is read and checked here; its values are used after the charge.
    """
    try:
        identity, contract = _prepared(config, config.contract.parties), config.contract
        if not config.table.exists():
            raise MissingData(f"table: nothing is at '{config.table}'. Check the path.")
        schema, few = config.table_schema(identity.name), contract.few_units is not None
        panel = read_panel(config.table, schema, allow_few_units=few)
        panel = replace(panel, schema=own_schema(contract.schema, identity.name))
        run = PartyRun(party=identity.name, panel=panel, **_own(config, progress))
    except UnderstudyError as problem:
        refuse(config.keys, config.address, str(problem))
        raise
    progress("waiting for the aggregator", 0.0)
    with _charge_noted(config), connect(identity, config.address, config.patience_seconds) as link:
        take_part(run.side(), link.exchange)
    return Certificate.load(config.out)


def _own(config: SideConfig, progress: Progress) -> dict[str, Any]:
    own = {name: getattr(config, name) for name in ("contract", "account", "state", "out")}
    return {**own, "key": keys.load_or_create(config.signing_key), "progress": progress}


def _prepared(config: SideConfig, sides: Sequence[str]) -> Identity:
    """Makes every refusal that needs neither the table nor another side; returns the keys of one of some sides."""
    require_extra("grpc", extra="vertical", by="federate")
    identity = Identity.load(config.keys)
    identity.check()
    if identity.name not in sides:
        wanted = f"one of {', '.join(sides)}" if len(sides) > 1 else f"'{sides[0]}'"
        raise InputError(f"keys: those of {wanted} are expected, got those of '{identity.name}'.")
    if config.out.exists():
        raise ReleaseError(
            f"contract: the run '{config.contract.name}' is complete, its release is '{config.out}'. Name another run "
            "in the contract; it has its own charge."
        )
    config.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest = config.contract.digest.encode()  # a state folder belongs to one contract
    if kept(config.state / _DIGEST, lambda: digest) != digest:
        raise InputError(
            f"folder: '{config.state}' holds a run of another contract of that name. Put the contract back as it was "
            "to resume that run, or give the new one another name."
        )
    config.account.check(config.contract)
    return identity


@contextmanager
def _charge_noted(config: SideConfig) -> Iterator[None]:
    """Adds to any error whether this side's ledger was charged: a charge is never given back."""
    try:
        yield
    except BaseException as problem:
        with suppress(UnderstudyError):  # a failing disk must not hide what failed first
            entries = config.account.ledger(config.contract).entries()
            if any(entry.label == config.contract.label for entry in entries):
                problem.add_note("This run is charged and stays charged. Start all sides again to resume it.")
        raise


class Side(NamedTuple):
    """One process; what it prints is in its log."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path


def up(folder: Path) -> Path:
    """Run all sides of a folder to the end and return the release; running it again resumes a run that was stopped."""
    require_extra("grpc", extra="vertical", by="federate")
    with started(folder) as sides:
        while any(side.process.poll() is None for side in sides):
            if any(side.process.poll() not in (None, 0) for side in sides):
                break
            time.sleep(_POLL_SECONDS)
        _wait(sides)
    if failed := [side for side in sides if side.process.returncode != 0]:
        logs = (side.log.read_text(encoding="utf-8", errors="replace").strip() for side in failed)
        told = " ".join(log.splitlines()[-1] if log else "it printed nothing." for log in logs)
        raise InputError(
            f"{', '.join(side.name for side in failed)} stopped: {told} Logs are in '{folder / _HOMES}'. Run "
            "`understudy federate up` again to resume."
        )
    return side_of(folder, AGGREGATOR).out


@contextmanager
def started(folder: Path) -> Iterator[list[Side]]:
    """Start all sides of a folder; those that still run when the block ends are stopped."""
    parties = side_of(folder, AGGREGATOR).contract.parties
    sides: list[Side] = []
    try:
        for name in (AGGREGATOR, *parties):
            sides.append(_start(folder.absolute(), name))
        yield sides
    finally:
        for side in sides:
            if side.process.poll() is None:
                side.process.terminate()
        _wait(sides)


def side_of(folder: Path, name: str) -> SideConfig:
    """Return what one side of a folder is started with."""
    return load(folder / f"{name}.toml", SideConfig if name == AGGREGATOR else PartyConfig)


def _start(folder: Path, name: str) -> Side:
    home = folder / _HOMES / name
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    role = "aggregator" if name == AGGREGATOR else "party"
    with (log := home.with_suffix(".log")).open("ab") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "understudy.cli.main", "federate", role, str(folder / f"{name}.toml")],
            env={**os.environ, "UNDERSTUDY_HOME": str(home), "NO_COLOR": "1"},
            stdout=sink,
            stderr=sink,
        )
    return Side(name, process, log)


def verified(folder: Path) -> tuple[Path, Certificate, list[Check]]:
    """Return place and certificate of a folder's release, and all its checks, by the public keys of all sides."""
    aggregator = side_of(folder, AGGREGATOR)
    places = {name: side_of(folder, name).out for name in (AGGREGATOR, *aggregator.contract.parties)}
    found = {name: Certificate.load(place) for name, place in places.items()}
    trusted = [read_public(file) for file in sorted((folder / _HOMES).glob("*/keys/*.pub"))]
    checks = verify(found[AGGREGATOR], aggregator.out, trusted)
    for name, own in found.items():
        same = own == found[AGGREGATOR] and file_hashes(places[name]) == dict(own.files)
        checks.append(Check("copy", same, f"{name} holds {'the same' if same else 'another'} release"))
    return aggregator.out, found[AGGREGATOR], checks


def _wait(sides: list[Side]) -> None:
    """Gives the rest time to hear that one is gone; then they are stopped."""
    until = time.monotonic() + _GRACE_SECONDS
    for side in sides:
        try:
            side.process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            side.process.kill()
            side.process.wait()


def write_flower_app(target: Path, config_file: Path, side: SideConfig) -> list[str]:
    """Writes the app's folder for the aggregator's file, which says `side`; returns the names of its files."""
    program = shutil.which("understudy", path=str(Path(sys.executable).parent)) or shutil.which("understudy")
    if program is None:
        raise InputError("The program `understudy` is expected on the path: the app calls it. Install the package.")
    templates = files("understudy.federated") / "flower_app"
    known = {"understudy": program, "server": config_file.resolve(), "num_parties": len(side.contract.parties)}
    with whole_folder(target) as draft:
        (draft / _PACKAGE).mkdir()
        (draft / _PACKAGE / "__init__.py").touch()
        for name in ("server_app.py", "client_app.py"):
            (draft / _PACKAGE / name).write_bytes((templates / f"{name}.txt").read_bytes())
        project = (templates / "pyproject.toml.txt").read_text(encoding="utf-8").format(**known)
        (draft / "pyproject.toml").write_text(project, encoding="utf-8")
    return sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file())
