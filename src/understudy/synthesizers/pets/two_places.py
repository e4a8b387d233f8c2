"""Private evolution in two places: the data holder votes, another party evolves, and files travel between them.

Ballots, proposals and states are safetensors with one JSON text of facts. All are public: a ballot holds what was
released under a charge, the others what was computed from ballots. The holder need not trust a proposal: whatever it
says, a unit's vote has length one and noise of the charged size goes on it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save

from understudy.data import Panel, Schema
from understudy.errors import DataError, InputError, MissingData
from understudy.files import whole_file
from understudy.privacy.budget import Guarantee, check_delta
from understudy.privacy.certificate import Certificate, issue
from understudy.privacy.events import DiscreteGaussian
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.columns import num_labels
from understudy.statistics.encoding import Encoding
from understudy.synthesizers.base import shared_context
from understudy.synthesizers.pets import public_side, sampling
from understudy.synthesizers.pets.method import PETS
from understudy.synthesizers.pets.published import Environment, Population, Proposal, propose, select
from understudy.synthesizers.pets.voting import LABEL, Lattice, blank, private_vote, voters_of
from understudy.synthesizers.release import PUBLIC_CONTEXT, Release

_KEPT = ("run", "schema", "noise", "pack", "options")
_RELATIVES = "relatives."
FORMAT = 1
BOUGHT, LATTICE = "bought.", "lattice."  # prefixes of arrays
_KEY = "understudy-pets"


@dataclass(frozen=True, eq=False, kw_only=True)
class Message:
    """Arrays and facts of one kind ("ballot", "proposal" or "state")."""

    kind: str
    facts: Mapping[str, Any]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write the file whole or not at all; an existing one is not overwritten, except a state."""
        facts = json.dumps({"format": FORMAT, "kind": self.kind, **self.facts}, sort_keys=True)
        content = save({name: np.ascontiguousarray(array) for name, array in self.arrays.items()}, {_KEY: facts})
        if self.kind != "state" and path.exists():
            raise InputError(f"'{path}' exists already. Choose another name.")
        with whole_file(path) as draft:
            draft.write_bytes(content)

    @classmethod
    def load(cls, path: Path, kind: str) -> "Message":
        """Read a file of the expected kind."""
        if not path.is_file():
            raise MissingData(f"'{path}' does not exist: a {kind} file is expected.")
        try:
            with safe_open(path, framework="numpy") as file:
                facts = json.loads((file.metadata() or {})[_KEY])
            if facts.pop("format") != FORMAT or facts.pop("kind") != kind:
                raise KeyError(kind)
            return cls(kind=kind, facts=facts, arrays=load_file(path))
        except (SafetensorError, KeyError, ValueError, TypeError) as problem:
            raise InputError(f"'{path}' is not a {kind} of this version. Ask for the right file.") from problem

    def part(self, prefix: str) -> dict[str, np.ndarray]:
        """Return the arrays below a prefix, without it."""
        return {name.removeprefix(prefix): array for name, array in self.arrays.items() if name.startswith(prefix)}

    def whole_number(self, name: str) -> int:
        """Return a fact that has to be a whole number."""
        value = self.facts.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise InputError(f"The {self.kind} lacks '{name}': it was altered. Ask for the file again.")
        return value


def options_of(message: Message) -> PETS:
    """Return the method as a message describes it."""
    try:
        return PETS(**message.facts["options"])
    except (KeyError, TypeError) as problem:
        raise InputError(f"The {message.kind} was altered: it lacks options. Ask for the file again.") from problem


def open_run(
    method: PETS, panel: Panel, ledger: Ledger, guarantee: Guarantee, noise: NoiseSource, *, whole: bool = True
) -> Message:
    """Charge the whole run, release the facts, and return the first ballot.

    Args:
        panel: The private series, or the first of several files of them if not `whole`.

    Privacy: the order is that of `Synthesizer.fit`: check, plan, charge, look. The ballot is public.
    """
    schema = panel.schema
    plan = _checked_plan(method, schema, ledger, guarantee)
    if not whole and any(entry.label != LABEL for entry in plan.entries):
        raise InputError(
            "Several files: the run buys facts before the votes, which need the table in one piece. Use scale = "
            "'bounds' and a schema without labels, gaps and varying lengths, or give one file."
        )
    grant = ledger.charge(plan, label=method.name, noise=noise)
    private = method.private_series(panel, schema.population.size or 1)
    bought = public_side.release_facts(method, private, grant)
    facts = {
        "run": grant.receipt.run,
        "options": asdict(method),
        "schema": private.schema.dumps(),
        "noise": _votes_event(grant).noise_multiplier * private.influence,
        "voters": private.population,
        "pack": public_side.load_pack(method.pack).sha256,
        "left": grant.remaining(LABEL),
    }
    arrays = {f"{BOUGHT}{name}": array for name, array in bought.items()}
    return Message(kind="ballot", facts=facts, arrays={**arrays, PUBLIC_CONTEXT: shared_context(private)})


def answer(
    proposal: Message,
    panels: Iterable[Panel],
    schema: Schema,
    ledger: Ledger,
    noise: NoiseSource,
    *,
    pack: str = public_side.GENERAL,
    overrides: Mapping[str, str] | None = None,
) -> Message:
    """Counts one vote under the run's charge and returns its ballot; the last one carries the certificate.

    Args:
        panels: The private series, in one or several files of whole units.
        overrides: Rules a person lifted by name, for the certificate.

    Privacy: executes one histogram of those charged, or raises. The proposal comes from outside and decides only what
    is voted on; schema, unit, charge and noise are the holder's own.
    """
    grant = ledger.resume(proposal.whole_number("run"), noise=noise)
    event = _votes_event(grant)
    method = replace(options_of(proposal), pack=pack)
    method._check(schema, ledger)  # windows are the proposal's to choose, within what can be protected
    modules = public_side.load_pack(pack)
    if proposal.facts.get("pack") != modules.sha256:
        raise InputError("The proposal was made with another module pack. Give both sides the same one.")
    learned = method.learned_schema(schema)
    encoding = public_side.encoding_of(learned, proposal.part(BOUGHT))
    environment = public_side.environment_of(method, encoding, modules)
    lattice = Lattice(**proposal.part(LATTICE))
    parts = _parts(method, panels, schema.population.size or 1)
    fitting = (_fitting(private, encoding, environment, lattice) for private in parts)
    voters = voters_of(fitting, encoding, environment, lattice)
    neighbours = 1 if event.one_vote else method.settings.neighbours
    vote = private_vote(voters, grant, lattice, neighbours, method.influence(schema))
    histogram = vote(proposal.arrays["embeddings"], proposal.arrays["group"])
    left = grant.remaining(LABEL)
    certificate = None if left else json.loads(_certificate(grant, schema, method, overrides or {}).dumps())
    facts = {"run": grant.receipt.run, "left": left, "certificate": certificate}
    return Message(kind="ballot", facts=facts, arrays={"histogram": histogram})


def _parts(method: PETS, panels: Iterable[Panel], population: int) -> Iterator[PrivateSeries]:
    """Yields files of one population, read one after another; a unit may be in one of them only."""
    seen: set[str] = set()
    for panel in panels:
        identifiers = set() if panel.unit_ids is None else set(map(str, panel.unit_ids.tolist()))  # 7 is "7" elsewhere
        if seen & identifiers:
            raise DataError("Files: a unit is in two of them. Put all of a unit's rows into one file.", column=None)
        seen |= identifiers
        yield method.private_series(panel, population)


def _fitting(private: PrivateSeries, encoding: Encoding, environment: Environment, lattice: Lattice) -> PrivateSeries:
    """Return the series; refuses a lattice that they do not fit, also where nobody is there."""
    lattice.coordinates(blank(private.panel, encoding, environment))
    return private


def _checked_plan(method: PETS, schema: Schema, ledger: Ledger, guarantee: Guarantee) -> SpendingPlan:
    """Return the plan of a run; whatever can be refused without looking at data is refused."""
    schema.require_declared()
    method._check(schema, ledger)
    if schema.population.size is None:
        raise InputError("population: a declared size is expected. Buy it first with `understudy buy population`.")
    check_delta(guarantee.delta, schema.protected_units, reproduction=ledger.reproduction)
    return method.spending_plan(schema, guarantee)


def _votes_event(grant: Grant) -> DiscreteGaussian:
    event = grant.plan.event(LABEL)
    if not isinstance(event, DiscreteGaussian):
        raise InputError("This run of the ledger was not charged for votes. Open one with `understudy pets vote`.")
    return event


def _certificate(grant: Grant, schema: Schema, method: PETS, overrides: Mapping[str, str]) -> Certificate:
    inputs = {"pets pack": public_side.load_pack(method.pack).sha256}
    trust = method.trust(schema, grant.plan)
    return issue(grant, schema, method=method.name, public_inputs=inputs, overrides=overrides, trust=trust)


def begin(ballot: Message, pack: str) -> Message:
    """Return the state of a new evolution from the first ballot: its first population and what is to be voted on."""
    method = replace(options_of(ballot), pack=pack)
    if public_side.load_pack(pack).sha256 != ballot.facts.get("pack"):
        raise InputError("The data holder votes with another module pack. Give both sides the same one.")
    schema, bought = Schema.loads(ballot.facts["schema"]), ballot.part(BOUGHT)
    rng = np.random.default_rng()
    size = method.settings.num_candidates(ballot.facts["voters"], ballot.facts["noise"], num_labels(schema))
    here = public_side.prepare(method, schema, bought, size, rng)
    left = ballot.whole_number("left")
    arrays = {f"{BOUGHT}{name}": array for name, array in bought.items()}
    arrays |= {f"{LATTICE}{name}": getattr(here.lattice, name) for name in ("centre", "step")}
    arrays[PUBLIC_CONTEXT] = ballot.arrays[PUBLIC_CONTEXT]
    facts = {**{name: ballot.facts[name] for name in _KEPT}, "options": asdict(method), "left": left, "ancestors": []}
    return _with_proposal(facts, arrays, here.population, rng)


def advance(state: Message, ballot: Message) -> "Message | Release":
    """Return the next state after a vote, or the release after the last one."""
    if ballot.whole_number("run") != state.whole_number("run") or "histogram" not in ballot.arrays:
        raise InputError("The ballot belongs to another run, or holds no votes. Give the answer to the last proposal.")
    if ballot.whole_number("left") >= state.whole_number("left"):
        raise InputError("This ballot has been counted already. Give the answer to the last proposal.")
    method, rng = options_of(state), np.random.default_rng()
    histogram = ballot.arrays["histogram"]
    proposal = _proposal_of(state)
    if histogram.shape != (proposal.parents.size,):
        raise InputError("The ballot counts other candidates than were proposed. Give the answer to the last proposal.")
    schema = Schema.loads(state.facts["schema"])
    environment = public_side.environment_of(method, public_side.encoding_of(schema, state.part(BOUGHT)))
    population = select(proposal, environment, histogram, _stage(state)[1], rng)
    ancestors = [*state.facts["ancestors"], population.num_ancestors]
    facts = {**state.facts, "left": ballot.whole_number("left"), "ancestors": ancestors}
    if facts["left"] == 0:
        return _release(method, schema, state, population, ancestors, ballot.facts["certificate"])
    kept = {name: array for name, array in state.arrays.items() if not name.startswith((_RELATIVES, "parents."))}
    return _with_proposal(facts, kept, population, rng)


def proposal_of_state(state: Message) -> Message:
    """Return what the data holder gets to see: candidates as they are voted on, and how to look at them."""
    names = [name for name in state.arrays if name.startswith((BOUGHT, LATTICE))]
    arrays = {name: state.arrays[name] for name in names}
    arrays |= {"embeddings": state.arrays["embeddings"], "group": state.arrays["parents.group"]}
    facts = {name: state.facts[name] for name in ("run", "pack", "options", "left")}
    return Message(kind="proposal", facts=facts, arrays=arrays)


def _with_proposal(
    facts: dict[str, Any], kept: dict[str, np.ndarray], population: Population, rng: np.random.Generator
) -> Message:
    """Return the state whose next vote is about `population`."""
    bare = Message(kind="state", facts=facts, arrays=kept)
    method, schema = options_of(bare), Schema.loads(facts["schema"])
    environment = public_side.environment_of(method, public_side.encoding_of(schema, bare.part(BOUGHT)))
    made = propose(population, environment, _stage(bare)[0], rng)
    arrays = {**kept, "embeddings": made.embeddings.astype(np.float32)}
    arrays |= sampling.population_arrays("parents.", population)
    for place, relative in enumerate(made.relatives):
        arrays |= sampling.population_arrays(f"{_RELATIVES}{place}.", relative)
    return Message(kind="state", facts=facts, arrays=arrays)


def _proposal_of(state: Message) -> Proposal:
    method = options_of(state)
    relatives = (Population(**state.part(f"{_RELATIVES}{place}.")) for place in range(method.settings.lookahead))
    return Proposal(
        parents=Population(**state.part("parents.")),
        degree=_stage(state)[0],
        relatives=tuple(relatives),
        embeddings=state.arrays["embeddings"],
    )


def _stage(state: Message) -> tuple[float, float]:
    """Degree and threshold of the vote that comes next."""
    recipe = options_of(state).settings
    return recipe.stages(float(state.facts["noise"]))[recipe.iterations - state.whole_number("left")]


def _release(
    method: PETS, schema: Schema, state: Message, population: Population, ancestors: list[int], certificate: Any
) -> Release:
    if certificate is None:
        raise InputError("The last ballot carries no certificate. Ask the data holder for it.")
    arrays = sampling.to_arrays(method, population, state.part(BOUGHT), ancestors)
    arrays[PUBLIC_CONTEXT] = state.arrays[PUBLIC_CONTEXT]
    return Release(synthesizer=method, schema=schema, arrays=arrays, certificate=Certificate.from_json(certificate))
