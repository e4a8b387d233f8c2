"""The adversarial baselines: whose loss depends on whom, and what critics tell."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from understudy_bench.baselines.dp_gan import Contest, DpGan, Recipe
from understudy_bench.baselines.gs_wgan import Bench, GsWgan
from understudy_bench.baselines.pate_gan import votes_of
from understudy_bench.baselines.rows import Layout

from understudy.data import PrivacyUnit
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import MixtureOfGaussians, SubsampledGaussian
from understudy.statistics.facts import Facts, facts_of
from understudy.synthesizers.contract.panels import plain_schema, rich_schema

BOUGHT: Facts = facts_of([], np.full(3, 1 / 3), np.zeros(3), np.zeros((0, 1)), np.zeros(0))
LAYOUT = Layout.of(rich_schema(), BOUGHT)
WIDTH = LAYOUT.shape[0] * LAYOUT.shape[1] + LAYOUT.encoding.num_static


def made_up(number: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    numbers = rng.standard_normal((number, WIDTH)).astype(np.float32)
    return {"row": numbers, "class": LAYOUT.one_hot(rng.integers(0, 3, number))}


def losses(contest: Contest, batch: dict[str, np.ndarray]) -> torch.Tensor:
    shown = {name: torch.from_numpy(own) for name, own in batch.items()}
    return contest.private_loss(contest.critic, shown, torch.Generator().manual_seed(3)).detach()


def test_another_series_changes_no_loss_but_its_own() -> None:
    contest, batch = Contest(LAYOUT, BOUGHT, Recipe(width=16), 0), made_up(6, 1)
    before = losses(contest, batch)
    batch["row"][2] *= -50
    changed = before != losses(contest, batch)
    assert changed.tolist() == [False, False, True, False, False, False]


def test_a_unit_counts_as_a_pair_of_a_generated_and_its_own_series() -> None:
    """Both sides share one clip: were only the real side private, generated series would move the critic unnoised."""
    contest, batch = Contest(LAYOUT, BOUGHT, Recipe(width=16), 0), made_up(4, 1)
    own = contest.critic(torch.from_numpy(batch["row"]), torch.from_numpy(batch["class"])).detach()
    other = losses(contest, batch) + own
    again = losses(contest, {**batch, "row": -batch["row"]})
    own = contest.critic(torch.from_numpy(-batch["row"]), torch.from_numpy(batch["class"])).detach()
    torch.testing.assert_close(again + own, other)
    assert (other != 0).all()


def test_the_critics_weights_stay_small() -> None:
    contest = Contest(LAYOUT, BOUGHT, Recipe(width=16, rounds=1, weight_bound=0.02), 0)
    with torch.no_grad():
        contest.critic.head.weight += 5.0
    contest.after_iteration(1)
    assert max(float(weight.detach().abs().max()) for weight in contest.critic.parameters()) <= 0.02 + 1e-9


def test_an_event_is_priced_by_the_windows_that_it_takes_away() -> None:
    method = DpGan(recipe=Recipe(iterations=2, batch=500, width=8), window_steps=4, window_stride=2)
    event = plain_schema(unit=PrivacyUnit(column="home", kind="event", event_steps=2))
    assert isinstance(replace(method._config(plain_schema()), noise_multiplier=1.0).event, SubsampledGaussian)
    priced = replace(method._config(event), noise_multiplier=1.0).event
    assert isinstance(priced, MixtureOfGaussians)
    assert priced.max_windows == method.influence(event) > 1


def test_critics_tell_slopes_of_length_one_at_most_and_no_more() -> None:
    """One critic turned round moves the sum by nearly 2√questions and no further; half of that would be too little."""
    method = GsWgan(critics=3, width=16)
    bench = Bench(LAYOUT.critic(16, 0), method, made_up(9, 2), [np.arange(3), np.arange(3, 9), np.zeros(0, np.int64)])
    fake = {name: torch.from_numpy(own) for name, own in made_up(8, 5).items()}
    with torch.no_grad():
        for weight in bench._weights.values():
            weight[0] *= 100.0
    before = bench.slopes(fake["row"], fake["class"])
    with torch.no_grad():
        bench._weights["head.weight"][0] *= -1
    moved = float(np.linalg.norm(bench.slopes(fake["row"], fake["class"]) - before))
    assert 1.9 * np.sqrt(8) < moved <= 2 * np.sqrt(8)


def test_a_unit_changes_one_critic_and_leaves_the_others_bit_by_bit() -> None:
    held, fake = made_up(9, 2), {name: torch.from_numpy(own) for name, own in made_up(16, 5).items()}
    weights = []
    for last in (8, 9):
        bench = Bench(LAYOUT.critic(16, 0), GsWgan(critics=2, width=16), held, [np.arange(3), np.arange(3, last)])
        for _ in range(3):
            bench.update(fake["row"], fake["class"], torch.Generator().manual_seed(1))
        weights.append(bench._weights["head.weight"].detach())
    assert torch.equal(weights[0][0], weights[1][0])
    assert not torch.equal(weights[0][1], weights[1][1])


def test_a_teacher_knows_its_own_and_nobody_votes_from_an_empty_shard() -> None:
    rng = np.random.default_rng(0)
    own, beside = rng.normal(2.0, 1.0, (40, 5)), rng.normal(-2.0, 1.0, (40, 5))
    assert votes_of(own, beside, own).mean() > 0.9
    assert votes_of(own, beside, beside).mean() < 0.1
    assert votes_of(np.zeros((0, 5)), beside, own).tolist() == [0.0] * 40


@pytest.mark.parametrize("name", ["width", "iterations", "batch", "weight_bound", "clipping_norm"])
def test_a_recipe_says_what_it_expects(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: a number above 0"):
        Recipe(**{name: 0})


def test_plans_know_no_private_number() -> None:
    schema, guarantee = plain_schema(), Guarantee(1.0, 1e-6)
    assert GsWgan().plan(schema, guarantee) == GsWgan().plan(schema, guarantee)
