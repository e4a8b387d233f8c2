"""Messages that say no count, and units that stay within what they are priced for."""

import numpy as np
import pytest

from tests.unit.data.toy import simple_schema
from understudy.data.io.checks import check_units
from understudy.errors import DataError


def test_the_refusal_of_a_small_table_reads_the_same_for_every_number_of_units() -> None:
    said = set()
    for number in (2, 57, 98, 99):
        with pytest.raises(DataError) as caught:
            check_units(np.arange(number), simple_schema(), allow_few_units=False)
        said.add(str(caught.value))
    assert len(said) == 1


def test_a_unit_with_more_series_than_declared_is_refused() -> None:
    unit = np.sort(np.append(np.arange(200), 7))
    with pytest.raises(DataError, match="max_series"):
        check_units(unit, simple_schema(), allow_few_units=False)
    check_units(np.arange(200), simple_schema(), allow_few_units=False)
