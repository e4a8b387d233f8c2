"""Parts of work are done once each, by this process, by others, and when one of these is killed."""

import os
import signal
import time
from pathlib import Path

import pytest

from understudy import workers
from understudy.data import simulate_households
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.spectral import Spectral
from understudy.workers import Cluster, once_each, workers_of


def square(number: int) -> int:
    return number * number


def killed_once(part: tuple[int, str]) -> int:
    """Squares a number; the process that first gets the number 3 is killed while it works."""
    number, folder = part
    (Path(folder) / f"{number}-{os.getpid()}-{os.urandom(4).hex()}").touch()
    if number == 3 and len(list(Path(folder).glob("3-*"))) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_once_each(processes: int) -> None:
    assert sorted(once_each(square, range(7), processes)) == [0, 1, 4, 9, 16, 25, 36]
    assert list(once_each(square, [], processes)) == []


def test_a_process_killed_at_work_changes_nothing(tmp_path: Path) -> None:
    parts = [(number, str(tmp_path)) for number in range(6)]
    assert sorted(once_each(killed_once, parts, 2)) == [0, 1, 4, 9, 16, 25]
    assert len(list(tmp_path.glob("3-*"))) == 2  # begun, killed, and done again


def slow(number: int) -> int:
    time.sleep(0.2)
    return number


def test_work_that_is_given_up_does_not_say_how_many_parts_there_are(recwarn: pytest.WarningsRecorder) -> None:
    results = once_each(slow, range(5), 2)
    next(results)
    results.close()
    assert not [str(warning.message) for warning in recwarn]


@pytest.mark.parametrize("text", ["4", "nonsense", "http://here"])
def test_what_is_no_scheduler_is_refused_by_the_name_of_its_option(text: str) -> None:
    with pytest.raises(InputError, match="cluster"):
        workers_of(1, text)


def test_a_fit_whose_cluster_does_not_answer_charges_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_PATIENCE", 1)
    panel = simulate_households(200)
    ledger = Ledger.in_memory(Guarantee(1.0, 1e-6), population=200)
    for wrong in (Cluster("tcp://127.0.0.1:9"), 0):
        with pytest.raises(InputError, match=r"workers|scheduler"):
            Spectral().fit(panel, ledger, workers=wrong)
    assert ledger.entries() == ()
