"""What holds after any crash: nothing is under-charged, every final name is whole, and one can go on."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.csv as csv
import pyarrow.parquet as pq
from safetensors import safe_open

from tests.faults.scenes import Stage
from tests.faults.server import Report
from tests.faults.training import LEDGER as TOY
from understudy.data import Schema
from understudy.privacy import keys, registry
from understudy.privacy.certificate import Certificate, verify
from understudy.privacy.charges import Entry
from understudy.privacy.ledger import Ledger
from understudy.training.checkpoint import FILE as CHECKPOINT

_SAMPLES = 4 * 6  # series · steps that a scene draws


@dataclass(frozen=True)
class Account:
    """What the ledgers of a stage say: each charge with what was executed of it."""

    entries: tuple[Entry, ...]

    @property
    def executed(self) -> int:
        """All executions of all charges."""
        return sum(sum(entry.executed.values()) for entry in self.entries)

    @property
    def fulfilled(self) -> int:
        """Charges of which everything was executed."""
        return sum(
            all(entry.executed.get(label, 0) == entry.plan.executions(label) for label in _labels(entry))
            for entry in self.entries
        )


def account(stage: Stage) -> Account:
    """Opens the stage's ledgers, each row checked against the chain, and reads them."""
    ledgers = [path for path in (stage.clinic / "clinic.ledger", stage.clinic / TOY) if path.exists()]
    entries = tuple(entry for path in ledgers for entry in Ledger.open(path).entries())
    for entry in entries:
        assert all(entry.executed.get(label, 0) <= entry.plan.executions(label) for label in _labels(entry))
    return Account(entries)


def check_charged(stage: Stage, before: Account, report: Report) -> Account:
    """No under-charge: what was granted and executed is written down, and so is what any file was made from."""
    now = account(stage)
    assert len(now.entries) - len(before.entries) >= report.granted, "a charge was granted and is not written down"
    assert now.executed - before.executed >= report.executed, "more was executed than is written down"
    for path, paid in _made_from_private_data(stage.clinic, now):
        assert paid or not path.stat().st_size, f"{path.name} is there and its charge is not"
    for release in _releases(stage.clinic):
        certificate = Certificate.load(release)
        paid = [entry for entry in now.entries if entry.run == certificate.ledger["run"]]
        assert Ledger.open(stage.clinic / "clinic.ledger").knows(certificate.ledger["head"])
        assert [entry.executed for entry in paid] == [certificate.executed], "a release and its charge disagree"
    return now


def check_whole(stage: Stage) -> None:
    """Every file under its final name can be read to its end; a release holds what its certificate names."""
    for release in _releases(stage.clinic):
        wrong = [check for check in verify(Certificate.load(release), release) if not check.ok]
        assert not wrong, wrong
    for path in _final(stage.folder):
        _READERS.get(path.suffix, lambda _: None)(path)
    registry.populations()
    keys.own()
    keys.trusted()


def check_told(before: Account, now: Account, report: Report) -> None:
    """A failure is one plain line, and what it says about the charge is so."""
    if report.code == 0:
        return
    assert report.code == 2, report.err
    check_plain(report)
    charged = len(now.entries) > len(before.entries)
    assert not (charged and "othing was charged" in report.err), report.err
    assert not ("stays charged" in report.err and not charged), report.err


def check_one_can_go_on(stage: Stage, before: Account) -> None:
    """The same command works, or says in one line what stands in its way; either way the account stays right."""
    report = stage.act()
    assert report.code in (0, 2), report.err
    if report.code == 2:
        check_plain(report)
        assert "exists already" in report.err or "already is a key" in report.err, report.err
    check_charged(stage, before, report)
    check_whole(stage)


def check_plain(report: Report) -> None:
    """A refusal is one line without a traceback."""
    lines = report.err.strip().splitlines()
    assert len(lines) == 1, report.err
    assert lines[0].startswith("error: "), report.err


def _labels(entry: Entry) -> list[str]:
    return [planned.label for planned in entry.plan.entries]


def _releases(clinic: Path) -> list[Path]:
    return [path for path in clinic.iterdir() if path.is_dir() and path.name in ("release", "earlier")]


def _made_from_private_data(clinic: Path, now: Account) -> Iterator[tuple[Path, bool]]:
    """Models, samples, bought schemas, checkpoints, also as drafts under hidden names; and whether they are paid."""
    for pattern in ("*release*/*", "*bought.toml*"):
        yield from ((path, now.fulfilled > 0) for path in clinic.glob(pattern) if path.is_file())
    for path in (clinic / "saved").glob("*"):
        yield path, now.executed > 0
    for path in (clinic / "saved").glob(CHECKPOINT):
        with safe_open(path, framework="numpy") as opened:
            yield path, json.loads(opened.metadata()["understudy"])["iteration"] <= now.executed


def _final(folder: Path) -> list[Path]:
    """Files that no part of the path marks as a draft."""
    named = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in named if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


def _read_csv(path: Path) -> None:
    rows = csv.read_csv(path).num_rows
    assert rows == _SAMPLES or path.name != "more.csv"


def _read_parquet(path: Path) -> None:
    rows = pq.read_table(path).num_rows
    assert rows == _SAMPLES or path.name != "more.parquet"


def _read_tensors(path: Path) -> None:
    with safe_open(path, framework="numpy") as opened:
        assert all(opened.get_tensor(name) is not None for name in opened.keys())  # noqa: SIM118


def _read_page(path: Path) -> None:
    assert path.read_text().endswith("</html>\n")


_READERS = {
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".safetensors": _read_tensors,
    ".html": _read_page,
    ".json": lambda path: json.loads(path.read_text()),
    ".toml": lambda path: Schema.load(path, draft=True),
    ".pub": keys.read_public,
    ".ledger": Ledger.open,
}
