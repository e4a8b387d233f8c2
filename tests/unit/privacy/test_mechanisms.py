import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import InputError
from understudy.privacy.mechanisms import Bounded, clip_rows, clipped_sum, sums_by_unit

MAGIC = 31337.4242


@pytest.mark.parametrize("show", [repr, str, "{}".format, "{:>40}".format, lambda value: f"{value!r}"])
def test_a_private_statistic_is_never_shown(show):
    assert "31337" not in show(Bounded(np.array([MAGIC]), 1.0))
    assert "<private>" in show(Bounded(np.array([MAGIC]), 1.0))


def test_a_private_statistic_does_not_become_an_array_or_a_pickle_by_accident():
    bounded = Bounded(np.array([MAGIC]), 1.0)
    with pytest.raises(TypeError, match="private"):
        np.asarray(bounded)
    with pytest.raises(TypeError, match="private"):
        pickle.dumps(bounded)


def test_errors_about_a_statistic_do_not_quote_it():
    with pytest.raises(InputError) as caught:
        Bounded(np.array([MAGIC, np.nan]), 1.0)
    assert "31337" not in str(caught.value)


@pytest.mark.parametrize("bound", [0.0, -1.0, float("nan"), float("inf")])
def test_a_bound_that_bounds_nothing_is_refused(bound):
    with pytest.raises(InputError):
        Bounded(np.zeros(2), bound)


def test_clipping_keeps_direction_and_leaves_short_rows_alone():
    rows = clip_rows([[3.0, 4.0], [0.3, 0.4]], 1.0)
    assert rows[0] == pytest.approx([0.6, 0.8], rel=1e-4)
    assert rows[1] == pytest.approx([0.3, 0.4])


@given(
    st.lists(st.lists(st.floats(allow_nan=True, width=64), min_size=3, max_size=3), min_size=1, max_size=8),
    st.floats(1e-6, 1e6),
)
def test_no_row_whatever_it_holds_is_longer_than_the_radius_after_clipping(rows, radius):
    clipped = clip_rows(rows, radius)
    assert np.isfinite(clipped).all()
    assert (np.linalg.norm(clipped, axis=1) <= radius * (1 - 0.9e-5)).all()


def test_rows_that_are_not_finite_become_zero():
    assert not clip_rows([[np.nan, 1.0], [np.inf, 1.0], [-np.inf, 0.0]], 1.0).any()


@pytest.mark.parametrize("giant", [1.0, 1e30, 1e308, np.inf, np.nan])
@pytest.mark.parametrize("series", [1, 10, 1000])
def test_a_unit_of_any_size_moves_the_clipped_sum_by_at_most_the_radius(giant, series):
    rng = np.random.default_rng(5)
    rows, unit = rng.normal(size=(300, 4)), np.repeat(np.arange(100), 3)
    extra = np.full((series, 4), giant)
    without = clipped_sum(sums_by_unit(rows, unit, 100), 0.7)
    having = clipped_sum(sums_by_unit(np.vstack([rows, extra]), np.concatenate([unit, np.full(series, 100)]), 101), 0.7)
    assert np.linalg.norm(having.value - without.value) <= 0.7
    assert having.l2_bound == without.l2_bound == 0.7


def test_clipping_the_rows_instead_of_the_units_would_break_the_bound():
    """The negative control: what `sums_by_unit` is for."""
    rows = np.ones((50, 2))
    assert np.linalg.norm(clip_rows(rows, 1.0).sum(axis=0)) > 40


def test_the_sum_in_chunks_is_the_sum():
    rows = np.random.default_rng(1).normal(size=(20_000, 3)).astype(np.float32)
    assert clipped_sum(rows, 1e9).value == pytest.approx(rows.astype(np.float64).sum(axis=0))


def test_no_units_at_all_sum_to_zero():
    assert not clipped_sum(np.empty((0, 3)), 1.0).value.any()
