"""`understudy impute`, `forecast` and `pretrain dit`: a release in, a table without gaps or a look ahead out."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.e2e.commands import run
from tests.unit.synthesizers.dit.small import SMALL, waves
from understudy.data import Panel, Schema, read_panel, simulate_households, write_panel
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.independent import Independent
from understudy.synthesizers.packs import Pack


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release, and a table of other series with gaps."""
    place, guarantee = tmp_path_factory.mktemp("complete"), Guarantee(1.0, 1e-6)
    SMALL.fit(waves(200), Ledger.in_memory(guarantee)).save(place / "release")
    Independent().fit(waves(200), Ledger.in_memory(guarantee)).save(place / "control")
    write_panel(_gappy(), place / "others.parquet")
    return place


def _gappy() -> Panel:
    panel = waves(15, seed=4)
    values = np.array(panel.values)
    values[:, 5:9] = np.nan
    values[3] = np.nan
    return panel.with_values(values)


def test_gaps_are_filled_and_the_file_says_what_it_is(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "whole.parquet"
    made = run("impute", folder / "release", "--data", folder / "others.parquet", "--out", out, "--seed", "1", "--json")
    assert made.code == 0, made.err
    schema = Schema.load(folder / "release" / "schema.toml")
    filled = read_panel(out, replace(schema, ignore=("load_low", "load_high")), allow_few_units=True)
    given, known = _gappy(), _gappy().observed
    assert np.array_equal(filled.values[known], given.values[known])
    assert not np.isnan(filled.values).any()
    assert made.facts["internal"] is False
    assert "as private as the table" in made.facts["says"]
    assert json.loads((tmp_path / "whole.parquet.about.json").read_text())["level"] == 0.9


def test_the_table_may_be_in_a_database(folder: Path, tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(tmp_path / "others.duckdb") as connection:
        connection.execute(f"create table others as select * from '{folder}/others.parquet'")
    made = []
    for place, data in enumerate((folder / "others.parquet", f"duckdb:{tmp_path}/others.duckdb?table=others")):
        outcome = run("impute", folder / "release", "--data", data, "--out", tmp_path / f"{place}.csv", "--seed", "1")
        assert outcome.code == 0, outcome.err
        made.append((tmp_path / f"{place}.csv").read_bytes())
    assert made[0] == made[1]


def test_series_that_were_learned_from_are_marked_internal(folder: Path, tmp_path: Path) -> None:
    arguments = (
        "--data",
        folder / "others.parquet",
        "--out",
        tmp_path / "f.csv",
        "--horizon",
        "30",
        "--training-series",
    )
    made = run("forecast", folder / "release", *arguments)
    assert made.code == 0, made.err
    assert "Internal" in made.out
    assert json.loads((tmp_path / "f.csv.about.json").read_text())["internal"] is True
    header, *rows = (tmp_path / "f.csv").read_text().splitlines()
    assert header.replace('"', "") == "home,when,load_q5,load_q50,load_q95"
    assert len(rows) == 15 * 30
    assert "2024-01-02 00:00:00" in rows[0]


def test_bad_input_is_refused_and_nothing_is_written(folder: Path, tmp_path: Path) -> None:
    data, out = folder / "others.parquet", tmp_path / "o.csv"
    refusals = [
        (("impute", folder / "control", "--data", data, "--out", out), 2, "fills no gaps"),
        (("impute", folder / "release", "--data", tmp_path / "none.csv", "--out", out), 3, "nothing is at"),
        (("impute", folder / "release", "--data", data, "--out", data), 2, "exists already"),
        (
            ("impute", folder / "release", "--data", data, "--out", folder / "release" / "o.csv"),
            2,
            "inside the release",
        ),
        (("impute", folder / "release", "--data", data, "--out", out, "--draws", "5"), 2, "at least 19 draws"),
        (("forecast", folder / "release", "--data", data, "--out", out, "--horizon", "0"), 2, "at least 1 step"),
        (("forecast", folder / "release", "--data", data, "--out", out, "--horizon", "-2"), 2, "at least 1 step"),
    ]
    for arguments, code, words in refusals:
        outcome = run(*arguments)
        assert (outcome.code, words in outcome.err) == (code, True), outcome.err
    assert not out.exists()
    assert not (tmp_path / "o.csv.about.json").exists()


def test_a_pack_is_trained_on_public_series(tmp_path: Path) -> None:
    write_panel(waves(30), tmp_path / "public.parquet")
    waves(30).schema.save(tmp_path / "schema.toml")
    out = tmp_path / "pack.safetensors"
    public = ("--public", tmp_path / "public.parquet", "--schema", tmp_path / "schema.toml")
    made = run("pretrain", "dit", *public, "--bounds-only", "--iterations", "2", "--out", out, "--json")
    assert made.code == 0, made.err
    pack = Pack.load(out, "dit")
    assert made.facts["sha256"] == pack.sha256
    assert made.facts["command"] == (
        "understudy pretrain dit --out pack.safetensors --public public.parquet --schema schema.toml --bounds-only "
        "--preset default --iterations 2 --seed 0"
    )
    assert sorted(pack.provenance["public"]) == ["public.parquet", "schema.toml"]
    sizes = ("--preset", "paper", "--width", "16", "--num-heads", "2", "--depth", "1", "--iterations", "1")
    assert run("pretrain", "dit", *public, *sizes, "--out", tmp_path / "small.safetensors").code == 0
    shape = Pack.load(tmp_path / "small.safetensors", "dit").shape
    assert [shape[name] for name in ("width", "num_heads", "depth", "patch")] == [16, 2, 1, 1]
    refused = run("synth", tmp_path / "public.parquet", "--schema", tmp_path / "schema.toml", "--epsilon", "1",
                  "--method", "spectral", "--pack", out, "--out", tmp_path / "r")  # fmt: skip
    assert refused.code == 2


def test_public_context_of_the_steps_ahead_changes_a_forecast(tmp_path: Path) -> None:
    """Two tables of context for the same steps, then none; and a release that knows no context refuses one."""
    homes = replace(simulate_households(120), private=True)
    network = replace(SMALL.recipe.network, tightness="none")
    tuned = replace(SMALL, recipe=replace(SMALL.recipe, network=network, clipping_norm=1000.0))
    guarantee = Guarantee(1e4, 1e-6)
    tuned.fit(homes, Ledger.in_memory(guarantee), guarantee=guarantee).save(tmp_path / "release")
    write_panel(simulate_households(3, seed=5), tmp_path / "others.parquet")
    end = datetime.fromisoformat(homes.schema.time.start or "") + timedelta(hours=homes.num_steps)
    asked = ["forecast", tmp_path / "release", "--data", tmp_path / "others.parquet", "--horizon", "6", "--seed", "1"]
    tables = {}
    for name, (low, high) in (("cold", (0.0, 0.1)), ("hot", (0.9, 1.0))):
        rows = {
            column.name: column.bounds[0] + np.ptp(column.bounds) * np.linspace(low, high, 6)
            for column in homes.schema.context
        }
        when = [end + timedelta(hours=hour) for hour in range(6)]
        pq.write_table(pa.table({str(homes.schema.time.column): when, **rows}), tmp_path / f"{name}.parquet")
        out = tmp_path / f"{name}-ahead.parquet"
        made = run(*asked, "--ahead", tmp_path / f"{name}.parquet", "--out", out)
        assert made.code == 0, made.err
        tables[name] = pq.read_table(out)
    unsaid = run(*asked, "--out", tmp_path / "unsaid.parquet")
    assert unsaid.code == 0, unsaid.err
    assert tables["cold"].column_names == tables["hot"].column_names
    assert not tables["cold"].equals(tables["hot"])
    assert not tables["hot"].equals(pq.read_table(tmp_path / "unsaid.parquet"))
    short = run(*asked[:-4], "--horizon", "7", "--ahead", tmp_path / "hot.parquet", "--out", tmp_path / "short.parquet")
    assert short.code == 2
    assert not (tmp_path / "short.parquet").exists()
