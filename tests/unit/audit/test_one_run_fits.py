"""One run with many canaries, for whole methods: silence is contradicted, noise is not.

A true claim is contradicted with probability 5 % at most by the audit's own statement, and hardly ever here: what the
attack sees of a method at epsilon 2 is far from the bound of the theorem. Without noise every coin is known.
"""

import numpy as np
import pytest

from tests.defects import noise_times
from tests.subjects import STEADY
from understudy.audit.fits import Fit
from understudy.audit.one_run_fits import audit_by_one_run
from understudy.audit.panels import random_panel
from understudy.audit.result import AuditResult
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import PureDP

CHEAP = Guarantee(200.0, 1e-7)  # little noise, found in closed form


def run(name: str, number: int, guesses: int, guarantee: Guarantee = CHEAP, seed: int = 0) -> tuple[AuditResult, Fit]:
    subject, rng = STEADY[name], np.random.default_rng(seed)
    canaries = random_panel(subject.schema, number, rng)
    return audit_by_one_run(subject.make(), canaries, guarantee, guesses=guesses, rng=rng)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "spectral" else [pytest.mark.slow]) for name in STEADY]
)
def test_a_method_without_noise_tells_its_coins(name: str) -> None:
    with noise_times(0.0):
        found, _ = run(name, 24, 12)
    assert found.epsilon == found.ceiling
    assert found.refutes([PureDP(0.5)])


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "spectral" else [pytest.mark.slow]) for name in STEADY]
)
def test_a_certificate_is_not_contradicted(name: str) -> None:
    found, audited = run(name, 24, 12, Guarantee(2.0, 1e-6))
    assert not found.contradicts(audited.certificate)
    assert found.runs == 1


def test_canaries_that_are_no_canaries_are_refused() -> None:
    with pytest.raises(InputError, match="at least two canaries"):
        run("spectral", 1, 2)
