"""Messages that say no count, and units that stay within what they are priced for."""

import numpy as np
import pyarrow as pa
import pytest

from tests.unit.data.toy import simple_schema
from understudy.data import read_panel
from understudy.data.io.read import check_units
from understudy.errors import DataError


def test_the_refusal_of_a_small_table_reads_the_same_for_every_number_of_units() -> None:
    said = set()
    for number in (2, 57, 98, 99):
        with pytest.raises(DataError) as caught:
            check_units(number, number, simple_schema(), allow_few_units=False)
        said.add(str(caught.value))
    assert len(said) == 1


def test_a_unit_with_more_series_than_declared_is_refused() -> None:
    schema = simple_schema(column=None, layout="wide")
    table = {"id": np.arange(200), **{f"x_{step}": np.ones(200) for step in range(4)}}
    read_panel(pa.table(table), schema)
    table["id"][8] = 7
    with pytest.raises(DataError, match="max_series"):
        read_panel(pa.table(table), schema)
