from dataclasses import replace

import numpy as np

from understudy.statistics.columns import context_summary, single_columns, single_values
from understudy.synthesizers.contract.panels import make_panel, rich_schema


def test_whether_series_have_contexts_of_their_own_is_a_public_fact() -> None:
    shared = rich_schema()
    assert not shared.own_contexts
    relative = replace(shared, time=replace(shared.time, align="relative"), constraints=())
    assert relative.own_contexts
    assert not replace(relative, context=()).own_contexts


def test_the_label_is_not_a_column_of_its_own_twice() -> None:
    schema = rich_schema()
    assert [column.name for column in single_columns(schema, with_context=False)] == ["area", "region", "people"]
    assert len(single_columns(schema, with_context=True)) == 3 + 2 * 4
    panel = make_panel(schema, 6, own_context=True)
    values = single_values(schema, panel.static, panel.context)
    assert values.shape == (6, 11)
    np.testing.assert_array_equal(values[:, :3], panel.static[:, 1:].astype(np.float64))


def test_summaries_of_a_context_stay_inside_their_declared_bounds() -> None:
    schema, rng = rich_schema(), np.random.default_rng(0)
    low, high = np.array([channel.bounds for channel in schema.context]).T
    context = low + (high - low) * rng.integers(0, 2, (2000, 8, 2))
    summary, columns = context_summary(context), single_columns(schema, with_context=True)[3:]
    assert summary.shape[1] == len(columns)
    for place, column in enumerate(columns):
        assert summary[:, place].min() >= column.bounds[0] - 1e-9
        assert summary[:, place].max() <= column.bounds[1] + 1e-9
    constant = context_summary(np.full((1, 8, 1), 7.0))
    np.testing.assert_allclose(constant, [[7.0, 0.0, 0.0, 0.0]], atol=1e-12)
