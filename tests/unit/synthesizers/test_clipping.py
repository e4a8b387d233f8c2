"""Bounds that the border enforces fit what methods compute: of ordinary units it clips hardly anything."""

from dataclasses import replace

import pytest

from tests.contract.test_methods import SMALL
from tests.unit.synthesizers.spectral.recording import MUCH, listening
from understudy.data import PrivacyUnit, Schema
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers import METHODS, Synthesizer
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema

SEVERAL = rich_schema(unit=PrivacyUnit(column="home", max_series=2))
EVENTS = plain_schema(unit=PrivacyUnit(column="home", kind="event", event_steps=1))
RUNS: dict[str, tuple[Synthesizer, Schema]] = {
    **{name: (SMALL.get(name) or METHODS[name](), SEVERAL) for name in METHODS.own},
    "dit, events": (SMALL["dit"], EVENTS),
    "spectral, events": (METHODS["spectral"](window_steps=4), EVENTS),
}
# Share of all lengths that may be lost where vectors are made of scores, which have no largest one.
MOST = {"factors": 1 / 12, "dependence": 1 / 12, "profile": 1 / 12, "singles": 1 / 12}


@pytest.mark.parametrize("name", RUNS)
def test_the_border_clips_hardly_anything_of_ordinary_units(name: str) -> None:
    """No vote and no direction, and little of what has no largest length."""
    method, schema = RUNS[name]
    with listening() as tape:
        method.fit(make_panel(schema, 150), Ledger.in_memory(MUCH), noise=NoiseSource.constant(0))
    for label, own in tape.sums.items():
        assert own.clipped <= MOST.get(label, 0), label


def test_half_of_a_bound_would_be_noticed() -> None:
    method, schema = RUNS["spectral"]
    with listening() as tape:
        method.fit(make_panel(schema, 150), Ledger.in_memory(MUCH), noise=NoiseSource.constant(0))
    for label, own in tape.sums.items():
        assert replace(own, lengths=2 * own.lengths).clipped > MOST.get(label, 0), label
