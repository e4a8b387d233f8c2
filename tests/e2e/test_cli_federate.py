"""`understudy federate`: files that make no sense are refused by name, and the example is whole."""

from pathlib import Path

import pytest

from tests.e2e.commands import Outcome, run


def edited(folder: Path, file: str, before: str, after: str) -> None:
    text = (folder / file).read_text()
    assert before in text
    (folder / file).write_text(text.replace(before, after))


@pytest.fixture
def example(tmp_path: Path) -> Path:
    folder = tmp_path / "two-banks"
    assert run("federate", "example", str(folder)).code == 0
    edited(folder, "contract.toml", 'mode = "sound"', 'mode = "plain"')  # no accountant is asked
    edited(folder, "contract.toml", "epsilon = 8.0", "epsilon = inf")
    for side in ("north", "aggregator"):
        edited(folder, f"{side}.toml", "epsilon = 16.0", "epsilon = inf")
    return folder


def test_the_example_is_whole_and_its_keys_are_made(example: Path) -> None:
    made = run("federate", "keys", str(example), "--json")
    assert made.code == 0
    assert made.facts["sides"] == ["aggregator", "north", "south"]
    assert {path.name for path in (example / "keys").iterdir()} == {"aggregator", "north", "south"}
    again = run("federate", "keys", str(example))
    assert again.code == 2
    assert "exists already" in again.err


@pytest.mark.parametrize(
    ("file", "before", "after", "says"),
    [
        ("contract.toml", 'mode = "plain"', 'mode = "loud"', "key 'mode'"),
        ("contract.toml", 'mode = "plain"', 'mode = "plain"\nplan = 1', "key 'plan': it is not known"),
        ("contract.toml", "iterations = 150", 'iterations = "many"', "key 'recipe.iterations'"),
        ("contract.toml", "iterations = 150", "itertions = 150", "key 'recipe.itertions': it is not known"),
        ("contract.toml", "epsilon = inf", "", "key 'epsilon': it is missing"),
        ("contract.toml", "delta = 1e-6", "delta = 0.5", "delta"),
        ("contract.toml", 'name = "first"', "name = ", "not valid TOML"),
        ("contract.toml", "joined.schema.toml", "elsewhere.toml", "No schema"),
        ("contract.toml", "epsilon = inf", "epsilon = 8.0", "protects no unit"),
        ("joined.schema.toml", 'name = "spending"', 'name = "balance"', "declared twice"),
        ("joined.schema.toml", 'party = "south"', 'party = "north"', "two parties or more"),
        ("joined.schema.toml", "version = 1", "version = 2", "version"),
        ("north.toml", 'keys = "keys/north"', 'keys = "keys/aggregator"', "keys: those of one of north, south"),
        ("north.toml", 'table = "north.csv"', 'table = "nowhere.csv"', "nothing is at"),
        ("north.toml", 'table = "north.csv"', 'table = "south.csv"', "is not in the schema"),
        ("north.toml", "epsilon = inf", "epsilon = 1.0", "asks for"),
        ("north.toml", 'address = "', 'patience_seconds = 0.2\naddress = "', "no aggregator of this run answered"),
    ],
)
def test_a_party_is_told_what_is_wrong_with_its_files(
    example: Path, file: str, before: str, after: str, says: str
) -> None:
    assert run("federate", "keys", str(example), "--quiet").code == 0
    edited(example, file, before, after)
    told = run("federate", "party", str(example / "north.toml"))
    assert told.code in (2, 3, 4), told.err
    assert says in told.err
    assert "Traceback" not in told.err
    assert not list(example.rglob("release"))


def test_the_server_needs_its_own_keys_and_a_free_port(example: Path) -> None:
    import socket

    assert run("federate", "keys", str(example), "--quiet").code == 0
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        edited(example, "aggregator.toml", ":7443", f":{taken.getsockname()[1]}")
        told = run("federate", "aggregator", str(example / "aggregator.toml"))
    assert (told.code, "can't be listened on" in told.err) == (2, True), told.err
    edited(example, "aggregator.toml", "keys/aggregator", "keys/north")
    told = run("federate", "aggregator", str(example / "aggregator.toml"))
    assert (told.code, "those of 'aggregator' are expected" in told.err) == (2, True)


def test_a_state_folder_belongs_to_one_contract(example: Path) -> None:
    assert run("federate", "keys", str(example), "--quiet").code == 0
    edited(example, "north.toml", 'address = "', 'patience_seconds = 0.2\naddress = "')
    assert _party(example).code == 2
    edited(example, "contract.toml", "iterations = 150", "iterations = 151")
    assert "holds a run of another contract" in _party(example).err


def test_four_commands_make_a_release_that_verifies(example: Path) -> None:
    port = free_port()
    for side in ("aggregator", "north", "south"):
        edited(example, f"{side}.toml", ":7443", f":{port}")
    assert run("federate", "keys", str(example)).code == 0
    edited(example, "contract.toml", "iterations = 150", "iterations = 2")
    edited(example, "south.toml", "epsilon = 16.0", "epsilon = inf")
    made = run("federate", "up", str(example), "--json")
    assert made.code == 0, made.err
    assert made.facts["signed_by"] == ["north", "south"]
    assert run("federate", "verify", str(example)).code == 0
    again = run("federate", "up", str(example))
    assert (again.code, "the run 'first' is complete" in again.err) == (2, True), again.err
    facts = example / "south/runs/first/release/release.json"
    facts.write_text(facts.read_text() + " ")
    refused = run("federate", "verify", str(example))
    assert (refused.code, "south holds another release" in refused.err) == (2, True), refused.err


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_flower_app_is_written_whole_and_parses(example: Path) -> None:
    import ast
    import tomllib

    assert run("federate", "flower", str(example / "aggregator.toml"), "--out", str(example / "app")).code == 0
    for name in ("server_app.py", "client_app.py"):
        ast.parse((example / "app" / "understudy_flower" / name).read_text())
    options = tomllib.loads((example / "app" / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    assert options["num-parties"] == 2
    assert Path(options["aggregator-config"]).is_file()


def _party(example: Path) -> Outcome:
    return run("federate", "party", str(example / "north.toml"))
