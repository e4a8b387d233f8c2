"""A client that charges a shared ledger and executes what it charged, until it or its server is killed."""

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.diary import Diary
from tests.postgresql import Server
from understudy.errors import LedgerError
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import SubsampledGaussian
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan

BUDGET = Guarantee(1e6, 1e-3)
PLAN = SpendingPlan((PlanEntry("sgd", SubsampledGaussian(0.01, 5.0, 8)),), Guarantee(1.0, 1e-9))
FRESH = 20  # trials on one population: every charge reads all rows before it
_LONGEST_SECONDS = 0.8


@dataclass
class Kills:
    """Trials on one server, and what they saw."""

    server: Server
    database: str
    home: Path
    lost: int = 0  # charges granted or executions made that are not written down
    granted: int = 0
    executed: int = 0
    refused: list[str] = field(default_factory=list)  # what clients were told when their server died
    _trials: int = 0

    def of_client(self) -> None:
        """Kills a client at a random moment."""
        self._trial(lambda client: os.kill(client, signal.SIGKILL), lambda: None)

    def of_server(self) -> None:
        """Kills the server with all its processes at a random moment, and starts it again."""
        self._trial(lambda _client: self.server.kill(), self.server.start)

    def _trial(self, kill: Callable[[int], None], repair: Callable[[], None]) -> None:
        """Compares what a client was granted and has executed with what the ledger says, all rows checked."""
        name, diary = f"people-{self._trials // FRESH}", Diary()
        url = f"{self.database}?population={name}"
        if self._trials % FRESH == 0:
            Ledger.create(url, name=name, unit_sentence="", guarantee=BUDGET, max_runs=10**5)
        self._trials += 1
        before, context = _written(url), multiprocessing.get_context("fork")
        told: multiprocessing.SimpleQueue[str] = context.SimpleQueue()
        client = context.Process(target=_spend, args=(url, str(self.home / str(self._trials)), diary, told))
        client.start()
        while diary.granted == 0 and client.is_alive():
            time.sleep(0.001)
        time.sleep(random.uniform(0, _LONGEST_SECONDS))
        assert client.pid is not None
        kill(client.pid)
        client.join(90)
        assert client.exitcode in (0, -signal.SIGKILL), "the client hangs or fell"
        repair()
        now, (granted, executed) = _written(url), diary.read()
        self.lost += max(0, granted - (now[0] - before[0])) + max(0, executed - (now[1] - before[1]))
        self.granted, self.executed = self.granted + granted, self.executed + executed
        if not told.empty():
            self.refused.append(told.get())


def _written(url: str) -> tuple[int, int]:
    """Charges and executions that a ledger records; every row is checked against its chain."""
    entries = Ledger.open(url).entries()
    return len(entries), sum(sum(entry.executed.values()) for entry in entries)


def _spend(url: str, home: str, diary: Diary, told: "multiprocessing.SimpleQueue[str]") -> None:
    os.environ["UNDERSTUDY_HOME"] = home
    diary.keep()
    try:
        while True:
            grant = Ledger.open(url).charge(PLAN, label="run", noise=NoiseSource.secure())
            for _ in range(4):
                grant.begin_block("sgd", 2)
                diary.note_iteration()
                diary.note_iteration()
    except LedgerError as problem:
        told.put(str(problem))
