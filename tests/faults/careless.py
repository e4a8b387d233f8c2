"""The command line as a careless hand would have written it: what the checks after a crash have to notice."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MAIN = "tests.faults.careless:main"


def main(arguments: Sequence[str]) -> int:
    """Spoils the package in this process, then runs a command."""
    from understudy.cli.main import main as command

    mistake, *rest = arguments
    finish = _MISTAKES[mistake]()
    code = command(rest)
    finish()
    return code


def _write_in_place() -> Callable[[], None]:
    """Files are written under the name that others will read."""
    from understudy.privacy import keys

    @contextmanager
    def at_once(target: Path, **_options: Any) -> Iterator[Path]:
        yield target

    keys.whole_file = at_once  # type: ignore[attr-defined]
    return lambda: None


def _never_sync() -> Callable[[], None]:
    """A charge is taken to be on the disk when it was only handed over."""
    from understudy.privacy import sqlite

    connect = sqlite.connect

    def hasty(path: Path, mode: str) -> Any:
        connection = connect(path, mode)
        connection.execute("PRAGMA synchronous=OFF")
        return connection

    sqlite.connect = hasty  # type: ignore[assignment]
    return lambda: None


def _charge_at_the_end() -> Callable[[], None]:
    """The grant comes first, the charge when all is done."""
    from understudy.privacy.ledger import Ledger

    charge, owed = Ledger.charge, []

    def later(ledger: Any, plan: Any, **options: Any) -> Any:
        owed.append(lambda: charge(ledger, plan, **options))
        free = Ledger.in_memory(ledger.guarantee, name=ledger.name, max_runs=ledger.composition.max_runs)
        return charge(free, plan, **options)

    Ledger.charge = later  # type: ignore[method-assign]
    return lambda: [pay() for pay in owed] and None  # type: ignore[func-returns-value]


_MISTAKES = {
    "write in place": _write_in_place,
    "never sync": _never_sync,
    "charge at the end": _charge_at_the_end,
}
