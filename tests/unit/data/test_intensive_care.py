"""The simulated stays: deterministic, with gaps that say something, and true to their own schema."""

import numpy as np
import pytest

from understudy.data import Panel, Schema, read_panel, simulate_intensive_care, write_intensive_care


@pytest.fixture(scope="module")
def stays() -> Panel:
    return simulate_intensive_care(3000)


def observed(stays: Panel, name: str) -> np.ndarray:
    return ~np.isnan(stays.values[:, :, stays.schema.channel_index(name)])


def test_the_same_seed_gives_the_same_stays_and_more_do_not_change_the_first(stays: Panel) -> None:
    assert simulate_intensive_care(1500).values.tobytes() == stays.values[:1500].tobytes()
    assert simulate_intensive_care(50, seed=8).values.tobytes() != stays.values[:50].tobytes()


def test_files_come_back_as_the_stays_they_were_made_from(tmp_path, stays: Panel) -> None:
    table, schema_file = write_intensive_care(3000, tmp_path / "data")
    panel = read_panel(table, Schema.load(schema_file))
    assert panel.schema == stays.schema
    assert panel.values.tobytes() == stays.values.tobytes()
    assert panel.static.tobytes() == stays.static.tobytes()


def test_gaps_say_who_is_ill_and_when_it_is_night(stays: Panel) -> None:
    died = stays.label == 1
    lactate = observed(stays, "lactate")
    assert 0.6 < (~lactate.any(axis=1)).mean() < 0.8
    assert lactate[died].any(axis=1).mean() > 1.3 * lactate[~died].any(axis=1).mean()
    assert not observed(stays, "mobility")[:, [2, 26]].any()
    pressure = observed(stays, "blood_pressure").mean(axis=0)
    assert pressure[:6].max() < 0.6 < 0.8 < pressure[6:].min()
