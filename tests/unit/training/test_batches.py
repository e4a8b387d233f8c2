"""Neighbouring data through windowing: what one unit can change in a sum."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.unit.training.toy import plan_of, squared_error, windows_of
from understudy.errors import DataError, InputError
from understudy.privacy.noise import NoiseSource
from understudy.training import PrivateGradient, UnitWindows

CLIP = 0.7
OTHERS = 6


def data(num_windows: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Six ordinary units, and a last one with `num_windows` windows that all pull the same way, hard."""
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(size=(OTHERS, 3)), np.full((num_windows, 3), 50.0)]).astype(np.float32)
    y = np.concatenate([rng.normal(size=(OTHERS, 1)), np.full((num_windows, 1), -50.0)]).astype(np.float32)
    return {"x": x, "y": y}, np.concatenate([np.arange(OTHERS), np.full(num_windows, OTHERS)])


def summed(windows: UnitWindows, drawn: np.ndarray, max_windows: int | None = None) -> torch.Tensor:
    """The clipped sum without noise."""
    torch.manual_seed(0)
    plan = plan_of(clipping_norm=CLIP, expected_batch=1.0, max_windows=max_windows)
    gradient = PrivateGradient(nn.Linear(3, 1), plan, NoiseSource.constant(0.0), max_units=4)
    gradient.write(squared_error, windows, drawn, torch.Generator())
    return gradient.flat.gradient.clone()


@pytest.mark.parametrize("num_windows", [1, 5, 10_000])
def test_a_unit_moves_the_sum_by_the_clipping_norm_however_many_windows_it_has(num_windows: int) -> None:
    arrays, unit = data(num_windows)
    everyone = windows_of(arrays, unit)
    with_it = summed(everyone, np.arange(OTHERS + 1))
    without = summed(everyone, np.arange(OTHERS))
    assert float((with_it - without).norm()) <= CLIP * (1 + 1e-6)
    assert float((with_it - without).norm()) >= CLIP * 0.99  # the bound is reached, so the test can fail


@pytest.mark.parametrize("cap", [1, 5])
def test_a_unit_with_capped_windows_moves_the_sum_by_at_most_cap_times_the_clipping_norm(cap: int) -> None:
    arrays, unit = data(cap)
    everyone = windows_of(arrays, unit, cap)
    with_it = summed(everyone, np.arange(OTHERS + cap), cap)
    without = summed(everyone, np.arange(OTHERS), cap)
    assert 0.99 * cap * CLIP <= float((with_it - without).norm()) <= cap * CLIP * (1 + 1e-6)


def test_data_beyond_the_declared_cap_are_refused() -> None:
    arrays, unit = data(10_000)
    with pytest.raises(DataError, match="max_windows") as refusal:
        windows_of(arrays, unit, 5)
    assert "10000" not in str(refusal.value)


def test_adding_a_unit_leaves_the_batches_of_others_alone() -> None:
    arrays, unit = data(3)
    everyone = windows_of(arrays, unit)
    fewer = windows_of({name: array[:OTHERS] for name, array in arrays.items()}, unit[:OTHERS])
    drawn = np.array([0, 2, 5])
    assert torch.equal(everyone.batch(drawn)["x"], fewer.batch(drawn)["x"])


def test_a_unit_shows_its_own_windows_and_all_of_them_in_turn() -> None:
    unit = np.repeat(np.arange(4), [1, 2, 3, 4])
    windows = windows_of({"owner": unit.copy(), "row": np.arange(10)}, unit)
    seen = set()
    for _ in range(100):
        batch = windows.batch(np.arange(4))
        assert batch["owner"].tolist() == [0, 1, 2, 3]
        seen |= set(batch["row"].tolist())
    assert seen == set(range(10))


def test_a_made_up_batch_shows_no_private_value() -> None:
    arrays = {"x": np.full((9, 2), 77.0, np.float32), "k": np.full(9, 5), "seen": np.zeros(9, np.bool_)}
    batch = windows_of(arrays).made_up(3, np.random.default_rng(0))
    assert batch["x"].shape == (3, 2)
    assert float(batch["x"].max()) < 1
    assert batch["k"].tolist() == [0, 0, 0]
    assert batch["seen"].all()


def test_units_out_of_order_and_ragged_arrays_are_refused() -> None:
    with pytest.raises(InputError, match="side by side"):
        windows_of({"x": np.zeros(3)}, np.array([0, 2, 1]))
    with pytest.raises(InputError, match="one row per window"):
        windows_of({"x": np.zeros(3)}, np.array([0, 1]))


def test_events_own_no_windows_and_windows_are_drawn_one_by_one() -> None:
    rng, arrays = np.random.default_rng(0), {"row": np.arange(9)}
    windows = UnitWindows(arrays, None, rng, 3)
    assert windows.num_candidates == 9
    assert windows.batch(np.array([4, 7]))["row"].tolist() == [4, 7]
    with pytest.raises(InputError, match="max_windows"):
        UnitWindows(arrays, None, rng)


def test_no_units_at_all_is_possible() -> None:
    windows = windows_of({"x": np.zeros((0, 3), np.float32)}, np.zeros(0, np.int64))
    assert windows.num_candidates == 0
