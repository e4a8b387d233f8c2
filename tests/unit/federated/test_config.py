"""Files that people write by hand: whatever stands in them, the answer is a run or an error that says what to do."""

import itertools
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.federated.banks import schema
from understudy.errors import InputError, UnderstudyError
from understudy.federated.config import PartyConfig, SideConfig, load, load_contract

CONTRACT = {
    "name": '"first"',
    "schema": '"joined.toml"',
    "epsilon": "8.0",
    "delta": "1e-6",
    "mode": '"sound"',
    "scale": '"bounds"',
    "seed": "0",
    "window_steps": "20",
    "window_stride": "10",
    "alignment": '"psi"',
    "checkpoint_every": "10",
    "few_units": '"a trial"',
    "noise_seed": "5",
    "recipe": "{ iterations = 5, features = 8 }",
}
PARTY = {
    "contract": '"contract.toml"',
    "keys": '"keys/bank"',
    "address": '"127.0.0.1:7443"',
    "folder": '"bank"',
    "table": '"bank.csv"',
    "patience_seconds": "5.0",
    "unit_column": '"who"',
    "ignore": '["note"]',
    "ledger": '{ name = "people", epsilon = 9.0, max_runs = 2 }',
}
ODD = (
    "nan", "inf", "-inf", "-1", "0", "1e400", "10000000000000000000000000000000", "true", '""', '"\\u0000"', '"/"',
    "[]", "[[]]", "{}", "{ x = 1 }", "2024-01-01", '"' + "x" * 5000 + '"', "{ iterations = 0 }", "{ features = [] }",
    "{ epsilon = -1 }", "{ delta = 2.0 }", "{ max_runs = 0 }", "{ iterations = 1.5 }", "{ clipping_norm = nan }",
)  # fmt: skip


def written(folder: Path, name: str, keys: dict[str, str]) -> Path:
    file = folder / name
    file.write_text("\n".join(f"{key} = {value}" for key, value in keys.items()) + "\n", encoding="utf-8")
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    schema().save(tmp_path / "joined.toml")
    written(tmp_path, "contract.toml", CONTRACT)
    return tmp_path


def test_a_contract_and_a_party_are_read_as_they_are_written(folder: Path) -> None:
    contract = load_contract(folder / "contract.toml")
    assert contract.parties == ("bank", "shop")
    assert (contract.guarantee.epsilon, contract.guarantee.delta) == (8.0, 1e-6)
    assert contract.method.recipe.iterations == 5
    side = load(written(folder, "bank.toml", PARTY), PartyConfig)
    assert side.contract.digest == contract.digest
    assert (side.account.name, side.account.guarantee.epsilon, side.account.max_runs) == ("people", 9.0, 2)
    assert side.account.guarantee.delta == 2e-6  # each of two runs has the contract's
    own = side.table_schema("bank")
    assert (own.unit.column, own.ignore) == ("who", ("note",))


@pytest.mark.parametrize("ledger", [None, "{ epsilon = 9.0 }", '{ name = "" }'])
@pytest.mark.parametrize("kind", [PartyConfig, SideConfig])
def test_a_side_that_names_no_population_is_refused(folder: Path, kind: type[SideConfig], ledger: str | None) -> None:
    """A name made from the contract's would give one table a ledger for each contract, each with the whole budget."""
    given = {key: value for key, value in PARTY.items() if key != "ledger"}
    if kind is SideConfig:
        given = {key: given[key] for key in ("contract", "keys", "address", "folder")}
    file = written(folder, "side.toml", given | ({} if ledger is None else {"ledger": ledger}))
    with pytest.raises(InputError, match=r"ledger\.name"):
        load(file, kind)


def test_two_contracts_over_one_table_charge_one_ledger(folder: Path) -> None:
    """The second contract calls the joined people otherwise; the bank's own people keep their name."""
    written(folder, "second.toml", CONTRACT | {"name": '"second"', "schema": '"renamed.toml"'})
    replace(schema(), name="renamed").save(folder / "renamed.toml")
    accounts = [
        load(written(folder, "bank.toml", PARTY | {"contract": f'"{contract}"'}), PartyConfig).account
        for contract in ("contract.toml", "second.toml")
    ]
    assert accounts[0] == accounts[1]


def test_runs_have_folders_of_their_own_and_the_ledger_lies_outside_of_them(folder: Path) -> None:
    written(folder, "second.toml", CONTRACT | {"name": '"second"'})
    first, second = (
        load(written(folder, "bank.toml", PARTY | {"contract": f'"{contract}"'}), PartyConfig)
        for contract in ("contract.toml", "second.toml")
    )
    assert (first.state, second.state) == (folder / "bank/runs/first", folder / "bank/runs/second")
    assert first.out == folder / "bank/runs/first/release"
    assert first.account.file == second.account.file == folder / "bank/people.ledger"


@pytest.mark.parametrize("name", ['"../first"', '"a/b"', '""', '"."', '"-"'])
def test_a_run_whose_name_is_no_folder_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(InputError, match="key 'name'"):
        load_contract(written(folder, "contract.toml", CONTRACT | {"name": name}))


@pytest.mark.parametrize("key", CONTRACT)
def test_odd_values_in_a_contract_are_explained_or_harmless(folder: Path, key: str) -> None:
    for value in ODD:
        with suppress(UnderstudyError, OSError):  # the command line explains both
            assert load_contract(written(folder, "contract.toml", CONTRACT | {key: value})).digest


@pytest.mark.parametrize("key", PARTY)
def test_odd_values_in_a_partys_file_are_explained_or_harmless(folder: Path, key: str) -> None:
    for value in ODD:
        with suppress(UnderstudyError, OSError):  # the command line explains both
            assert load(written(folder, "bank.toml", PARTY | {key: value}), PartyConfig)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200))
def test_bytes_that_are_no_file_of_ours_are_refused_everywhere(folder: Path, content: bytes) -> None:
    file = folder / "any.toml"
    file.write_bytes(content)
    for kind in (SideConfig, PartyConfig):
        with pytest.raises(UnderstudyError):
            load(file, kind)
    with pytest.raises(UnderstudyError):
        load_contract(file)


def test_every_mode_and_alignment_that_is_named_can_be_asked_for(folder: Path) -> None:
    for mode, alignment in itertools.product(("sound", "local", "plain", "paper"), ("psi", "as-given")):
        changed = CONTRACT | {"mode": f'"{mode}"', "alignment": f'"{alignment}"'}
        assert load_contract(written(folder, "contract.toml", changed)).method.mode == mode
