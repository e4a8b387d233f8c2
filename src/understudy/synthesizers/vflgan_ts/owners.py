"""How one owner of networks, a party or the aggregator, updates them in a run whose owners sit apart."""

from collections.abc import Iterator
from itertools import islice

import torch
from torch import Tensor

from understudy.privacy.grant import Grant
from understudy.synthesizers.vflgan_ts import modes
from understudy.synthesizers.vflgan_ts.aggregator import Draws
from understudy.synthesizers.vflgan_ts.claimed import claimed_noise
from understudy.synthesizers.vflgan_ts.method import VflganTs
from understudy.synthesizers.vflgan_ts.modes import NOT_PRIVATE, Rule
from understudy.synthesizers.vflgan_ts.updates import MakeUpdate
from understudy.training.plan import TRAINING


def party_update(method: VflganTs, grant: Grant, num_parties: int, population: int) -> MakeUpdate:
    """Returns how a party updates its networks, with noise of its own.

    Privacy: in `sound` whoever calls counts iterations before they run.
    """
    if method.mode == "sound":
        return modes.sound_update(grant, method.recipe, num_parties, population)[1]
    return _rule_without_guarantee(method, population, grant).party


def aggregator_update(
    method: VflganTs, grant: Grant, num_parties: int, population: int, done: int
) -> tuple[MakeUpdate, Draws]:
    """Returns how the aggregator updates its network, and the rows it draws after `done` iterations."""
    if method.mode == "sound":
        whole, update = modes.sound_update(grant, method.recipe, num_parties, population)
        executed = grant.executed[TRAINING]

        def drawn(num_rows: int) -> Iterator[Tensor]:
            return map(torch.from_numpy, whole.sampler.draw(num_rows, grant.noise, done=executed))

        return update, drawn
    rule = _rule_without_guarantee(method, population, grant)
    past = done * method.recipe.critic_rounds
    return rule.aggregator, lambda num_rows: islice(rule.draws(num_rows), past, None)


def _rule_without_guarantee(method: VflganTs, population: int, grant: Grant) -> Rule:
    """Updates in modes whose gradients are not noised, or not as they should be; `local` has noised the rows."""
    if method.mode in NOT_PRIVATE and grant.remaining(TRAINING):
        grant.without_privacy(TRAINING)
    if method.mode != "paper":
        return modes.plain_rule(method.recipe, method.seed)
    rate, delta = min(1.0, method.recipe.batch / population), grant.plan.guarantee.delta
    noise = claimed_noise(method.claimed_epsilon, rate, method.recipe.iterations, delta)
    return modes.paper_rule(method.recipe, noise, grant, method.seed)
