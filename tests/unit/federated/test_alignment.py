"""Private set intersection between parties that only the aggregator connects."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from understudy.errors import InputError
from understudy.federated.alignment import aligned, passed_on
from understudy.synthesizers.vflgan_ts.protocol import AggregatorSide, Frame, PartySide, converse

NAMES = ("bank", "shop", "grid", "post")


def ids_of(numbers: Sequence[int]) -> np.ndarray:
    return np.array([f"P{number:04d}" for number in numbers])


def align(tables: dict[str, np.ndarray], damage: str | None = None) -> tuple[dict[str, list[str]], list[Frame]]:
    """Returns what each party finds, and everything that passed the aggregator."""
    found: dict[str, list[str]] = {}
    passed: list[Frame] = []
    names = tuple(tables)

    def party(name: str) -> PartySide:
        places = yield from aligned(name, names, tables[name], b"key of " + name.encode())
        found[name] = [str(tables[name][place]) for place in places]

    def aggregator() -> AggregatorSide:
        frames = yield {}
        yield from passed_on(names, frames)

    def damaged(side: PartySide) -> PartySide:
        frame = next(side)
        while True:
            if frame.tensors and frame.iteration > 1:
                frame = Frame(frame.iteration, frame.stage, {n: t.flip(0) for n, t in frame.tensors.items()})
            frame = side.send((yield frame))

    sides = {name: damaged(party(name)) if name == damage else party(name) for name in names}
    converse(sides, aggregator(), lambda name, frame: passed.append(frame))
    return found, passed


@pytest.mark.parametrize("num_parties", [2, 3, 4])
def test_all_parties_find_the_common_ids_in_one_order(num_parties: int) -> None:
    rng = np.random.default_rng(0)
    tables = {name: ids_of(rng.permutation(40 + 5 * place) + 3 * place) for place, name in enumerate(NAMES)}
    found, _ = align({name: tables[name] for name in NAMES[:num_parties]})
    common = set.intersection(*(set(tables[name]) for name in NAMES[:num_parties]))
    for name in NAMES[:num_parties]:
        assert found[name] == found["bank"]
        assert set(found[name]) == common


def test_no_id_passes_the_aggregator_in_a_form_it_can_read() -> None:
    tables = {"bank": ids_of(range(30)), "shop": ids_of(range(10, 50))}
    _, passed = align(tables)
    everything = b"".join(tensor.numpy().tobytes() for frame in passed for tensor in frame.tensors.values())
    assert len(everything) > 1000
    assert not any(name.encode() in everything for table in tables.values() for name in table)
    readable = "".join(tables["bank"]).encode()
    assert all(name.encode() in readable for name in tables["bank"])  # the control: the search would find them


def test_orders_of_two_runs_differ() -> None:
    ids = ids_of(range(30))

    def order(key: bytes) -> list[int]:
        found: list[np.ndarray] = []

        def party(name: str) -> PartySide:
            found.append((yield from aligned(name, ("bank", "shop"), ids, key)))

        def aggregator() -> AggregatorSide:
            frames = yield {}
            yield from passed_on(("bank", "shop"), frames)

        converse({"bank": party("bank"), "shop": party("shop")}, aggregator())
        return found[0].tolist()

    assert order(b"one") == order(b"one")
    assert order(b"one") != order(b"two")


def test_the_key_of_the_order_passes_the_aggregator_encrypted() -> None:
    _, passed = align({"bank": ids_of(range(30)), "shop": ids_of(range(30))})
    everything = b"".join(tensor.numpy().tobytes() for frame in passed for tensor in frame.tensors.values())
    assert b"key of bank" not in everything


def test_whole_numbers_and_text_of_the_same_id_meet() -> None:
    found, _ = align({"bank": np.arange(5), "shop": np.array([str(number) for number in range(3, 9)])})
    assert sorted(found["bank"]) == ["3", "4"]


@pytest.mark.parametrize("others", [range(100, 130), range(20, 30)])
def test_parties_that_share_nobody_are_told_so_and_no_ids(others: range) -> None:
    tables = {"bank": ids_of(range(10)), "shop": ids_of(others), "grid": ids_of(range(30))}
    with pytest.raises(InputError, match="No entity is known to all parties") as caught:
        align(tables)
    assert "P0" not in str(caught.value)


def test_bytes_that_are_no_blinded_ids_are_refused_by_the_name_of_their_sender() -> None:
    with pytest.raises(InputError, match="'shop': blinded ids are expected"):
        align({"bank": ids_of(range(10)), "shop": ids_of(range(10))}, damage="shop")


def test_ids_that_read_the_same_are_refused() -> None:
    with pytest.raises(InputError, match="two ids read the same"):
        align({"bank": np.array(["1", 1], dtype=object), "shop": ids_of(range(3))})


def test_a_letter_to_somebody_unknown_stops_the_run() -> None:
    def party(name: str) -> PartySide:
        yield Frame(1, "align", {"nobody": torch.zeros(1, dtype=torch.uint8)})

    def aggregator() -> AggregatorSide:
        frames = yield {}
        yield from passed_on(("bank", "shop"), frames)

    with pytest.raises(InputError, match="other tensors than agreed"):
        converse({"bank": party("bank"), "shop": party("shop")}, aggregator())
