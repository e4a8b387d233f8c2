"""A started `understudy app`, as a person has it in a terminal: its links come one at a time from its output."""

import contextlib
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

_LINK = re.compile(r"http://\S+/enter\?token=\S+")


class Started:
    """One server process on a project folder."""

    def __init__(self, folder: Path, *more: str, **variables: str) -> None:
        self.folder, self.origin = folder, ""
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **variables}
        command = [sys.executable, "-m", "understudy", "app", str(folder), *more]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self.process = subprocess.Popen(command, env=environment, text=True, **pipes)  # type: ignore[call-overload]
        self.links: queue.Queue[str] = queue.Queue()
        self.said: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def link(self) -> str:
        """The next link, good for one browser."""
        found = self.links.get(timeout=60)
        self.origin = found.partition("/enter")[0]
        return found

    def kill(self) -> None:
        """Ends it as a power cut would."""
        self.process.kill()
        self.process.wait()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.said.append(line)
            for link in _LINK.findall(line):
                self.links.put(link)


@contextlib.contextmanager
def started(folder: Path, *more: str, **variables: str) -> Iterator[Started]:
    """A server that is ended with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    server = Started(folder, *more, **variables)
    try:
        yield server
    finally:
        server.process.terminate()
        try:
            server.process.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
