"""What `pets` promises: who moves what by how much, what a run costs, and what the control never sees."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.synthesizers.pets.recording import Tape, tape_of
from tests.unit.synthesizers.pets.stand_in import Counter, use_stand_in
from understudy.data import Panel, PrivacyUnit
from understudy.data import Population as DeclaredPopulation
from understudy.errors import InputError, MissingData
from understudy.privacy import accounting
from understudy.privacy.accounting import gaussian_mu
from understudy.privacy.border import WIDENING
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import DiscreteGaussian
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.contract.checks import BUDGET, fit, new_ledger
from understudy.synthesizers.contract.panels import make_panel, one_unit_more, plain_schema, rich_schema
from understudy.synthesizers.pets import PETS
from understudy.synthesizers.pets.published import Environment, Population, Vote, evolve
from understudy.synthesizers.pets.recipe import Recipe
from understudy.synthesizers.pets.selection import voters_of

SMALL = Recipe(iterations=3, population=24, lookahead=1)
VARIANTS = {
    "rules": PETS(recipe=SMALL),
    "one vote": PETS(recipe=replace(SMALL, neighbours=1)),
    "bounds": PETS(scale="bounds", recipe=SMALL),
}
EPSILONS = (0.125, 0.25, 0.5, 0.7, 1, 2, 4, 5, 8, 16, 32)
SIGMAS = {  # noise of one count at delta = 1e-5, by iterations
    61: (195.9, 103.8, 54.9, 40.4, 29.1, 15.6, 8.44, 6.97, 4.69, 2.69, 1.60),
    20: (112.1, 59.4, 31.4, 23.1, 16.7, 8.92, 4.83, 3.99, 2.68, 1.54, 0.916),
}


@pytest.fixture(autouse=True)
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    return use_stand_in(monkeypatch)


def votes_multiplier(method: PETS, guarantee: Guarantee, **schema: object) -> float:
    event = method.plan(plain_schema(**schema), guarantee).event("votes")
    assert isinstance(event, DiscreteGaussian)
    return event.noise_multiplier


def _cells() -> list[object]:
    """The cells of the table; a large epsilon takes the accountant seconds."""
    cells = [(count, *cell) for count, row in SIGMAS.items() for cell in zip(EPSILONS, row, strict=True)]
    return [pytest.param(*cell, marks=[pytest.mark.slow] if cell[1] > 8 else []) for cell in cells]


@pytest.mark.parametrize(("iterations", "epsilon", "printed"), _cells())
def test_the_noise_is_that_of_the_published_table(iterations: int, epsilon: float, printed: float) -> None:
    """Within half a percent of the exact figure, and of the printed one within its last digit."""
    method = PETS(scale="bounds", recipe=Recipe(iterations=iterations, neighbours=1))
    found = votes_multiplier(method, Guarantee(epsilon, 1e-5))
    exact = math.sqrt(iterations) / gaussian_mu(epsilon, 1e-5)
    assert found == pytest.approx(exact, rel=0.005)
    assert found == pytest.approx(printed, rel=0.005)


def test_noise_falls_with_epsilon_and_grows_with_the_root_of_iterations() -> None:
    noises = [
        votes_multiplier(PETS(scale="bounds", recipe=Recipe(iterations=8, neighbours=1)), Guarantee(e, 1e-6))
        for e in (0.5, 1, 2, 4)
    ]
    assert noises == sorted(noises, reverse=True)
    fewer, more = (
        votes_multiplier(PETS(scale="bounds", recipe=Recipe(iterations=t, neighbours=1)), Guarantee(1, 1e-6))
        for t in (5, 20)
    )
    assert more / fewer == pytest.approx(2, rel=1e-3)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_plan_costs_the_guarantee_and_never_more(variant: str) -> None:
    plan = VARIANTS[variant].plan(rich_schema(), BUDGET)
    assert 0.99 * BUDGET.epsilon < plan.epsilon() <= BUDGET.epsilon
    assert plan.executions("votes") == SMALL.iterations


def test_only_a_single_whole_vote_is_priced_as_one() -> None:
    def one_vote(method: PETS, **changes: object) -> bool:
        event = method.plan(method.learned_schema(plain_schema(**changes)), BUDGET).event("votes")
        assert isinstance(event, DiscreteGaussian)
        return event.one_vote

    single = PETS(recipe=replace(SMALL, neighbours=1))
    assert one_vote(single)
    assert not one_vote(PETS(recipe=replace(SMALL, neighbours=2)))
    assert not one_vote(single, unit=PrivacyUnit(column="home", max_series=2))
    assert not one_vote(single, unit=PrivacyUnit(column="home", kind="event"))
    assert not one_vote(replace(single, window_steps=2))


def neighbours_of(panel: Panel) -> list[Panel]:
    dropped = [panel.take_units(np.delete(np.arange(panel.num_units), unit)) for unit in (0, panel.num_units // 2)]
    return [*dropped, one_unit_more(panel)]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("max_series", [1, 3])
def test_one_unit_moves_each_statistic_by_at_most_its_bound(variant: str, max_series: int) -> None:
    panel = make_panel(rich_schema(unit=PrivacyUnit(column="home", max_series=max_series)), 60)
    first = tape_of(panel, VARIANTS[variant])
    furthest: dict[str, float] = {}
    for neighbour in neighbours_of(panel):
        for label, apart in first.distances(tape_of(neighbour, VARIANTS[variant], frozen=first)).items():
            furthest[label] = max(furthest.get(label, 0.0), apart)
    assert max(furthest.values()) <= 1 + 1e-9
    assert furthest["votes"] > 0.9


def test_a_unit_with_five_hundred_series_weighs_as_much_as_any_other() -> None:
    method = VARIANTS["rules"]
    panel = make_panel(plain_schema(unit=PrivacyUnit(column="home", max_series=500)), 5)
    crowd = make_panel(plain_schema(unit=PrivacyUnit(column="home", max_series=500)), 1, seed=9)
    rows = np.zeros(500, dtype=np.int64)
    together = replace(
        panel,
        values=np.concatenate([panel.values, crowd.values[rows]]),
        lengths=np.concatenate([panel.lengths, crowd.lengths[rows]]),
        unit=np.concatenate([panel.unit, np.full(500, panel.num_units)]),
        static=np.concatenate([panel.static, crowd.static[rows]]),
    )
    first = tape_of(panel, method)
    assert max(first.distances(tape_of(together, method, frozen=first)).values()) <= 1 + 1e-9


@pytest.mark.parametrize("window_steps", [None, 3])
def test_an_event_moves_each_statistic_by_at_most_its_bound(window_steps: int | None) -> None:
    schema = plain_schema(unit=PrivacyUnit(column="home", kind="event", event_steps=2))
    panel, method = make_panel(schema, 40), replace(VARIANTS["rules"], window_steps=window_steps)
    values = np.array(panel.values)
    values[7, 2:4] = 20.0  # another reading in two consecutive steps, in two windows of three
    first = tape_of(panel, method)
    moved = first.distances(tape_of(panel.with_values(values), method, frozen=first))
    assert 0 < moved["votes"] <= 1
    assert max(moved.values()) <= 1 + 1e-9


def heard(panel: Panel, method: PETS, noise: float, monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The histograms that the evolution hears, if it selects as if all votes were equal."""
    histograms: list[np.ndarray] = []

    def deaf(population: Population, environment: Environment, vote: Vote, *rest: object) -> Iterator[Population]:
        def hear(embeddings: np.ndarray, group: np.ndarray) -> np.ndarray:
            histograms.append(vote(embeddings, group))
            return np.ones(len(group))

        return evolve(population, environment, hear, *rest)

    monkeypatch.setattr("understudy.synthesizers.pets.method.evolve", deaf)
    fit(method, panel, NoiseSource.constant(noise))
    return histograms


@pytest.mark.parametrize("variant", ["rules", "one vote"])
def test_noise_of_the_charged_size_goes_on_every_bin_of_every_class(
    variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = replace(VARIANTS[variant], scale="bounds")
    panel = make_panel(
        rich_schema(time=plain_schema().time, channels=(plain_schema().channels[0],), constraints=()), 50
    )
    still, loud = (heard(panel, method, noise, monkeypatch) for noise in (0.0, 1.0))
    event = method.plan(panel.schema, BUDGET).event("votes")
    assert isinstance(event, DiscreteGaussian)
    expected = round(event.noise_multiplier) if event.one_vote else event.noise_multiplier * WIDENING
    assert len(still) == SMALL.iterations
    for quiet, noisy in zip(still, loud, strict=True):
        assert quiet.shape == (24,)
        np.testing.assert_allclose(noisy - quiet, expected, rtol=1e-8)


@pytest.mark.parametrize("variant", VARIANTS)
def test_private_series_are_counted_once_per_iteration(variant: str) -> None:
    tape = tape_of(make_panel(rich_schema(), 50), VARIANTS[variant])
    assert tape.labels.count("votes") == SMALL.iterations
    assert len(set(tape.labels) - {"votes"}) == len(tape.labels) - SMALL.iterations


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_released_arrays_are_a_function_of_the_answers_alone(variant: str) -> None:
    """Other people, same answers: bit by bit the same release."""
    first = tape_of(make_panel(rich_schema(), 50), VARIANTS[variant], noise=None)
    other = tape_of(make_panel(rich_schema(), 33, seed=8), VARIANTS[variant], frozen=first)
    assert set(first.arrays) == set(other.arrays)
    for name, array in first.arrays.items():
        np.testing.assert_array_equal(array, other.arrays[name])


def test_private_series_are_encoded_once_per_run_and_in_batches_of_one_size(counter: Counter) -> None:
    recipe = Recipe(iterations=5, population=20, lookahead=2, neighbours=1)
    fit(PETS(scale="bounds", recipe=recipe), make_panel(plain_schema(), 300))
    private = [number for number in counter.embedded if number == 256]
    assert len(private) == 2  # 300 series
    assert sum(counter.embedded) == 2 * 256 + 20 + 5 * 2 * 20  # voters, lattice, candidates


def test_the_number_of_candidates_does_not_follow_the_private_number() -> None:
    shapes = [
        {
            name: array.shape
            for name, array in fit(PETS(selection="votes"), make_panel(plain_schema(), number)).arrays.items()
        }
        for number in (1, 250)
    ]
    assert shapes[0] == shapes[1]
    more = fit(PETS(selection="votes"), make_panel(plain_schema(population=DeclaredPopulation(50_000)), 250)).arrays
    assert more["population.group"].shape != shapes[0]["population.group"]


def test_one_more_unit_changes_no_other_units_coordinates(counter: Counter) -> None:
    """To the last bit: otherwise adding a unit could move other units' votes."""
    method, schema = VARIANTS["bounds"], rich_schema()
    panel = make_panel(schema, 300)
    here = method.prepared(schema, _bought(method, panel), 24, np.random.default_rng(0))

    def coordinates(of: Panel) -> np.ndarray:
        private = method.private_series(of, 500)
        voters = voters_of([private], here.encoding, here.environment, here.lattice)
        return voters.coordinates

    alone, joined = coordinates(panel), coordinates(one_unit_more(panel))
    np.testing.assert_array_equal(joined[:-1], alone)
    np.testing.assert_array_equal(coordinates(panel.take_units(np.arange(1, 300))), alone[1:])


def _bought(method: PETS, panel: Panel) -> dict[str, np.ndarray]:
    private = method.private_series(panel, 500)
    grant = new_ledger().charge(method.plan(panel.schema, BUDGET), label="test", noise=NoiseSource.secure())
    return method.release_facts(private, grant)


def test_parts_of_a_table_vote_as_the_whole_does() -> None:
    from understudy.synthesizers.pets.selection import contributions

    method, schema = VARIANTS["bounds"], plain_schema(unit=PrivacyUnit(column="home", max_series=3))
    panel = make_panel(schema, 90)
    here = method.prepared(schema, _bought(method, panel), 24, np.random.default_rng(0))
    candidates = here.lattice.coordinates(here.environment.embed(here.population.series, here.population.static))
    parts = [panel, *(panel.take_units(np.arange(*ends)) for ends in ((0, 20), (20, 90)))]
    private = [method.private_series(part, 500) for part in parts]
    totals = []
    for some in (private[:1], private[1:]):
        voters = voters_of(some, here.encoding, here.environment, here.lattice)
        counted = contributions(voters, candidates, here.population.group, 3)
        assert counted.num_vectors == voters.num_units == 90
        totals.append(counted.weighted_sum(np.ones(90), 2.0**-30))
    assert totals[0].any()
    np.testing.assert_array_equal(*totals)


def test_votes_draw_the_population_towards_the_private_series() -> None:
    """Without noise; the control, in which all votes are equal, shows that it is not by chance."""

    class Unheard(PETS):
        def _vote(self, *arguments: object) -> Vote:
            return lambda embeddings, group: np.zeros(len(group))

    rng = np.random.default_rng(3)
    low = rng.uniform(1.0, 3.0, (150, 1, 1)) + 0.2 * rng.standard_normal((150, 8, 1))
    panel = make_panel(plain_schema(), 150).with_values(low.clip(0, 20))
    recipe = Recipe(iterations=8, population=100, neighbours=1)
    means = [
        fit(method(scale="bounds", recipe=recipe), panel, NoiseSource.constant(0)).sample(100).values.mean()
        for method in (PETS, Unheard)
    ]
    assert 0.8 < means[0] < 3.5
    assert means[1] > 4


def test_labels_come_in_their_released_proportions() -> None:
    schema = rich_schema(population=DeclaredPopulation(4000))
    panel = make_panel(schema, 400)
    static = np.array(panel.static)
    static[:, 0] = np.random.default_rng(4).choice(3, 400, p=[0.7, 0.3, 0.0])
    release = fit(VARIANTS["rules"], replace(panel, static=static), NoiseSource.constant(0))
    drawn = np.bincount(release.sample(2000, rng=np.random.default_rng(5)).label, minlength=3) / 2000
    np.testing.assert_allclose(drawn, [0.7, 0.3, 0.0], atol=0.06)


def test_declared_proportions_are_kept_and_cost_nothing() -> None:
    schema = rich_schema(population=DeclaredPopulation(4000))
    method = replace(VARIANTS["rules"], class_shares=(0.0, 0.25, 0.75))
    labels = [entry.label for entry in method.plan(schema, BUDGET).entries]
    assert "labels" not in labels
    assert "labels" in [entry.label for entry in VARIANTS["rules"].plan(schema, BUDGET).entries]
    release = fit(method, make_panel(schema, 40))
    drawn = np.bincount(release.sample(2000, rng=np.random.default_rng(5)).label, minlength=3) / 2000
    np.testing.assert_allclose(drawn, [0.0, 0.25, 0.75], atol=0.06)  # six deviations of two thousand draws
    with pytest.raises(InputError, match="each of 3 classes"):
        replace(method, class_shares=(0.5, 0.5)).plan(schema, BUDGET)


def test_more_series_than_candidates_are_relatives_and_not_copies() -> None:
    release = fit(VARIANTS["rules"], make_panel(plain_schema()))
    sampled = release.sample(200).values
    assert len(np.unique(sampled[:, :, 0], axis=0)) > 150


def test_the_papers_recipe_needs_a_unit_that_protects_nobody_and_says_what_it_tells() -> None:
    method = PETS(scale="bounds", recipe=replace(SMALL, population=None, as_published=True))
    ledger = new_ledger()
    with pytest.raises(InputError, match="overlapping-window"):
        method.fit(make_panel(plain_schema(), 30), ledger)
    assert not ledger.entries()
    schema = plain_schema(unit=PrivacyUnit(kind="overlapping-window"))
    release = fit(method, make_panel(schema, 30))
    assert release.arrays["population.group"].shape == (30,)
    assert release.certificate.status.startswith("not private")
    assert "private number of series" in release.certificate.threat_model[-1]
    sound = fit(VARIANTS["rules"], make_panel(schema, 30)).certificate
    assert not any("private number of series" in sentence for sentence in sound.threat_model)


def test_the_certificate_names_the_modules() -> None:
    certificate = fit(VARIANTS["rules"], make_panel(plain_schema(), 30)).certificate
    assert certificate.public_inputs["pets pack"] == "0" * 64


def test_a_public_table_can_be_the_start_and_the_scale(tmp_path: Path) -> None:
    schema = plain_schema()
    public = tmp_path / "public.npy"
    np.save(public, 5 + np.random.default_rng(6).random((120, 8, 1)))
    method = PETS(start="public", scale="public", public=str(public), recipe=SMALL)
    release = fit(method, make_panel(schema, 30))
    assert release.sample(10).values.mean() == pytest.approx(5.5, abs=1.0)
    assert "pets public table" in release.certificate.public_inputs
    assert replace(method, start="rules").fit(make_panel(schema, 30), new_ledger()).sample(3).num_series == 3


@pytest.mark.parametrize(
    ("options", "kind", "word"),
    [
        ({"start": "anywhere"}, InputError, "rules"),
        ({"scale": "guess"}, InputError, "bounds"),
        ({"start": "public"}, InputError, "file"),
        ({"recipe": "best"}, InputError, "--preset paper"),
        ({"class_shares": (0.5, 0.6)}, InputError, "add up to 1"),
        ({"class_shares": (1.5, -0.5)}, InputError, "at least 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], kind: type[Exception], word: str) -> None:
    with pytest.raises(kind, match=word):
        PETS(**options)


def test_a_public_table_that_is_not_there_is_refused_before_spending(tmp_path: Path) -> None:
    ledger = new_ledger()
    method = PETS(start="public", public=str(tmp_path / "nowhere.npy"))
    with pytest.raises(MissingData, match=r"nowhere\.npy"):
        method.fit(make_panel(plain_schema(), 30), ledger)
    assert not ledger.entries()


def test_the_outlook_says_when_noise_swamps_the_votes() -> None:
    schema = plain_schema(population=DeclaredPopulation(8549))
    paper = Recipe(iterations=61, schedule=(40.0, 5.0), population=8549, neighbours=1)
    swamped = PETS(scale="bounds", recipe=paper).outlook(schema, Guarantee(0.7, 1e-5))[0]
    assert "expected votes per bin 1, noise 40.4: this run would be guided by the public prior only" in swamped
    fine = PETS(selection="votes").outlook(schema, Guarantee(2.0, 1e-6))[0]
    assert "prior only" not in fine


def test_events_are_noisier_in_the_outlook() -> None:
    entity, event = (
        PETS(window_steps=4, selection="votes").outlook(
            plain_schema(unit=PrivacyUnit(column="home", kind=kind)), BUDGET
        )[0]
        for kind in ("entity", "event")
    )
    assert _noise(event) >= 1.9 * _noise(entity)


def _noise(line: str) -> float:
    return float(line.split("noise ")[1].split(":")[0].rstrip("."))


def test_replacing_a_unit_is_priced_too() -> None:
    plan = VARIANTS["one vote"].plan(plain_schema(), BUDGET)
    assert accounting.replace_one_epsilon(plan.events, BUDGET.delta) > plan.epsilon()


def test_tapes_of_different_lengths_are_told_apart() -> None:
    with pytest.raises(AssertionError):
        Tape(labels=["votes"]).distances(Tape())
