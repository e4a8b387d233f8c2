"""Public context as signals: row by row, at rest where it is at rest, and never looked at where that was chosen."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.synthesizers.pub2priv.panels import STEPS, following_schema
from understudy.data import Categorical, Continuous
from understudy.errors import InputError
from understudy.synthesizers.packs import load_pack
from understudy.synthesizers.pub2priv.context import Context
from understudy.synthesizers.pub2priv.knowledge import Knowledge

SCHEMA = following_schema(
    100, context=(Continuous("signal", -6.0, 6.0), Categorical("day", ("work", "week-end", "feast")))
)


READ, IGNORED = Context(SCHEMA, False), Context(SCHEMA, True)
FREQUENCIES = np.arange(4)


def context(number: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    days = rng.integers(0, 3, (number, STEPS))
    return np.stack([rng.normal(size=(number, STEPS)), days], axis=2).astype(np.float32)


def test_a_row_follows_from_its_own_context_alone() -> None:
    given, order = context(6), np.array([3, 1, 5, 0, 2, 4])
    for of_rows in (lambda c: READ.features(c, len(c), FREQUENCIES), lambda c: READ.directions(c, len(c))):
        assert np.allclose(of_rows(given[order]), of_rows(given)[order], atol=1e-5)
        alone = np.concatenate([of_rows(given[[row]]) for row in range(6)])
        assert np.allclose(alone, of_rows(given), atol=1e-5)


def test_windows_have_one_size_whatever_the_units_of_measure() -> None:
    given = context(6)
    found = READ.windows(given)
    assert np.allclose(found.mean(axis=1), 0, atol=1e-5)
    assert np.allclose(found.std(axis=1), 1, atol=1e-4)
    given[:, :, 0] = 100 + 50 * given[:, :, 0]
    assert np.allclose(READ.windows(given), found, atol=1e-3)


def test_without_context_nothing_follows_from_it() -> None:
    assert IGNORED.features(context(6), 6, FREQUENCIES).shape == (6, 0)
    assert IGNORED.directions(context(6), 6).shape == (6, STEPS - 1, 0)


def test_channels_at_rest_and_missing_entries_say_nothing() -> None:
    given = context(4)
    given[:, :, 1] = 1
    given[0] = np.nan
    found = READ.directions(given, 4)
    assert np.isfinite(found).all()
    assert not found[0].any()
    assert found[1, :, 0].any()
    assert not found[1, :, 1:].any()


def test_codes_are_taken_apart() -> None:
    assert READ.num_columns == 1 + 3
    assert READ.windows(context(2)).shape == (2, STEPS, 4)


def test_a_shared_context_has_no_level_to_learn_from() -> None:
    shared = Context(replace(SCHEMA, time=replace(SCHEMA.time, align="calendar")), False)
    assert shared.num_columns == 0
    assert shared.features(context(3), 3, FREQUENCIES).shape == (3, 0)


def test_a_context_that_never_moves_is_refused() -> None:
    at_rest = np.full((STEPS, 2), 1.0, dtype=np.float32)
    with pytest.raises(InputError, match="at least one channel that moves"):
        READ.check_at_rest(at_rest)
    IGNORED.check_at_rest(at_rest)
    READ.check_at_rest(context(1)[0])


def test_context_beyond_what_was_seen_is_told(recwarn: pytest.WarningsRecorder) -> None:
    seen = context(1)[0]
    READ.warn_beyond(seen[None], seen)
    IGNORED.warn_beyond(100 * seen[None], seen)
    assert not len(recwarn)
    with pytest.warns(UserWarning, match="signal leaves the range seen"):
        READ.warn_beyond(seen[None] * [2.0, 1.0], seen)
    with pytest.warns(UserWarning, match="signal leaves the bounds that the schema declares"):
        READ.warn_beyond(seen[None] + [20.0, 0.0], None)


def test_one_context_more_moves_no_bit_of_the_others_and_none_at_rest_is_made_to_move() -> None:
    """Rounding of a batch is all that a context at rest would have, and directions are scaled to length one."""
    columns = (Continuous("a", -6.0, 6.0), Continuous("b", -6.0, 6.0))
    read = Context(following_schema(100, context=columns), False)
    theta, rng = Knowledge.of(load_pack("general", "pub2priv")), np.random.default_rng(2)
    moving = rng.normal(size=(3, STEPS, 2)).astype(np.float32)
    resting = np.broadcast_to(np.float32([[[1.0, 2.0]]]), (4, STEPS, 2))
    for given in (resting, moving[:2], np.concatenate([resting, moving[:2]])):
        more = np.concatenate([moving[2:], given])
        for of_rows in (lambda c: theta.embed(read.windows(c)), lambda c: read.features(c, len(c), FREQUENCIES)):
            np.testing.assert_array_equal(of_rows(more)[1:], of_rows(given))
    assert not theta.embed(read.windows(resting)).any()
    assert not read.features(resting, 4, FREQUENCIES)[:, : -read.num_columns].any()
