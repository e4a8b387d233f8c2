"""What made a stranger stop: files and declarations that were taken silently, or refused without a way on."""

import tomllib
from pathlib import Path

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from tests.e2e.commands import Clinic, charges, make_clinic, run

ONE_SERIES = """\
version = 1
name = "meter"
population = 1

[unit]
kind = "event"
{column}

[time]
column = "when"
frequency = "1h"
start = "2024-01-01T00:00:00"
steps = 120

[[channels]]
kind = "continuous"
name = "load"
low = 0
high = 5

[budget]
epsilon = 8.0
max_runs = 8
"""


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    return make_clinic(tmp_path / "clinic")


def test_a_time_dtype_that_can_not_hold_the_grid_is_refused_before_the_charge(clinic: Clinic) -> None:
    clinic.edit_schema('frequency = "1h"', 'frequency = "20ms"')
    clinic.edit_schema('steps = 6\ndtype = "string"', 'steps = 6\ndtype = "timestamp[s]"')
    for command in (["plan", clinic.schema], clinic.synth("--method", "independent")):
        outcome = run(*command)
        assert outcome.code == 2
        assert "time.dtype" in outcome.err
        assert "timestamp[ms]" in outcome.err
    assert charges(clinic.ledger) == []


def test_a_release_has_as_many_times_as_steps_where_no_dtype_is_declared(clinic: Clinic) -> None:
    clinic.edit_schema('frequency = "1h"', 'frequency = "20ms"')
    clinic.edit_schema('steps = 6\ndtype = "string"', "steps = 6")
    hours = {f"0{step}:00:00": f"00:00:00.{step * 20:03d}" for step in range(6)}

    def sooner(rows: list[list[str]]) -> list[list[str]]:
        return [
            rows[0],
            *([cell.replace(cell[11:], hours.get(cell[11:], cell[11:])) for cell in row] for row in rows[1:]),
        ]

    clinic.edit_rows(sooner)
    outcome = run(*clinic.synth("--method", "independent"))
    assert outcome.code == 0, outcome.err
    assert len(pq.read_table(clinic.release / "synthetic.parquet")["when"].unique()) == 6


def one_meter(folder: Path, *, named: bool) -> tuple[Path, Path]:
    values = np.random.default_rng(0).uniform(0, 5, 120).round(2)
    hours = np.datetime64("2024-01-01T00:00:00") + np.arange(120) * np.timedelta64(1, "h")
    rows = [f"{'m1,' * named}{hour},{value}" for hour, value in zip(hours, values, strict=True)]
    (folder / "meter.csv").write_text("\n".join([f"{'meter,' * named}when,load", *rows]) + "\n")
    (folder / "meter.toml").write_text(ONE_SERIES.format(column='column = "meter"' if named else ""))
    return folder / "meter.csv", folder / "meter.toml"


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    ("method", "more"), [("spectral", []), ("dit", ["--set", "recipe.iterations=2"]), ("independent", [])]
)
def test_one_series_is_protected_by_events_from_table_to_verified_release(
    method: str, more: list[str], named: bool, tmp_path: Path
) -> None:
    table, schema = one_meter(tmp_path, named=named)
    release = tmp_path / "release"
    window = ["--window-steps", "24", "--method", method, *more]
    outcome = run("synth", table, "--schema", schema, "--epsilon", "2", "--out", release, "--n", "3", *window)
    assert outcome.code == 0, outcome.err
    told = run("verify", release, "--json")
    assert told.code == 0, told.err
    assert "Any 1 consecutive steps" in run("certificate", release).out
    assert pq.read_table(release / "synthetic.parquet").num_rows == 3 * 24


def test_one_series_of_people_is_still_refused_and_told_about_events(tmp_path: Path) -> None:
    table, schema = one_meter(tmp_path, named=True)
    schema.write_text(schema.read_text().replace('"event"', '"entity"'))
    outcome = run("synth", table, "--schema", schema, "--epsilon", "2", "--out", tmp_path / "release")
    assert outcome.code == 2
    assert "nobody can be hidden" in outcome.err
    assert "unit.kind = 'event'" in outcome.err
    assert charges(tmp_path / "meter.ledger") == []


def test_fewer_stretches_than_a_crowd_are_refused(tmp_path: Path) -> None:
    table, schema = one_meter(tmp_path, named=True)
    schema.write_text(schema.read_text().replace('kind = "event"', 'kind = "event"\nevent_steps = 2'))
    outcome = run("synth", table, "--schema", schema, "--epsilon", "2", "--out", tmp_path / "release")
    assert outcome.code == 2
    assert "stretches" in outcome.err


def test_init_writes_no_ids_from_a_table_with_a_column_per_person(tmp_path: Path) -> None:
    file, draft = tmp_path / "wide.csv", tmp_path / "wide.schema.toml"
    file.write_text("time," + ",".join(f"person-Zx{place}" for place in range(20)) + "\n")
    outcome = run("init", file)
    assert outcome.code == 2
    assert "--columns-are-public" in outcome.err
    assert "Zx" not in outcome.err + outcome.out
    assert "20" not in outcome.err.replace(str(file), "")
    assert not draft.exists()
    assert run("init", file, "--columns-are-public").code == 0
    assert "Zx7" in draft.read_text()


def test_init_looks_at_rows_only_where_that_is_allowed(clinic: Clinic) -> None:
    out = [clinic.folder / "closed.toml", clinic.folder / "peeked.toml"]
    assert "no row was read" in run("init", clinic.table, "--out", out[0]).out
    outcome = run("init", clinic.table, "--out", out[1], "--peek", "--json")
    assert outcome.facts["peeked"] is True
    closed, peeked = (tomllib.loads(path.read_text()) for path in out)
    assert all("kind" not in table for table in closed["channels"])
    assert {table["name"]: table["kind"] for table in peeked["channels"]} == {"pulse": "continuous"}
    assert out[1].read_text().startswith("# Peeked:")


def test_a_file_in_another_format_is_drafted_completed_and_released(clinic: Clinic) -> None:
    columns = pacsv.read_csv(clinic.table).to_pydict()
    rows = [";".join(columns), *(";".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    foreign = clinic.folder / "foreign.csv"
    foreign.write_bytes("\n".join(rows).replace(".", ",").replace("north", "nörd").encode("latin-1"))
    form = ["--delimiter", ";", "--decimal", ",", "--encoding", "latin-1", "--peek"]
    draft = clinic.folder / "foreign.toml"
    assert "--delimiter" in run("init", foreign, "--encoding", "latin-1").err
    assert run("init", foreign, *form, "--out", draft).code == 0
    assert 'encoding = "latin-1"' in draft.read_text()
    clinic.edit_schema("north", "nörd")
    clinic.schema.write_text(
        clinic.schema.read_text() + '\n[csv]\ndelimiter = ";"\ndecimal = ","\nencoding = "latin-1"\n'
    )
    outcome = run(*clinic.synth("--method", "independent")[:1], foreign, *clinic.synth("--method", "independent")[2:])
    assert outcome.code == 0, outcome.err
