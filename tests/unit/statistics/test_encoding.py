"""Working scale knows public facts alone, leaves no gaps, and leads back to the user's columns."""

from dataclasses import replace

import numpy as np
import pytest

from understudy.data import Categorical, Panel, Schema
from understudy.statistics.encoding import Encoding, linear_scales
from understudy.statistics.marginals import grid_of, marginal_from, vote_counts
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema

WHOLE = slice(None)


def by_bounds(schema: Schema) -> Encoding:
    return Encoding.of(schema, (), linear_scales(schema, None))


def by_marginals(panel: Panel) -> Encoding:
    """Scores by the panel's own distributions, as if they had been bought without noise."""
    schema, marginals = panel.schema, []
    columns = [(channel, panel.values[:, :, place]) for place, channel in enumerate(schema.channels)]
    columns += [(column, panel.static[:, [place]]) for place, column in enumerate(schema.static) if place]
    for column, values in columns:
        grid = grid_of(column, 1e-9)
        marginals.append(marginal_from(vote_counts(values, np.ones(len(values)), grid), grid, 1e-9))
    return Encoding.of(schema, marginals, linear_scales(schema, None))


@pytest.mark.parametrize("make", [lambda panel: by_bounds(panel.schema), by_marginals])
def test_working_scale_has_no_gaps_and_stays_near_the_middle(make: object) -> None:
    panel = make_panel(rich_schema())
    encoding = make(panel)
    series, static = encoding.series(panel, WHOLE), encoding.static(panel, WHOLE)
    assert series.dtype == static.dtype == np.float32
    assert series.shape == (panel.num_series, panel.num_steps, encoding.num_channels)
    assert static.shape == (panel.num_series, encoding.num_static)
    for array in (series, static):
        assert np.isfinite(array).all()
        assert np.abs(array).max() <= 4


@pytest.mark.parametrize(
    ("make", "static_error"), [(lambda panel: by_bounds(panel.schema), 1e-6), (by_marginals, 0.15)]
)
def test_what_was_observed_comes_back(make: object, static_error: float) -> None:
    """A whole number comes back from scores within the width of its cell."""
    panel = make_panel(rich_schema())
    encoding = make(panel)
    values, observed = encoding.values(encoding.series(panel, WHOLE)), panel.observed
    for place, channel in enumerate(panel.schema.channels):
        low, high = channel.bounds
        difference = np.abs(values[:, :, place] - panel.values[:, :, place])[observed[:, :, place]]
        # scores are cut at 3.5 deviations and atoms share a rank, so that the outermost values may differ
        assert np.quantile(difference, 0.95) <= 0.02 * (high - low)
    static, kept = encoding.static_values(encoding.static(panel, WHOLE)), panel.static[:, 1:]
    known = ~np.isnan(kept)
    spans = np.array([column.bounds[1] - column.bounds[0] for column in panel.schema.static[1:]])
    assert np.quantile((np.abs(static - kept) / spans)[known], 0.95) <= static_error


def test_codes_are_groups_of_zeros_and_a_one() -> None:
    panel = make_panel(rich_schema())
    encoding = by_bounds(panel.schema)
    series = encoding.series(panel, WHOLE)
    assert encoding.channel_codes == ((3, 6), (6, 8))
    assert encoding.static_codes == ((1, 3),)
    state = series[:, :, 3:6][~np.isnan(panel.values[:, :, 3])]
    assert set(np.unique(state)) == {0.0, 1.0}
    np.testing.assert_allclose(series[:, :, 6:8].sum(axis=2), 1)  # never missing


def test_a_series_is_encoded_by_itself() -> None:
    panel = make_panel(rich_schema())
    encoding = by_bounds(panel.schema)
    values = np.array(panel.values)
    values[5] = np.where(np.isnan(values[5]), np.nan, 20.0)
    for get in (encoding.series, encoding.static):
        whole = get(panel, WHOLE)
        np.testing.assert_array_equal(
            np.delete(get(panel.with_values(values), WHOLE), 5, axis=0), np.delete(whole, 5, axis=0)
        )
        np.testing.assert_array_equal(get(panel, slice(7, 9)), whole[7:9])
        np.testing.assert_array_equal(get(panel.take_units([11]), WHOLE), whole[11:12])


def test_absence_leaves_no_trace_of_where_it_was() -> None:
    panel = make_panel(plain_schema(channels=(replace(plain_schema().channels[0], missing=True),)), 1)
    values = np.arange(8, dtype=np.float32).reshape(1, 8, 1)
    values[0, [2, 3]] = np.nan
    working = by_bounds(panel.schema).series(panel.with_values(values), WHOLE)
    np.testing.assert_allclose(np.diff(working[0, :, 0]), np.diff(working[0, :, 0])[0], rtol=1e-4)


def test_public_values_set_the_scale_and_bounds_stand_in_where_they_do_not_vary() -> None:
    panel = make_panel(rich_schema())
    public = np.array(panel.values)
    public[:, :, 1] = np.where(np.isnan(public[:, :, 1]), np.nan, 3.0)
    scales = linear_scales(panel.schema, panel.with_values(public))
    load = panel.values[:, :, 0]
    np.testing.assert_allclose(scales[0], [np.nanmean(load), np.nanstd(load)], rtol=1e-3)
    np.testing.assert_allclose(scales[1], linear_scales(panel.schema, None)[1])


def test_a_column_with_one_category_has_a_single_channel() -> None:
    schema = plain_schema(channels=(Categorical("state", ("on",)),))
    panel = make_panel(schema, 4)
    encoding = by_bounds(schema)
    assert encoding.num_channels == 1
    np.testing.assert_array_equal(encoding.values(encoding.series(panel, WHOLE)), 0)


def test_ranks_for_gaps_grow_with_the_value() -> None:
    panel = make_panel(rich_schema())
    encoding = by_bounds(panel.schema)
    ranked = encoding.ranked(encoding.series(panel, WHOLE))
    assert ranked.shape == panel.values.shape
    for place in range(ranked.shape[2]):
        known = ~np.isnan(panel.values[:, :, place])
        order = np.argsort(panel.values[:, :, place][known], kind="stable")
        assert (np.diff(ranked[:, :, place][known][order]) >= -1e-6).all()
