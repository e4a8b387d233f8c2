import numpy as np
import pytest

from understudy.statistics.series import bands, dct_matrix, filled, to_frequencies, to_steps

NAN = np.nan


def fill_one(values: list[float], length: int) -> list[float]:
    return filled(np.array(values)[None, :, None], np.array([length]))[0, :, 0].tolist()


def test_gaps_are_bridged_within_the_series() -> None:
    assert fill_one([0.0, NAN, NAN, 3.0, 4.0], 5) == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_gaps_at_the_ends_repeat_the_nearest_value() -> None:
    assert fill_one([NAN, 1.0, 2.0, NAN], 4) == [1.0, 1.0, 2.0, 2.0]


def test_what_lies_beyond_the_end_mirrors_the_series() -> None:
    assert fill_one([1.0, 2.0, 3.0, NAN, NAN, NAN, NAN], 3) == [1.0, 2.0, 3.0, 2.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(("values", "length"), [([NAN] * 4, 4), ([NAN] * 4, 1)])
def test_a_channel_never_observed_is_zero(values: list[float], length: int) -> None:
    assert fill_one(values, length) == [0.0] * 4


def test_a_series_of_one_step_is_constant() -> None:
    assert fill_one([2.5, NAN, NAN], 1) == [2.5, 2.5, 2.5]
    assert fill_one([2.5], 1) == [2.5]


def test_a_series_looks_at_no_other_series() -> None:
    """The imputer leaks nothing: the same series comes out bit by bit beside quite other ones."""
    rng = np.random.default_rng(0)
    scores = np.where(rng.random((30, 9, 2)) < 0.4, NAN, rng.normal(size=(30, 9, 2)))
    lengths = rng.integers(1, 10, 30)
    scores[np.arange(9) >= lengths[:, None]] = NAN
    together = filled(scores, lengths)
    for row in range(30):
        assert np.array_equal(filled(scores[row : row + 1], lengths[row : row + 1])[0], together[row])
    scores[0] = 1e30
    assert np.array_equal(filled(scores, lengths)[1:], together[1:])


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_frequencies_keep_the_length_and_come_back(steps: int) -> None:
    series = np.random.default_rng(1).normal(size=(4, steps, 2))
    coefficients = to_frequencies(series)
    np.testing.assert_allclose(np.linalg.norm(coefficients, axis=1), np.linalg.norm(series, axis=1))
    np.testing.assert_allclose(to_steps(coefficients), series, atol=1e-12)


def test_the_dct_matrix_is_the_transform_of_the_series() -> None:
    matrix = dct_matrix(7)
    series = np.random.default_rng(8).normal(size=(3, 7, 2))
    np.testing.assert_allclose(np.einsum("kt,stc->skc", matrix, series), to_frequencies(series), atol=1e-12)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(7), atol=1e-12)


@pytest.mark.parametrize("steps", [1, 2, 100, 168])
def test_every_frequency_is_in_one_band(steps: int) -> None:
    found = bands(steps)
    assert sorted(np.concatenate(found).tolist()) == list(range(steps))
    assert found[0].tolist() == [0]
