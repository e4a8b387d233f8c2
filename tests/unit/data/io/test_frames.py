"""Frames of every library come in and go out in the form they came; no library is imported to read them."""

import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from understudy import Ledger, NoiseSource, Release, Spectral
from understudy.data import Schema, read_panel
from understudy.errors import SchemaError

UNITS, STEPS = 110, 6
FACTS = {
    "population": UNITS,
    "bounds": {"kwh": (0, 20), "rooms": (1, 9)},
    "categories": {"tariff": ["day", "night"]},
    "frequency": "1h",
    "start": "2024-03-30T22:00:00",  # the clocks change in these hours
    "steps": STEPS,
    "budget": 3.0,
}


def flat(zone: str | None = "Europe/Paris") -> pd.DataFrame:
    rng = np.random.default_rng(0)
    times = pd.date_range("2024-03-30T22:00", periods=STEPS, freq="h", tz=zone)
    rows = UNITS * STEPS
    return pd.DataFrame(
        {
            "meter": np.repeat([f"m{unit:03d}" for unit in range(UNITS)], STEPS),
            "when": list(times) * UNITS,
            "kwh": pd.array(np.round(rng.uniform(0, 20, rows), 2), dtype="Float64"),
            "on": pd.array(rng.random(rows) < 0.5, dtype="boolean"),
            "rooms": pd.array(np.repeat(rng.integers(1, 10, UNITS), STEPS), dtype="Int16"),
            "tariff": pd.Categorical(np.repeat(rng.choice(["day", "night"], UNITS), STEPS), ["day", "night"]),
        }
    )


def drafted(frame: object) -> Schema:
    return Schema.draft(frame, unit="meter", time="when", static=("rooms",))


FORMS = {
    "columns": lambda frame: frame,
    "several levels": lambda frame: frame.set_index(["meter", "when"]),
    "times as index": lambda frame: frame.set_index("when"),
    "units as index": lambda frame: frame.set_index("meter"),
    "row numbers with holes": lambda frame: frame.set_index(np.arange(len(frame)) * 3),
    "objects of Python": lambda frame: frame.astype({"meter": object, "tariff": object}),
    "float32 and int8": lambda frame: frame.astype({"kwh": "float32", "rooms": "int8", "on": bool}),
    "ordered categories": lambda frame: frame.assign(tariff=frame["tariff"].cat.as_ordered()),
    "types of Arrow": lambda frame: frame.astype({"tariff": str}).convert_dtypes(dtype_backend="pyarrow"),
    "float16": lambda frame: frame.assign(kwh=frame["kwh"].round().astype("float16")),
    "nanoseconds": lambda frame: frame.astype({"when": "datetime64[ns, Europe/Paris]"}),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_pandas_frame_comes_back_as_it_came(form: str) -> None:
    frame = FORMS[form](flat())
    schema = drafted(frame).with_facts(**FACTS)
    assert schema.time.zone == "Europe/Paris"
    back = read_panel(frame, Schema.loads(schema.dumps())).to_pandas()
    if form == "row numbers with holes":
        frame = frame.reset_index(drop=True)
    pd.testing.assert_frame_equal(back, frame, check_freq=False)


def test_an_index_of_times_without_a_name_is_a_column_called_index() -> None:
    frame = flat().set_index("when").rename_axis(None)
    schema = Schema.draft(frame, unit="meter", static=("rooms",)).with_facts(**FACTS)
    assert schema.time.column == "index"
    pd.testing.assert_frame_equal(read_panel(frame, schema).to_pandas(), frame, check_freq=False)


def test_whole_numbers_may_be_categories_of_pandas() -> None:
    frame = flat().assign(tariff=lambda frame: (frame["tariff"] == "day").astype("int64").astype("category"))
    schema = drafted(frame).with_facts(**{**FACTS, "categories": {"tariff": [0, 1]}})
    pd.testing.assert_frame_equal(read_panel(frame, schema).to_pandas(), frame, check_freq=False)


@pytest.mark.parametrize(("frequency", "spelled"), [("h", "%Y-%m-%dT%H:%M:%S"), ("D", "%Y-%m-%d")])
def test_times_that_are_text_come_back_as_they_were_spelled(frequency: str, spelled: str) -> None:
    times = pd.date_range("2024-03-30", periods=STEPS, freq=frequency).strftime(spelled)
    frame = flat().assign(when=list(times) * UNITS)
    facts = {**FACTS, "frequency": f"1{frequency.lower()}", "start": "2024-03-30"}
    back = read_panel(frame, drafted(frame).with_facts(**facts)).to_pandas()
    pd.testing.assert_frame_equal(back, frame)


CONTAINERS = {
    "polars": pl.DataFrame,
    "lazy polars": lambda frame: pl.DataFrame(frame).lazy(),
    "Arrow": lambda frame: pl.DataFrame(frame).to_arrow(),
    "dataset": lambda frame: ds.dataset(pl.DataFrame(frame).to_arrow()),
    "DuckDB": lambda frame: duckdb.sql("select * from frame"),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_is_drafted_and_read_alike(container: str) -> None:
    plain = flat(None)
    frame = CONTAINERS[container](plain)
    schema = drafted(frame).with_facts(**FACTS)
    panel, same = read_panel(frame, schema), read_panel(plain, drafted(plain).with_facts(**FACTS))
    assert np.array_equal(panel.values, same.values, equal_nan=True)
    assert panel.static.tolist() == same.static.tolist()
    assert panel.to_polars().shape == plain.shape
    assert pa.table(panel).equals(panel.to_arrow())


def test_polars_types_come_back_as_they_came() -> None:
    frame = pl.DataFrame(flat())
    assert read_panel(frame, drafted(frame).with_facts(**FACTS)).to_polars().schema == frame.schema


def test_an_array_is_drafted_by_its_axes() -> None:
    array = np.random.default_rng(0).random((UNITS, STEPS, 2))
    schema = Schema.draft(array, name="homes")
    assert [fact.key for fact in schema.missing_facts()][:2] == ["population", "time.frequency"]
    bounds = {"channel_0": (0, 1), "channel_1": (0, 1)}
    schema = schema.with_facts(population=UNITS, frequency="1h", bounds=bounds)
    assert read_panel(array, schema).num_series == UNITS


def test_a_draft_lists_what_a_person_has_to_say_and_is_of_no_use_before() -> None:
    schema = drafted(flat())
    keys = ["population", "time.frequency", "time.start", "time.steps", "kwh.low", "rooms.low", "tariff.categories"]
    assert [fact.key for fact in schema.missing_facts()] == [*keys, "budget"]
    assert 'with_facts(frequency="1h")' in str(schema.missing_facts()[1])
    with pytest.raises(SchemaError, match="population=10_000") as caught:
        read_panel(flat(), schema)
    assert caught.value.key == "population"
    for left in FACTS.keys() - {"budget"}:
        almost = schema.with_facts(**{key: fact for key, fact in FACTS.items() if key != left})
        with pytest.raises(SchemaError):
            almost.require_declared()
    complete = schema.with_facts(**FACTS)
    complete.require_declared()
    assert complete.missing_facts() == ()
    assert schema.undecided, "a draft is frozen"


def test_facts_may_come_one_after_the_other() -> None:
    schema = drafted(flat())
    for key, fact in FACTS.items():
        schema = schema.with_facts(**{key: fact})
    assert schema == drafted(flat()).with_facts(**FACTS)


def test_columns_without_a_type_are_what_the_facts_say() -> None:
    frame = flat(None).astype({"kwh": object, "tariff": object, "on": object})
    schema = drafted(frame)
    assert {"kwh.kind", "tariff.kind", "on.kind"} <= {fact.key for fact in schema.missing_facts()}
    schema = schema.with_facts(**FACTS, kinds={"on": "binary"})
    kinds = {column.name: column.kind for column in (*schema.channels, *schema.static)}
    assert kinds == {"kwh": "continuous", "on": "binary", "rooms": "integer", "tariff": "categorical"}
    assert read_panel(frame, schema).num_units == UNITS


def test_a_draft_does_not_depend_on_the_rows() -> None:
    for container in (*FORMS.values(), *CONTAINERS.values()):
        frame = container(flat())
        empty = frame.head(0) if isinstance(frame, pd.DataFrame) else container(flat().head(0))
        assert drafted(frame).dumps() == drafted(empty).dumps()


def test_no_library_of_frames_is_needed_to_read_an_array_or_an_arrow_table() -> None:
    code = (
        "import sys, numpy as np\n"
        "class Absent:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name.partition('.')[0] in ('pandas', 'polars', 'duckdb'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from understudy.data import Schema, read_panel\n"
        "schema = Schema.draft(np.zeros((100, 4, 1))).with_facts(population=100, frequency='1h', "
        "bounds={'channel_0': (0, 1)})\n"
        "read_panel(np.zeros((100, 4, 1)), schema).to_arrow()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("form", ["several levels", "times as index"])
def test_samples_of_a_release_come_in_the_form_of_the_frame_that_was_read(form: str, tmp_path: Path) -> None:
    frame = FORMS[form](flat())
    schema = drafted(frame).with_facts(**FACTS)
    release = Spectral().fit(read_panel(frame, schema), Ledger.scratch(), noise=NoiseSource.seeded(0))
    release.save(tmp_path / "release")
    for made in (release, Release.load(tmp_path / "release")):
        sample = made.sample(20).to_pandas()
        assert sample.dtypes.equals(frame.dtypes)
        assert sample.index.names == frame.index.names
        assert str(sample.reset_index()["when"].dtype) == "datetime64[us, Europe/Paris]"
