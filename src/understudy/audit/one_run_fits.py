"""The audit by one run, for whatever method: canary series put in by coins, and one fit that is heard.

What a canary would add to each answer is found afterwards, by fits over that canary alone which are led along the way
of the audited run: they are told its answers and gradients, and their own show what the canary asks for at each place.
That needs nothing but `fit`, so it works for every method, those that train included.
"""

import numpy as np
from numpy.typing import NDArray

from understudy.audit.fits import Fit, heard_fit
from understudy.audit.one_run import audit_one_run
from understudy.audit.result import AuditResult
from understudy.audit.witness import Answers
from understudy.data import Panel
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.base import Synthesizer

_LOUD = 1000.0  # deviations of noise to measure its scale with
_QUIETEST = 1e-6  # noise below counts as so much of what a canary moves


def audit_by_one_run(
    method: Synthesizer,
    canaries: Panel,
    guarantee: Guarantee,
    *,
    guesses: int,
    rng: np.random.Generator,
    confidence: float = 0.95,
) -> tuple[AuditResult, Fit]:
    """Returns what one run proves, and that run.

    Args:
        canaries: Made-up series, one per unit; each is put in with probability one half.
        guesses: How many coins are guessed; said beforehand.
        rng: Throws the coins.
    """
    if canaries.num_units < 2 or canaries.num_series != canaries.num_units:
        raise InputError("Expected at least two canaries of one series each, got others.")
    included = rng.random(canaries.num_units) < 0.5
    audited = heard_fit(method, canaries.take_units(np.flatnonzero(included)), guarantee, known=False)
    scores = {"projection": canary_scores(method, canaries, guarantee, audited.answers)}
    return audit_one_run(scores, included, guesses=guesses, delta=guarantee.delta, confidence=confidence), audited


def canary_scores(
    method: Synthesizer, canaries: Panel, guarantee: Guarantee, answers: Answers
) -> NDArray[np.float64]:  # one per canary
    """How much of each canary is in the answers: high where it was put in.

    Canaries resemble one another, so their shares are found together: the mean of all coins given the answers, were
    coins normal with their mean of one half and variance of one quarter.
    """

    def silent(units: list[int], deviations: float = 0.0) -> NDArray[np.float64]:
        noise = NoiseSource.constant(deviations)
        return _flat(
            heard_fit(method, canaries.take_units(units), guarantee, noise=noise, told=answers, known=False).answers
        )

    nothing = silent([])
    noise = (silent([], _LOUD) - nothing) / _LOUD
    twice = np.stack([[silent([unit]) - nothing for unit in range(canaries.num_units)] for _ in range(2)])
    unknown = (
        np.square(twice[0] - twice[1]).sum(axis=0) / 4
    )  # of about half of the canaries: what losses draw by chance
    least = _QUIETEST * max(1.0, float(np.abs(twice).max(initial=0.0)))
    deviation = np.sqrt(noise**2 + unknown + least**2)
    moved, found = twice.mean(axis=0) / deviation, (_flat(answers) - nothing) / deviation
    surprise = moved @ (found - moved.sum(axis=0) / 2)
    return np.asarray(np.linalg.solve(moved @ moved.T + 4 * np.eye(len(moved)), surprise))


def _flat(answers: Answers) -> NDArray[np.float64]:
    return np.concatenate([answers[label].ravel() for label in answers])
