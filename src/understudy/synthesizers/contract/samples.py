"""What is drawn."""

from dataclasses import replace
from functools import partial

import numpy as np

from understudy.data import constraints, panel_to_arrow, read_panel
from understudy.errors import InputError
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.contract.expectations import expect, expect_raises, expect_valid, fit
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema, shared_context


def check_samples_obey_the_schema(synthesizer: Synthesizer) -> None:
    """Bounds, whole numbers, categories, lengths, gaps only where declared, and every constraint."""
    schema = rich_schema()
    sampled = fit(synthesizer, make_panel(schema)).sample(120, context=shared_context(schema))
    expect_valid(sampled)
    expect_valid(fit(synthesizer, make_panel(plain_schema())).sample(120))


def check_samples_can_be_read_back(synthesizer: Synthesizer) -> None:
    """Synthetic series are a table like the user's, which the same schema reads without complaint."""
    schema = rich_schema()
    context = shared_context(schema)
    sampled = fit(synthesizer, make_panel(schema)).sample(50, context=context)
    again = read_panel(panel_to_arrow(sampled), schema, context=context, allow_few_units=True)
    for part in ("values", "lengths", "static"):
        same = np.array_equal(getattr(again, part), getattr(sampled, part), equal_nan=True)
        expect(same, f"The {part} changed on the way to a table and back.")


def check_the_number_of_series_is_the_callers(synthesizer: Synthesizer) -> None:
    """One or a thousand, whatever the private panel held; none is refused."""
    release = fit(synthesizer, make_panel(plain_schema()))
    for number in (1, 2, 1009):
        expect(release.sample(number).num_series == number, "Another number of series was drawn.")
    expect_raises(InputError, partial(release.sample, 0))


def check_labels_can_be_asked_for(synthesizer: Synthesizer) -> None:
    """Every declared category, also one that nobody has; another word is refused."""
    schema = rich_schema(constraints=())
    panel = make_panel(schema)
    static = np.array(panel.static)
    static[:, 0] = np.minimum(static[:, 0], 1)  # nobody has the last one
    release = fit(synthesizer, replace(panel, static=static))
    for code, category in enumerate(("flat", "night", "dynamic")):
        sampled = release.sample(11, label=category)
        expect(bool((sampled.static[:, 0] == code).all()), "Another label was drawn than was asked for.")
    expect_raises(InputError, partial(release.sample, 2, label="weekend"))
    unlabelled = fit(synthesizer, make_panel(plain_schema()))
    expect_raises(InputError, partial(unlabelled.sample, 2, label="flat"))


def check_context_can_be_given(synthesizer: Synthesizer) -> None:
    """One context for all or one for each series; constraints look at the context that was given."""
    schema = rich_schema()
    for own in (False, True):
        release = fit(synthesizer, make_panel(schema, own_context=own))
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
    release = fit(synthesizer, make_panel(rich_schema()))
    sampled = release.sample(12)
    broken = constraints.violations(sampled.values, sampled.schema, context=shared_context(release.schema))
    expect(not broken, f"Constraints are broken: {broken}.")
