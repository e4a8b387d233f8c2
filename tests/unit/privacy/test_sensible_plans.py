"""What our own methods charge, with sensible options, is never more than `verify` is willing to compute."""

import pytest

from understudy.data.simulators import simulate_households
from understudy.privacy.accounting import MAX_EVENTS, check_workload
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian, MixtureOfGaussians, PureDP, SubsampledGaussian
from understudy.privacy.plan import smallest_noise_multiplier
from understudy.synthesizers.registry import METHODS

OPTIONS = {"ppem": {"sensitive": ("mean(load_kw)",)}}
# Published forms of these protect no unit of this schema, and are charged to no ledger that a certificate speaks of.
ELSEWHERE = {("pets", "paper"), ("vflgan-ts", "paper"), ("ppem", "paper")}
PRESETS = [(name, preset) for name in METHODS for preset in METHODS[name].presets if (name, preset) not in ELSEWHERE]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("name", "preset"), PRESETS)
def test_every_preset_of_every_method_is_accepted(name: str, preset: str, epsilon: float) -> None:
    schema = simulate_households(200).schema
    plan = METHODS.create(name, preset, **OPTIONS.get(name, {})).spending_plan(schema, Guarantee(epsilon, 1e-6))
    check_workload(plan.events)


@pytest.mark.parametrize(("rate", "windows", "iterations"), [
    (0.02, 1, 100_000), (0.01, 12, 20_000), (0.005, 52, 5_000), (0.002, 365, 3_000), (0.0005, 2_000, 10_000),
])  # fmt: skip
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_training_over_many_windows_beside_a_thousand_releases_is_accepted(
    rate: float, windows: int, iterations: int, epsilon: float
) -> None:
    def training(noise: float) -> SubsampledGaussian | MixtureOfGaussians:
        if windows == 1:
            return SubsampledGaussian(rate, noise, iterations)
        return MixtureOfGaussians(rate, noise, windows, iterations)

    releases = [Gaussian(4_000.0 + place) for place in range(MAX_EVENTS - 2)]
    guarantee = Guarantee(epsilon, 1e-6)
    noise = smallest_noise_multiplier(training, guarantee, [*releases, PureDP(0.05)])
    check_workload([*releases, PureDP(0.05), training(noise)])
