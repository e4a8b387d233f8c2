"""A PostgreSQL server of Debian's package on the loopback, in a scratch folder, that tests may kill."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

OWNER = "owner"  # of all tables; a superuser of its own scratch server


def programs() -> Path | None:
    """The folder of the newest server that is installed; its programs are on no search path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


@dataclass
class Server:
    """A running server."""

    bin: Path
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    def url(self, role: str = OWNER, database: str = "postgres") -> str:
        """The address of a database for a role."""
        return f"postgresql://{role}@127.0.0.1:{self.port}/{database}"

    def sql(self, *statements: str, role: str = OWNER, database: str = "postgres") -> list[tuple[object, ...]]:
        """What the last statement found."""
        import psycopg

        with psycopg.connect(self.url(role, database), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def database(self, name: str) -> str:
        """The address of a database that is empty."""
        self.sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", f"CREATE DATABASE {name}")
        return self.url(database=name)

    def start(self) -> None:
        """Returns when the server answers, after its recovery if it was killed."""
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c max_connections=60"
        command = [str(self.bin / "postgres"), "-D", str(self.folder / "data"), *options.split()]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([*_as_nobody(), *command], stdout=log, stderr=log, start_new_session=True)
        for _ in range(600):
            if not subprocess.run([self.bin / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]).returncode:
                return
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text()[-2000:])

    def kill(self) -> None:
        """Ends the server and all its processes at once, as a power cut of its machine would."""
        main = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = subprocess.run(["pgrep", "-P", str(main)], capture_output=True, text=True).stdout.split()
        for number in (main, *map(int, children)):
            _signal(number, signal.SIGKILL)
        self._wait()
        (self.folder / "data" / "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        """Ends the server."""
        if self.process is not None and self.process.poll() is None:
            _signal(int((self.folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGINT)
            self._wait()

    def _wait(self) -> None:
        assert self.process is not None
        self.process.wait(timeout=60)


def _signal(number: int, kind: signal.Signals) -> None:
    try:
        os.kill(number, kind)
    except ProcessLookupError:  # it has ended
        return


def _as_nobody() -> list[str]:
    """PostgreSQL refuses to run as root."""
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """A new server in a folder; the test is skipped where none is installed, which with CI=true is a failure."""
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed: scripts/ensure-postgresql.sh does it")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server = Server(found, folder, free.getsockname()[1])
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    made = [str(found / "initdb"), "-D", str(folder / "data"), "-U", OWNER, "-A", "trust", "-N", "--no-instructions"]
    subprocess.run([*_as_nobody(), *made], check=True, capture_output=True, cwd="/")
    server.start()
    try:
        yield server
    finally:
        server.stop()
