"""Sides as processes of their own: the aggregator listens, parties come to it, and what was charged stays charged."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from understudy.data import read_panel
from understudy.errors import InputError, MissingData, ReleaseError, UnderstudyError
from understudy.federated.aggregator import Chair
from understudy.federated.certificates import AGGREGATOR, Identity
from understudy.federated.config import SideConfig, Source
from understudy.federated.contract import Contract
from understudy.federated.party import FAREWELL, Member
from understudy.federated.stream import GrpcAggregatorLink, connect, serve
from understudy.files import whole_file
from understudy.privacy import keys
from understudy.privacy.certificate import Certificate
from understudy.synthesizers.vflgan_ts.protocol import preside, take_part

Progress = Callable[[str, float], None]
_DIGEST = "contract.sha256"


def run_server(config: SideConfig, progress: Progress) -> Certificate:
    """Leads one run to its release, and returns the certificate."""
    identity = Identity.load(config.keys)
    identity.check()
    if identity.name != AGGREGATOR:
        raise InputError(f"keys: those of '{AGGREGATOR}' are expected, got those of '{identity.name}'.")
    _prepare(config)
    parties = config.contract.parties
    chair = Chair(
        contract=config.contract,
        account=config.account,
        state=config.state,
        key=keys.load_or_create(config.signing_key),
        out=config.out,
        progress=progress,
    )
    link = GrpcAggregatorLink(parties, config.patience_seconds)
    with _charge_told(config), serve(link, identity, config.address, len(parties)):
        progress("waiting for parties", 0.0)
        preside(chair.side(), link, FAREWELL)
    return Certificate.load(config.out)


def run_party(config: SideConfig, source: Source, progress: Progress) -> Certificate:
    """Takes part in one run with one's own table, and returns the certificate of the release.

    Privacy: the table is read and checked here; its values are used after the charge.
    """
    identity = Identity.load(config.keys)
    identity.check()
    if identity.name not in config.contract.parties:
        raise InputError(
            f"keys: those of one of {', '.join(config.contract.parties)} are expected, got those of '{identity.name}'."
        )
    if not source.table.exists():
        raise MissingData(f"table: nothing is at '{source.table}'. Check the path.")
    _prepare(config)
    joined, few = config.contract.schema, config.contract.few_units is not None
    panel = read_panel(source.table, source.schema(joined, identity.name), allow_few_units=few)
    panel = replace(panel, schema=Source(table=source.table).schema(joined, identity.name))
    member = Member(
        contract=config.contract,
        party=identity.name,
        panel=panel,
        account=config.account,
        state=config.state,
        key=keys.load_or_create(config.signing_key),
        out=config.out,
        progress=progress,
    )
    progress("waiting for the aggregator", 0.0)
    with _charge_told(config), connect(identity, config.address, config.patience_seconds) as link:
        take_part(member.side(), link)
    return Certificate.load(config.out)


def _prepare(config: SideConfig) -> None:
    """Every refusal that needs neither the table nor anybody else."""
    if config.out.exists():
        raise ReleaseError(f"out: '{config.out}' exists already: this run is complete. A new run needs another place.")
    config.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remember(config.state / _DIGEST, config.contract)
    config.account.check(config.contract)


def _remember(file: Path, contract: Contract) -> None:
    """A state folder belongs to one contract."""
    if not file.exists():
        with whole_file(file) as draft:
            draft.write_text(contract.digest, encoding="utf-8")
    elif file.read_text(encoding="utf-8") != contract.digest:
        raise InputError(
            f"state: '{file.parent}' holds a run of another contract. Put the contract back as it was to resume that "
            "run, or name another folder for a new one."
        )


@contextmanager
def _charge_told(config: SideConfig) -> Iterator[None]:
    """Adds to any error whether this side's ledger was charged: a charge is never given back."""
    ledger = config.account.ledger(config.contract)
    try:
        yield
    except BaseException as problem:
        with suppress(UnderstudyError):  # a failing disk must not hide what failed first
            if any(entry.label == config.contract.label for entry in ledger.entries()):
                problem.add_note("This run is charged and stays charged. Start all sides again to go on with it.")
        raise
