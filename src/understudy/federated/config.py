"""The file border: one contract for all sides, a small file for each. Paths are relative to the file that names them.

Pydantic checks text here and nowhere else; inside the package everything is a frozen dataclass.
"""

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pydantic

from understudy.data import Schema
from understudy.errors import InputError, MissingData
from understudy.federated.contract import Alignment, Contract
from understudy.federated.state import Account
from understudy.privacy.budget import Guarantee
from understudy.privacy.charges import file_name
from understudy.synthesizers.vflgan_ts.method import VFLGANTS
from understudy.synthesizers.vflgan_ts.partition import own_schema
from understudy.synthesizers.vflgan_ts.recipe import Mode, Recipe, Scale

_PATIENCE = 600.0  # seconds to wait for the slowest side


class _Table(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class _ContractTable(_Table):
    name: str
    schema_: Path = pydantic.Field(alias="schema")
    epsilon: float
    delta: float
    mode: Mode = "sound"
    scale: Scale = "bought"
    seed: int = 0
    alignment: Alignment = "psi"
    checkpoint_every: int = 100
    few_units: str | None = None
    noise_seed: int | None = None
    recipe: dict[str, Any] = {}


class _LedgerTable(_Table):
    name: str = pydantic.Field(min_length=1)
    file: Path | None = None
    epsilon: float | None = None
    delta: float | None = None
    max_runs: int = pydantic.Field(default=1, ge=1)


class _SideTable(_Table):
    contract: Path
    keys: Path
    address: str
    state: Path
    out: Path
    signing_key: str = "default"
    patience_seconds: float = pydantic.Field(default=_PATIENCE, gt=0)
    ledger: _LedgerTable


class _PartyTable(_SideTable):
    table: Path
    unit_column: str | None = None
    time_column: str | None = None
    ignore: tuple[str, ...] = ()


class _KeysTable(_Table):
    contract: Path
    out: Path
    host: str = "127.0.0.1"
    days: float = pydantic.Field(default=365, gt=0)


class _SimulationTable(_Table):
    contract: Path
    folder: Path
    tables: dict[str, Path]


Table = TypeVar("Table", bound=_Table)


@dataclass(frozen=True, kw_only=True)
class SideConfig:
    """What one side is started with.

    Attributes:
        keys: Folder with its key and certificate.
        address: Where the aggregator listens.
        state: Its own folder for what a resumed run needs.
        patience_seconds: How long to wait for the slowest other side.
    """

    contract: Contract
    keys: Path
    address: str
    state: Path
    out: Path
    account: Account
    signing_key: str
    patience_seconds: float


@dataclass(frozen=True, kw_only=True)
class Source:
    """A party's table, and where its columns are called otherwise than in the joined schema."""

    table: Path
    unit_column: str | None = None
    time_column: str | None = None
    ignore: tuple[str, ...] = ()

    def schema(self, joined: Schema, party: str) -> Schema:
        """Returns the contract by which the table is read."""
        own = own_schema(joined, party)
        unit = replace(own.unit, column=self.unit_column or own.unit.column)
        time = replace(own.time, column=self.time_column or own.time.column)
        return replace(own, unit=unit, time=time, ignore=self.ignore)


@dataclass(frozen=True, kw_only=True)
class KeysConfig:
    """For whom keys are made, and under which name the aggregator is reached."""

    parties: tuple[str, ...]
    out: Path
    host: str
    days: float


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """All sides on one machine: who brings which table."""

    contract_file: Path
    contract: Contract
    folder: Path
    tables: dict[str, Path]


def load_contract(file: Path) -> Contract:
    """Reads a contract and the joined schema that it names."""
    table = _read(file, _ContractTable)
    recipe = _recipe(file, table.recipe)
    return Contract(
        name=table.name,
        schema=Schema.load(_beside(file, table.schema_)),
        guarantee=Guarantee(table.epsilon, table.delta),
        method=VFLGANTS(mode=table.mode, scale=table.scale, seed=table.seed, recipe=recipe),
        alignment=table.alignment,
        checkpoint_every=table.checkpoint_every,
        few_units=table.few_units,
        noise_seed=table.noise_seed,
    )


def load_server(file: Path) -> SideConfig:
    """Reads the aggregator's file."""
    return _side(file, _read(file, _SideTable))


def load_party(file: Path) -> tuple[SideConfig, Source]:
    """Reads a party's file."""
    table = _read(file, _PartyTable)
    source = Source(
        table=_beside(file, table.table),
        unit_column=table.unit_column,
        time_column=table.time_column,
        ignore=table.ignore,
    )
    return _side(file, table), source


def load_keys(file: Path) -> KeysConfig:
    """Reads for whom keys are to be made."""
    table = _read(file, _KeysTable)
    parties = load_contract(_beside(file, table.contract)).parties
    return KeysConfig(parties=parties, out=_beside(file, table.out), host=table.host, days=table.days)


def load_simulation(file: Path) -> Simulation:
    """Reads which tables are to be brought together on one machine."""
    table = _read(file, _SimulationTable)
    contract = load_contract(_beside(file, table.contract))
    if set(table.tables) != set(contract.parties):
        raise InputError(f"{file}: key 'tables': one table for each of {', '.join(contract.parties)} is expected.")
    return Simulation(
        contract_file=_beside(file, table.contract).absolute(),
        contract=contract,
        folder=_beside(file, table.folder).absolute(),
        tables={party: _beside(file, path).absolute() for party, path in table.tables.items()},
    )


def _side(file: Path, table: _SideTable) -> SideConfig:
    contract, ledger, state = load_contract(_beside(file, table.contract)), table.ledger, _beside(file, table.state)
    whole = contract.guarantee
    budget = Guarantee(ledger.epsilon or whole.epsilon, ledger.delta or whole.delta * ledger.max_runs)
    return SideConfig(
        contract=contract,
        keys=_beside(file, table.keys),
        address=table.address,
        state=state,
        out=_beside(file, table.out),
        account=Account(
            file=state / f"{file_name(ledger.name)}.ledger" if ledger.file is None else _beside(file, ledger.file),
            name=ledger.name,
            guarantee=budget,
            max_runs=ledger.max_runs,
        ),
        signing_key=table.signing_key,
        patience_seconds=table.patience_seconds,
    )


def _recipe(file: Path, options: dict[str, Any]) -> Recipe:
    try:
        return pydantic.TypeAdapter(Recipe).validate_python({**_known(file, options)})
    except pydantic.ValidationError as problem:
        raise _explained(file, problem, "recipe.") from None


def _known(file: Path, options: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(options) - set(Recipe.__dataclass_fields__))
    if unknown:
        raise InputError(f"{file}: key 'recipe.{unknown[0]}': it is not known; check its spelling or remove it.")
    return options


def _read(file: Path, kind: type[Table]) -> Table:
    if not file.is_file():
        raise MissingData(f"There is no file '{file}'. `understudy federate example` writes a set of them.")
    try:
        return kind.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise InputError(f"{file}: not valid TOML: {problem}. Fix that line.") from None
    except pydantic.ValidationError as problem:
        raise _explained(file, problem) from None


def _explained(file: Path, problem: pydantic.ValidationError, prefix: str = "") -> InputError:
    first = problem.errors(include_url=False, include_input=False)[0]
    key = prefix + ".".join(str(word) for word in first["loc"])
    if key in ("ledger", "ledger.name") and first["type"] == "missing":
        return InputError(
            f"{file}: key 'ledger.name': it is missing. Name the population that this side answers for, as its own "
            "schema does: everything that is ever done to these people's data is charged to the ledger of that name."
        )
    remedy = {
        "missing": "it is missing; declare it",
        "extra_forbidden": "it is not known; check its spelling or remove it",
    }.get(first["type"], f"{first['msg'][0].lower()}{first['msg'][1:]}; write it that way")
    return InputError(f"{file}: key '{key}': {remedy}.")


def _beside(file: Path, path: Path) -> Path:
    return file.parent / path.expanduser()
