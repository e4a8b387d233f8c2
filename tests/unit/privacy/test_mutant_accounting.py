"""What a certificate may call private, and for how many units delta has to hold."""

import pytest

from tests.unit.privacy.conftest import make_schema
from tests.unit.privacy.test_certificate import certify
from understudy.privacy.certificate import status_of
from understudy.privacy.events import Gaussian


@pytest.mark.parametrize(("epsilon", "private"), [(1.0, True), (20.0, True), (20.1, False), (100.0, False)])
def test_an_epsilon_that_hides_nothing_is_not_called_private(epsilon: float, private: bool) -> None:
    assert (status_of(certify(), (Gaussian(1.0),), epsilon) == "private") == private


def test_delta_counts_every_event_where_events_are_protected() -> None:
    people, events = make_schema(delta=None), make_schema(kind="event", delta=None)
    assert people.protected_units == 10_000
    assert events.protected_units == 4 * 10_000
    assert events.delta == people.delta / 4
