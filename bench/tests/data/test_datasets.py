"""Loaders of public files: windows from the user's own copy, and a clear word when it is missing."""

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from understudy_bench.data.datasets import DATASET_NAMES, DATASETS, load_windows, windows_schema

from understudy.errors import InputError, MissingData

ROWS = 140


@pytest.fixture
def root(tmp_path):
    """Invented files with the columns of the real ones."""
    rng = np.random.default_rng(0)
    for dataset in DATASETS.values():
        path = tmp_path / dataset.file
        path.parent.mkdir()
        columns = {name: pa.array(np.arange(ROWS), pa.timestamp("us")) for name in dataset.ignore}
        for channel in dataset.channels:
            low, high = channel.bounds
            numbers = rng.uniform(low, high, ROWS)
            columns[channel.name] = numbers.astype(int) if channel.kind == "integer" else numbers
        write = pacsv.write_csv if path.suffix == ".csv" else pq.write_table
        write(pa.table(columns), path)
    return tmp_path


@pytest.mark.parametrize("name", DATASET_NAMES)
def test_windows_of_24_steps_begin_at_every_row(root, name):
    panel, info = load_windows(name, root)
    assert panel.values.shape == (ROWS - 24, 24, len(DATASETS[name].channels))
    assert panel.num_units == ROWS - 24
    np.testing.assert_array_equal(panel.values[1:, 0], panel.values[:-1, 1])
    assert info.sha256 == hashlib.sha256(info.path.read_bytes()).hexdigest()
    assert (info.name, info.stand_in) == (name, False)


@pytest.mark.parametrize("name", DATASET_NAMES)
def test_windows_protect_no_person_and_say_so(name):
    schema = windows_schema(name)
    assert not schema.unit.protects_a_person
    assert schema.unit.sentence().startswith("No person is protected")


def test_the_folder_may_come_from_the_environment(root, monkeypatch):
    monkeypatch.setenv("UNDERSTUDY_DATA", str(root))
    assert load_windows("stock")[0].num_steps == 24


@pytest.mark.parametrize("folder", [None, "nowhere"])
def test_what_is_missing_is_named_with_its_publisher(folder):
    with pytest.raises(MissingData, match=r"energy.*UCI") as caught:
        load_windows("energy", folder)
    assert caught.value.exit_code == 3


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(InputError, match="stock"):
        load_windows("stocks", "anywhere")
