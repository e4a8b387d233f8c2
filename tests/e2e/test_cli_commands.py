"""Every command does its job, speaks JSON when asked, and is silent when asked."""

import json
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.e2e.commands import MAGIC_PERSON, finish, make_clinic, run, start


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home-of-the-commands")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Path:
    """The example with its release, made once by the commands themselves."""
    folder = tmp_path_factory.mktemp("commands") / "homes"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERSTUDY_HOME", str(home))
        assert run("data", "make", "households", "--n", "200", "--out", folder).code == 0
        assert run(*_synth(folder, folder / "release", "--holdout", "0.25")).code == 0
    return folder


@pytest.fixture(autouse=True)
def _same_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDERSTUDY_HOME", str(home))


def _synth(folder: Path, out: Path, *more: str) -> list[str]:
    files = [str(folder / name) for name in ("households.parquet", "schema.toml", "context.parquet")]
    table, schema, context = files
    return [
        "synth",
        table,
        "--schema",
        schema,
        "--context",
        context,
        "--epsilon",
        "0.4",
        "--out",
        str(out),
        *more,
    ]


def test_the_release_holds_what_it_should(made: Path) -> None:
    names = {path.name for path in (made / "release").iterdir()}
    assert names == {
        "certificate.json",
        "model.safetensors",
        "release.json",
        "schema.toml",
        "synthetic.parquet",
    }
    private, synthetic = (pq.read_table(made / name) for name in ("households.parquet", "release/synthetic.parquet"))
    assert synthetic.select(private.column_names).schema.equals(private.schema)
    assert synthetic.column_names == [*private.column_names, "temperature_c", "price_eur_mwh"]
    assert len(set(synthetic["household"].to_pylist())) == 200


def test_public_inputs_are_hashed_into_the_certificate(made: Path) -> None:
    from understudy.privacy.canonical import file_sha256

    certificate = json.loads((made / "release" / "certificate.json").read_text())
    expected = {"schema": file_sha256(made / "schema.toml"), "context": file_sha256(made / "context.parquet")}
    assert certificate["public_inputs"] == expected


def test_the_holdout_list_lies_outside_the_release_and_is_its_owners_only(made: Path) -> None:
    listed = made / "release.holdout.csv"
    rows = listed.read_text().splitlines()
    assert rows[0] == "household"
    assert 20 <= len(set(rows[1:])) <= 100
    assert listed.stat().st_mode & 0o077 == 0


def test_held_out_units_have_no_influence(tmp_path: Path) -> None:
    """The same noise on a table without the held-out units gives the same model, to the last bit."""
    models = []
    kept_out: set[str] = set()
    for name in ("with-holdout", "without-them"):
        clinic = make_clinic(tmp_path / name)
        clinic.edit_schema('name = "clinic"', f'name = "clinic-{name}"')
        clinic.edit_rows(lambda rows: [row for row in rows if row[0] not in kept_out])  # noqa: B023
        more = ["--holdout", "0.3"] if not kept_out else []
        outcome = run(*clinic.synth("--seed", "5", "--allow-few-units", "a test", *more))
        assert outcome.code == 0
        models.append((clinic.release / "model.safetensors").read_bytes())
        if more:
            kept_out = set((clinic.folder / "release.holdout.csv").read_text().split()) - {"person"}
            assert 10 < len(kept_out) < 70
    assert models[0] == models[1]


def test_a_seed_reproduces_and_is_marked_not_private(tmp_path: Path) -> None:
    models = []
    for name in ("first", "second"):
        clinic = make_clinic(tmp_path / name)
        clinic.edit_schema('name = "clinic"', f'name = "clinic-{name}"')
        outcome = run(*clinic.synth("--seed", "5"), "--json")
        assert outcome.code == 0
        assert outcome.facts["status"].startswith("not private: ")
        models.append([(clinic.release / file).read_bytes() for file in ("model.safetensors", "synthetic.parquet")])
    assert models[0] == models[1]


def test_windows_are_cut_and_come_back_as_windows(tmp_path: Path) -> None:
    clinic = make_clinic(tmp_path / "clinic")
    clinic.edit_schema('name = "clinic"', 'name = "clinic-windows"')
    assert run(*clinic.synth("--window-steps", "3")).code == 0
    assert pq.read_table(clinic.release / "synthetic.parquet").num_rows == 120 * 3


def test_the_control_costs_nothing(tmp_path: Path) -> None:
    clinic = make_clinic(tmp_path / "clinic")
    clinic.edit_schema('name = "clinic"', 'name = "clinic-control"')
    outcome = run(*clinic.synth("--method", "independent"), "--json")
    assert outcome.facts["epsilon"] == 0
    assert outcome.facts["ledger"]["epsilon_left"] == 2.0


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "npz"])
def test_samples_are_written_as(suffix: str, made: Path, tmp_path: Path) -> None:
    target = tmp_path / f"more.{suffix}"
    assert run("sample", made / "release", "--n", "7", "--out", target).code == 0
    assert target.stat().st_size > 100


def test_series_made_for_a_context_carry_it(made: Path, tmp_path: Path) -> None:
    """Without it nobody could tell which weather a series answers to."""
    context = {row["timestamp"]: row for row in pq.read_table(made / "context.parquet").to_pylist()}
    assert run("sample", made / "release", "--n", "3", "--out", tmp_path / "more.parquet").code == 0
    for table in (made / "release" / "synthetic.parquet", tmp_path / "more.parquet"):
        for row in pq.read_table(table).to_pylist()[:1000]:
            for column in ("temperature_c", "price_eur_mwh"):
                assert row[column] == pytest.approx(context[row["timestamp"]][column], abs=1e-3)


def test_samples_obey_the_label_the_context_and_the_seed(made: Path, tmp_path: Path) -> None:
    release, context = made / "release", made / "context.parquet"
    for name in ("one.parquet", "two.parquet"):
        options = (
            "--n",
            "9",
            "--label",
            "night",
            "--context",
            context,
            "--seed",
            "4",
            "--out",
            tmp_path / name,
        )
        assert run("sample", release, *options).code == 0
    one, two = (pq.read_table(tmp_path / name) for name in ("one.parquet", "two.parquet"))
    assert one.equals(two)
    assert set(one["tariff"].to_pylist()) == {"night"}
    assert len(set(one["household"].to_pylist())) == 9


def test_a_sample_is_refused_that_would_replace_a_file_or_enter_the_release(made: Path, tmp_path: Path) -> None:
    there = tmp_path / "there.csv"
    there.write_text("mine")
    for target in (there, made / "release" / "more.csv"):
        assert run("sample", made / "release", "--n", "3", "--out", target).code == 2
    assert there.read_text() == "mine"
    assert run("sample", made / "release", "--n", "3", "--label", "solar", "--out", tmp_path / "x.csv").code == 2


def test_init_drafts_a_schema_that_has_to_be_completed(tmp_path: Path) -> None:
    clinic = make_clinic(tmp_path / "clinic")
    outcome = run("init", clinic.table, "--json")
    draft = clinic.folder / "clinic.schema.toml"
    assert outcome.code == 0
    assert outcome.facts["schema"] == str(draft)
    assert "TODO" in draft.read_text()
    assert MAGIC_PERSON not in draft.read_text()
    assert run("init", clinic.table).code == 2
    assert run("plan", draft).code == 2
    assert run("init", clinic.folder / "nothing.csv").code == 3


JSON_COMMANDS = [
    "verify {homes}/release",
    "certificate {homes}/release",
    "certificate {homes}/release --format md --out {folder}/page.md",
    "ledger show {homes}/schema.toml",
    "ledger show {homes}/households.ledger",
    "ledger list",
    "ledger check {homes}/schema.toml {homes}/release",
    "keys create another",
    "keys list",
    "keys export another",
    "keys export default --out {folder}/default.pub",
    "data make households --n 3 --out {folder}/homes",
    "data make icu --n 3 --out {folder}/icu",
    "sample {homes}/release --n 2 --out {folder}/two.csv",
    "plan {homes}/schema.toml --epsilon 1",
    "version",
]


@pytest.mark.parametrize("command", JSON_COMMANDS)
def test_json_on_stdout_is_one_object(command: str, made: Path, tmp_path: Path) -> None:
    outcome = run(*command.format(homes=made, folder=tmp_path).split(), "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.facts
    assert outcome.err == ""


def test_errors_are_json_too_when_asked(tmp_path: Path) -> None:
    outcome = run("verify", tmp_path / "nowhere", "--json")
    assert outcome.facts["exit_code"] == outcome.code == 3
    assert outcome.facts["error"]


def test_quiet_prints_nothing_but_errors(made: Path, tmp_path: Path) -> None:
    outcome = run("sample", made / "release", "--n", "2", "--out", tmp_path / "two.csv", "--quiet")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    outcome = run("verify", tmp_path / "nowhere", "--quiet")
    assert outcome.code == 3
    assert outcome.err


def test_the_page_for_a_regulator_is_one_file_that_names_the_unit(made: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    assert run("certificate", made / "release", "--format", "html", "--out", target).code == 0
    page = target.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "one &#x27;household&#x27;" in page
    assert run("certificate", made / "release", "--out", made / "release" / "page.md").code == 2


@pytest.mark.parametrize("arguments", [["--help"], ["synth", "--help"], ["ledger", "--help"]])
def test_help_is_on_stdout_and_names_the_exit_codes_or_options(arguments: list[str]) -> None:
    outcome = run(*arguments)
    assert outcome.code == 0
    assert "--" in outcome.out


@pytest.mark.parametrize("arguments", [["no-such-command"], ["synth"], ["ledger", "erase"], ["plan", "--epsilon"]])
def test_a_command_line_that_makes_no_sense_exits_with_two(arguments: list[str]) -> None:
    assert run(*arguments).code == 2


def test_our_own_mistakes_exit_with_one_and_quote_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import understudy.cli.app

    def broken(arguments: list[str], *program: object) -> int:
        raise RuntimeError(f"the value of {MAGIC_PERSON} is wrong")

    monkeypatch.setattr(understudy.cli.app, "call", broken)
    outcome = run("version")
    assert outcome.code == 1
    assert "Internal error" in outcome.err
    assert "RuntimeError" in outcome.err
    assert MAGIC_PERSON not in outcome.err
    monkeypatch.setenv("UNDERSTUDY_DEBUG", "1")
    assert MAGIC_PERSON in run("version").err


def test_pipes_get_no_colours_and_no_progress(made: Path, tmp_path: Path) -> None:
    command = ("sample", made / "release", "--n", "2", "--out", tmp_path / "two.csv")
    outcome = finish(start(*command, variables={"NO_COLOR": "1"}))
    assert outcome.code == 0
    assert "\x1b" not in outcome.out + outcome.err
    assert outcome.err == ""


def test_a_reader_that_has_seen_enough_is_no_error(made: Path) -> None:
    process = start("certificate", made / "release", "--format", "md", stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=60) in (0, 1)


def test_the_public_names_load_on_demand() -> None:
    import understudy

    for name in understudy.__all__:
        assert getattr(understudy, name) is not None
    assert len(understudy.__all__) <= 30
    with pytest.raises(AttributeError):
        _ = understudy.no_such_name
