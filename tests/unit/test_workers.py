"""Parts of work are done once each, by this process, by others, and when one of these is killed."""

import os
import signal
from pathlib import Path

import pytest

from understudy.errors import InputError
from understudy.workers import cluster_of, once_each, workers_of


def square(number: int) -> int:
    return number * number


def killed_once(part: tuple[int, str]) -> int:
    """Squares a number; the process that first gets the number 3 is killed while it works."""
    number, folder = part
    (Path(folder) / f"{number}-{os.getpid()}-{os.urandom(4).hex()}").touch()
    if number == 3 and len(list(Path(folder).glob("3-*"))) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_once_each(workers: int) -> None:
    assert sorted(once_each(square, range(7), workers)) == [0, 1, 4, 9, 16, 25, 36]
    assert list(once_each(square, [], workers)) == []


def test_a_process_killed_at_work_changes_nothing(tmp_path: Path) -> None:
    parts = [(number, str(tmp_path)) for number in range(6)]
    assert sorted(once_each(killed_once, parts, 2)) == [0, 1, 4, 9, 16, 25]
    assert len(list(tmp_path.glob("3-*"))) == 2  # begun, killed, and done again


@pytest.mark.parametrize("text", ["0", "-1", "two", "http://here"])
def test_what_is_no_number_of_processes_and_no_cluster_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--workers"):
        workers_of(text)


@pytest.mark.parametrize("text", ["4", "nonsense", "http://here"])
def test_what_is_no_scheduler_is_refused_by_the_name_of_its_option(text: str) -> None:
    with pytest.raises(InputError, match="--cluster"):
        cluster_of(text)
