"""Parties and aggregator compute together what one program would, and say no more than features."""

import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import softplus

from tests.unit.synthesizers.vflgan_ts.toy import SMALL, World, clipped, rows, sound_plan, world
from understudy.errors import InputError
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.vflgan_ts.protocol import Frame, Frames, converse, preside, take_part
from understudy.synthesizers.vflgan_ts.published import Rows


def test_the_exchange_equals_one_program_with_ordinary_autograd() -> None:
    held = rows()
    run, before = _livelier(world(held)), _livelier(world(held))  # the same seed: the same networks
    frames = _recorded(run)
    first, second = (frame.tensors["latent"] for frame in frames["bank"] if "latent" in frame.tensors)
    expected = torch.autograd.grad(_discriminators_loss(before, held, first), _judges(before))
    assert torch.allclose(run.gradient, torch.cat([grad.flatten() for grad in expected]), atol=1e-6)
    made = {name: party.generators for name, party in before.parties.items()}
    loss = _generators_loss(run, made, second)  # discriminators after their update
    for name, party in run.parties.items():
        expected = torch.autograd.grad(loss, list(made[name].parameters()), retain_graph=True)
        found = party.generator_update.flat.gradient
        assert torch.allclose(found, torch.cat([grad.flatten() for grad in expected]), atol=1e-6)
        assert found.abs().max() > 1e-2


def test_all_parties_generate_from_the_same_latent() -> None:
    frames = _recorded(world(rows()))
    for one, other in zip(frames["bank"], frames["shop"], strict=True):
        if "latent" in one.tensors:
            assert torch.equal(one.tensors["latent"], other.tensors["latent"])


def test_nothing_but_features_leaves_a_party() -> None:
    run = world(rows(), replace(SMALL, iterations=2))
    sent: list[Frame] = []
    parties, aggregator = run.sides
    converse(parties, aggregator, lambda name, frame: sent.append(frame))
    for frame in sent[::2]:  # what parties say; what they hear is in between
        widths = {tuple(tensor.shape)[1:] for tensor in frame.tensors.values()}
        assert frame.stage == "greeting" or widths == {(SMALL.features,)}


def test_a_round_moves_six_tensors_of_features_for_each_party() -> None:
    recipe = replace(SMALL, iterations=3, batch=9, features=12)
    frames = _recorded(world(rows(9), recipe))
    features = [t for frame in frames["bank"] for t in frame.tensors.values() if t.shape == (9, 12)]
    assert len(features) == 6 * recipe.iterations


@pytest.mark.parametrize("mode", ["plain", "sound"])
def test_another_transport_gives_the_same_losses_and_weights(mode: str) -> None:
    recipe = replace(SMALL, iterations=4)

    def make() -> World:
        if mode == "plain":
            return world(rows(), recipe, mode="plain")  # with dropout
        return world(rows(), recipe, clipped(sound_plan(iterations=4), NoiseSource.constant(1)))

    here, there = make(), make()
    converse(*here.sides)
    _over_queues(there)
    assert here.aggregator.losses == there.aggregator.losses
    assert len(here.aggregator.losses) == recipe.iterations
    for name, party in here.parties.items():
        assert torch.equal(party.generator_update.flat.values, there.parties[name].generator_update.flat.values)


def test_a_run_goes_on_where_it_was_stopped() -> None:
    """The sides take up at any iteration; a checkpoint holds `flat` and `optimiser` of every update."""
    run = world(rows(), replace(SMALL, iterations=3))
    seen: list[int] = []
    parties = {name: party.side(seen.append, done=2) for name, party in run.parties.items()}
    converse(parties, run.aggregator.side(seen.append, done=2))
    assert set(seen) == {3}
    assert len(run.aggregator.losses) == 1


def test_parties_with_different_numbers_of_rows_are_refused() -> None:
    held = {"bank": rows(9)["bank"], "shop": rows(8)["shop"]}
    with pytest.raises(InputError, match="different numbers of rows") as caught:
        converse(*world(held).sides)
    assert "9" not in str(caught.value)


def test_a_party_that_sends_what_is_not_a_number_stops_the_run() -> None:
    held = rows()
    held["shop"] = Rows(torch.full_like(held["shop"].series, float("nan")), held["shop"].label)
    with pytest.raises(InputError, match=r"'shop'.*not finite"):
        converse(*world(held).sides)


def test_a_replayed_frame_stops_the_run() -> None:
    run = world(rows(), replace(SMALL, iterations=2))
    parties, aggregator = run.sides
    next(aggregator)
    greetings = {name: next(side) for name, side in parties.items()}
    answers = aggregator.send(greetings)
    first = {name: side.send(answers[name]) for name, side in parties.items()}
    aggregator.send(first)
    with pytest.raises(InputError, match="replayed, lost or reordered"):
        aggregator.send(first)


@pytest.mark.parametrize("drawn", [[1, 1], [-1], [9], [0.5]])
def test_a_batch_that_counts_a_row_twice_or_names_none_is_refused(drawn: list[float]) -> None:
    def batches(num_rows: int) -> Iterator[Tensor]:
        while True:
            yield torch.tensor(drawn)

    with pytest.raises(InputError, match="a batch of different rows"):
        converse(*world(rows(9), batches=batches).sides)


def _recorded(run: World) -> dict[str, list[Frame]]:
    frames = defaultdict(list)
    parties, aggregator = run.sides
    converse(parties, aggregator, lambda name, frame: frames[name].append(frame))
    return frames


def _livelier(run: World) -> World:
    """Weights far from their small beginnings, so that gradients are far from the tolerance."""
    for update in (*(party.update for party in run.parties.values()), run.aggregator.update):
        update.flat.values.mul_(30)
    return run


def _judges(run: World) -> list[torch.nn.Parameter]:
    modules = [m for party in run.parties.values() for m in (party.discriminators, party.extractor)]
    return [parameter for module in (*modules, run.aggregator.discriminator) for parameter in module.parameters()]


def _discriminators_loss(run: World, held: dict[str, Rows], latent: Tensor) -> Tensor:
    """Eq. 9 and 10, written down once more for everything at once."""
    loss, real, fake = torch.zeros(()), [], []
    for name, party in run.parties.items():
        made = party.generators(latent).detach()
        loss = loss + softplus(-party.discriminators(held[name].series)).mean(0).sum()
        loss = loss + softplus(party.discriminators(made)).mean(0).sum()
        real.append(party.extractor(held[name].series.flatten(1)))
        fake.append(party.extractor(made.flatten(1)))
    shared = run.aggregator.discriminator
    together = softplus(-shared(torch.cat(real, 1))).mean()
    return loss + together + softplus(shared(torch.cat(fake, 1))).mean()


def _generators_loss(run: World, made: dict[str, torch.nn.Module], latent: Tensor) -> Tensor:
    """Eq. 11 in its non-saturating form."""
    loss, features = torch.zeros(()), []
    for name, party in run.parties.items():
        series = made[name](latent)
        loss = loss + softplus(-party.discriminators(series)).mean(0).sum()
        features.append(party.extractor(series.reshape(len(latent), -1)))
    return loss + SMALL.coupling * softplus(-run.aggregator.discriminator(torch.cat(features, 1))).mean()


class _Mail:
    """Both ends of a transport that moves bytes between threads."""

    def __init__(self, names: list[str]) -> None:
        self._up: dict[str, queue.Queue[bytes]] = {name: queue.Queue() for name in names}
        self._down: dict[str, queue.Queue[bytes]] = {name: queue.Queue() for name in names}

    def exchange_of(self, name: str) -> Callable[[Frame], Frame]:
        def exchange(frame: Frame) -> Frame:
            self._up[name].put(frame.to_bytes())
            return Frame.from_bytes(self._down[name].get(timeout=20))

        return exchange

    def gather(self) -> Frames:
        return {name: Frame.from_bytes(box.get(timeout=20)) for name, box in self._up.items()}

    def scatter(self, answers: Frames) -> None:
        for name, answer in answers.items():
            self._down[name].put(answer.to_bytes())


def _over_queues(run: World) -> None:
    parties, aggregator = run.sides
    mail = _Mail(list(parties))
    threads = [
        threading.Thread(target=take_part, args=(side, mail.exchange_of(name))) for name, side in parties.items()
    ]
    for thread in threads:
        thread.start()
    preside(aggregator, mail.gather, mail.scatter)
    for thread in threads:
        thread.join(timeout=20)
        assert not thread.is_alive()
