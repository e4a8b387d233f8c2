"""A series is taken apart into sensitive attributes and the rest, and put together again."""

import numpy as np
import pytest

from tests.unit.synthesizers.ppem.toy import panel, schema
from understudy.data import Categorical, Continuous
from understudy.errors import InputError
from understudy.synthesizers.ppem.attributes import Partition, parse

SETS = {
    "a static column": ("region",),
    "the label": ("segment",),
    "a channel of categories": ("abroad",),
    "levels": ("mean(spending)", "income"),
    "several in one set": ("first(spending)+region", "segment"),
    "a whole channel": ("spending",),
}


def partition(sets: tuple[str, ...]) -> Partition:
    return Partition.of(schema(), sets)


@pytest.mark.parametrize("sets", SETS.values(), ids=SETS.keys())
def test_taking_apart_and_putting_together_changes_nothing(sets: tuple[str, ...]) -> None:
    parts, data = partition(sets), panel()
    series = parts.encoding.series(data, slice(None))
    static = parts.encoding.static(data, slice(None))
    assert data.label is not None
    rows = parts.rows(data)
    assert rows.values.shape == (data.num_series, len(parts.columns))
    assert rows.rest.shape == (data.num_series, parts.num_rest)
    again = parts.joined(rows.values, rows.rest)
    for found, expected in zip(again, (series, static, data.label), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(parts.decoded(parts.encoded(rows.values)), rows.values, atol=1e-5)


@pytest.mark.parametrize("sets", SETS.values(), ids=SETS.keys())
def test_the_rest_does_not_hold_what_is_sensitive(sets: tuple[str, ...]) -> None:
    """Other sensitive values with the same shapes of series: x* stays as it is."""
    parts, data = partition(sets), panel()
    series = parts.encoding.series(data, slice(None))
    static = parts.encoding.static(data, slice(None))
    assert data.label is not None
    rows = parts.rows(data)
    moved = parts.joined(np.roll(rows.values, 1, axis=0), rows.rest)
    np.testing.assert_allclose(parts.apart(*moved)[1], rows.rest, atol=1e-5)
    assert not np.allclose(moved[0], series) or not np.allclose(moved[1], static) or (moved[2] != data.label).any()


@pytest.mark.parametrize(
    ("sets", "word"),
    [
        ((), "at least one"),
        (("spending", "abroad", "region", "income", "segment"), "nothing is left"),
        (("region", "region"), "once"),
        (("spending", "mean(spending)"), "once"),
        (("mean(abroad)",), "categories"),
        (("town",), "expected"),
        (("mean(town)",), "expected"),
    ],
)
def test_what_can_not_be_hidden_is_refused(sets: tuple[str, ...], word: str) -> None:
    with pytest.raises(InputError, match=word):
        parse(schema(), sets)


def test_constant_attributes_are_refused() -> None:
    contract = schema(static=(Categorical("region", ("north",)), Continuous("income", 0.0, 1.0)), label=None)
    with pytest.raises(InputError, match="nothing to hide"):
        parse(contract, ("region",))
