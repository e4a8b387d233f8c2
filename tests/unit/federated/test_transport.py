"""Frames over real sockets with mutual TLS: the same conversation as in one process, and every way to break it."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from understudy.errors import InputError
from understudy.federated.transport import GrpcAggregatorLink, Identity, connect, make_identities, serve
from understudy.synthesizers.vflgan_ts.protocol import (
    END,
    AggregatorSide,
    Frame,
    PartySide,
    converse,
    preside,
    take_part,
)

ROUNDS, PARTIES = 5, ("bank", "shop")
SHAPES = {"x": (3,)}


def party(start: float, seen: list[torch.Tensor], damage: Callable[[int, Frame], Frame] = lambda _, f: f) -> PartySide:
    x = torch.full((3,), start)
    for number in range(1, ROUNDS + 1):
        answer = yield damage(number, Frame(number, "sum", {"x": x}))
        stage = END if number == ROUNDS else "next"
        x = x + answer.expect(number, stage, SHAPES, sender="aggregator")["x"]
        seen.append(x)


def aggregator() -> AggregatorSide:
    frames = yield {}
    for number in range(1, ROUNDS + 1):
        heard = [frames[name].expect(number, "sum", SHAPES, sender=name)["x"] for name in PARTIES]
        answer = Frame(number, END if number == ROUNDS else "next", {"x": sum(heard) * 0.3})
        frames = yield dict.fromkeys(PARTIES, answer)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "keys"
    make_identities(folder, [*PARTIES, "stranger"], host="127.0.0.1")
    return folder


def run_over_sockets(keys: Path, sides: dict[str, PartySide], timeout: float = 20.0) -> None:
    """Runs all sides in threads of their own; raises what the aggregator raised."""
    link = GrpcAggregatorLink(PARTIES, timeout)
    with ThreadPoolExecutor(len(sides)) as pool:
        with serve(link, Identity.load(keys / "aggregator"), "127.0.0.1:0", len(PARTIES)) as port:

            def join(name: str, side: PartySide) -> None:
                with connect(Identity.load(keys / name), f"127.0.0.1:{port}", timeout) as own:
                    take_part(side, own.exchange)

            running = [pool.submit(join, name, side) for name, side in sides.items()]
            preside(aggregator(), link.gather, link.scatter)
        for each in running:
            each.result(timeout=timeout)


def test_sockets_carry_the_conversation_of_one_process(keys: Path) -> None:
    alone: dict[str, list[torch.Tensor]] = {name: [] for name in PARTIES}
    apart: dict[str, list[torch.Tensor]] = {name: [] for name in PARTIES}
    converse({name: party(place + 1.0, alone[name]) for place, name in enumerate(PARTIES)}, aggregator())
    run_over_sockets(keys, {name: party(place + 1.0, apart[name]) for place, name in enumerate(PARTIES)})
    for name in PARTIES:
        assert len(apart[name]) == ROUNDS
        assert all(torch.equal(a, b) for a, b in zip(alone[name], apart[name], strict=True))


def _replayed(number: int, frame: Frame) -> Frame:
    return Frame(number - 1, frame.stage, frame.tensors) if number == 3 else frame


def _not_a_number(number: int, frame: Frame) -> Frame:
    return Frame(number, frame.stage, {"x": torch.full((3,), torch.nan)}) if number == 2 else frame


def _of_another_shape(number: int, frame: Frame) -> Frame:
    return Frame(number, frame.stage, {"x": torch.zeros(4)})


def _dead(number: int, frame: Frame) -> Frame:
    if number == 3:
        raise KeyboardInterrupt
    return frame


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (_replayed, "replayed"),
        (_not_a_number, "not finite"),
        (_of_another_shape, "other tensors"),
        (_dead, "'shop' is gone"),
    ],
)
def test_one_bad_party_stops_the_run_for_all_and_they_are_told(
    keys: Path, damage: Callable[[int, Frame], Frame], says: str
) -> None:
    told: list[str] = []

    link = GrpcAggregatorLink(PARTIES, 10.0)
    threads: list[threading.Thread] = []

    def join(name: str, side: PartySide, port: int) -> None:
        try:
            with connect(Identity.load(keys / name), f"127.0.0.1:{port}", 10.0) as own:
                take_part(side, own.exchange)
        except (InputError, KeyboardInterrupt) as problem:
            told.append(f"{name}: {problem}")

    def lead() -> None:
        with serve(link, Identity.load(keys / "aggregator"), "127.0.0.1:0", 2) as port:
            for name, side in {"bank": party(1.0, []), "shop": party(2.0, [], damage)}.items():
                threads.append(threading.Thread(target=join, args=(name, side, port)))
                threads[-1].start()
            preside(aggregator(), link.gather, link.scatter)

    with pytest.raises(InputError, match=says):
        lead()
    for thread in threads:
        thread.join(timeout=20)
        assert not thread.is_alive()
    assert any(line.startswith("bank: The aggregator ended the run") for line in told), told


def test_an_aggregator_that_says_nothing_is_not_waited_for_without_end(keys: Path) -> None:
    link = GrpcAggregatorLink(PARTIES, 5.0)
    with serve(link, Identity.load(keys / "aggregator"), "127.0.0.1:0", 2) as port:
        with (
            connect(Identity.load(keys / "bank"), f"127.0.0.1:{port}", 1.0) as own,
            pytest.raises(InputError, match="nothing was received from it for 1 s"),
        ):
            take_part(party(1.0, []), own.exchange)
        link.close()


def test_a_certificate_without_a_place_in_the_run_is_refused_and_logged(
    keys: Path, caplog: pytest.LogCaptureFixture
) -> None:
    link = GrpcAggregatorLink(PARTIES, 5.0)
    with serve(link, Identity.load(keys / "aggregator"), "127.0.0.1:0", 2) as port:
        with (
            connect(Identity.load(keys / "stranger"), f"127.0.0.1:{port}", 5.0) as own,
            pytest.raises(InputError, match="no place in this run"),
        ):
            take_part(party(1.0, []), own.exchange)
        link.close()
    assert "refused" in caplog.text
    assert "stranger" not in caplog.text


def test_a_certificate_of_another_authority_does_not_even_connect(keys: Path, tmp_path: Path) -> None:
    make_identities(tmp_path / "others", ["bank"], host="127.0.0.1")
    link = GrpcAggregatorLink(PARTIES, 2.0)
    with (
        serve(link, Identity.load(keys / "aggregator"), "127.0.0.1:0", 2) as port,
        pytest.raises(InputError, match="no aggregator of this run"),
        connect(Identity.load(tmp_path / "others" / "bank"), f"127.0.0.1:{port}", 2.0),
    ):
        pass


def test_an_expired_certificate_does_not_connect(tmp_path: Path) -> None:
    make_identities(tmp_path / "old", ["bank"], host="127.0.0.1", days=-0.001)
    make = tmp_path / "old"
    link = GrpcAggregatorLink(("bank",), 2.0)
    with (
        serve(link, Identity.load(make / "aggregator"), "127.0.0.1:0", 1) as port,
        pytest.raises(InputError, match="no aggregator of this run"),
        connect(Identity.load(make / "bank"), f"127.0.0.1:{port}", 2.0),
    ):
        pass


def test_a_foreign_certificate_is_refused_by_a_server_that_logs_it(
    keys: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    make_identities(tmp_path / "others", ["bank"], host="127.0.0.1")
    foreign = replace(Identity.load(tmp_path / "others" / "bank"), authority=Identity.load(keys / "bank").authority)
    link = GrpcAggregatorLink(PARTIES, 2.0)
    with (
        serve(link, Identity.load(keys / "aggregator"), "127.0.0.1:0", 2) as port,
        pytest.raises(InputError, match="no aggregator of this run"),
        connect(foreign, f"127.0.0.1:{port}", 2.0),
    ):
        pass
    assert "Handshake failed" in capfd.readouterr().err
    with pytest.raises(InputError, match="signed by the folder's authority"):
        foreign.check()


def test_one_is_told_about_ones_own_expired_certificate_at_once(tmp_path: Path, keys: Path) -> None:
    make_identities(tmp_path / "old", ["bank"], host="127.0.0.1", days=-0.001)
    with pytest.raises(InputError, match=r"'bank' holds from .* Make new keys for all sides"):
        Identity.load(tmp_path / "old" / "bank").check()
    for name in ("aggregator", *PARTIES):
        Identity.load(keys / name).check()


def test_keys_are_readable_by_their_owner_only_and_name_their_side(keys: Path) -> None:
    for name in ("aggregator", *PARTIES):
        assert Identity.load(keys / name).name == name
        assert (keys / name / "key.pem").stat().st_mode & 0o077 == 0
    assert not list(keys.rglob("*authority*key*"))


@pytest.mark.parametrize("names", [["bank", "bank"], ["aggregator"], ["a/b"], [""]])
def test_names_that_could_be_confused_are_refused(tmp_path: Path, names: list[str]) -> None:
    with pytest.raises(InputError, match="different names"):
        make_identities(tmp_path / "keys", names, host="localhost")
