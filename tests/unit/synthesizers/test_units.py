"""What one unit can touch is what was priced: late rows of an event, and windows that are units themselves."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.synthesizers.dit.small import SMALL, waves
from understudy.data import Panel, PrivacyUnit
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.dit import Dit
from understudy.synthesizers.pets.method import Pets
from understudy.synthesizers.spectral import Spectral

STEPS, WINDOW = 40, 4
EVENT = PrivacyUnit(column="home", kind="event", event_steps=1)
WINDOWS = PrivacyUnit(column="home", kind="overlapping-window")


def _with_late_row(there: bool) -> Panel:
    """Series of forty steps; the first has a gap from step four on and, perhaps, one row at its very end."""
    panel = waves(3, steps=STEPS, unit=EVENT)
    panel = replace(panel, schema=replace(panel.schema, time=replace(panel.schema.time, min_steps=1)))
    values, lengths = np.array(panel.values), np.array(panel.lengths)
    values[0, WINDOW : STEPS - there] = np.nan
    lengths[0] = STEPS if there else WINDOW
    return replace(panel, values=values, lengths=lengths)


def _windows(method: Synthesizer, panel: Panel) -> int:
    return method._private_series(panel, 3).panel.num_series


@pytest.mark.parametrize("method", [Spectral(window_steps=WINDOW), Pets(window_steps=WINDOW)], ids=lambda m: m.name)
def test_one_late_row_would_take_away_more_windows_than_an_event_touches_so_it_is_refused(method: Synthesizer) -> None:
    """The first lines show the defect that is refused: nine windows for an event that touches one."""
    touched = method.influence(_with_late_row(True).schema) // 2
    lost = _windows(method, _with_late_row(True)) - _windows(method, _with_late_row(False))
    assert touched == 1
    assert lost == 9
    guarantee = Guarantee(1.0, 1e-6)
    ledger = Ledger.in_memory(guarantee)
    with pytest.raises(InputError, match=r"min_steps.*fixed length"):
        method.fit(_with_late_row(True), ledger, guarantee=guarantee)
    assert ledger.remaining().epsilon == guarantee.epsilon  # nothing was charged


def test_series_of_fixed_length_and_series_that_are_not_cut_are_taken() -> None:
    """The two ways out that the refusal names."""
    guarantee = Guarantee(1.0, 1e-6)
    for method, panel in (
        (Spectral(window_steps=WINDOW), waves(3, steps=STEPS, unit=EVENT)),
        (Spectral(), _with_late_row(True)),
    ):
        assert 0 < method.fit(panel, Ledger.in_memory(guarantee), guarantee=guarantee).certificate.epsilon <= 1.0


def test_whole_windows_lose_no_more_than_the_event_touches() -> None:
    """`dit` leaves windows with an empty step out, so those behind the gap were never there."""
    method = Dit(window_steps=WINDOW)
    lost = _windows(method, _with_late_row(True)) - _windows(method, _with_late_row(False))
    assert 0 <= lost <= method.influence(_with_late_row(True).schema)
    method._check(_with_late_row(True).schema, Ledger.in_memory(Guarantee(1.0, 1e-6)))


@pytest.mark.parametrize("method", [Spectral(window_steps=8), replace(SMALL, window_steps=8)], ids=lambda m: m.name)
def test_windows_that_are_units_share_none(method: Synthesizer) -> None:
    """Cut from one series, they would otherwise be drawn, dealt and clipped as one. Control: homes are units."""
    cut = method._private_series(waves(3, steps=STEPS, unit=WINDOWS), 3).panel
    assert cut.num_units == cut.num_series == 15
    whole = method._private_series(waves(3, steps=STEPS), 3).panel
    assert (whole.num_units, whole.num_series) == (3, 15)
