"""A prior, public or an earlier release, moves answers only: private data is touched as without it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.unit.synthesizers.spectral.recording import listening
from understudy.data import Panel, Population, write_panel
from understudy.errors import InputError, MissingData
from understudy.privacy.border import Statistic, public_mean
from understudy.privacy.budget import Guarantee
from understudy.privacy.contributions import Rows
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.statistics.counts import drawn_towards
from understudy.synthesizers.contract.panels import make_panel, plain_schema
from understudy.synthesizers.release import Release
from understudy.synthesizers.spectral import Spectral

SCHEMA = plain_schema(population=Population(150))
ONE = Guarantee(1.0, 1e-5)


def public_panel(number: int = 400, seed: int = 9) -> Panel:
    return replace(make_panel(SCHEMA, number, seed=seed), private=False)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("public") / "other.parquet"
    write_panel(public_panel(), path)
    return str(path)


def fit(prior: str | None, noise: NoiseSource | None = None) -> Release:
    return Spectral(prior=prior).fit(
        make_panel(SCHEMA, 150), Ledger.in_memory(Guarantee(5.0, 1e-4)), guarantee=ONE, noise=noise
    )


def test_what_crosses_the_border_is_the_same_with_a_prior(table: str) -> None:
    with listening() as without:
        fit(None, NoiseSource.constant(0))
    with listening(without) as told:  # the same answers, so that later statistics see the data alike
        fit(table, NoiseSource.constant(0))
    assert told.sums.keys() == without.sums.keys()
    first = told.sums["marginals"]
    np.testing.assert_array_equal(first.value, without.sums["marginals"].value)
    assert {label: own.reach for label, own in told.sums.items() if label in ("marginals", "profile", "spectrum")} == {
        label: own.reach for label, own in without.sums.items() if label in ("marginals", "profile", "spectrum")
    }


def test_the_released_arrays_follow_from_the_answers_and_the_prior_alone(table: str) -> None:
    with listening() as first:
        one = fit(table, NoiseSource.constant(0))
    with listening(first):
        other = Spectral(prior=table).fit(
            make_panel(SCHEMA, 70, seed=1),
            Ledger.in_memory(Guarantee(5.0, 1e-4)),
            guarantee=ONE,
            noise=NoiseSource.constant(0),
        )
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(array, other.arrays[name], name)


def test_few_units_come_nearer_to_the_truth_with_a_prior_that_is_right(table: str) -> None:
    truth = np.sort(make_panel(SCHEMA, 5000, seed=3).values.ravel())

    def error(prior: str | None, seed: int) -> float:
        drawn = np.sort(fit(prior, NoiseSource.seeded(seed)).sample(2000, rng=np.random.default_rng(0)).values.ravel())
        return float(
            np.abs(np.quantile(drawn, np.linspace(0, 1, 99)) - np.quantile(truth, np.linspace(0, 1, 99))).mean()
        )

    with_prior, without = (np.mean([error(prior, seed) for seed in range(5)]) for prior in (table, None))
    assert with_prior < 0.75 * without


def test_a_loud_departure_is_believed_and_a_quiet_one_is_not() -> None:
    rng = np.random.default_rng(0)
    expected, noise = np.zeros(200), 1.0
    noisy = rng.normal(0, noise, 200)
    noisy[7] += 40
    drawn, left = drawn_towards(noisy, expected, noise, [100, 100])
    assert abs(drawn[7] - noisy[7]) < 1e-9
    assert np.abs(np.delete(drawn, 7)).mean() < 0.3 * np.abs(np.delete(noisy, 7)).mean()
    assert left < 0.5 * noise
    far, remaining = drawn_towards(noisy + 30 * rng.normal(size=200), expected, noise, [200])
    assert remaining > 0.9 * noise
    assert np.isfinite(far).all()


def test_the_prior_s_mean_is_refused_for_private_series() -> None:
    statistic = Statistic(label="x", shape=(8, 1), bound=1.0, contributions=lambda panel: Rows(panel.values))
    with pytest.raises(InputError, match="public series are expected"):
        public_mean(statistic, make_panel(SCHEMA, 20))
    mean = public_mean(statistic, public_panel(20))
    assert np.linalg.norm(mean) <= 1.0


def test_an_earlier_release_is_continued_and_the_certificate_says_so(tmp_path: Path) -> None:
    fit(None).save(tmp_path / "march")
    release = fit(str(tmp_path / "march"))
    assert any("Continues an earlier release" in sentence for sentence in release.certificate.threat_model)
    assert "spectral prior" in release.certificate.public_inputs
    release.save(tmp_path / "april")
    assert Release.load(tmp_path / "april").sample(3).num_series == 3


def test_priors_that_do_not_fit_are_refused_before_the_charge(tmp_path: Path, table: str) -> None:
    fit(None, NoiseSource.constant(0)).save(tmp_path / "not-private")
    other = Spectral().fit(
        make_panel(plain_schema(population=Population(150), time=replace(SCHEMA.time, steps=5)), 150),
        Ledger.in_memory(Guarantee(5.0, 1e-4)),
        guarantee=ONE,
    )
    other.save(tmp_path / "shorter")
    for prior, message in (
        (str(tmp_path / "nothing"), "does not exist"),
        (str(tmp_path / "not-private"), "Use a private release"),
        (str(tmp_path / "shorter"), "learned with other num_steps"),
    ):
        ledger = Ledger.in_memory(Guarantee(5.0, 1e-4))
        with pytest.raises((InputError, MissingData), match=message):
            Spectral(prior=prior).fit(make_panel(SCHEMA, 150), ledger, guarantee=ONE)
        assert not ledger.entries()
