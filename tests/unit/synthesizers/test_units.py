"""What one unit can touch is what was priced: late rows of an event, and windows that are units themselves."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.synthesizers.dit.small import SMALL, waves
from understudy.data import Integer, Panel, PrivacyUnit
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.dit import DiT
from understudy.synthesizers.pets import PETS
from understudy.synthesizers.spectral import Spectral

STEPS, WINDOW = 40, 4
EVENT = PrivacyUnit(column="home", kind="event", event_steps=1)
WINDOWS = PrivacyUnit(column="home", kind="overlapping-window")


def _with_late_row(there: bool) -> Panel:
    """Series of forty steps; the first has a gap from step six on and, perhaps, one row at its very end."""
    panel = waves(3, steps=STEPS, unit=EVENT)
    panel = replace(panel, schema=replace(panel.schema, time=replace(panel.schema.time, min_steps=1)))
    values, lengths = np.array(panel.values), np.array(panel.lengths)
    values[0, WINDOW + 2 : STEPS - there] = np.nan
    lengths[0] = STEPS if there else WINDOW + 2
    return replace(panel, values=values, lengths=lengths)


def _windows(method: Synthesizer, panel: Panel) -> int:
    return method.private_series(panel, 3).panel.num_series


@pytest.mark.parametrize("method", [Spectral(window_steps=WINDOW), PETS(window_steps=WINDOW)], ids=lambda m: m.name)
def test_one_late_row_would_take_away_more_windows_than_an_event_touches_so_it_is_refused(method: Synthesizer) -> None:
    """The first lines show the defect that is refused: two windows for an event that touches one."""
    touched = method.influence(_with_late_row(True).schema) // 2
    lost = _windows(method, _with_late_row(True)) - _windows(method, _with_late_row(False))
    assert touched == 1
    assert lost == 2
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
    method = DiT(window_steps=WINDOW)
    lost = _windows(method, _with_late_row(True)) - _windows(method, _with_late_row(False))
    assert 0 <= lost <= method.influence(_with_late_row(True).schema)
    method._check(_with_late_row(True).schema, Ledger.in_memory(Guarantee(1.0, 1e-6)))


@pytest.mark.parametrize("method", [Spectral(window_steps=8), replace(SMALL, window_steps=8)], ids=lambda m: m.name)
def test_windows_that_are_units_share_none(method: Synthesizer) -> None:
    """Cut from one series, they would otherwise be drawn, dealt and clipped as one. Control: homes are units."""
    cut = method.private_series(waves(3, steps=STEPS, unit=WINDOWS), 3).panel
    assert cut.num_units == cut.num_series == 15
    whole = method.private_series(waves(3, steps=STEPS), 3).panel
    assert (whole.num_units, whole.num_series) == (3, 15)


@pytest.mark.parametrize("method", [DiT(), DiT(window_steps=WINDOW), Spectral(window_steps=WINDOW)], ids=repr)
def test_steps_without_rows_that_are_zeros_are_refused_where_windows_are_protected(method: Synthesizer) -> None:
    """A row less leaves a zero and no empty step: windows change and do not go, or all go with a unit's only row."""
    schema = waves(3, steps=STEPS, unit=EVENT).schema
    visits = Integer("visits", 0, 9, aggregate="count")
    counted = replace(schema, channels=(visits, *schema.channels[1:]))
    ledger = Ledger.in_memory(Guarantee(1.0, 1e-6))
    with pytest.raises(InputError, match=r"aggregate of 'visits'.*Protect entities"):
        method._check(counted, ledger)
    method._check(replace(counted, unit=PrivacyUnit(column="home")), ledger)
    method._check(schema, ledger)
    Spectral()._check(counted, ledger)  # the whole series is one vector, and may become any other


@pytest.mark.parametrize("method", [Spectral(window_steps=WINDOW), PETS(window_steps=WINDOW)], ids=lambda m: m.name)
def test_a_unit_that_leaves_with_its_only_row_takes_no_other_windows_with_it(method: Synthesizer) -> None:
    """In a long table it is gone; its windows without any observation were never counted."""
    panel = waves(3, steps=STEPS, unit=EVENT)
    values = np.array(panel.values)
    values[2, 1:] = np.nan
    alone = panel.with_values(values)
    lost = _windows(method, alone) - _windows(method, alone.take_units([0, 1]))
    assert lost == method.influence(panel.schema) // 2 == 1
