"""Who is protected."""

from dataclasses import replace

from understudy.data import PrivacyUnit
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.contract.expectations import expect, expect_valid, fit, new_ledger
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema, shared_context


def check_windows_that_overlap_protect_no_person(synthesizer: Synthesizer) -> None:
    """The first field of the certificate says so."""
    schema = plain_schema(unit=PrivacyUnit(kind="overlapping-window"))
    certificate = synthesizer.fit(make_panel(schema), new_ledger()).certificate
    expect(certificate.status.startswith("not private: protects no person"), "The status promises too much.")


def check_events_are_protected_through_windows(synthesizer: Synthesizer) -> None:
    """A method fits windows of series whose protected unit is a few steps, and the certificate says which."""
    schema = plain_schema(unit=PrivacyUnit(column="home", kind="event", event_steps=2))
    for method, steps in ((synthesizer, 8), (replace(synthesizer, window_steps=3), 3)):
        release = method.fit(make_panel(schema), new_ledger())
        expect(release.certificate.unit == schema.unit.sentence(), "The certificate names another unit.")
        expect(release.sample(4).num_steps == steps, "Samples are not as long as windows.")


def check_units_may_have_several_series(synthesizer: Synthesizer) -> None:
    """Three series of a unit are still one unit."""
    schema = rich_schema(unit=PrivacyUnit(column="home", max_series=3))
    expect_valid(fit(synthesizer, make_panel(schema)).sample(40, context=shared_context(schema)))
