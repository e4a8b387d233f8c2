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
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.columns import num_labels
from understudy.synthesizers.base import shared_context
from understudy.synthesizers.packs import GENERAL
from understudy.synthesizers.pets import public_side
from understudy.synthesizers.pets.method import PETS
from understudy.synthesizers.pets.published import Environment, Population, Proposal, propose, select
from understudy.synthesizers.pets.voting import LABEL, Lattice, private_vote, voters_of
from understudy.synthesizers.release import PUBLIC_CONTEXT, Release

FORMAT, _KEY = 1, "understudy-pets"
BOUGHT, LATTICE, PARENTS, RELATIVES = "bought.", "lattice.", "parents.", "relatives."  # prefixes of arrays


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

    def method(self, pack: str | None = None) -> PETS:
        """Return the method that the message describes, with its pack or the reader's own file of the same one."""
        try:
            method = PETS(**self.facts["options"])
        except (KeyError, TypeError) as problem:
            raise InputError(f"The {self.kind} was altered: it lacks options. Ask for the file again.") from problem
        if pack is None:
            return method
        if self.facts.get("pack") != public_side.load_pack(pack, PETS.name).sha256:
            raise InputError(f"The {self.kind} was made with another module pack. Give both sides the same one.")
        return replace(method, pack=pack)


def open_run(
    method: PETS, panel: Panel, ledger: Ledger, guarantee: Guarantee, noise: NoiseSource, *, whole: bool = True
) -> Message:
    """Charge the whole run, release the facts, and return the first ballot.

    Args:
        panel: The private series, or the first of several files of them if not `whole`.

    Privacy: the order is that of `Synthesizer.fit`: check, plan, charge, look. The ballot is public.
    """
    schema = panel.schema
    schema.require_declared()
    method._check(schema, ledger)
    if schema.population.size is None:
        raise InputError("population: a declared size is expected. Buy it first with `understudy buy population`.")
    check_delta(guarantee.delta, schema.protected_units, reproduction=ledger.reproduction)
    plan = method.spending_plan(schema, guarantee)
    if not whole and any(entry.label != LABEL for entry in plan.entries):
        raise InputError(
            "Several files: the run buys facts before the votes, which need the table in one piece. Use scale = "
            "'bounds' and a schema without labels, gaps and varying lengths, or give one file."
        )
    grant = ledger.charge(plan, label=method.name, noise=noise)
    private = method.private_series(panel, schema.population.size)
    bought = public_side.release_facts(method, private, grant)
    facts = {
        "run": grant.receipt.run,
        "options": asdict(method),
        "schema": private.schema.dumps(),
        "noise": _votes_event(grant).noise_multiplier * private.influence,
        "voters": private.population,
        "pack": public_side.load_pack(method.pack, method.name).sha256,
        "left": grant.remaining(LABEL),
    }
    arrays = {**_prefixed(BOUGHT, bought), PUBLIC_CONTEXT: shared_context(private)}
    return Message(kind="ballot", facts=facts, arrays=arrays)


def answer(
    proposal: Message,
    panels: Iterable[Panel],
    schema: Schema,
    ledger: Ledger,
    noise: NoiseSource,
    *,
    pack: str = GENERAL,
    overrides: Mapping[str, str] | None = None,
) -> Message:
    """Count one vote under the run's charge and return its ballot; the last one carries the certificate.

    Args:
        panels: The private series, in one or several files of whole units.
        overrides: Rules a person lifted by name, for the certificate.

    Privacy: executes one histogram of those charged, or raises. The proposal comes from outside and decides only what
    is voted on; schema, unit, charge and noise are the holder's own.
    """
    grant = ledger.resume(proposal.whole_number("run"), noise=noise)
    event = _votes_event(grant)
    method = proposal.method(pack)
    method._check(schema, ledger)  # windows are the proposal's to choose, within what can be protected
    encoding = public_side.encoding_of(method.learned_schema(schema), proposal.part(BOUGHT))
    lattice = Lattice(**proposal.part(LATTICE))
    parts = _parts(method, panels, schema.population.size or 1)
    voters = voters_of(parts, encoding, public_side.environment_of(method, encoding), lattice)
    neighbours = 1 if event.one_vote else method.settings.neighbours
    vote = private_vote(voters, grant, lattice, neighbours, method.influence(schema))
    histogram = vote(proposal.arrays["embeddings"], proposal.arrays["group"])
    left, certificate = grant.remaining(LABEL), None
    if not left:
        inputs = {"pets pack": proposal.facts["pack"]}
        trust = method.trust(schema, grant.plan)
        issued = issue(grant, schema, method=method.name, public_inputs=inputs, overrides=overrides, trust=trust)
        certificate = json.loads(issued.dumps())
    facts = {"run": grant.receipt.run, "left": left, "certificate": certificate}
    return Message(kind="ballot", facts=facts, arrays={"histogram": histogram})


def _parts(method: PETS, panels: Iterable[Panel], population: int) -> Iterator[PrivateSeries]:
    """Yield files of one population, read one after another; a unit may be in one of them only."""
    seen: set[str] = set()
    for panel in panels:
        identifiers = set() if panel.unit_ids is None else set(map(str, panel.unit_ids.tolist()))  # 7 is "7" elsewhere
        if seen & identifiers:
            raise DataError("Files: a unit is in two of them. Put all of a unit's rows into one file.", column=None)
        seen |= identifiers
        yield method.private_series(panel, population)


def _votes_event(grant: Grant) -> DiscreteGaussian:
    event = grant.plan.event(LABEL)
    if not isinstance(event, DiscreteGaussian):
        raise InputError("This run of the ledger was not charged for votes. Open one with `understudy pets vote`.")
    return event


def begin(ballot: Message, pack: str) -> Message:
    """Return the state of a new evolution from the first ballot: its first population and what is to be voted on."""
    method, facts = ballot.method(pack), ballot.facts
    schema, bought = Schema.loads(facts["schema"]), ballot.part(BOUGHT)
    rng = np.random.default_rng()
    size = method.settings.num_candidates(facts["voters"], facts["noise"], num_labels(schema))
    here = public_side.prepare(method, schema, bought, size, rng)
    arrays = {**ballot.arrays, **_prefixed(LATTICE, vars(here.lattice))}
    known = {name: facts[name] for name in ("run", "schema", "noise", "pack")}
    left = ballot.whole_number("left")
    state = Message(
        kind="state", facts={**known, "options": asdict(method), "left": left, "ancestors": []}, arrays=arrays
    )
    return _with_proposal(state, here.environment, here.population, rng)


def advance(state: Message, ballot: Message) -> "Message | Release":
    """Return the next state after a vote, or the release after the last one."""
    if ballot.whole_number("run") != state.whole_number("run") or "histogram" not in ballot.arrays:
        raise InputError("The ballot belongs to another run, or holds no votes. Give the answer to the last proposal.")
    left = ballot.whole_number("left")
    if left >= state.whole_number("left"):
        raise InputError("This ballot has been counted already. Give the answer to the last proposal.")
    method, rng, histogram = state.method(), np.random.default_rng(), ballot.arrays["histogram"]
    schema, bought = Schema.loads(state.facts["schema"]), state.part(BOUGHT)
    parents, relatives = (Population(**state.part(prefix)) for prefix in (PARENTS, RELATIVES))
    if histogram.shape != (parents.size,):
        raise InputError("The ballot counts other candidates than were proposed. Give the answer to the last proposal.")
    environment = public_side.environment_of(method, public_side.encoding_of(schema, bought))
    degree, threshold = _stage(state)
    voted = Proposal(parents=parents, degree=degree, relatives=relatives, embeddings=state.arrays["embeddings"])
    population = select(voted, environment, histogram, threshold, rng)
    ancestors = [*state.facts["ancestors"], population.num_ancestors]
    if left:
        following = replace(state, facts={**state.facts, "left": left, "ancestors": ancestors})
        return _with_proposal(following, environment, population, rng)
    if ballot.facts["certificate"] is None:
        raise InputError("The last ballot carries no certificate. Ask the data holder for it.")
    arrays = public_side.to_arrays(method, population, bought, ancestors)
    arrays[PUBLIC_CONTEXT] = state.arrays[PUBLIC_CONTEXT]
    certificate = Certificate.from_json(ballot.facts["certificate"])
    return Release(synthesizer=method, schema=schema, arrays=arrays, certificate=certificate)


def proposal_of_state(state: Message) -> Message:
    """Return what the data holder gets to see: candidates as they are voted on, and how to look at them."""
    arrays = {name: array for name, array in state.arrays.items() if name.startswith((BOUGHT, LATTICE))}
    arrays |= {"embeddings": state.arrays["embeddings"], "group": state.arrays[f"{PARENTS}group"]}
    facts = {name: state.facts[name] for name in ("run", "pack", "options", "left")}
    return Message(kind="proposal", facts=facts, arrays=arrays)


def _with_proposal(
    state: Message, environment: Environment, population: Population, rng: np.random.Generator
) -> Message:
    """Return the state whose next vote is about `population`."""
    made = propose(population, environment, _stage(state)[0], rng)
    new = {"embeddings": made.embeddings, **population.arrays(PARENTS), **made.relatives.arrays(RELATIVES)}
    return replace(state, arrays={**state.arrays, **new})


def _stage(state: Message) -> tuple[float, float]:
    """Return degree and threshold of the vote that comes next."""
    recipe = state.method().settings
    return recipe.stages(float(state.facts["noise"]))[recipe.iterations - state.whole_number("left")]


def _prefixed(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{prefix}{name}": array for name, array in arrays.items()}
