"""The loop does what Algorithm 1 says, and shows every series to the modules no more often than it has to."""

import numpy as np
import pytest
from scipy.stats import chisquare

from tests.unit.synthesizers.pets.stand_in import Counter
from understudy.synthesizers.pets.published import Environment, Population, by_chance, by_share, evolve, propose, select

FALSE_ALARM = 1e-9
MEMBERS = 30


def population(classes: int = 1) -> Population:
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(classes), MEMBERS // classes)
    return Population.first(rng.normal(size=(MEMBERS, 8, 2)), rng.normal(size=(MEMBERS, 3)), group)


def environment(lookahead: int = 2, counter: Counter | None = None, **changes: object) -> Environment:
    modules = counter or Counter()
    return Environment(variation=modules.vary, similarity=modules.embed, lookahead=lookahead, **changes)


def selected(here: Environment, first: Population, weights: np.ndarray, rng: np.random.Generator) -> Population:
    """The next population, by votes above the threshold."""
    return select(first, propose(first, here, 10, rng)[0], weights, here, 10, rng)


def test_only_candidates_above_the_threshold_have_children() -> None:
    rng, here = np.random.default_rng(1), environment()
    votes = np.arange(MEMBERS, dtype=float)
    rounds = iter([votes])
    (following,) = evolve(population(), here, lambda *asked: next(rounds), [(10, 24.0)], rng)
    assert set(following.ancestor) == {25, 26, 27, 28, 29}
    assert following.size == MEMBERS


@pytest.mark.parametrize("draw", [by_chance, by_share])
def test_children_come_in_proportion_to_the_votes(draw: object) -> None:
    """Chi-square over 300 draws; false alarm 1e-9 for `by_chance`, `by_share` is nearer still."""
    weights = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    drawn = np.concatenate([draw(weights, np.random.default_rng(seed)) for seed in range(300)])
    counts = np.bincount(drawn, minlength=5)
    assert counts[0] == 0
    assert chisquare(counts[1:], len(drawn) * weights[1:] / 10).pvalue > FALSE_ALARM
    skewed = len(drawn) * np.array([2.0, 2.0, 3.0, 3.0]) / 10  # control: other proportions are told apart
    assert chisquare(counts[1:], skewed).pvalue < FALSE_ALARM


def test_shares_are_kept_to_within_one_child() -> None:
    weights = np.random.default_rng(2).random(50)
    for seed in range(20):
        counts = np.bincount(by_share(weights, np.random.default_rng(seed)), minlength=50)
        assert np.abs(counts - 50 * weights / weights.sum()).max() < 1


@pytest.mark.parametrize("draw", [by_chance, by_share])
def test_where_nothing_survives_everybody_is_as_likely(draw: object) -> None:
    drawn = np.concatenate([draw(np.zeros(6), np.random.default_rng(seed)) for seed in range(400)])
    assert chisquare(np.bincount(drawn, minlength=6)).pvalue > FALSE_ALARM


def test_a_threshold_above_all_votes_leaves_every_parent_one_child() -> None:
    rng, here = np.random.default_rng(3), environment()
    (following,) = evolve(population(), here, lambda *asked: np.ones(MEMBERS), [(10, 1e9)], rng)
    assert sorted(following.ancestor) == list(range(MEMBERS))


def test_classes_keep_their_sizes_and_their_members() -> None:
    rng, here, first = np.random.default_rng(4), environment(), population(classes=3)
    votes = np.zeros(MEMBERS)
    votes[[2, 3, 14]] = 50.0  # nothing survives in the third class
    following = selected(here, first, votes, rng)
    np.testing.assert_array_equal(following.group, first.group)
    np.testing.assert_array_equal(following.group, first.group[following.ancestor])
    assert set(following.ancestor[following.group == 1]) == {14}
    assert set(following.ancestor[following.group == 2]) == set(range(20, 30))


def test_candidates_are_judged_by_the_mean_embedding_of_their_relatives() -> None:
    here = environment(lookahead=3)
    relatives, embeddings = propose(population(), here, 20, np.random.default_rng(5))
    each = here.embed(relatives.series, relatives.static)
    np.testing.assert_array_equal(relatives.ancestor, np.arange(MEMBERS).repeat(3))
    np.testing.assert_allclose(embeddings, [each[k : k + 3].mean(axis=0) for k in range(0, 3 * MEMBERS, 3)])


def test_without_lookahead_candidates_are_judged_by_themselves() -> None:
    here, first = environment(lookahead=0), population()
    relatives, embeddings = propose(first, here, 20, np.random.default_rng(6))
    np.testing.assert_array_equal(embeddings, here.embed(first.series, first.static))
    assert relatives.size == 0


def test_children_are_relatives_that_were_judged_as_long_as_there_are_any() -> None:
    rng, here = np.random.default_rng(7), environment(lookahead=2)
    relatives, _ = propose(population(), here, 30, rng)
    votes = np.zeros(MEMBERS)
    votes[:10] = 1.0  # three children each: two were judged, one is new
    following = select(population(), relatives, votes, here, 30, rng)
    judged = {series.tobytes() for series in relatives.series[:20]}
    children = [series.tobytes() for series in following.series]
    assert len(set(children)) == MEMBERS
    assert len(judged & set(children)) == 20


@pytest.mark.parametrize("lookahead", [0, 1, 4])
def test_nothing_is_embedded_twice_and_relatives_are_used_as_children(lookahead: int) -> None:
    counter = Counter()
    here, stages, rng = environment(lookahead, counter), [(10.0, 0.0)] * 5, np.random.default_rng(8)
    list(evolve(population(), here, lambda embeddings, group: np.ones(len(group)), stages, rng))
    assert sum(counter.embedded) == 5 * MEMBERS * max(lookahead, 1)
    assert sum(counter.varied) == 5 * MEMBERS * max(lookahead, 1)  # one child each: one of the relatives


def test_each_iteration_asks_for_one_vote() -> None:
    asked: list[int] = []

    def vote(embeddings: np.ndarray, group: np.ndarray) -> np.ndarray:
        asked.append(len(embeddings))
        return np.ones(len(group))

    following = evolve(population(), environment(), vote, [(10.0, 0.0)] * 7, np.random.default_rng(9))
    for done, _ in enumerate(following, start=1):
        assert asked == [MEMBERS] * done
    assert asked == [MEMBERS] * 7


def test_votes_for_the_largest_bring_forth_larger_ones() -> None:
    def vote(embeddings: np.ndarray, group: np.ndarray) -> np.ndarray:
        return (embeddings[:, 0] > np.median(embeddings[:, 0])).astype(float)

    first = population()
    *_, last = evolve(first, environment(), vote, [(20.0, 0.5)] * 8, np.random.default_rng(10))
    assert last.series[:, :, 0].mean() > first.series[:, :, 0].mean() + 0.5
    assert len(np.unique(last.ancestor)) < len(np.unique(first.ancestor)) == MEMBERS


def test_static_codes_stay_codes() -> None:
    first = population()
    codes = np.eye(2)[np.arange(MEMBERS) % 2]
    first = Population.first(first.series, np.concatenate([first.static[:, :1], codes], axis=1), first.group)
    moved = environment(static_codes=((1, 3),)).relatives(first, 60, np.random.default_rng(11))
    assert set(np.unique(moved.static[:, 1:])) == {0.0, 1.0}
    assert (moved.static[:, 1:].sum(axis=1) == 1).all()
    assert not np.array_equal(moved.static, first.static)
