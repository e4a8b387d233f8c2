"""A small certificate can't keep `verify` busy: what would take minutes is refused before anything is computed."""

import sys
from dataclasses import replace

import pytest

from tests.unit.privacy.conftest import gaussian_plan, make_schema
from understudy.errors import CertificateError, InputError
from understudy.privacy import keys
from understudy.privacy.accounting import check_workload, epsilon
from understudy.privacy.budget import Guarantee
from understudy.privacy.certificate import MAX_BYTES, MAX_PARTIES, Certificate, issue, recompute, sign, verify
from understudy.privacy.events import (
    DiscreteGaussian,
    Gaussian,
    MixtureOfGaussians,
    PureDP,
    SubsampledGaussian,
    to_json,
)
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan

NOISE = NoiseSource.secure()
MOST_CALLS = 20_000  # of Python functions; an account that is computed takes many more, or one that never returns


def nested(depth):
    event = to_json(PureDP(0.1))
    for _ in range(depth):
        event = {"type": "Composed", "parts": [event]}
    return event


HEAVY = {
    "windows": [to_json(MixtureOfGaussians(0.5, 500.0, 10**9, 1))],
    "windows and iterations": [to_json(MixtureOfGaussians(0.2, 30.0, 10**5, 10**6))],
    "windows and hardly any noise": [to_json(MixtureOfGaussians(1e-12, 0.001, 2000, 1))],
    "hardly any noise": [to_json(SubsampledGaussian(1e-12, 1e-4, 10))],
    "pure events": [to_json(PureDP(1e-12, 10**12))],
    "iterations": [to_json(SubsampledGaussian(1e-9, 1.0, 10**12))],
    "votes": [to_json(DiscreteGaussian(100.0, 10**12, one_vote=True))],
    "a wide discrete Gaussian": [to_json(DiscreteGaussian(1e12, 1, one_vote=True))],
    "ten million iterations": [to_json(SubsampledGaussian(1e-4, 2.0, 10**7))],
    "a discrete Gaussian of a million": [to_json(DiscreteGaussian(1e6, 1, one_vote=True))],
    "a long list": [to_json(PureDP(0.001 + place * 1e-9)) for place in range(50_000)],
    "a list of sampled events": [to_json(SubsampledGaussian(0.01, 2.0 + place / 1e4, 100)) for place in range(900)],
}  # fmt: skip


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERSTUDY_HOME", str(tmp_path_factory.mktemp("home")))
        grant = Ledger.in_memory(Guarantee(2.0, 1e-6), max_runs=2).charge(gaussian_plan(), label="run", noise=NOISE)
        return sign(issue(grant, make_schema(), method="mean"), keys.create("holder"))


def calls_of(act):
    """Counts calls of Python functions: work, and not seconds."""
    count = 0

    def look(_frame, event, _argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(look)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("what", HEAVY)
def test_verify_refuses_before_it_computes(certificate, what):
    heavy = replace(certificate, events=tuple(HEAVY[what]), labels=("mean",) * len(HEAVY[what]))
    answers = []
    allowed = MOST_CALLS + len(heavy.dumps())  # reading the text itself, for its signature, takes some
    assert calls_of(lambda: answers.extend(verify(heavy, None, ()))) < allowed
    (answer,) = [check for check in answers if check.name == "epsilon"]
    assert not answer.ok
    assert "more computing" in answer.detail


@pytest.mark.parametrize("change", [{"noise_multiplier": 1e300}, {"iterations": 90.0}, {"iterations": 1.5}])
def test_verify_answers_where_numbers_are_none_of_a_mechanism(certificate, change):
    """It fell with an internal error, which says nothing about the certificate."""
    odd = replace(certificate, events=(to_json(SubsampledGaussian(0.5, 2.0, 1)) | change,))
    (answer,) = [check for check in verify(odd, None, ()) if check.name == "epsilon"]
    assert not answer.ok


def test_verify_refuses_more_deltas_than_anybody_issues(certificate):
    many = replace(certificate, epsilon_at_delta=tuple((1e-9 * (1 + place), 1.0) for place in range(100_000)))
    answers = []
    assert calls_of(lambda: answers.extend(verify(many, None, ()))) < MOST_CALLS + len(many.dumps())
    (answer,) = [check for check in answers if check.name == "epsilon"]
    assert not answer.ok
    assert "deltas" in answer.detail


@pytest.mark.parametrize("field", ["population", "labels", "parties"])
def test_a_certificate_longer_than_any_that_is_issued_is_refused_unread(certificate, field):
    longer = {"population": "x" * MAX_BYTES, "labels": ("x",) * MAX_BYTES, "parties": ({},) * MAX_BYTES}
    text = replace(certificate, **{field: longer[field]}).dumps()
    with pytest.raises(CertificateError, match="at most 600,000 bytes"):
        Certificate.loads(text)


def test_more_parties_than_any_release_has_are_refused_before_a_signature_is_checked(certificate, monkeypatch):
    crowd = replace(certificate, parties=({"party": "x", "signer": "0" * 64},) * (MAX_PARTIES + 1))
    monkeypatch.setattr("understudy.privacy.certificate._check_party", None)
    assert [check.name for check in verify(crowd, None, ()) if not check.ok][-1] == "parties"


def test_a_deep_certificate_is_refused_from_its_text_on(certificate):
    text = replace(certificate, events=(nested(60),)).dumps()
    loaded = Certificate.loads(text)
    with pytest.raises(CertificateError, match="Unknown event"):
        recompute(loaded)


@pytest.mark.parametrize("event", [MixtureOfGaussians(0.2, 30.0, 10**5, 100), PureDP(1e-12, 10**12)])
def test_what_verify_would_refuse_is_not_charged(event):
    ledger = Ledger.in_memory(Guarantee(20.0, 1e-6))
    with pytest.raises(InputError, match="more computing"):
        ledger.charge(SpendingPlan((PlanEntry("run", event),), Guarantee(20.0, 1e-6)), label="run", noise=NOISE)
    assert not ledger.entries()


@pytest.mark.parametrize(
    "event",
    [
        SubsampledGaussian(0.01, 1.0, 1_000_000),
        SubsampledGaussian(1e-4, 0.3, 100_000),
        MixtureOfGaussians(0.02, 1.0, 24, 10_000),
        MixtureOfGaussians(0.02, 4.0, 48, 1000),
        MixtureOfGaussians(0.001, 30.0, 2000, 1000),
        PureDP(0.001, 100_000),
        DiscreteGaussian(1000.0, 10_000, one_vote=True),
    ],
)
def test_runs_as_people_make_them_are_not_refused(event):
    """Negative control: training of a million iterations, or two days of windows, stays below the bound."""
    check_workload([event])


def test_gaussians_alone_are_accepted_however_little_their_noise_because_their_account_is_a_formula() -> None:
    events = [Gaussian(0.01, 10**6), Gaussian(3.0)]
    assert calls_of(lambda: check_workload(events)) < MOST_CALLS
    assert calls_of(lambda: epsilon(events, 1e-6)) < MOST_CALLS
    with pytest.raises(InputError, match="more noise"):
        check_workload([*events, PureDP(0.1)])
