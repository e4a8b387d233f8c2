"""What all sides of one run agree on before they start: one file, the same at every organisation."""

import hashlib
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Literal, get_args

from understudy.data import Schema
from understudy.errors import InputError
from understudy.privacy import canonical
from understudy.privacy.budget import Guarantee, check_delta
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import SpendingPlan
from understudy.synthesizers.options import require_above_zero, require_one_of
from understudy.synthesizers.vflgan_ts.method import VFLGANTS
from understudy.synthesizers.vflgan_ts.partition import partition

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
        if self.method.window_steps is not None:
            raise InputError("window_steps: whole series are expected where several organisations train together.")

    @property
    def parties(self) -> tuple[str, ...]:
        """Who takes part, in the order in which the schema names them."""
        return tuple(columns.party for columns in partition(self.schema))

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
