"""The checks of the contract: each takes a synthesizer and raises AssertionError. What they share is at the end.

Checks that only read a release share one per method (`released`).
"""

import contextlib
import gc
import io
import logging
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from understudy import data
from understudy.data import Categorical, Continuous, Panel, Population, PrivacyUnit, Time, constraints
from understudy.errors import BudgetExceeded, InputError, UnderstudyError
from understudy.privacy.budget import Guarantee
from understudy.privacy.certificate import recompute
from understudy.privacy.events import MixtureOfGaussians, NonPrivate, SubsampledGaussian, to_json
from understudy.privacy.keys import SigningKey
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.contract import panels
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema
from understudy.synthesizers.release import PUBLIC_CONTEXT, Release
from understudy.synthesizers.sampling import shared_context

BUDGET = Guarantee(2.0, 2e-6)  # of a ledger
ONE_RUN = Guarantee(1.0, 1e-6)  # half of it

# --- what a run costs, and what is refused -------------------------------------------------------------------------


def check_fit_spends_what_the_certificate_says(synthesizer: Synthesizer) -> None:
    """Planned, charged, executed and certified are one and the same, and no more than was allowed."""
    panel, ledger = make_panel(rich_schema()), new_ledger(max_runs=2)
    found = synthesizer.fit(panel, ledger, guarantee=ONE_RUN).certificate
    plan = synthesizer.spending_plan(panel.schema, ONE_RUN)
    executions = {entry.label: plan.executions(entry.label) for entry in plan.entries}
    spent = BUDGET.epsilon - ledger.remaining().epsilon if plan.entries else 0.0
    expect(found.events == tuple(to_json(event) for event in plan.events), "The plan was not certified.")
    expect(found.executed == executions, "Not executed as charged.")
    expect(found.epsilon <= ONE_RUN.epsilon, "More was certified than allowed.")
    expect(np.isclose(spent, found.epsilon, rtol=1e-9, atol=1e-12), "Charged is not what is certified.")
    expect(np.isclose(recompute(found), found.epsilon, rtol=1e-6), "The events cost something else.")


def check_a_spent_ledger_refuses_and_is_left_as_it_was(synthesizer: Synthesizer) -> None:
    """Without budget there is no look at the data, also where a run names no guarantee and takes what is left."""
    panel, ledger = make_panel(plain_schema()), new_ledger()
    synthesizer.fit(panel, ledger)
    head = ledger.head()
    for guarantee in (ONE_RUN, None):
        again = partial(synthesizer.fit, panel, ledger, guarantee=guarantee)
        if synthesizer.spending_plan(panel.schema, ONE_RUN).entries:
            expect_raises(BudgetExceeded, again)
            expect(ledger.head() == head, "A refused run was written down.")
        else:
            again()  # costs nothing, so there is nothing to refuse


def check_bad_public_facts_are_refused_before_spending(synthesizer: Synthesizer) -> None:
    """What can be known to be wrong without the data costs nothing."""
    panel, draft = make_panel(plain_schema()), make_panel(plain_schema())
    object.__setattr__(draft, "schema", plain_schema(channels=(Continuous("load", 0.0, None),)))
    too_long = replace(synthesizer, window_steps=panel.num_steps + 1)
    for method, given, guarantee in (
        (synthesizer, draft, ONE_RUN),
        (synthesizer, panel, Guarantee(1.0, 1e-3)),
        (too_long, panel, ONE_RUN),
    ):
        ledger = Ledger.in_memory(Guarantee(2.0, 1e-3))
        expect_raises(InputError, partial(method.fit, given, ledger, guarantee=guarantee))
        expect(not ledger.entries(), "A run that could have been refused was charged.")


def check_reproducible_noise_is_never_called_private(synthesizer: Synthesizer) -> None:
    """Anyone who knows the seed can subtract the noise, and the certificate says so first."""
    panel = make_panel(plain_schema())
    for noise in (NoiseSource.seeded(3), NoiseSource.constant(0)):
        status = fit(synthesizer, panel, noise).certificate.status
        expect(status.startswith("not private"), "Reproducible noise was called private.")
    expect(released(synthesizer, plain=True).certificate.is_private, "Secure noise was not called private.")


def check_a_population_can_be_bought(synthesizer: Synthesizer) -> None:
    """The count is part of the plan, comes back noisy, and the whole run stays within the guarantee."""
    schema = plain_schema(population=Population(count_epsilon=0.25))
    release = synthesizer.fit(make_panel(schema), new_ledger(), guarantee=BUDGET)
    expect(release.certificate.epsilon <= BUDGET.epsilon, "The count was not paid from the guarantee.")
    if release.certificate.events:
        expect(release.certificate.executed.get("population") == 1, "The count was not charged.")
        expect(release.schema.population.size is not None, "The count was bought and not used.")
    release.sample(3)


# --- who is protected ----------------------------------------------------------------------------------------------


def check_windows_that_overlap_protect_no_person(synthesizer: Synthesizer) -> None:
    """The first field of the certificate says so."""
    schema = plain_schema(unit=PrivacyUnit(kind="overlapping-window"))
    status = fit(synthesizer, make_panel(schema)).certificate.status
    expect(status.startswith("not private: protects no person"), "The status promises too much.")


def check_events_are_protected_through_windows(synthesizer: Synthesizer) -> None:
    """A method fits windows of series whose protected unit is a few steps, and the certificate says which."""
    schema = plain_schema(unit=PrivacyUnit(column="home", kind="event", event_steps=2))
    for method, steps in ((synthesizer, 8), (replace(synthesizer, window_steps=3), 3)):
        release = fit(method, make_panel(schema))
        expect(release.certificate.unit == schema.unit.sentence(), "The certificate names another unit.")
        expect(release.sample(4).num_steps == steps, "Samples are not as long as windows.")


def check_units_may_have_several_series(synthesizer: Synthesizer) -> None:
    """Three series of a unit are still one unit."""
    expect_fits(synthesizer, make_panel(rich_schema(unit=PrivacyUnit(column="home", max_series=3))))


# --- what leaves the building --------------------------------------------------------------------------------------


def check_the_release_holds_no_reference_to_the_panel(synthesizer: Synthesizer) -> None:
    """When the caller lets go of the panel, it is gone, and no array of the release looks into its memory."""
    panel = make_panel(rich_schema())
    release = fit(synthesizer, panel)
    private = [panel.values, panel.static, panel.lengths, panel.unit]
    arrays = [item for item in _reachable(release) if isinstance(item, np.ndarray)]
    expect(arrays, "The walk over the release found no arrays.")
    shared = [array for array in arrays if any(np.shares_memory(array, other) for other in private)]
    expect(not shared, "The release sees the panel.")
    watched = [weakref.ref(item) for item in [panel, *private]]
    del panel, private, arrays
    gc.collect()
    expect(all(reference() is None for reference in watched), "Something still holds the panel.")
    release.sample(2, context=shared_context(release.schema))


def check_no_array_is_as_long_as_the_panel(synthesizer: Synthesizer) -> None:
    """The number of series is private and must not show in any shape."""
    for name, array in released(synthesizer).arrays.items():
        expect(panels.NUM_UNITS not in array.shape, f"'{name}' is as long as the private panel.")
        expect(np.isfinite(array).all(), f"'{name}' holds numbers that are not finite.")


def check_one_unit_more_changes_nothing_but_numbers(synthesizer: Synthesizer) -> None:
    """Shapes, dtypes, file names, file sizes, progress and everything printed stay with one unit more, also after none.

    Samples obey the schema, however few units there are. The population is small, so that no method finds room for
    structure that noise may or may not reveal.
    """
    for schema in (rich_schema(), plain_schema()):
        panel = make_panel(schema)
        expect_same_view(synthesizer, make_panel(schema, 0), panel.take_units([0]), panel, panels.one_unit_more(panel))
    windowed, schema = replace(synthesizer, window_steps=panels.MIN_STEPS), plain_schema()
    expect_same_view(windowed, make_panel(schema, 0), make_panel(schema, 1))


def check_an_event_that_leaves_no_whole_series_does_not_show(synthesizer: Synthesizer) -> None:
    """One reading less may take away the last series that a method learns from; its public context stays."""
    load = replace(plain_schema().channels[0], missing=True)
    event = PrivacyUnit(column="home", kind="event", event_steps=1)
    panel = make_panel(plain_schema(unit=event, channels=(load,), context=rich_schema().context), 2)
    values = np.full_like(panel.values, 1.0)
    values[0, 0] = np.nan  # one series has a gap already
    fewer = values.copy()
    fewer[1, 3] = np.nan
    expect_same_view(synthesizer, panel.with_values(values), panel.with_values(fewer))


def check_the_order_of_units_does_not_matter(synthesizer: Synthesizer) -> None:
    """Without noise, panels that differ in the order of their units give the same arrays.

    Methods that draw batches give the same distribution of arrays instead; for them shapes are compared.
    """
    panel = make_panel(rich_schema(unit=PrivacyUnit(column="home", max_series=2)))
    shuffled = panel.take_units(np.random.default_rng(1).permutation(panel.num_units))
    plan = synthesizer.spending_plan(panel.schema, BUDGET)
    drawn = any(isinstance(event, SubsampledGaussian | MixtureOfGaussians | NonPrivate) for event in plan.events)
    first, second = (fit(synthesizer, given, NoiseSource.constant(0)).arrays for given in (panel, shuffled))
    for name in first:
        same = first[name].shape == second[name].shape
        same = same and (drawn or np.allclose(first[name], second[name], rtol=1e-5, atol=1e-7))
        expect(same, f"'{name}' depends on the order of units.")


def check_save_and_load_change_nothing(synthesizer: Synthesizer) -> None:
    """Arrays come back bit by bit, and the same generator draws the same series."""
    release = released(synthesizer)
    with tempfile.TemporaryDirectory() as folder:
        saved = release.save(Path(folder) / "release", key=new_key())
        loaded = Release.load(Path(folder) / "release")
    expect(set(loaded.arrays) == set(release.arrays), "Arrays were lost or added.")
    for name, array in release.arrays.items():
        np.testing.assert_array_equal(loaded.arrays[name], array, f"'{name}' changed.", strict=True)  # its dtype, too
    expect(loaded.schema == release.schema, "The schema changed.")
    expect(loaded.synthesizer == synthesizer, "The method's options changed.")
    expect(loaded.certificate == saved.certificate, "The certificate changed.")
    context = shared_context(release.schema)
    expect_same_series(*(r.sample(9, rng=np.random.default_rng(4), context=context) for r in (release, loaded)))


# --- what is sampled -----------------------------------------------------------------------------------------------


def check_samples_obey_the_schema(synthesizer: Synthesizer) -> None:
    """Bounds, whole numbers, categories, lengths, gaps only where declared, every constraint; they can be read back."""
    context = shared_context(schema := rich_schema())
    sampled = released(synthesizer).sample(120, context=context)
    expect_valid(sampled)
    table = data.panel_to_arrow(sampled)
    if all(column.null_count < len(column) for column in table.columns):  # noise may leave a column empty: not a table
        expect_same_series(sampled, data.read_panel(table, schema, context=context, allow_few_units=True))
    expect_valid(released(synthesizer, plain=True).sample(120))


def check_the_number_of_series_is_the_callers(synthesizer: Synthesizer) -> None:
    """One or a thousand, whatever the private panel held; none is refused."""
    release = released(synthesizer, plain=True)
    for number in (1, 2, 1009):
        expect(release.sample(number).num_series == number, "Another number of series was drawn.")
    expect_raises(InputError, partial(release.sample, 0))


def check_labels_can_be_asked_for(synthesizer: Synthesizer) -> None:
    """Every declared category, also one that no unit has; another word is refused."""
    panel = make_panel(rich_schema(constraints=()))
    static = np.array(panel.static)
    static[:, 0] = np.minimum(static[:, 0], 1)  # no unit has the last one
    release = fit(synthesizer, replace(panel, static=static))
    for code, category in enumerate(("flat", "night", "dynamic")):
        sampled = release.sample(11, label=category)
        expect((sampled.static[:, 0] == code).all(), "Another label was drawn than was asked for.")
    expect_raises(InputError, partial(release.sample, 2, label="weekend"))
    expect_raises(InputError, partial(released(synthesizer, plain=True).sample, 2, label="flat"))


def check_context_can_be_given(synthesizer: Synthesizer) -> None:
    """One context for all or one for each series; constraints look at the context that was given."""
    schema = rich_schema()
    for release in (released(synthesizer), fit(synthesizer, make_panel(schema, own_context=True))):
        for_all = shared_context(schema)[::-1].copy()
        each = np.stack([for_all, shared_context(schema)] * 6)
        for context in (for_all, each):
            sampled = release.sample(12, context=context)
            expect_valid(sampled)
            given = sampled.context is not None and (sampled.context == context).all()
            expect(given, "Samples do not carry the context that was given.")
        for wrong in (for_all[:-1], for_all[:, :1], each[:5], np.full_like(for_all, np.nan)):
            expect_raises(InputError, partial(release.sample, 12, context=wrong))


def check_the_context_of_the_fit_is_the_default(synthesizer: Synthesizer) -> None:
    """Without a context, samples belong to the one of the fit, also where a constraint looks at it."""
    sampled = released(synthesizer).sample(12)
    broken = constraints.violations(sampled.values, sampled.schema, context=shared_context(rich_schema()))
    expect(not broken, f"Constraints are broken: {broken}.")


# --- small and odd panels ------------------------------------------------------------------------------------------


def check_odd_panels(synthesizer: Synthesizer) -> None:
    """One or two steps, a channel or all channels never observed, one category: samples obey the schema."""
    rich = rich_schema()
    for steps in (1, 2):
        expect_fits(synthesizer, make_panel(plain_schema(time=Time(column="when", steps=steps))))
        expect_fits(synthesizer, make_panel(rich_schema(time=Time(column="when", steps=steps, min_steps=1))))
    columns = tuple(replace(channel, missing=True) for channel in rich.channels)
    panel = make_panel(rich_schema(channels=columns))
    for unseen in (["load"], [channel.name for channel in columns]):
        expect_fits(synthesizer, panels.without_values(panel, *unseen))
    channels = (Categorical("state", ("on",), missing=True), rich.channels[0])
    static = (Categorical("tariff", ("flat",)), Categorical("region", ("north",)))
    expect_fits(synthesizer, make_panel(rich_schema(channels=channels, static=static, constraints=())))


CHECKS: tuple[Callable[[Synthesizer], None], ...] = tuple(
    function for name, function in globals().items() if name.startswith("check_")
)

# --- what checks share ---------------------------------------------------------------------------------------------


def new_ledger(max_runs: int = 1) -> Ledger:
    """A ledger with the whole budget, in memory."""
    return Ledger.in_memory(BUDGET, max_runs=max_runs)


def fit(synthesizer: Synthesizer, panel: Panel, noise: NoiseSource | None = None) -> Release:
    """Fits with all of a new budget."""
    return synthesizer.fit(panel, new_ledger(), noise=noise)


_RELEASED: dict[tuple[str, bool], Release] = {}


def released(synthesizer: Synthesizer, *, plain: bool = False) -> Release:
    """Returns a release that checks may read and not change: one per method and schema, fitted on first use."""
    held = _RELEASED.get((synthesizer.name, plain))
    if held is None or held.synthesizer != synthesizer:
        held = fit(synthesizer, make_panel(plain_schema() if plain else rich_schema()))
        _RELEASED[synthesizer.name, plain] = held
    return held


def new_key() -> SigningKey:
    """A key that signs and is kept nowhere."""
    return SigningKey("contract", Ed25519PrivateKey.generate())


def expect(condition: object, message: str) -> None:
    """Raises AssertionError unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def expect_raises(kind: type[UnderstudyError], attempt: Callable[[], Any]) -> None:
    """Expects one kind of error; any other is a failure too."""
    found = "none"
    try:
        attempt()
    except kind:
        return
    except Exception as problem:
        found = f"{type(problem).__name__}: {problem}"
    raise AssertionError(f"{kind.__name__} is expected, got {found}.")


def expect_same_series(first: Panel, second: Panel) -> None:
    """Expects the same series, bit by bit."""
    for part in ("values", "lengths", "static"):
        np.testing.assert_array_equal(getattr(first, part), getattr(second, part), f"The {part} changed on the way.")


def expect_fits(synthesizer: Synthesizer, panel: Panel) -> None:
    """Fits, and expects samples that the schema describes."""
    _expect_valid_samples(fit(synthesizer, panel))


def _expect_valid_samples(release: Release) -> None:
    expect_valid(release.sample(25, context=shared_context(release.schema) if release.schema.context else None))


def expect_valid(panel: Panel) -> None:
    """Expects series that their own schema describes."""
    schema = panel.schema
    fewest = schema.time.min_steps or schema.num_steps
    declared = (panel.lengths >= fewest) & (panel.lengths <= schema.num_steps)
    expect(declared.all(), "A length is not declared.")
    inside = np.arange(schema.num_steps) < panel.lengths[:, None]
    columns = [(channel, panel.values[:, :, place][inside]) for place, channel in enumerate(schema.channels)]
    columns += [(column, panel.static[:, place]) for place, column in enumerate(schema.static)]
    for column, values in columns:
        known = values[~np.isnan(values)]
        low, high = (np.float32(bound) for bound in column.bounds)
        expect(column.missing or len(known) == len(values), f"'{column.name}' has undeclared gaps.")
        expect(((known >= low) & (known <= high)).all(), f"'{column.name}' leaves its bounds.")
        whole = isinstance(column, Continuous) or (known == np.rint(known)).all()
        expect(whole, f"'{column.name}' is not whole.")
    broken = constraints.violations(panel.values, schema, context=panel.context)
    expect(not broken, f"Constraints are broken: {broken}.")
    expect(not panel.private, "Synthetic series are called private.")


def expect_same_view(synthesizer: Synthesizer, first: Panel, *neighbours: Panel) -> None:
    """Expects that only numbers differ between runs on panels that differ in units."""
    one = _outside_view(synthesizer, first)
    for panel in neighbours:
        other = _outside_view(synthesizer, panel)
        for name in one:
            expect(one[name] == other[name], f"The {name} tell whether one unit is there.")


def _outside_view(synthesizer: Synthesizer, panel: Panel) -> dict[str, Any]:
    """Everything but numbers that an outsider can see of a run."""
    calls: list[tuple[str, float]] = []
    with _everything_printed() as printed, tempfile.TemporaryDirectory() as folder:
        release = synthesizer.fit(panel, new_ledger(), progress=lambda *call: calls.append(call))
        release.save(Path(folder) / "release", key=new_key())
        _expect_valid_samples(release)
        sizes = {path.name: path.stat().st_size for path in sorted((Path(folder) / "release").iterdir())}
    return {
        "shapes": {name: (array.shape, array.dtype.str) for name, array in release.arrays.items()},
        "files": {name: size for name, size in sizes.items() if name != "certificate.json"},
        "public context": release.arrays[PUBLIC_CONTEXT].tobytes(),
        "events": (release.certificate.events, release.certificate.executed, release.certificate.epsilon),
        "progress calls": calls,
        "printed lines": printed.getvalue(),
    }


@contextlib.contextmanager
def _everything_printed() -> Iterator[io.StringIO]:
    """Collects standard output, standard error and log records."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger().addHandler(handler)
    try:
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            yield stream
    finally:
        logging.getLogger().removeHandler(handler)


def _reachable(release: Release) -> list[Any]:
    """Every object that a release leads to, without walking into modules, classes and functions."""
    seen: dict[int, Any] = {}
    waiting: list[Any] = [release]
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, type | type(gc) | type(_reachable)):
            continue
        seen[id(item)] = item
        waiting += gc.get_referents(item)
        waiting += [item.base] if isinstance(item, np.ndarray) and item.base is not None else []
    return list(seen.values())
