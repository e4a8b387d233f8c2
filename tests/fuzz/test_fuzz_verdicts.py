"""`verify` never accepts a certificate that was changed, never falls, and answers in bounded time."""

import random
from dataclasses import replace

from tests.fuzz.verdicts import Verdicts, originals, run
from understudy.privacy.certificate import sign

INPUTS = 1500
MOST_SECONDS = 30.0  # of processor time, for one input, on a machine that others use


def test_no_damaged_certificate_is_accepted_and_each_is_answered_in_time() -> None:
    seed = random.randrange(2**32)
    found = run(INPUTS, *originals(), seed)
    assert found.accepted == 0, f"seed {seed}"
    assert found.longest < MOST_SECONDS, f"seed {seed}"
    assert found.refused > INPUTS / 8, "most inputs never get as far as a check"


def test_an_accepted_certificate_would_be_counted() -> None:
    """The control: a change that the holder signed is no damage, and counts as accepted."""
    from understudy.privacy import keys

    (first, *_), trusted = originals()
    verdicts = Verdicts()
    verdicts.put(sign(replace(first, population="others"), keys.load("fuzz")).dumps(), first, trusted)
    assert (verdicts.inputs, verdicts.accepted) == (1, 1)
