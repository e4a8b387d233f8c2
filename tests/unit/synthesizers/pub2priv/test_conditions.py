"""Public context as signals: row by row, at rest where it is at rest, and never looked at where that was chosen."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.synthesizers.pub2priv.panels import STEPS, following_schema
from understudy.data import Categorical, Continuous
from understudy.errors import InputError
from understudy.synthesizers.pub2priv.conditions import Conditions
from understudy.synthesizers.pub2priv.knowledge import Knowledge, load_pack

SCHEMA = following_schema(
    100, context=(Continuous("signal", -6.0, 6.0), Categorical("day", ("work", "week-end", "feast")))
)


def conditions(kind: str) -> Conditions:
    knowledge = Knowledge.of(load_pack("general")) if kind == "pack" else None
    return Conditions(SCHEMA, knowledge, kind == "none")


def context(number: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    days = rng.integers(0, 3, (number, STEPS))
    return np.stack([rng.normal(size=(number, STEPS)), days], axis=2).astype(np.float32)


@pytest.mark.parametrize("kind", ["pack", "direct"])
def test_a_row_follows_from_its_own_context_alone(kind: str) -> None:
    given, order, read = context(6), np.array([3, 1, 5, 0, 2, 4]), conditions(kind)
    for of_rows in (lambda c: read.signals(c, len(c), 3), lambda c: read.levels(c, len(c))):
        assert np.allclose(of_rows(given[order]), of_rows(given)[order], atol=1e-5)
        alone = np.concatenate([of_rows(given[[row]]) for row in range(6)])
        assert np.allclose(alone, of_rows(given), atol=1e-5)


@pytest.mark.parametrize("kind", ["pack", "direct", "none"])
def test_signals_have_one_size_whatever_the_units_of_measure(kind: str) -> None:
    given = context(6)
    found = conditions(kind).signals(given, 6, 3)
    assert found.shape == (6, STEPS, 3)
    if kind != "none":
        assert np.allclose(found.mean(axis=1), 0, atol=1e-5)
        assert np.allclose(found.std(axis=1), 1, atol=1e-4)
    given[:, :, 0] = 100 + 50 * given[:, :, 0]
    assert np.allclose(conditions(kind).signals(given, 6, 3), found, atol=1e-3)


def test_without_context_nothing_follows_from_it() -> None:
    read = conditions("none")
    first, second = (read.signals(given, 6, 3) for given in (context(6), -context(6)))
    assert np.array_equal(first, second)
    assert read.levels(context(6), 6).shape == (6, 0)


def test_channels_at_rest_and_missing_entries_say_nothing() -> None:
    given = context(4)
    given[:, :, 1] = 1
    given[0] = np.nan
    assert conditions("direct").num_signals(9) == 4
    found = conditions("direct").signals(given, 4, 9)
    assert np.isfinite(found).all()
    assert not found[0].any()
    assert found[1, :, 0].any()
    assert not found[1, :, 1:].any()


def test_codes_are_taken_apart() -> None:
    read = conditions("direct")
    assert read.num_levels == 1 + 3
    assert read.of_windows(context(2)).shape == (2, STEPS, 4)


def test_a_shared_context_has_no_level_to_learn_from() -> None:
    shared = Conditions(replace(SCHEMA, time=replace(SCHEMA.time, align="calendar")), None, False)
    assert shared.num_levels == 0
    assert shared.levels(context(3), 3).shape == (3, 0)


def test_a_context_that_never_moves_is_refused() -> None:
    at_rest = np.full((STEPS, 2), 1.0, dtype=np.float32)
    with pytest.raises(InputError, match="at least one channel that moves"):
        conditions("direct").check_at_rest(at_rest)
    conditions("none").check_at_rest(at_rest)
    conditions("direct").check_at_rest(context(1)[0])


def test_context_beyond_what_was_seen_is_told(recwarn: pytest.WarningsRecorder) -> None:
    seen = context(1)[0]
    conditions("direct").tell_beyond(seen[None], seen)
    conditions("none").tell_beyond(100 * seen[None], seen)
    assert not len(recwarn)
    with pytest.warns(UserWarning, match="signal leaves the range seen"):
        conditions("direct").tell_beyond(seen[None] * [2.0, 1.0], seen)
    with pytest.warns(UserWarning, match="signal leaves the bounds that the schema declares"):
        conditions("direct").tell_beyond(seen[None] + [20.0, 0.0], None)


def test_one_context_more_moves_no_bit_of_the_others_and_none_at_rest_is_made_to_move() -> None:
    """Rounding of a batch is all that a context at rest would have, and directions are scaled to length one."""
    columns = (Continuous("a", -6.0, 6.0), Continuous("b", -6.0, 6.0))
    own = following_schema(100, context=columns)
    own = replace(own, time=replace(own.time, align="relative"))
    read = Conditions(own, Knowledge.of(load_pack("general")), False)
    rng = np.random.default_rng(2)
    moving = rng.normal(size=(3, STEPS, 2)).astype(np.float32)
    resting = np.broadcast_to(np.float32([[[1.0, 2.0]]]), (4, STEPS, 2))
    frequencies = np.arange(4)
    for given in (resting, moving[:2], np.concatenate([resting, moving[:2]])):
        more = np.concatenate([moving[2:], given])
        for of_rows in (lambda c: read.signals(c, len(c), 4), lambda c: read.features(c, len(c), frequencies)):
            np.testing.assert_array_equal(of_rows(more)[1:], of_rows(given))
    assert not read.signals(resting, 4, 4).any()
    assert not read.features(resting, 4, frequencies)[:, : -read.num_levels].any()
