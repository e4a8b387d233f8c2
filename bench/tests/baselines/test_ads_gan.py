"""ADS-GAN protects no unit, says so first, and keeps everything else that a release has to keep."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from understudy_bench.baselines import ads_gan
from understudy_bench.baselines.dp_gan import DpGan, Recipe
from understudy_bench.baselines.rows import Layout

from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.statistics.facts import Facts, facts_of
from understudy.synthesizers import Synthesizer
from understudy.synthesizers.contract import CHECKS, checks
from understudy.synthesizers.contract.checks import expect_valid, new_ledger
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema, shared_context
from understudy.synthesizers.release import Release

SMALL = DpGan(mode="ads-gan", recipe=Recipe(width=8, iterations=4, batch=16, rounds=2))

# What the contract says of a budget that runs out, and of who is protected, has no meaning for a method that protects
# nobody: the two tests below say what holds instead.
PROMISES = {
    "check_fit_spends_what_the_certificate_says",
    "check_a_spent_ledger_refuses_and_is_left_as_it_was",
    "check_reproducible_noise_is_never_called_private",
}


@pytest.mark.parametrize("check", [check for check in CHECKS if check.__name__ not in PROMISES])
def test_with_an_endless_budget_it_keeps_the_rest_of_the_contract(
    check: Callable[[Synthesizer], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "BUDGET", Guarantee(math.inf, 2e-6))
    check(SMALL)


def test_what_the_contract_promises_is_still_what_it_promises() -> None:
    assert {check.__name__ for check in CHECKS} > PROMISES


def fitted(num_units: int = 40) -> Release:
    return SMALL.fit(make_panel(rich_schema(), num_units), Ledger.in_memory(Guarantee(math.inf, 1e-6)))


def test_the_certificate_says_first_that_nobody_is_protected() -> None:
    certificate = fitted().certificate
    assert certificate.status.startswith("not private")
    assert ads_gan.NOT_PRIVATE in certificate.status
    assert certificate.epsilon == math.inf
    assert not certificate.is_private
    assert ads_gan.NOT_PRIVATE in SMALL.outlook(rich_schema(), Guarantee(math.inf, 1e-6))[0]


def test_a_finite_budget_is_refused_before_anything_is_charged() -> None:
    ledger = new_ledger()
    with pytest.raises(InputError, match="protects no unit"):
        SMALL.fit(make_panel(rich_schema()), ledger)
    assert not ledger.entries()
    with pytest.raises(InputError, match="one of dp, ads-gan"):
        DpGan(mode="plain")  # type: ignore[arg-type]


@pytest.mark.parametrize("num_units", [0, 40])
def test_what_is_drawn_obeys_the_schema_and_the_asked_label(num_units: int) -> None:
    release = fitted(num_units)
    expect_valid(release.sample(30, context=shared_context(release.schema)))
    assert (release.sample(12, label="dynamic").static[:, 0] == 2).all()


def test_generated_rows_are_driven_away_from_the_rows_they_are_made_from(monkeypatch: pytest.MonkeyPatch) -> None:
    bought: Facts = facts_of([], np.ones(1), np.zeros(0), np.zeros((0, 1)), np.zeros(0))
    layout, rng = Layout.of(plain_schema(), bought), np.random.default_rng(0)
    held = {"row": rng.standard_normal((64, 8)).astype(np.float32), "class": np.zeros((64, 0), np.float32)}
    recipe = Recipe(width=16, iterations=60, batch=32, rounds=1, generator_rate=1e-2)
    sizes = []
    for weight in (0.0, 50.0):
        monkeypatch.setattr(ads_gan, "AWAY", weight)
        made = ads_gan.arrays_of(layout, bought, held, recipe, 200, 0, lambda share: None)
        sizes.append(float(np.abs(made["pool"]).mean()))
    assert sizes[1] > 2 * sizes[0]
