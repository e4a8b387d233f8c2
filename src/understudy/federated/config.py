"""The file border: one contract for all sides, a small file for each. Paths are relative to the file naming them."""

import tomllib
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, TypeVar

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


def _beside(path: Path, info: pydantic.ValidationInfo) -> Path:
    return Path(info.context or "") / path.expanduser()


Beside = Annotated[Path, pydantic.AfterValidator(_beside)]


class _File(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class _ContractFile(_File):
    name: str
    schema_: Beside = pydantic.Field(alias="schema")
    epsilon: float
    delta: float
    mode: Mode = "sound"
    scale: Scale = "bought"
    seed: int = 0
    alignment: Alignment = "psi"
    checkpoint_every: int = 100
    few_units: str | None = None
    noise_seed: int | None = None
    recipe: Recipe = Recipe()


class _Ledger(_File):
    name: str = pydantic.Field(min_length=1)
    file: Beside | None = None
    epsilon: float | None = None
    delta: float | None = None
    max_runs: int = pydantic.Field(default=1, ge=1)


class _OfContract(_File):
    contract_file: Beside = pydantic.Field(alias="contract")

    @cached_property
    def contract(self) -> Contract:
        """The contract that the file names."""
        return load_contract(self.contract_file)


class SideConfig(_OfContract):
    """What one side is started with."""

    keys: Beside  # folder with its key and certificate
    address: str  # where the aggregator listens
    state: Beside  # its own folder for what a resumed run needs
    out: Beside
    signing_key: str = "default"
    patience_seconds: float = pydantic.Field(default=600.0, gt=0)  # to wait for the slowest other side
    ledger: _Ledger

    @cached_property
    def account(self) -> Account:
        """The ledger of the people that this side answers for."""
        whole, own = self.contract.guarantee, self.ledger
        return Account(
            file=own.file or self.state / f"{file_name(own.name)}.ledger",
            name=own.name,
            guarantee=Guarantee(own.epsilon or whole.epsilon, own.delta or whole.delta * own.max_runs),
            max_runs=own.max_runs,
        )


class PartyConfig(SideConfig):
    """A side with a table, and the names of its columns where they differ from the joined schema."""

    table: Beside
    unit_column: str | None = None
    time_column: str | None = None
    ignore: tuple[str, ...] = ()

    def table_schema(self, party: str) -> Schema:
        """Returns the schema by which the table is read."""
        own = own_schema(self.contract.schema, party)
        unit = replace(own.unit, column=self.unit_column or own.unit.column)
        time = replace(own.time, column=self.time_column or own.time.column)
        return replace(own, unit=unit, time=time, ignore=self.ignore)


class KeysConfig(_OfContract):
    """For which contract keys are made, and under which name the aggregator is reached."""

    out: Beside
    host: str = "127.0.0.1"
    days: float = pydantic.Field(default=365, gt=0)


class Simulation(_OfContract):
    """All sides on one machine, with the table of each party."""

    folder: Beside
    tables: dict[str, Beside]


Kind = TypeVar("Kind", bound=_File)
Config = TypeVar("Config", bound=_OfContract)


def load_contract(file: Path) -> Contract:
    """Reads a contract and the joined schema that it names."""
    read = _read(file, _ContractFile)
    method = VFLGANTS(mode=read.mode, scale=read.scale, seed=read.seed, recipe=read.recipe)
    guarantee, names = Guarantee(read.epsilon, read.delta), ("alignment", "checkpoint_every", "few_units", "noise_seed")
    rest = {name: getattr(read, name) for name in ("name", *names)}
    return Contract(schema=Schema.load(read.schema_), guarantee=guarantee, method=method, **rest)


def load(file: Path, kind: type[Config]) -> Config:
    """Reads one of the files of a run, with the contract that it names."""
    read = _read(file.absolute() if kind is Simulation else file, kind)
    parties = read.contract.parties
    if isinstance(read, SideConfig):
        _ = read.account  # a budget that can't be is refused here, before anything is started
    if isinstance(read, Simulation) and set(read.tables) != set(parties):
        raise InputError(f"{file}: key 'tables': one table for each of {', '.join(parties)} is expected.")
    return read


def _read(file: Path, kind: type[Kind]) -> Kind:
    if not file.is_file():
        raise MissingData(f"There is no file '{file}'. `understudy federate example` writes a set of them.")
    try:
        return kind.model_validate(tomllib.loads(file.read_text(encoding="utf-8")), context=file.parent)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise InputError(f"{file}: not valid TOML: {problem}. Fix that line.") from None
    except pydantic.ValidationError as problem:
        raise _explained(file, problem) from None


def _explained(file: Path, problem: pydantic.ValidationError) -> InputError:
    first = problem.errors(include_url=False, include_input=False)[0]
    key = ".".join(str(word) for word in first["loc"])
    if key in ("ledger", "ledger.name") and first["type"] == "missing":
        return InputError(
            f"{file}: key 'ledger.name': it is missing. Name the population that this side answers for, as its own "
            "schema does: everything that is ever done to these people's data is charged to the ledger of that name."
        )
    unknown = "it is not known; check its spelling or remove it"
    remedies = {"missing": "it is missing; declare it", "unexpected_keyword_argument": unknown}
    other = f"{first['msg'][0].lower()}{first['msg'][1:]}; write it that way"
    remedy = (remedies | {"extra_forbidden": unknown}).get(first["type"], other)
    return InputError(f"{file}: key '{key}': {remedy}.")
