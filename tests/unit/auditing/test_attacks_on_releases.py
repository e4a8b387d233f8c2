"""Attacks without shadows: they find a copy, and find nothing where there is nothing."""

import numpy as np
import pytest

from understudy.auditing.attacks import QUESTIONS, Parties, membership
from understudy.errors import InputError


def rows(number: int, seed: int) -> np.ndarray:
    """Smooth series with a level of their own."""
    rng = np.random.default_rng(seed)
    level, phase = rng.normal(size=(2, number, 1))
    return (level + np.sin(np.arange(24) / 4 + 2 * phase) + 0.2 * rng.normal(size=(number, 24))).astype(np.float32)


MEMBERS, OTHERS, FRESH = (rows(400, seed) for seed in range(3))
COPY = MEMBERS + 0.01 * rows(400, 3)


def test_members_of_a_copy_are_told_from_others() -> None:
    areas = membership(MEMBERS, OTHERS, COPY)
    assert areas["closest record"].low > 0.9
    assert areas["density ratio"].low > 0.9


def test_nobody_is_told_apart_by_fresh_series() -> None:
    """0.1 around one half is ten times what a 99.9999 % interval of 200 against 400 leaves to chance."""
    for area in membership(MEMBERS, OTHERS, FRESH).values():
        assert abs(area.estimate - 0.5) < 0.15


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_copy_answers_every_question_and_fresh_series_none(question: str) -> None:
    rng = np.random.default_rng(5)
    copied = QUESTIONS[question](Parties(members=MEMBERS, others=OTHERS, synthetic=COPY), 400, rng)
    fresh = QUESTIONS[question](Parties(members=MEMBERS, others=OTHERS, synthetic=FRESH), 400, rng)
    assert copied.risk.low > 0.05, copied
    assert fresh.risk.low <= 0 <= fresh.risk.high, fresh


def test_too_few_series_are_refused() -> None:
    with pytest.raises(InputError, match="at least 20"):
        membership(MEMBERS[:5], OTHERS, FRESH)
    with pytest.raises(InputError, match="at least 20"):
        Parties(members=MEMBERS, others=OTHERS[:30], synthetic=FRESH)
