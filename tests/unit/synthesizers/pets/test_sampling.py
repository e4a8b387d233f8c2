"""Bought distributions come out of a population that has drifted, and who stands still is left alone."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from understudy.statistics.facts import Facts
from understudy.synthesizers.pets.method import _calibrated, _nodes
from understudy.synthesizers.pets.published import Population

ATOM = 0.7  # share of values that lie exactly at the lower bound


def facts(atom: float) -> Facts:
    """One channel of numbers: so much at the lower bound, the rest even between 0 and 1, nothing at the upper one."""
    edges = np.linspace(0, 1, 11)
    left, right = np.concatenate([[0], edges[:-1], [1]]), np.concatenate([[0], edges[1:], [1]])
    cumulative = np.concatenate([[0, atom], atom + (1 - atom) * edges[1:], [1]])
    return Facts(
        cells=np.stack([left, right]), cumulative=cumulative, column_cells=np.array([12]), label_share=np.ones(1),
        static_missing=np.zeros(0), gap_model=np.zeros((0, 1)), length_share=np.zeros(0),
    )  # fmt: skip


def population(scores: np.ndarray) -> Population:
    return Population.first(scores[:, :, None], np.zeros((len(scores), 0)), np.zeros(len(scores)))


def test_scores_that_drifted_are_put_right() -> None:
    drifted = population(0.8 + 0.5 * np.random.default_rng(0).standard_normal((400, 50)))
    nodes = _nodes(drifted, facts(0.0))
    ranks = ndtr(_calibrated(drifted.series, nodes, facts(0.0)).ravel())
    assert np.abs(np.sort(ranks) - np.linspace(0, 1, ranks.size)).max() < 0.01


def test_a_series_that_stands_still_at_a_bound_stays_there() -> None:
    """Control: ranked among all others, many of the nearly constant values would leave the bound."""
    rng, still = np.random.default_rng(1), float(ndtri(ATOM / 2))
    scores = np.concatenate([still + 0.01 * rng.standard_normal((100, 50)), rng.normal(-1, 1.5, (100, 50))])
    mixed = population(scores)
    found = _calibrated(mixed.series, _nodes(mixed, facts(ATOM)), facts(ATOM))
    assert (ndtr(found[:100]) < ATOM).all()
    by_rank = rankdata(scores).reshape(scores.shape) / scores.size
    assert (by_rank[:100] > ATOM).mean() > 0.1
    moved = found[100:][mixed.series[100:] > ndtri(ATOM)]
    assert abs(np.median(ndtr(moved)) - (1 + ATOM) / 2) < 0.02


@pytest.mark.parametrize("atom", [0.0, ATOM])
def test_a_population_without_values_between_the_bounds_is_no_trouble(atom: float) -> None:
    flat = population(np.full((5, 8), -3.4))
    assert np.isfinite(_calibrated(flat.series, _nodes(flat, facts(atom)), facts(atom))).all()
