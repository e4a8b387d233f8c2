"""The privacy unit says in words who is protected."""

import pytest

from understudy.data.units import PrivacyUnit
from understudy.errors import SchemaError


def test_the_sentence_says_who_is_protected():
    assert "'person'" in PrivacyUnit(column="person").sentence()
    event = PrivacyUnit(kind="event", column="person", event_steps=24)
    assert "24 consecutive steps" in event.sentence()
    window = PrivacyUnit(kind="overlapping-window")
    assert window.sentence().startswith("No person is protected")
    assert [unit.protects_a_person for unit in (event, window)] == [True, False]


@pytest.mark.parametrize("fields", [{"kind": "row"}, {"max_series": 0}, {"event_steps": 0}, {"dtype": "bool"}])
def test_units_that_make_no_sense_are_refused(fields):
    with pytest.raises(SchemaError, match=r"'unit\."):
        PrivacyUnit(column="person", **fields)
