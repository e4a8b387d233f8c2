"""`verify` never accepts a certificate that was changed, never falls, and answers in bounded time."""

import random
from dataclasses import replace

import pytest

from tests.fuzz import verdicts as verdicts_module
from tests.fuzz.verdicts import Verdicts, originals, run
from understudy.privacy.certificate import sign

INPUTS = 1500


def test_no_damaged_certificate_is_accepted_and_each_is_answered_in_time() -> None:
    seed = random.randrange(2**32)
    found = run(INPUTS, *originals(), seed)
    assert found.accepted == 0, f"seed {seed}"
    assert found.too_slow == 0, f"seed {seed}"
    assert found.refused > INPUTS / 8, "most inputs never get as far as a check"


def test_a_slow_answer_would_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: an account that never ends is ended, and counts."""

    def endless(*_: object) -> list[object]:
        while True:
            pass

    monkeypatch.setattr(verdicts_module, "verify", endless)
    monkeypatch.setattr(verdicts_module, "LIMIT", 0.1)
    (first, *_), trusted = originals()
    verdicts = Verdicts()
    verdicts.put(replace(first, population="others").dumps(), first, trusted)
    assert verdicts.too_slow == 1


def test_an_accepted_certificate_would_be_counted() -> None:
    """The control: a change that the holder signed is no damage, and counts as accepted."""
    from understudy.privacy import keys

    (first, *_), trusted = originals()
    verdicts = Verdicts()
    verdicts.put(sign(replace(first, population="others"), keys.load("fuzz")).dumps(), first, trusted)
    assert (verdicts.inputs, verdicts.accepted) == (1, 1)
