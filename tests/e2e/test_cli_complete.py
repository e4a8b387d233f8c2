"""`understudy impute`, `forecast` and `pretrain dit`: a release in, a table without gaps or a look ahead out."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.e2e.commands import run
from tests.unit.synthesizers.dit.small import SMALL, waves
from understudy.data import Panel, Schema, read_panel, write_panel
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.frame.packs import Pack
from understudy.synthesizers.independent import Independent


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
        "understudy pretrain dit --public public.parquet --schema schema.toml --iterations 2 --seed 0 --bounds-only "
        "--out pack.safetensors"
    )
    assert sorted(pack.provenance["public"]) == ["public.parquet", "schema.toml"]
    refused = run("synth", tmp_path / "public.parquet", "--schema", tmp_path / "schema.toml", "--epsilon", "1",
                  "--method", "spectral", "--pack", out, "--out", tmp_path / "r")  # fmt: skip
    assert refused.code == 2
