"""What every method has to keep, as plain functions: each takes a synthesizer and raises AssertionError.

Anybody who writes a method can run them on it, with or without pytest:

    >>> from understudy.synthesizers.independent import Independent
    >>> check_synthesizer(Independent())

A release is loaded back by its method's name, so a new method has to be in the registry first:
`METHODS["mine"] = Mine`.
The panels are invented and ledgers live in memory; nothing outside a temporary folder is written.
"""

from collections.abc import Callable

from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.contract.odd_panels import (
    check_a_column_with_one_category,
    check_nothing_observed,
    check_small_panels,
)
from understudy.synthesizers.contract.protection import (
    check_events_are_protected_through_windows,
    check_units_may_have_several_series,
    check_windows_that_overlap_protect_no_person,
)
from understudy.synthesizers.contract.releases import (
    check_an_empty_panel_looks_like_any_other,
    check_an_event_that_leaves_no_whole_series_does_not_show,
    check_no_array_is_as_long_as_the_panel,
    check_one_unit_more_changes_nothing_but_numbers,
    check_save_and_load_change_nothing,
    check_the_order_of_units_does_not_matter,
    check_the_release_holds_no_reference_to_the_panel,
)
from understudy.synthesizers.contract.samples import (
    check_context_can_be_given,
    check_labels_can_be_asked_for,
    check_samples_can_be_read_back,
    check_samples_obey_the_schema,
    check_the_context_of_the_fit_is_the_default,
    check_the_number_of_series_is_the_callers,
)
from understudy.synthesizers.contract.spending import (
    check_a_population_can_be_bought,
    check_a_spent_ledger_refuses_and_is_left_as_it_was,
    check_all_that_is_left_of_a_spent_ledger_is_refused_too,
    check_bad_public_facts_are_refused_before_spending,
    check_fit_spends_what_the_certificate_says,
    check_reproducible_noise_is_never_called_private,
)

CHECKS: tuple[Callable[[Synthesizer], None], ...] = (
    check_fit_spends_what_the_certificate_says,
    check_a_spent_ledger_refuses_and_is_left_as_it_was,
    check_all_that_is_left_of_a_spent_ledger_is_refused_too,
    check_bad_public_facts_are_refused_before_spending,
    check_reproducible_noise_is_never_called_private,
    check_a_population_can_be_bought,
    check_windows_that_overlap_protect_no_person,
    check_events_are_protected_through_windows,
    check_units_may_have_several_series,
    check_the_release_holds_no_reference_to_the_panel,
    check_no_array_is_as_long_as_the_panel,
    check_one_unit_more_changes_nothing_but_numbers,
    check_an_empty_panel_looks_like_any_other,
    check_an_event_that_leaves_no_whole_series_does_not_show,
    check_the_order_of_units_does_not_matter,
    check_save_and_load_change_nothing,
    check_samples_obey_the_schema,
    check_samples_can_be_read_back,
    check_the_number_of_series_is_the_callers,
    check_labels_can_be_asked_for,
    check_context_can_be_given,
    check_the_context_of_the_fit_is_the_default,
    check_small_panels,
    check_nothing_observed,
    check_a_column_with_one_category,
)


def check_synthesizer(synthesizer: Synthesizer) -> None:
    """Runs every check in turn; the first that fails raises."""
    for check in CHECKS:
        check(synthesizer)
