"""A shared ledger whose client or server is killed at a random moment: nothing is executed that is not charged."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.shared import Kills
from tests.postgresql import running
from understudy.privacy.ledger import Ledger

FEW, MANY, ROUNDS = 3, 25, 4


@pytest.fixture(scope="module")
def kills() -> Iterator[Kills]:
    """A server of its own: others would not like to see it killed."""
    with tempfile.TemporaryDirectory(prefix="understudy-kills-") as folder:
        (Path(folder) / "server").mkdir()
        (Path(folder) / "homes").mkdir()
        Path(folder).chmod(0o755)
        with running(Path(folder) / "server") as server:
            yield Kills(server, server.database("ledgers"), Path(folder) / "homes")


def check(kills: Kills, clients: int, servers: int) -> None:
    kills.granted = kills.executed = 0
    for number in range(clients + servers):
        (kills.of_client if number < clients else kills.of_server)()
    print(f"{kills.granted} charges granted, {kills.executed} executions, {kills.lost} lost")
    assert kills.lost == 0
    assert kills.granted >= clients + servers
    assert len(kills.refused) >= servers
    assert all("did not answer" in told and "No run began" in told for told in kills.refused)


def test_a_client_or_server_killed_now_and_then_loses_no_charge(kills: Kills) -> None:
    check(kills, FEW, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(ROUNDS))
@pytest.mark.parametrize("who", ["clients", "servers"])
def test_a_hundred_killed_lose_no_charge(who: str, turn: int, kills: Kills) -> None:
    check(kills, *((MANY, 0) if who == "clients" else (0, MANY)))


def test_a_grant_before_its_charge_would_be_noticed(kills: Kills, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a careless ledger that hands the grant out from memory and writes nothing down."""
    charge = Ledger.charge

    def careless(ledger: Ledger, plan: object, **options: object) -> object:
        return charge(Ledger.in_memory(ledger.guarantee, max_runs=10**5), plan, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Ledger, "charge", careless)
    before = kills.lost
    kills.of_client()
    assert kills.lost > before
    kills.lost = before
