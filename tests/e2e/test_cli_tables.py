"""Commands that read and write tables in partitions: folders, stores, files larger than memory."""

import stat
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.e2e.commands import MAGIC_PERSON, NUM_PERSONS, STEPS, Clinic, Rows, make_clinic, run
from tests.twins.view import view
from understudy.data import Schema, open_table, read_panel, write_panel
from understudy.privacy.ledger import Ledger


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    return make_clinic(tmp_path / "clinic")


def partitioned(clinic: Clinic, *more: str) -> Path:
    out = clinic.folder / "parts"
    outcome = run("data", "partition", clinic.table, "--by-unit", "--out", out, "--partitions", "3", *more)
    assert outcome.code == 0, outcome.err
    return out


def of_folder(clinic: Clinic, folder: Path, *more: str) -> list[str]:
    return ["synth", str(folder), *clinic.synth(*more)[2:]]


def shuffled(rows: Rows) -> Rows:
    order = np.random.default_rng(0).permutation(len(rows) - 1)
    return [rows[0], *(rows[1 + row] for row in order)]


def test_partition_writes_a_private_folder_that_holds_the_table(clinic: Clinic) -> None:
    schema = Schema.load(clinic.schema)
    before = read_panel(clinic.table, schema)
    clinic.edit_rows(shuffled)
    folder = partitioned(clinic)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    after = open_table(folder, schema).read()
    order = np.argsort(after.unit_ids.astype(str))
    assert sorted(before.unit_ids) == after.unit_ids[order].tolist()
    assert np.array_equal(before.values[np.argsort(before.unit_ids.astype(str))], after.values[order])


def test_partition_says_what_it_wrote_and_no_more(clinic: Clinic) -> None:
    outcome = run("data", "partition", clinic.table, "--by-unit", "--out", clinic.folder / "parts", "--json")
    assert outcome.facts == {"folder": str(clinic.folder / "parts"), "schema": "clinic"}
    assert MAGIC_PERSON not in outcome.out + outcome.err
    assert run("data", "partition", clinic.table, "--by-unit", "--out", clinic.folder / "parts").code == 2
    assert run("data", "partition", clinic.table, "--out", clinic.folder / "others").code == 2
    assert (
        run("data", "partition", clinic.folder / "none.csv", "--by-unit", "--out", clinic.folder / "others").code == 3
    )
    clinic.schema.unlink()
    assert run("data", "partition", clinic.table, "--by-unit", "--out", clinic.folder / "others").code == 3
    assert not (clinic.folder / "others").exists()


def test_synth_of_a_folder_and_of_a_store_is_synth_of_its_table(clinic: Clinic) -> None:
    folder = partitioned(clinic)
    assert run(*of_folder(clinic, folder, "--seed", "3")).code == 0
    assert run(*of_folder(clinic, f"file://{folder}", "--seed", "3", "--out", clinic.folder / "other")).code == 0
    one, other = (pq.read_table(clinic.folder / name / "synthetic.parquet") for name in ("release", "other"))
    assert one.equals(other)
    assert len(Ledger.open(clinic.ledger).entries()) == 2


def test_public_context_may_come_from_a_database_or_a_store(tmp_path: Path) -> None:
    import duckdb

    homes = tmp_path / "homes"
    assert run("data", "make", "households", "--n", "120", "--out", homes).code == 0
    with duckdb.connect(homes / "weather.duckdb") as connection:
        connection.execute(f"create table weather as select * from '{homes}/context.parquet'")
    database = f"duckdb:{homes}/weather.duckdb?table="
    given = ["synth", homes / "households.parquet", "--schema", homes / "schema.toml", "--epsilon", "0.5"]
    for place, context in enumerate((f"file://{homes}/context.parquet", f"{database}weather")):
        outcome = run(*given, "--context", context, "--out", tmp_path / str(place))
        assert outcome.code == 0, outcome.err
    refused = run(*given, "--context", f"{database}nothing", "--out", tmp_path / "refused")
    assert refused.code == 2
    assert len(Ledger.open(homes / "households.ledger").entries()) == 2, "nothing was charged for what is not there"


def test_a_large_file_is_opened_in_partitions(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.data.table._LARGE_BYTES", 1)
    monkeypatch.setattr("understudy.data.table.CHUNK_VALUES", 20)
    opened = []
    monkeypatch.setattr(
        "understudy.data.table.open_table", lambda *a, **k: opened.append(open_table(*a, **k)) or opened[-1]
    )
    made = clinic.folder / "one.parquet"
    write_panel(read_panel(clinic.table, Schema.load(clinic.schema)), made)
    pq.write_table(pq.read_table(made), made, row_group_size=50)  # cuts units in two
    assert run(*of_folder(clinic, made)).code == 0
    assert len(opened[0].partitions) > 1


def test_a_unit_in_two_files_is_refused_before_the_charge(clinic: Clinic) -> None:
    folder = clinic.folder / "parts"
    folder.mkdir()
    rows = clinic.table.read_text().splitlines(keepends=True)
    (folder / "a.csv").write_text("".join(rows[:400]))
    (folder / "b.csv").write_text("".join([rows[0], *rows[400:]]))
    outcome = run(*of_folder(clinic, folder))
    assert outcome.code == 2
    assert "understudy data partition FILE --by-unit --out FOLDER" in outcome.err
    assert not clinic.ledger.exists()
    assert (
        run("data", "partition", folder, "--by-unit", "--schema", clinic.schema, "--out", clinic.folder / "c").code == 0
    )
    assert run(*of_folder(clinic, clinic.folder / "c")).code == 0


def test_facts_are_bought_from_a_folder(clinic: Clinic) -> None:
    clinic.edit_schema('categories = ["north", "south"]\n', "")
    folder = partitioned(clinic, "--schema", str(clinic.schema))
    order = ("--epsilon", "1", "--schema", clinic.schema, "--out", clinic.folder / "bought.toml")
    outcome = run("buy", "categories", folder, "--column", "ward", *order, "--json")
    assert outcome.code == 0, outcome.err
    assert sorted(outcome.facts["bought"]["ward"]) == ["north", "south"]


def test_evaluate_reads_a_stated_sample_of_a_folder(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.api.scoring.MAX_UNITS", 60)
    folder = partitioned(clinic)
    assert run(*of_folder(clinic, folder, "--holdout", "0.4", "--allow-few-units", "a test")).code == 0
    held_out = clinic.folder / "release.holdout.csv"
    for more in ((), ("--holdout", held_out)):
        outcome = run("evaluate", clinic.release, "--real", folder, *more, "--suite", "general", "--json")
        assert outcome.code == 0, outcome.err
        assert any("at most 60 of its units" in note for note in outcome.facts["notes"])
    drawn = f"{clinic.folder}/drawn/"
    assert run("sample", clinic.release, "--n", "90", "--out", drawn, "--series-per-file", "40").code == 0
    candidate = ("evaluate", drawn, "--real", folder, "--schema", clinic.schema, "--suite", "general")
    assert run(*candidate).code == 0


def test_sample_writes_the_same_folder_with_any_number_of_workers(clinic: Clinic) -> None:
    assert run(*clinic.synth()).code == 0
    made = {}
    for workers in ("1", "2"):
        out = f"{clinic.folder}/of {workers}/"
        options = ("--n", "100", "--series-per-file", "30", "--seed", "5", "--workers", workers, "--json")
        outcome = run("sample", clinic.release, "--out", out, *options)
        assert outcome.code == 0, outcome.err
        assert outcome.facts["series"] == 100
        made[workers] = [path.read_bytes() for path in sorted(Path(out).iterdir())]
    assert made["1"] == made["2"]
    assert len(made["1"]) == 4
    assert len(set(made["1"])) == 4
    read = open_table(Path(out), Schema.load(clinic.schema)).read()
    assert read.num_units == 100
    assert read.values.shape[1] == STEPS
    assert read.unit_ids[-1] == "synthetic-000100"


def test_workers_need_a_folder(clinic: Clinic) -> None:
    assert run(*clinic.synth()).code == 0
    assert run("sample", clinic.release, "--out", clinic.folder / "one.csv", "--workers", "2").code == 2
    assert run("sample", clinic.release, "--out", f"{clinic.folder}/some/", "--workers", "none").code == 2
    assert not (clinic.folder / "some").exists()


COMMANDS = {
    "data partition": ("data", "partition", "clinic.csv", "--by-unit", "--out", "parts"),
    "data partition for a program": ("data", "partition", "clinic.csv", "--by-unit", "--out", "parts", "--json"),
    "synth": ("synth", "given", "--schema", "schema.toml", "--epsilon", "0.5", "--out", "release"),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("spoilt", [False, True])
def test_one_person_more_changes_nothing_but_numbers_of(name: str, spoilt: bool, tmp_path: Path) -> None:
    views = []
    for persons in (NUM_PERSONS, NUM_PERSONS + 1):
        made = make_clinic(tmp_path / str(persons), persons)
        made.edit_schema(f"population = {persons}", f"population = {NUM_PERSONS}")
        if spoilt:
            made.edit_rows(lambda rows: [*rows[:-1], [*rows[-1][:2], "not a number", rows[-1][3]]])
        if name == "synth":
            (made.folder / "given").mkdir()
            rows = made.table.read_text().splitlines(keepends=True)
            (made.folder / "given" / "a.csv").write_text("".join(rows[: 1 + 50 * STEPS]))
            (made.folder / "given" / "b.csv").write_text("".join([rows[0], *rows[1 + 50 * STEPS :]]))
        views.append(view(made.folder, COMMANDS[name]))
        assert views[-1].exit_code == (2 if spoilt else 0), views[-1].complained
    told = [name for name in views[0].differences(views[1]) if not name.startswith("files")]  # those hold the person
    assert told == []
    assert views[0].files.keys() == views[1].files.keys()
