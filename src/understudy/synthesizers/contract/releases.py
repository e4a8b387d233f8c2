"""What leaves the building."""

import gc
import tempfile
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np

from understudy.data import PrivacyUnit
from understudy.privacy.events import MixtureOfGaussians, NonPrivate, SubsampledGaussian
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.contract.expectations import (
    BUDGET,
    expect,
    expect_same_view,
    fit,
    new_key,
    reachable,
)
from understudy.synthesizers.contract.panels import (
    MIN_STEPS,
    NUM_UNITS,
    make_panel,
    one_unit_more,
    plain_schema,
    rich_schema,
    shared_context,
)
from understudy.synthesizers.release import Release


def check_the_release_holds_no_reference_to_the_panel(synthesizer: Synthesizer) -> None:
    """When the caller lets go of the panel, it is gone, and no array of the release looks into its memory."""
    panel = make_panel(rich_schema())
    release = fit(synthesizer, panel)
    private = [panel.values, panel.static, panel.lengths, panel.unit]
    arrays = [item for item in reachable(release) if isinstance(item, np.ndarray)]
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
    release = fit(synthesizer, make_panel(rich_schema()))
    for name, array in release.arrays.items():
        expect(NUM_UNITS not in array.shape, f"'{name}' is as long as the private panel.")
        expect(np.isfinite(array).all(), f"'{name}' holds numbers that are not finite.")


def check_one_unit_more_changes_nothing_but_numbers(synthesizer: Synthesizer) -> None:
    """Shapes, dtypes, file names, file sizes, progress and everything printed stay with one unit more.

    The population is small, so that no method finds room for structure that noise may or may not reveal.
    """
    for schema in (rich_schema(), plain_schema()):
        panel = make_panel(schema)
        for smaller in (panel, panel.take_units([0])):
            expect_same_view(synthesizer, smaller, one_unit_more(smaller))


def check_an_empty_panel_looks_like_any_other(synthesizer: Synthesizer) -> None:
    """Nobody and one unit are neighbours as well: the release has the same shapes, files and public context."""
    windowed = replace(synthesizer, window_steps=MIN_STEPS)
    for method, schema in ((synthesizer, plain_schema()), (synthesizer, rich_schema()), (windowed, plain_schema())):
        expect_same_view(method, make_panel(schema, 0), make_panel(schema, 1))


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
    first, second = (fit(synthesizer, data, NoiseSource.constant(0)).arrays for data in (panel, shuffled))
    for name in first:
        same = first[name].shape == second[name].shape
        same = same and (drawn or np.allclose(first[name], second[name], rtol=1e-5, atol=1e-7))
        expect(same, f"'{name}' depends on the order of units.")


def check_save_and_load_change_nothing(synthesizer: Synthesizer) -> None:
    """Arrays come back bit by bit, and the same generator draws the same series."""
    release = fit(synthesizer, make_panel(rich_schema()))
    with tempfile.TemporaryDirectory() as folder:
        saved = release.save(Path(folder) / "release", key=new_key())
        loaded = Release.load(Path(folder) / "release")
    expect(set(loaded.arrays) == set(release.arrays), "Arrays were lost or added.")
    for name, array in release.arrays.items():
        expect(loaded.arrays[name].dtype == array.dtype, f"'{name}' changed its dtype.")
        expect(np.array_equal(loaded.arrays[name], array), f"'{name}' changed.")
    expect(loaded.schema == release.schema, "The schema changed.")
    expect(loaded.synthesizer == synthesizer, "The method's options changed.")
    expect(loaded.certificate == saved.certificate, "The certificate changed.")
    context = shared_context(release.schema)
    first, second = (r.sample(9, rng=np.random.default_rng(4), context=context) for r in (release, loaded))
    for part in ("values", "lengths", "static"):
        same = np.array_equal(getattr(first, part), getattr(second, part), equal_nan=True)
        expect(same, f"Other {part} are drawn.")
