"""`--method pub2priv`: windows with a context of their own, and public context for what is drawn."""

from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from tests.e2e.commands import run

HOMES, HOURS, WINDOW = 110, 24, 8
SCHEMA = f"""\
version = 1
name = "homes"
population = {HOMES}

[unit]
column = "home"
dtype = "int64"

[time]
column = "when"
frequency = "1h"
start = "2024-01-01T00:00:00"
steps = {HOURS}
dtype = "string"

[[channels]]
kind = "continuous"
name = "load"
low = 0
high = 10

[[context]]
kind = "continuous"
name = "temperature"
low = -30
high = 40

[budget]
epsilon = 4.0
max_runs = 2
"""


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("homes"), np.random.default_rng(0)
    (folder / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    hours = [f"2024-01-{1 + hour // 24:02d}T{hour % 24:02d}:00:00" for hour in range(3 * HOURS)]
    degrees = 5 + 8 * np.sin(np.arange(3 * HOURS) / 5)
    public = [f"{when},{value:.3f}" for when, value in zip(hours, degrees, strict=True)]
    (folder / "weather.csv").write_text("\n".join(["when,temperature", *public]) + "\n", encoding="utf-8")
    rows = ["home,when,load"]
    for home in range(HOMES):
        load = np.clip(4 - 0.2 * degrees[:HOURS] + rng.standard_normal(HOURS), 0, 10)
        rows += [f"{home},{when},{value:.3f}" for when, value in zip(hours[:HOURS], load, strict=True)]
    (folder / "homes.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def test_windows_are_learned_and_drawn_for_stretches_of_a_public_table(homes: Path, tmp_path: Path) -> None:
    weather, out = homes / "weather.csv", tmp_path / "release"
    made = run(
        "synth", homes / "homes.csv", "--schema", homes / "schema.toml", "--context", weather, "--method", "pub2priv",
        "--window-steps", WINDOW, "--epsilon", 1, "--n", 30, "--out", out, "--json",
    )  # fmt: skip
    assert made.code == 0, made.err
    assert (out / "synthetic.parquet").is_file()
    drawn = run(
        "sample", out, "--context", weather, "--n", 20, "--seed", 1, "--out", tmp_path / "more.parquet", "--json"
    )
    assert drawn.code == 0, drawn.err
    assert pyarrow.parquet.read_table(tmp_path / "more.parquet").num_rows == 20 * WINDOW
    assert drawn.facts["remarks"] == []
    known = np.array(pyarrow.csv.read_csv(weather)["when"], dtype="datetime64[s]")
    times = np.array(pyarrow.parquet.read_table(tmp_path / "more.parquet")["when"], dtype="datetime64[s]")
    assert len(set(times[::WINDOW])) > 5  # each series has the times of the stretch that it was drawn for
    assert np.isin(times, known).all()
    judged = run(
        "evaluate", out, "--real", homes / "homes.csv", "--schema", homes / "schema.toml", "--context", weather,
        "--suite", "conditional", "--json",
    )  # fmt: skip
    assert judged.code == 0, judged.err
    blind = run("evaluate", out, "--real", homes / "homes.csv", "--schema", homes / "schema.toml", "--json")
    assert blind.code == 2
    assert "--context" in blind.err
    refused = run("sample", out, "--n", 20, "--out", tmp_path / "none.parquet")
    assert refused.code == 2
    assert "context: public context to follow is expected" in refused.err


def test_context_that_does_not_fit_is_refused(homes: Path, tmp_path: Path) -> None:
    daily = tmp_path / "daily.csv"
    daily.write_text("when,temperature\n2024-01-01T00:00:00,3\n2024-01-02T00:00:00,4\n", encoding="utf-8")
    for context in (daily, None):
        arguments = ("--context", context) if context else ()
        outcome = run(
            "synth", homes / "homes.csv", "--schema", homes / "schema.toml", *arguments, "--method", "pub2priv",
            "--epsilon", 1, "--out", tmp_path / "release",
        )  # fmt: skip
        assert outcome.code == 2
        assert "context" in outcome.err
    assert not (tmp_path / "release").exists()


def test_a_plan_needs_no_context_whether_windows_are_cut_or_series_start_at_times_of_their_own(
    homes: Path, tmp_path: Path
) -> None:
    own = (homes / "schema.toml").read_text(encoding="utf-8").replace("[time]\n", '[time]\nalign = "relative"\n')
    (tmp_path / "own.toml").write_text(own.replace('start = "2024-01-01T00:00:00"\n', ""), encoding="utf-8")
    for schema, *more in ((homes / "schema.toml", "--window-steps", WINDOW), (tmp_path / "own.toml", "--simulate")):
        planned = run("plan", schema, "--method", "pub2priv", "--epsilon", 1, *more, "--json")
        assert planned.code == 0, planned.err
        assert planned.facts["outlook"]
