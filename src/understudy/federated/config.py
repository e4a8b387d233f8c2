"""What all sides of one run agree on before they start, what each is started with, and the files that say so.

The contract is one file, the same at every organisation; each side has a small file of its own. Paths are relative to
the file that names them.
"""

import hashlib
import tomllib
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, TypeVar, get_args

import pydantic

from understudy.data import Schema
from understudy.errors import InputError, LedgerError, MissingData
from understudy.privacy import canonical
from understudy.privacy.budget import Guarantee, check_delta
from understudy.privacy.charges import Entry, file_name
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import SpendingPlan
from understudy.synthesizers.options import require_above_zero, require_one_of
from understudy.synthesizers.vflgan_ts.method import VFLGANTS
from understudy.synthesizers.vflgan_ts.partition import own_schema, partition
from understudy.synthesizers.vflgan_ts.recipe import Mode, Recipe, Scale

Alignment = Literal["psi", "as-given"]
_DISCLOSED = {
    "psi": (
        "Entities were aligned by private set intersection before training. Every party learned which of its entities "
        "all parties know, and how many ids the others hold; the first party also learned which of its entities the "
        "first two, three, … parties know. The aggregator passed on blinded ids and learned how many there are, not "
        "whose rows it sees. None of this is covered by epsilon."
    ),
    "as-given": (
        "Rows were taken in the order in which every party listed them: parties had aligned them before, outside this "
        "run. What that told whom is not covered by epsilon."
    ),
}


@dataclass(frozen=True, kw_only=True)
class Contract:
    """The public contract of a run of several organisations."""

    name: str  # the same contract again resumes the run; under another name it is another run with its own charge
    schema: Schema  # of the joined table; every column names the party that holds it
    guarantee: Guarantee  # what the run costs each party, and the aggregator
    method: VFLGANTS = field(default_factory=VFLGANTS)
    alignment: Alignment = "psi"  # rows are ordered by private set intersection of ids, or as they are
    checkpoint_every: int = 100  # iterations that are counted and saved together
    few_units: str | None = None  # why fewer than 100 common units may pass; the certificate prints it
    noise_seed: int | None = None  # reproducible noise, for tests; the certificate then says not private

    def __post_init__(self) -> None:
        self.schema.require_declared()
        require_one_of(self, alignment=get_args(Alignment))
        require_above_zero(self, "checkpoint_every")
        check_delta(self.guarantee.delta, self.schema.protected_units)
        _check_schema(self.schema)
        self.method.check_windows(self.schema)

    @property
    def parties(self) -> tuple[str, ...]:
        """Who takes part, in the order in which the schema names them."""
        return tuple(columns.party for columns in partition(self.schema))

    @cached_property
    def learned(self) -> Schema:
        """The contract of what is learned from: the joined schema, or that of its windows."""
        return self.method.learned_schema(self.schema)

    @property
    def sound(self) -> bool:
        """Whether every party's rows are protected from all others, so that executions are counted."""
        return self.method.mode == "sound"

    @cached_property
    def plan(self) -> SpendingPlan:
        """Every event of the run. All parties' columns belong to the same people, so each party pays for all of it."""
        return self.method.spending_plan(self.schema, self.guarantee)

    @cached_property
    def digest(self) -> str:
        """A hash by which sides find out whether they mean the same run."""
        facts = {part.name: getattr(self, part.name) for part in fields(self)}
        facts |= {"schema": self.schema.dumps(), "method": asdict(self.method)}
        facts["guarantee"] = [self.guarantee.epsilon, self.guarantee.delta]
        return canonical.sha256(canonical.dumps(facts))

    @property
    def label(self) -> str:
        """Under which every ledger knows the run."""
        return f"{self.method.name} {self.name} {self.digest[:16]}"

    @property
    def trust(self) -> tuple[str, ...]:
        """Who is trusted, and what alignment disclosed; the certificate prints it."""
        return (*self.method.trust(self.schema, self.plan), _DISCLOSED[self.alignment])

    @property
    def population(self) -> int:
        """Public number of units, by which batches are divided."""
        return self.method.num_contributions(self.schema, self.schema.population.size or 1)

    def noise(self, side: str) -> NoiseSource:
        """A side's own source of privacy noise."""
        return NoiseSource.secure() if self.noise_seed is None else NoiseSource.seeded(self.test_seed(side))

    def test_seed(self, side: str) -> int:
        """A seed of a side's own, where one was asked for."""
        return int.from_bytes(hashlib.sha256(f"{self.noise_seed} {side}".encode()).digest()[:7], "big")


def _check_schema(schema: Schema) -> None:
    without = [columns.party for columns in partition(schema) if not columns.channels]
    refusals = {
        "schema: columns of two parties or more are expected": len(partition(schema)) < 2,
        f"party '{', '.join(without)}': a channel is expected; static columns alone can't be read": bool(without),
        "population: a declared size is expected": schema.population.size is None,
        "unit.max_series: one series per unit is expected": schema.unit.max_series != 1,
        "time.min_steps: series of one length are expected": schema.time.min_steps is not None,
        "context: none is expected; `vflgan-ts` does not model it": bool(schema.context),
        "unit: entities with a column of ids are expected": schema.unit.kind != "entity" or schema.unit.column is None,
    }
    for reason in (reason for reason, refused in refusals.items() if refused):
        raise InputError(f"{reason} where several organisations train together. Change the joined schema.")


@dataclass(frozen=True, kw_only=True)
class Account:
    """The ledger of the people that one side answers for: all that is ever done to their data is charged to it."""

    file: Path  # made on first use
    name: str  # of the population
    guarantee: Guarantee  # all that may ever be spent on them
    max_runs: int = 1

    def ledger(self, contract: Contract) -> Ledger:
        """Opens the ledger, or makes it; one that was made for another budget is refused."""
        unit, size = contract.schema.unit.sentence(), contract.schema.protected_units
        if not self.file.exists():
            self.file.parent.mkdir(parents=True, exist_ok=True)
            return Ledger.create(
                self.file, name=self.name, unit_sentence=unit, guarantee=self.guarantee, max_runs=self.max_runs,
                population=size,
            )  # fmt: skip
        ledger = Ledger.open(self.file)
        if not ledger.is_declared_as(self.name, unit, self.guarantee, self.max_runs):
            raise LedgerError(
                f"'{self.file}' was made for other people or with another budget than [ledger] says. Put the "
                "declaration back: what was promised about spent budget can't be changed afterwards."
            )
        return ledger

    def check(self, contract: Contract) -> None:
        """Refuses, before a connection is opened, what the charge would refuse."""
        ledger = self.ledger(contract)
        if _charged(ledger, contract) is None:
            ledger.check(contract.plan, label=contract.label)

    def grant(self, contract: Contract, side: str) -> Grant:
        """Charges the run, or takes up what is left of it if it was charged before.

        Privacy: on return the whole run is on the disk. Nothing is given back, whatever happens later.
        """
        ledger, noise = self.ledger(contract), contract.noise(side)
        entry = _charged(ledger, contract)
        if entry is None:
            return ledger.charge(contract.plan, label=contract.label, noise=noise)
        return ledger.resume(entry.run, noise=noise)


def _charged(ledger: Ledger, contract: Contract) -> Entry | None:
    found = next((entry for entry in ledger.entries() if entry.label == contract.label), None)
    if found is not None and found.plan != contract.plan:
        raise LedgerError(
            f"'{ledger.path}' has this run with another plan: it was charged by another version of Understudy. Resume "
            "with that version, or start a run of another name."
        )
    return found


def _beside(path: Path, info: pydantic.ValidationInfo) -> Path:
    return Path(info.context or "") / path.expanduser()


Beside = Annotated[Path, pydantic.AfterValidator(_beside)]


class _File(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class _ContractFile(_File):
    name: str = pydantic.Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")  # and of the run's folder
    schema_: Beside = pydantic.Field(alias="schema")
    epsilon: float
    delta: float
    mode: Mode = "sound"
    scale: Scale = "bought"
    seed: int = 0
    window_steps: int | None = None
    window_stride: int | None = None
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


class SideConfig(_File):
    """What one side is started with."""

    contract_file: Beside = pydantic.Field(alias="contract")
    keys: Beside  # folder with its key and certificate
    address: str  # where the aggregator listens
    folder: Beside  # its own: the ledger, and a folder for each run
    signing_key: str = "default"
    patience_seconds: float = pydantic.Field(default=600.0, gt=0)  # to wait for the slowest other side
    ledger: _Ledger

    @cached_property
    def contract(self) -> Contract:
        """The contract that the file names."""
        return load_contract(self.contract_file)

    @property
    def state(self) -> Path:
        """Folder of this run: what a resumed run needs, and the release."""
        return self.folder / "runs" / self.contract.name

    @property
    def out(self) -> Path:
        """Where the release is to lie."""
        return self.state / "release"

    @cached_property
    def account(self) -> Account:
        """The ledger of the people that this side answers for; it lies outside of every run."""
        whole, own = self.contract.guarantee, self.ledger
        return Account(
            file=own.file or self.folder / f"{file_name(own.name)}.ledger",
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


Kind = TypeVar("Kind", bound=_File)
Config = TypeVar("Config", bound=SideConfig)


def load_contract(file: Path) -> Contract:
    """Reads a contract and the joined schema that it names."""
    read = dict(_read(file, _ContractFile))
    schema, guarantee = Schema.load(read.pop("schema_")), Guarantee(read.pop("epsilon"), read.pop("delta"))
    method = VFLGANTS(**{option.name: read.pop(option.name) for option in fields(VFLGANTS)})
    return Contract(schema=schema, guarantee=guarantee, method=method, **read)


def load(file: Path, kind: type[Config]) -> Config:
    """Reads a side's file, with the contract that it names; refuses a budget that can't be, before anything starts."""
    read = _read(file, kind)
    _ = read.account
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
