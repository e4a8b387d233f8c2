"""Refuses a ledger file that was replaced by an older copy of itself, by what the registry has seen of it.

Order of durable writes: first the ledger's rows, then the registry. A process killed in between leaves a ledger that is
ahead of the registry, which contradicts nothing; a charge is granted only when both are on the disk.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from understudy.errors import LedgerError
from understudy.privacy import registry
from understudy.privacy.amendments import require_reason
from understudy.privacy.charges import now, paid_charges
from understudy.privacy.registry import Seen
from understudy.privacy.store import Row, Store, Writer


@contextmanager
def writing(store: Store, identity: str, *, thorough: bool = True) -> Iterator[Writer]:
    """Exclusive use of the newest copy of a ledger; the registry learns of new rows when they are on the disk."""
    with store.writing(thorough=thorough) as writer:
        if store.path is not None and is_older(writer.rows, store.genesis, registry.newest(identity)):
            raise _rolled_back(store.path)
        yield writer
    remember(store, identity)


def check_newest(store: Store, identity: str) -> None:
    """Refuses an older copy than this computer has seen."""
    assert store.path is not None
    newest = registry.newest(identity)  # before the rows: another process may add one meanwhile
    if is_older(store.rows(), store.genesis, newest):
        raise _rolled_back(store.path)


def remember(store: Store, identity: str) -> None:
    """Tells the registry which row is the newest, unless the ledger lives in memory."""
    if store.path is not None:
        registry.remember(identity, _seen(store))


def adopt(store: Store, identity: str, reason: str) -> None:
    """Goes on with an older copy, on the record; what the newer one had spent is counted as spent."""
    require_reason(reason)
    with store.writing() as writer:
        remembered = registry.seen(identity)
        if not is_older(writer.rows, store.genesis, remembered[-1] if remembered else None):
            raise LedgerError("This ledger is the newest that this computer has seen: there is nothing to adopt.")
        shared = [row for row in remembered if _knows(writer.rows, store.genesis, row)]
        newest, runs, amount = remembered[-1], 0, 0.0
        if shared:
            runs, amount = shared[-1].runs, shared[-1].amount
        body = {
            "forgotten_sequence": newest.sequence,
            "forgotten_head": newest.head,
            "runs": newest.runs - runs,
            "amount": newest.amount - amount if newest.amount > amount else 0.0,  # both may be infinite
            "reason": reason.strip(),
            "recorded_at": now(),
        }
        writer.append("adopted", body)
    registry.remember(identity, _seen(store), instead=True)


def is_older(rows: Sequence[Row], genesis: str, newest: Seen | None) -> bool:
    """Says whether a ledger lacks the newest row that this computer has seen of it."""
    return newest is not None and not _knows(rows, genesis, newest)


def _knows(rows: Sequence[Row], genesis: str, row: Seen) -> bool:
    if row.sequence == 0:
        return genesis == row.head
    return row.sequence <= len(rows) and rows[row.sequence - 1].hash == row.head


def _seen(store: Store) -> Seen:
    rows = store.rows_cached()
    paid = paid_charges(rows)
    amount = sum(float(body["amount"]) for body in paid)
    return Seen(sequence=len(rows), head=rows[-1].hash if rows else store.genesis, runs=len(paid), amount=amount)


def _rolled_back(path: Path) -> LedgerError:
    return LedgerError(
        f"The ledger '{path}' lacks the last charge that this computer has recorded for it: the file was replaced by "
        "an older copy, which has forgotten what was spent. Put the newest copy back. If it is lost, `understudy "
        f"ledger adopt {path} --reason TEXT` goes on with this copy: what was spent stays spent, runs charged before "
        "can't be resumed, and every later certificate says so.",
        path=str(path),
    )
