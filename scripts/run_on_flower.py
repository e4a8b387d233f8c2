"""Runs two invented banks on a real Flower federation and by streams alone, and compares what comes out.

    python scripts/run_on_flower.py FLOWER_BIN

FLOWER_BIN is the folder of programs of an environment with flwr (`python -m venv flower; flower/bin/pip install flwr`).
A SuperLink with TLS and node authentication, two registered SuperNodes and one that is not registered are started on
loopback. Exit 0 when the stranger is refused, the run finishes, and its weights and losses are those of a run without
Flower at the same test seed. The SuperLink's log is printed.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PARTIES = ("north", "south")
PATIENCE = 300.0
UNDERSTUDY = Path(sys.executable).with_name("understudy")


def main(flower: Path) -> int:
    """Returns the exit code."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "banks"
        prepare(folder, free_port())
        shutil.copytree(folder, alone := Path(made) / "alone")
        link = free_port()
        with federation(folder, flower, link):
            call([flower / "flwr", "run", folder / "app", "here"], folder, settings(folder, "aggregator"))
            wait_for([folder / side / "runs/first/release/certificate.json" for side in ("aggregator", *PARTIES)])
            refused = stranger_is_refused(folder, flower, link)
        print((folder / "superlink.log").read_text())
        call([UNDERSTUDY, "federate", "up", alone], folder, {})
        runs = [place / "aggregator/runs/first" for place in (folder, alone)]
        same = {
            name: (runs[0] / name).read_bytes() == (runs[1] / name).read_bytes()
            for name in ("release/model.safetensors", "losses.json")
        }
    print({**same, "an unregistered node is refused": refused})
    return 0 if all(same.values()) and refused else 1


def prepare(folder: Path, port: int) -> None:
    """Writes banks, contract, keys of the run and keys of the nodes."""
    call([UNDERSTUDY, "federate", "example", folder, "--port", str(port)], folder.parent, {})
    contract = (folder / "contract.toml").read_text()
    for before, after in {
        'mode = "sound"': 'mode = "plain"\nscale = "bounds"\nnoise_seed = 5',
        "epsilon = 8.0": "epsilon = inf",
        "iterations = 150": "iterations = 60",
    }.items():
        contract = contract.replace(before, after)
    (folder / "contract.toml").write_text(contract)
    for side in ("aggregator", *PARTIES):
        own = folder / f"{side}.toml"
        own.write_text(own.read_text().replace("epsilon = 16.0", "epsilon = inf"))
    call([UNDERSTUDY, "federate", "keys", folder], folder, {})
    call([UNDERSTUDY, "federate", "flower", folder / "aggregator.toml", "--out", folder / "app"], folder, {})
    for name in (*PARTIES, "stranger"):
        call(["ssh-keygen", "-q", "-t", "ecdsa", "-b", "384", "-N", "", "-f", folder / f"node-{name}"], folder, {})


@contextmanager
def federation(folder: Path, flower: Path, port: int) -> Iterator[None]:
    """A SuperLink that knows both parties' nodes, and the nodes."""
    home = folder / "flwr-aggregator"
    home.mkdir()
    authority = folder / "keys/aggregator/authority.pem"
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "127.0.0.1:{port}"\n'
        f'root-certificates = "{authority}"\n'
    )
    link = [
        flower / "flower-superlink", "--host", "127.0.0.1", "--port", str(port), "--enable-supernode-auth",
        "--ssl-certfile", folder / "keys/aggregator/certificate.pem",
        "--ssl-keyfile", folder / "keys/aggregator/key.pem",
        "--ssl-ca-certfile", authority, "--disable-runtime-dependency-installation",
    ]  # fmt: skip
    running = [start(link, folder / "superlink.log", folder, settings(folder, "aggregator"))]
    try:
        wait_for_text(folder / "superlink.log", "Uvicorn running")
        for party in PARTIES:
            register = [flower / "flwr", "supernode", "register", folder / f"node-{party}.pub", "here"]
            call(register, folder, settings(folder, "aggregator"))
            running.append(node(folder, flower, port, party))
        for party in PARTIES:
            wait_for_text(folder / f"node-{party}.log", "SuperNode ID")
        yield
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(30)


def node(folder: Path, flower: Path, port: int, party: str) -> "subprocess.Popen[bytes]":
    """Starts a party's SuperNode; its own file is named here and nowhere else."""
    own = f"party-config='{folder / party}.toml' understudy='{UNDERSTUDY}'"
    command = [
        flower / "flower-supernode", "--superlink", f"127.0.0.1:{port}", "--port", str(free_port()),
        "--root-certificates", folder / f"keys/{party if party in PARTIES else 'north'}/authority.pem",
        "--auth-supernode-private-key", folder / f"node-{party}", "--node-config", own,
    ]  # fmt: skip
    return start(command, folder / f"node-{party}.log", folder, settings(folder, party))


def stranger_is_refused(folder: Path, flower: Path, port: int) -> bool:
    """Says whether a node whose key nobody registered is turned away."""
    process = node(folder, flower, port, "stranger")
    try:
        return process.wait(60) != 0
    except subprocess.TimeoutExpired:
        process.kill()
        return False


def settings(folder: Path, side: str) -> dict[str, str]:
    """Homes of a side's own, and nothing told to anybody."""
    (folder / f"flwr-{side}").mkdir(exist_ok=True)
    return {
        "FLWR_HOME": str(folder / f"flwr-{side}"),
        "UNDERSTUDY_HOME": str(folder / f"home-{side}"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
    }


def start(command: list[str | Path], log: Path, folder: Path, extra: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    path = f"{Path(command[0]).parent}{os.pathsep}{os.environ['PATH']}"
    with log.open("wb") as sink:
        return subprocess.Popen(
            [str(word) for word in command], cwd=folder, env={**os.environ, **extra, "PATH": path}, stdout=sink,
            stderr=sink,
        )  # fmt: skip


def call(command: list[str | Path], folder: Path, extra: Mapping[str, str]) -> None:
    words = [str(word) for word in command]
    subprocess.run(words, cwd=folder, env={**os.environ, **extra}, check=True, timeout=PATIENCE, stdout=sys.stderr)


def wait_for(files: list[Path]) -> None:
    until = time.monotonic() + PATIENCE
    while not all(file.is_file() for file in files):
        if time.monotonic() > until:
            raise SystemExit("The run did not finish in time.")
        time.sleep(0.5)


def wait_for_text(log: Path, text: str) -> None:
    until = time.monotonic() + PATIENCE
    while not log.is_file() or text not in log.read_text(errors="replace"):
        if time.monotonic() > until:
            raise SystemExit(f"'{text}' never stood in {log.name}.")
        time.sleep(0.5)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute()))
