"""Sides as real processes on loopback with mutual TLS: the same result as in one process, also after a kill."""

import os
import random
import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.unit.federated.banks import NAMES, Banks, banks, contract, held, sines, usual
from understudy.data import Panel, write_panel
from understudy.errors import InputError
from understudy.federated.config import load_contract
from understudy.federated.launch import started, up, verified
from understudy.federated.runs import FAREWELL
from understudy.federated.transport import (
    AGGREGATOR,
    GrpcAggregatorLink,
    Identity,
    connect,
    make_identities,
    refuse,
    serve,
)
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.release import Release
from understudy.synthesizers.vflgan_ts.protocol import preside, take_part

SIDE = """\
contract = "contract.toml"
keys = "keys/{side}"
address = "127.0.0.1:{port}"
folder = "{side}"
ledger = {{ name = "{people}" }}
"""
CONTRACT = """\
name = "test"
schema = "joined.toml"
mode = "{mode}"
scale = "bounds"
epsilon = {epsilon}
delta = 1e-6
checkpoint_every = 10
noise_seed = 5

[recipe]
iterations = {iterations}
batch = {batch}
features = 16
"""


def files(folder: Path, panel: Panel, mode: str = "plain", iterations: int = 150) -> Path:
    """Writes what organisations would bring, and returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    parties = tuple(dict.fromkeys(str(channel.party) for channel in panel.schema.channels))
    panel.schema.save(folder / "joined.toml")
    make_identities(folder / "keys", parties, host="127.0.0.1")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    for side in (AGGREGATOR, *parties):
        text = SIDE.format(side=side, port=port, people=f"{folder.parent.name}-{folder.name}-{side}")
        if side != AGGREGATOR:
            text = f'table = "{side}.parquet"\n{text}'
            write_panel(held(panel, side), folder / f"{side}.parquet")
        (folder / f"{side}.toml").write_text(text)
    options = {"mode": mode, "epsilon": "inf" if mode == "plain" else 8.0, "iterations": iterations}
    text = CONTRACT.format(**options, batch=16 if mode == "plain" else panel.num_units)
    (folder / "contract.toml").write_text(text)
    return folder


def in_one_process(folder: Path, plan: Path, panel: Panel) -> Banks:
    agreed = load_contract(plan / "contract.toml")
    made = banks(folder, agreed, {party: held(panel, party) for party in agreed.parties})
    made.run()
    return made


def assert_same(folder: Path, alone: Path) -> None:
    """Losses and weights of both runs are the same numbers."""
    ours, theirs = Release.load(folder / "aggregator/runs/test/release"), Release.load(alone / "aggregator/release")
    assert set(ours.arrays) == set(theirs.arrays)
    assert all(np.array_equal(ours.arrays[name], theirs.arrays[name]) for name in ours.arrays)
    losses = [(folder / "aggregator/runs/test/losses.json"), (alone / "aggregator" / "state" / "losses.json")]
    assert losses[0].read_text() == losses[1].read_text()


def killed(plan: Path, side: str, chance: random.Random) -> dict[str, str]:
    """Kills one side at a random moment after its first checkpoint, and returns what the others say as they stop."""
    with started(plan) as sides:
        victim = next(each.process for each in sides if each.name == side)
        checkpoints = plan / side / "runs/test/checkpoints"
        until = time.monotonic() + 120
        while not any(checkpoints.glob("[0-9]*")):
            assert victim.poll() is None, "\n".join(each.log.read_text() for each in sides)
            assert time.monotonic() < until
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.3))
        os.kill(victim.pid, signal.SIGKILL)
        for each in sides:
            each.process.wait(60)
    assert not (plan / "aggregator/runs/test/release").exists()
    assert victim.returncode == -signal.SIGKILL
    assert [each.process.returncode for each in sides if each.name != side] == [2] * (len(sides) - 1)
    return {each.name: each.log.read_text() for each in sides}


def test_a_killed_party_stops_all_and_the_run_resumes_to_what_one_process_gives(tmp_path: Path) -> None:
    panel = sines()
    plan = files(tmp_path / "apart", panel)
    logs = killed(plan, "shop", random.Random())
    assert "'shop' is gone" in logs["aggregator"]
    assert "stays charged" in logs["bank"]
    release = up(plan)
    in_one_process(tmp_path / "alone", plan, panel)
    assert_same(plan, tmp_path / "alone")
    place, certificate, checks = verified(plan)
    assert (place, certificate.status) == (release, Release.load(release).certificate.status)
    assert all(check.ok for check in checks)
    assert [check.name for check in checks].count("copy") == 3
    for side in ("bank", "shop", "aggregator"):
        (ledger,) = (plan / side).glob("*.ledger")
        assert len(Ledger.open(ledger).entries()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("side", ["aggregator", "grid"])
def test_four_parties_survive_the_death_of_any_side(tmp_path: Path, side: str) -> None:
    panel = sines(num_parties=4)
    plan = files(tmp_path / "apart", panel)
    assert load_contract(plan / "contract.toml").parties == NAMES
    killed(plan, side, random.Random())
    up(plan)
    in_one_process(tmp_path / "alone", plan, panel)
    assert_same(plan, tmp_path / "alone")


@pytest.mark.slow
def test_a_sound_run_of_processes_equals_one_process_and_counts_what_a_kill_costs(tmp_path: Path) -> None:
    panel = sines()
    plan = files(tmp_path / "apart", panel, mode="sound", iterations=60)
    up(plan)
    in_one_process(tmp_path / "alone", plan, panel)
    assert_same(plan, tmp_path / "alone")
    other = files(tmp_path / "killed", panel, mode="sound", iterations=400)
    killed(other, "shop", random.Random())
    certificate = Release.load(up(other)).certificate
    assert certificate.executed["training"] <= 400


def over_sockets(keys: Path, made: Banks, timeout: float = 60.0) -> None:
    """Runs all sides in threads of their own, over real streams."""
    link = GrpcAggregatorLink(made.contract.parties, timeout)
    with ThreadPoolExecutor(len(made.members)) as pool:
        with serve(link, Identity.load(keys / "aggregator"), "127.0.0.1:0", len(made.members)) as port:

            def join(name: str) -> None:
                with connect(Identity.load(keys / name), f"127.0.0.1:{port}", timeout) as own:
                    take_part(made.members[name].side(), own.exchange)

            running = [pool.submit(join, name) for name in made.members]
            preside(made.aggregator.side(), link.gather, link.scatter, FAREWELL)
        for each in running:
            each.result(timeout=timeout)


@pytest.mark.parametrize("num_parties", [2, 4])
def test_streams_give_the_losses_and_weights_of_one_process(tmp_path: Path, num_parties: int) -> None:
    panel = sines(num_parties=num_parties)
    make_identities(tmp_path / "keys", NAMES[:num_parties], host="127.0.0.1")
    apart, alone = usual(tmp_path / "apart", panel), usual(tmp_path / "alone", panel)
    over_sockets(tmp_path / "keys", apart)
    alone.run()
    ours, theirs = (Release.load(tmp_path / name / "bank" / "release").arrays for name in ("apart", "alone"))
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)
    losses = [(tmp_path / name / "aggregator" / "state" / "losses.json").read_text() for name in ("apart", "alone")]
    assert losses[0] == losses[1]


def test_a_party_with_an_unknown_certificate_is_refused_and_the_run_goes_on_without_it(tmp_path: Path) -> None:
    panel = sines()
    make_identities(tmp_path / "keys", ["bank", "shop", "stranger"], host="127.0.0.1")
    made = usual(tmp_path / "run", panel)
    link = GrpcAggregatorLink(made.contract.parties, 60.0)
    told: list[str] = []
    with (
        ThreadPoolExecutor(3) as pool,
        serve(link, Identity.load(tmp_path / "keys" / "aggregator"), "127.0.0.1:0", 3) as port,
    ):

        def join(name: str, side: str) -> None:
            try:
                with connect(Identity.load(tmp_path / "keys" / name), f"127.0.0.1:{port}", 60.0) as own:
                    take_part(made.members[side].side(), own.exchange)
            except InputError as problem:
                told.append(str(problem))

        pool.submit(join, "stranger", "shop").result(timeout=60)
        assert "no place in this run" in told[0]
        running = [pool.submit(join, name, name) for name in ("bank", "shop")]
        preside(made.aggregator.side(), link.gather, link.scatter, FAREWELL)
        for each in running:
            each.result(timeout=60)
    assert len(told) == 1
    assert len(Release.load(tmp_path / "run" / "bank" / "release").certificate.parties) == 2


def test_every_party_is_told_at_once_why_another_refuses(tmp_path: Path) -> None:
    """Before it takes part and in the middle of a run; without it the others would wait for their whole patience."""
    make_identities(tmp_path / "keys", ["bank", "shop"], host="127.0.0.1")
    told: dict[str, str] = {}

    def join(name: str, made: Banks, port: int) -> None:
        try:
            with connect(Identity.load(tmp_path / "keys" / name), f"127.0.0.1:{port}", 60.0) as own:
                take_part(made.members[name].side(), own.exchange)
        except InputError as problem:
            told[name] = str(problem)

    def ends(name: str, refusing: Callable[[Banks, int], None]) -> None:
        made, started = usual(tmp_path / name, sines()), time.monotonic()
        link = GrpcAggregatorLink(made.contract.parties, 60.0)
        threads: list[threading.Thread] = []

        def lead() -> None:
            with serve(link, Identity.load(tmp_path / "keys" / "aggregator"), "127.0.0.1:0", 2) as port:
                for target, values in ((join, ("bank", made, port)), (refusing, (made, port))):
                    threads.append(threading.Thread(target=target, args=values))
                    threads[-1].start()
                    while "bank" not in link._present:
                        time.sleep(0.01)
                preside(made.aggregator.side(), link.gather, link.scatter, FAREWELL)

        with pytest.raises(InputError, match="'shop' refuses: its table is missing"):
            lead()
        for thread in threads:
            thread.join(timeout=20)
        assert "its table is missing" in told.pop("bank")
        assert time.monotonic() - started < 30

    def at_the_door(made: Banks, port: int) -> None:
        refuse(tmp_path / "keys" / "shop", f"127.0.0.1:{port}", "its table is missing")

    def in_the_middle(made: Banks, port: int) -> None:
        with (
            suppress(InputError),
            connect(Identity.load(tmp_path / "keys" / "shop"), f"127.0.0.1:{port}", 60.0) as own,
        ):
            side = made.members["shop"].side()
            side.send(own.exchange(next(side)))
            raise InputError("its table is missing")

    ends("door", at_the_door)
    ends("middle", in_the_middle)


def test_a_schema_in_which_two_parties_hold_one_column_is_refused(tmp_path: Path) -> None:
    panel = sines()
    plan = files(tmp_path, panel)
    text = (tmp_path / "joined.toml").read_text().replace('"wave5"', '"wave0"')
    (tmp_path / "joined.toml").write_text(text)
    with pytest.raises(InputError, match="'wave0': the column is declared twice"):
        load_contract(plan / "contract.toml")


def test_a_contract_leaves_the_name_of_a_run_to_tell_it_from_another() -> None:
    agreed = contract(sines().schema)
    assert agreed.digest == contract(sines().schema).digest
    assert agreed.digest != replace(agreed, name="second").digest
    assert agreed.label != replace(agreed, name="second").label
