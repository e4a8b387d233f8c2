"""What `vflgan-ts` promises in each mode, what it refuses, and what the certificate says."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tests.unit.synthesizers.vflgan_ts.toy import STEPS, panel, schema, world
from tests.unit.synthesizers.vflgan_ts.toy import rows as toy_rows
from understudy.data import Categorical, Panel, PrivacyUnit
from understudy.errors import InputError
from understudy.privacy import accounting
from understudy.privacy.border import WIDENING
from understudy.privacy.budget import Guarantee
from understudy.privacy.certificate import ADJACENCIES, verify
from understudy.privacy.events import Gaussian, SubsampledGaussian
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.private_series import PrivateSeries
from understudy.report.page import environment
from understudy.synthesizers.release import Release
from understudy.synthesizers.spectral import Spectral
from understudy.synthesizers.vflgan_ts.method import VFLGANTS, _Nearest
from understudy.synthesizers.vflgan_ts.modes import NOISY_ROWS, against_a_party, noisy_rows, row_bound, sound_rule
from understudy.synthesizers.vflgan_ts.partition import partition
from understudy.synthesizers.vflgan_ts.protocol import converse
from understudy.synthesizers.vflgan_ts.published import Rows
from understudy.synthesizers.vflgan_ts.recipe import DEFAULT, PAPER, Recipe

SMALL = Recipe(iterations=3, batch=64, features=8)
EPSILON = 2.0
DELTA = 1e-5


def method(**options: Any) -> VFLGANTS:
    return VFLGANTS(**{"recipe": SMALL, "scale": "bounds", **options})


def fit(made: VFLGANTS, data: Panel | None = None, noise: NoiseSource | None = None) -> Release:
    epsilon = math.inf if made.mode in ("plain", "paper") else EPSILON
    return made.fit(data or panel(), Ledger.in_memory(Guarantee(epsilon, DELTA)), noise=noise)


def test_the_certificate_of_each_mode_says_what_it_is() -> None:
    found = {mode: fit(method(mode=mode)).certificate for mode in ("sound", "local", "plain", "paper")}
    assert found["sound"].status == found["local"].status == "private"
    assert found["sound"].executed["training"] == SMALL.iterations
    assert "without differential privacy" in found["plain"].status
    assert "Theorem 4.3 does not hold" in found["paper"].status
    for mode in ("plain", "paper"):
        assert found[mode].status.startswith("not private: ")
        assert found[mode].epsilon == math.inf
        assert found[mode].executed["training"] == 1
    for mode, certificate in found.items():
        assert any(f"Mode {mode}: " in sentence for sentence in certificate.threat_model)
    assert any("trusted" in sentence for sentence in found["sound"].threat_model)
    assert any("sampling amplifies nothing" in sentence for sentence in found["local"].threat_model)
    assert found["local"].adjacency == ADJACENCIES["values"]  # noisy rows can be counted
    assert "With or without its values in the data" in found["local"].sentence()
    assert "That it takes part is not protected." in found["local"].sentence()
    assert found["sound"].hides_presence
    assert not found["local"].hides_presence
    card: Any = environment().get_template("parts.html").module
    assert "even odds that a unit is in the data" in card.belief(found["sound"])
    assert "even odds that a unit&#39;s values are in the data" in card.belief(found["local"])
    assert all(check.ok for check in verify(found["local"], None, []) if check.name == "neighbours")
    assert found["sound"].adjacency == ADJACENCIES["add-or-remove"]
    assert "With or without it in the data" in found["sound"].sentence()
    assert "takes part" not in found["sound"].sentence()


def test_local_refuses_events_whose_rows_would_come_and_go() -> None:
    """One event less can empty a series: 120 rows would be 119, and everybody can count them."""
    events = replace(schema(), unit=PrivacyUnit(kind="event", column="series", event_steps=2))
    method().plan(events, Guarantee(EPSILON, DELTA))  # the control
    with pytest.raises(InputError, match="'local' can't protect events"):
        method(mode="local").plan(events, Guarantee(EPSILON, DELTA))


def test_the_certificate_prints_what_a_party_could_learn() -> None:
    made = method()
    release = fit(made)
    plan = made.spending_plan(schema(), Guarantee(EPSILON, DELTA))
    event = plan.event("training")
    assert isinstance(event, SubsampledGaussian)
    cost = against_a_party(plan)
    assert any(f"epsilon = {cost:.4g}" in sentence for sentence in release.certificate.threat_model)
    # Three draws at rate 64/500: all of them have a chance of 0.002, above δ/2, so three have to be paid for.
    assert cost == pytest.approx(accounting.epsilon((Gaussian(event.noise_multiplier, 3),), DELTA / 2))
    assert cost > release.certificate.epsilon


def test_the_masking_of_the_paper_is_refused_as_unproved() -> None:
    with pytest.raises(InputError, match=r"one of sound.*got 'masked'"):
        method(mode="masked")


@pytest.mark.parametrize(("mode", "chosen"), [("sound", False), ("local", False), ("plain", True), ("paper", True)])
def test_real_rows_choose_no_checkpoint_where_a_guarantee_is_claimed(
    mode: str, chosen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[_Nearest] = []
    monkeypatch.setattr(_Nearest, "compare", lambda self: seen.append(self))
    fit(method(mode=mode))
    assert bool(seen) == chosen


def test_distances_of_all_checkpoints_are_released_where_no_unit_is_protected() -> None:
    found = {mode: fit(method(mode=mode)).arrays for mode in ("sound", "plain")}
    assert len(found["plain"]["awd"]) >= 2
    assert (found["plain"]["awd"] > 0).all()
    assert "awd" not in found["sound"]


@pytest.mark.parametrize("mode", ["plain", "paper"])
def test_a_mode_that_protects_nobody_is_refused_on_a_finite_budget(mode: str) -> None:
    ledger = Ledger.in_memory(Guarantee(EPSILON, DELTA))
    with pytest.raises(InputError, match="protects no unit"):
        method(mode=mode).fit(panel(), ledger)
    assert not ledger.entries()


def test_presets_are_arguments_of_the_class() -> None:
    paper, default = VFLGANTS(**PAPER), VFLGANTS(**DEFAULT)
    assert default == VFLGANTS()
    assert (paper.mode, paper.recipe.widths, paper.recipe.shared_widths) == ("paper", (128, 64), (256, 64))


def test_the_nearest_checkpoint_is_nearer_than_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """A learning rate far too high: the last generators are far away, the best ones were earlier."""
    recipe = replace(SMALL, iterations=40, learning_rate=1.0)
    distance = {}
    for checkpoint in ("nearest", "last"):
        sampled = fit(method(mode="plain", recipe=recipe)).sample(60)
        pools = [np.sort(own.values, axis=0) for own in (sampled, panel())]
        distance[checkpoint] = np.abs(pools[0] - pools[1]).mean()
        monkeypatch.setattr(_Nearest, "restore", lambda self: None)
    assert distance["nearest"] < distance["last"]


def test_plain_training_learns_the_shape_of_every_attribute() -> None:
    data = panel(300)
    recipe = Recipe(iterations=200, batch=32, features=64, learning_rate=2e-3)
    sampled = fit(method(mode="plain", recipe=recipe), data).sample(300)
    real, made = data.values.mean(0), sampled.values.mean(0)
    untrained = fit(method(mode="plain", recipe=replace(recipe, iterations=1)), data).sample(300).values.mean(0)
    assert np.abs(made - real).mean() < 0.5 * np.abs(untrained - real).mean()


def test_the_plan_costs_the_guarantee_and_never_more() -> None:
    for made in (method(), method(mode="local"), method(scale="bought")):
        plan = made.spending_plan(schema(), Guarantee(EPSILON, DELTA))
        assert 0.97 * EPSILON < plan.epsilon() <= EPSILON


def test_the_plan_shows_what_local_noise_costs() -> None:
    (told,) = method(mode="local").outlook(schema(), Guarantee(EPSILON, DELTA))
    times = float(told.split("noise ")[1].split(" times")[0])
    event = method(mode="local").plan(schema(), Guarantee(EPSILON, DELTA)).event(NOISY_ROWS)
    assert isinstance(event, Gaussian)
    assert times == pytest.approx(event.noise_multiplier * math.sqrt(3 * STEPS), rel=0.01)


def test_the_outlook_of_sound_names_parameters_noise_and_the_cost_against_a_party() -> None:
    made = method()
    told = made.outlook(schema(), Guarantee(EPSILON, DELTA))
    assert "Against a party" in told[1]
    attribute = (STEPS + 1) * 4 + 5 * 2 + 3
    shared = (16 + 1) * 8 + (8 + 1) * 2 + 3
    assert told[0].startswith(f"{3 * attribute + 8 * (2 * STEPS + 1) + 8 * (STEPS + 1) + shared} parameters")


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_one_row_moves_the_noisy_rows_of_local_by_at_most_the_bound(scale: float) -> None:
    data = panel(5)
    grant = _local_grant(data, NoiseSource.constant(0))
    private = PrivateSeries.of(data, 500)
    held = [Rows(scale * torch.randn(5, number, STEPS), torch.zeros(5, 0)) for number in (2, 1)]
    noisy = noisy_rows(held, grant, private)
    whole = torch.cat([own.series.flatten(1) for own in noisy], 1)
    assert float(whole.norm(dim=1).max()) <= row_bound(3 * STEPS) * (1 + 1e-6)


def test_local_noise_goes_on_every_value_of_every_party() -> None:
    data = panel(5)
    private = PrivateSeries.of(data, 500)
    held = [Rows(torch.randn(5, number, STEPS), torch.zeros(5, 0)) for number in (2, 1)]
    found = []
    for value in (0, 1):
        grant = _local_grant(data, NoiseSource.constant(value))
        found.append(torch.cat([own.series.flatten(1) for own in noisy_rows(held, grant, private)], 1))
    event = grant.plan.event(NOISY_ROWS)
    assert isinstance(event, Gaussian)
    noise = event.noise_multiplier * row_bound(3 * STEPS)
    assert torch.allclose(found[1] - found[0], torch.full_like(found[0], noise * WIDENING), rtol=1e-5)


def test_local_training_sees_noisy_rows_only() -> None:
    """Everything but the noise repeats itself, so generators that saw the rows themselves would come out the same."""
    first, again, other = (
        fit(method(mode="local"), noise=NoiseSource.constant(value)).arrays["party0.gates.weight"]
        for value in (0, 0, 1)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_sound_noises_every_owner_of_a_whole_run() -> None:
    """The rule that a fit hands to parties and aggregator, with noise of 0 and of 1."""
    data, made = panel(30), method()
    private = PrivateSeries.of(data, 500)
    recipe = replace(SMALL, iterations=1)
    gradients = []
    for value in (0, 1):
        ledger = Ledger.in_memory(Guarantee(EPSILON, DELTA))
        plan = made.spending_plan(data.schema, Guarantee(EPSILON, DELTA))
        grant = ledger.charge(plan, label="test", noise=NoiseSource.constant(value))
        rule = sound_rule(grant, recipe, 2, private.population)
        run = world(toy_rows(30), recipe, rule.party, rule.aggregator, rule.batches)
        converse(*run.sides)
        gradients.append(run.gradient)
    event = plan.event("training")
    assert isinstance(event, SubsampledGaussian)
    noise = event.noise_multiplier * recipe.clipping_norm / (event.sampling_rate * 500)
    assert torch.allclose(gradients[1] - gradients[0], torch.full_like(gradients[0], noise), rtol=1e-4)


def test_parties_hold_what_the_schema_says() -> None:
    bank, shop = partition(schema())
    assert (bank.party, bank.channels, shop.party, shop.channels) == ("bank", (0, 1), "shop", (2,))
    alone = replace(schema(), channels=tuple(replace(channel, party=None) for channel in schema().channels))
    assert len(partition(alone)) == 1


def test_a_column_that_nobody_holds_is_refused() -> None:
    first, *rest = schema().channels
    with pytest.raises(InputError, match="'balance': who holds it"):
        partition(replace(schema(), channels=(replace(first, party=None), *rest)))


def test_a_party_with_nothing_but_the_label_is_refused() -> None:
    label = Categorical("kind", ("a", "b"), party="court")
    with pytest.raises(InputError, match="'court': a column other than the label"):
        partition(replace(schema(), static=(label,), label="kind"))


def test_generators_listen_to_the_class_they_are_asked_for() -> None:
    """Two classes with opposite levels, held as a label by the shop: asked for one, its level comes out."""
    data = panel(400)
    kind = np.repeat([0.0, 1.0], 200).astype(np.float32)[:, None]
    values = np.where(kind[:, :, None] > 0, 0.6, -0.6) + 0.1 * data.values
    labelled = replace(schema(), static=(Categorical("kind", ("low", "high"), party="shop"),), label="kind")
    data = replace(data, schema=labelled, values=values.astype(np.float32), static=kind)
    recipe = Recipe(iterations=250, batch=64, features=64, learning_rate=2e-3)
    release = fit(method(mode="plain", recipe=recipe), data)
    low, high = (release.sample(200, label=label).values.mean() for label in ("low", "high"))
    assert high - low > 0.6


def test_a_unit_of_several_organisations_is_named_on_the_certificate_of_any_method() -> None:
    certificate = Spectral().fit(panel(), Ledger.in_memory(Guarantee(EPSILON, DELTA))).certificate
    assert any("Columns of 2 organisations" in sentence for sentence in certificate.threat_model)
    checks = verify(certificate, None)
    assert all(check.ok for check in checks if check.name in ("epsilon", "status", "format"))


def test_an_event_gets_no_amplification() -> None:
    events = replace(schema(), unit=PrivacyUnit(column="customer", kind="event", event_steps=2))
    event = method().plan(events, Guarantee(EPSILON, DELTA)).event("training")
    assert isinstance(event, SubsampledGaussian)
    assert event.sampling_rate == 1.0


def _local_grant(data: Panel, noise: NoiseSource) -> Any:
    made = method(mode="local")
    ledger = Ledger.in_memory(Guarantee(EPSILON, DELTA))
    return ledger.charge(made.spending_plan(data.schema, Guarantee(EPSILON, DELTA)), label="test", noise=noise)
