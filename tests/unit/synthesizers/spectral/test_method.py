"""The method as a whole: what it plans, and whether samples look like the data."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ks_2samp

from understudy.data import (
    Continuous,
    Panel,
    Population,
    Schema,
    Time,
    simulate_households,
    simulate_intensive_care,
)
from understudy.data.panel import broadcast_context
from understudy.privacy.accounting import epsilon, gaussian_epsilon
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers import METHODS, Release
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema
from understudy.synthesizers.spectral import Spectral


@pytest.mark.parametrize("schema", [plain_schema(), rich_schema()], ids=["whole series", "gaps and lengths"])
@pytest.mark.parametrize(("target", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (2.0, 1e-5), (10.0, 1e-5)])
def test_the_plan_costs_the_guarantee_and_never_more(schema: Schema, target: float, delta: float) -> None:
    plan = Spectral().plan(schema, Guarantee(target, delta))
    mu = np.sqrt(sum(event.noise_multiplier**-2 for event in plan.events))
    closed_form = gaussian_epsilon(float(mu), delta)
    assert closed_form <= target
    assert closed_form > target - 1e-3
    assert epsilon(plan.events, delta) == pytest.approx(closed_form, rel=1e-9)


def test_the_plan_buys_a_release_of_absence_only_where_something_can_be_absent() -> None:
    guarantee = Guarantee(1.0, 1e-6)
    assert "absence" not in {entry.label for entry in Spectral().plan(plain_schema(), guarantee).entries}
    varying = plain_schema(time=Time(column="when", steps=8, min_steps=3))
    assert "absence" in {entry.label for entry in Spectral().plan(varying, guarantee).entries}
    gappy = plain_schema(channels=(Continuous("load", 0.0, 20.0, missing=True),))
    assert "absence" in {entry.label for entry in Spectral().plan(gappy, guarantee).entries}


def test_the_plan_does_not_depend_on_the_panel() -> None:
    panel = make_panel(rich_schema(), 3)
    ledger = Ledger.in_memory(Guarantee(1.0, 1e-6))
    release = Spectral().fit(panel, ledger)
    assert ledger.entries()[0].plan == Spectral().plan(panel.schema, Guarantee(1.0, 1e-6))
    assert release.certificate.executed == dict.fromkeys(release.certificate.labels, 1)


# --- utility ----------------------------------------------------------------------------------------------------------

NUM_HOMES, RUNS = 3000, 5
# Medians of five runs, secure noise. Over 40 single runs at epsilon = 2: KS of load 0.031 ± 0.009 (largest 0.054), of
# solar 0.074 ± 0.02 (0.11, in 12 runs), variation 0.013 ± 0.007 (0.033), missing share 0.003 ± 0.003 (0.015), early
# ends 0.028 ± 0.023 (0.081), KS of homes' means 0.09 ± 0.035 (0.18), profile 0.22 ± 0.06 kW (0.39). A single run
# leaves a limit with a probability below 2 %, so that three of five do so with a probability below 10⁻⁴.
LIMITS = {
    "KS of load_kw": 0.08,
    "KS of solar_kw": 0.14,
    "total variation of tariff": 0.05,
    "share of missing values": 0.016,
    "share of early ends": 0.12,
    "KS of the homes' mean load": 0.25,
    "daily profile": 0.6,
}


@pytest.fixture(scope="module")
def homes() -> Panel:
    return simulate_households(NUM_HOMES)


def released(method: str, panel: Panel, target: float) -> Release:
    return METHODS[method]().fit(panel, Ledger.in_memory(Guarantee(target, 1 / (100 * NUM_HOMES))))


def differences(real: Panel, synthetic: Panel) -> dict[str, float]:
    found = {}
    for place, channel in enumerate(real.schema.channels):
        pair = [panel.values[:, :, place][panel.observed[:, :, place]] for panel in (real, synthetic)]
        found[f"KS of {channel.name}"] = ks_2samp(*pair, method="asymp").statistic
    shares = [np.bincount(p.static[:, 0].astype(int), minlength=3) / p.num_series for p in (real, synthetic)]
    found["total variation of tariff"] = 0.5 * np.abs(shares[0] - shares[1]).sum()
    found["share of missing values"] = abs(_missing(real) - _missing(synthetic))
    found["share of early ends"] = abs((real.lengths < 168).mean() - (synthetic.lengths < 168).mean())
    means = [np.nanmean(panel.values[:, :, 0], axis=1) for panel in (real, synthetic)]
    found["KS of the homes' mean load"] = ks_2samp(*means).statistic
    profiles = [np.nanmean(panel.values, axis=0) for panel in (real, synthetic)]
    found["daily profile"] = np.abs(profiles[0] - profiles[1]).mean()
    return found


def _missing(panel: Panel) -> float:
    inside = np.arange(panel.num_steps) < panel.lengths[:, None]
    return float(np.isnan(panel.values[:, :, 0])[inside].mean())


def test_homes_come_back_right_and_far_better_than_without_any_data(homes: Panel) -> None:
    runs = [differences(homes, released("spectral", homes, 2.0).sample(NUM_HOMES)) for _ in range(RUNS)]
    control = differences(homes, released("independent", homes, 2.0).sample(NUM_HOMES))
    for name, limit in LIMITS.items():
        typical = float(np.median([run[name] for run in runs]))
        assert typical <= limit, name
        assert typical < control[name], name


# --- conditioning -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted(homes: Panel) -> Release:
    return Spectral().fit(homes, Ledger.in_memory(Guarantee(20.0, 1e-7)), noise=NoiseSource.seeded(1))


def test_a_label_brings_its_own_pattern(homes: Panel, fitted: Release) -> None:
    """Homes on the night tariff heat water at night."""
    night = np.arange(168) % 24 == 1
    load = {}
    for tariff in ("flat", "night"):
        sampled = fitted.sample(800, label=tariff, rng=np.random.default_rng(2))
        load[tariff] = float(np.nanmean(sampled.values[:, night, 0]))
    assert load["night"] > load["flat"] + 0.3


def test_the_context_of_the_fit_changes_nothing(homes: Panel, fitted: Release) -> None:
    assert homes.context is not None
    plain = fitted.sample(50, rng=np.random.default_rng(3))
    given = fitted.sample(50, rng=np.random.default_rng(3), context=homes.context[0])
    np.testing.assert_allclose(given.values, plain.values, atol=1e-5)


def test_samples_respond_to_a_colder_week(homes: Panel, fitted: Release) -> None:
    assert homes.context is not None
    colder = np.array(homes.context[0])
    colder[:, 0] -= 8
    plain = fitted.sample(800, rng=np.random.default_rng(4), context=homes.context[0])
    cold = fitted.sample(800, rng=np.random.default_rng(4), context=colder)
    assert np.nanmean(cold.values[:, :, 0]) > 1.02 * np.nanmean(plain.values[:, :, 0])


def test_each_series_responds_to_its_own_context(homes: Panel, fitted: Release) -> None:
    """What a series gets with a context of its own is what it gets when everybody has that context."""
    assert homes.context is not None
    colder = np.array(homes.context[0])
    colder[:, 0] -= 8
    each = np.stack([homes.context[0], colder] * 20)
    mixed = fitted.sample(40, rng=np.random.default_rng(5), context=each)
    for offset, context in enumerate((homes.context[0], colder)):
        alone = fitted.sample(40, rng=np.random.default_rng(5), context=context)
        np.testing.assert_allclose(mixed.values[offset::2], alone.values[offset::2], atol=1e-5)


def test_samples_are_conditioned_on_contexts_that_series_had_of_their_own() -> None:
    """Series live at the level of their own context; a caller's context moves them there."""
    rng, number = np.random.default_rng(6), 1500
    level = rng.uniform(0, 1, number)
    context = np.broadcast_to(level[:, None, None], (number, 8, 1)).astype(np.float32).copy()
    values = np.clip(20 * level[:, None] + rng.normal(0, 1, (number, 8)), 0, 20)[:, :, None].astype(np.float32)
    schema = plain_schema(context=(Continuous("sun", 0.0, 1.0),), population=Population(number))
    schema = replace(schema, time=replace(schema.time, align="relative"))
    panel = Panel(
        schema=schema,
        values=values,
        lengths=np.full(number, 8, dtype=np.int32),
        unit=np.arange(number),
        static=np.zeros((number, 0), dtype=np.float32),
        context=context,
    )
    release = Spectral().fit(panel, Ledger.in_memory(Guarantee(5.0, 1e-6)))
    means = [release.sample(400, context=np.full((8, 1), sun)).values.mean() for sun in (0.1, 0.5, 0.9)]
    assert means[0] + 3 < means[1] < means[2] - 3
    each = broadcast_context(np.zeros((8, 1)), 400).copy()
    each[200:] = 0.9
    mixed = release.sample(400, context=each).values
    assert mixed[:200].mean() + 5 < mixed[200:].mean()


def test_a_static_column_is_missing_as_often_as_it_was() -> None:
    schema = plain_schema(
        static=(Continuous("area", 0.0, 1.0, missing=True), Continuous("height", 0.0, 1.0)), population=Population(4000)
    )
    panel = make_panel(schema, 4000)
    absent = np.random.default_rng(8).random(panel.num_series) < 0.3
    static = np.where(np.column_stack([absent, np.zeros_like(absent)]), np.nan, 0.5).astype(np.float32)
    release = Spectral().fit(replace(panel, static=static), Ledger.in_memory(Guarantee(5.0, 1e-6)))
    found = np.isnan(release.sample(4000).static).mean(axis=0)
    # Noise on the total of the votes: 3.9 · 1.7 · √163 (multiplier, bound, cells) = 85 of 4000, so that 0.15 is 7 σ.
    assert abs(found[0] - 0.3) < 0.15
    assert found[1] == 0


def test_a_simulated_ward_keeps_its_gaps_and_what_its_labels_tell() -> None:
    """4,000 stays at ε = 3: missing shares, hours without a value, a channel few have, ages by outcome."""
    real = simulate_intensive_care(4000)
    ledger = Ledger.in_memory(Guarantee(3.0, 1e-6))
    made = Spectral().fit(real, ledger, noise=NoiseSource.seeded(1)).sample(4000, rng=np.random.default_rng(1))
    seen = [~np.isnan(panel.values) for panel in (real, made)]
    assert np.abs(seen[1].mean(axis=(0, 1)) - seen[0].mean(axis=(0, 1))).max() < 0.03
    assert np.abs(seen[1].mean(axis=0) - seen[0].mean(axis=0)).max() < 0.08
    assert np.abs(seen[1].any(axis=1).mean(axis=0) - seen[0].any(axis=1).mean(axis=0)).max() < 0.06
    assert not seen[1][:, [0, 1, 2, 3, 24, 25, 26], 6].any()  # nobody walks at night
    died = [panel.label == 1 for panel in (real, made)]
    ages = [
        panel.static[own, 0].mean() - panel.static[~own, 0].mean()
        for panel, own in zip((real, made), died, strict=True)
    ]
    assert ages[1] == pytest.approx(ages[0], rel=0.5)  # 5.6 years; it was -0.8 when labels did not count
    tested = [own[one, :, 5].mean() - own[~one, :, 5].mean() for own, one in zip(seen, died, strict=True)]
    assert tested[1] > 0.02 < tested[0]  # laboratories follow the outcome
