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

from understudy.data import Panel, Schema
from understudy.errors import DataError, InputError, MissingData
from understudy.files import whole_file
from understudy.privacy.budget import Guarantee, check_delta
from understudy.privacy.canonical import file_sha256
from understudy.privacy.certificate import Certificate, issue
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.columns import num_labels
from understudy.synthesizers.base import shared_context
from understudy.synthesizers.packs import GENERAL, UNREADABLE, from_file, load_pack, to_file
from understudy.synthesizers.pets.method import DOMAIN, PETS, Setup, below, encoding_of, prefixed
from understudy.synthesizers.pets.published import Vote
from understudy.synthesizers.pets.selection import VOTES, Lattice, private_vote, voters_of, votes_event
from understudy.synthesizers.release import PUBLIC_CONTEXT, Release

FORMAT = 4
BOUGHT, LATTICE = "bought.", "lattice."  # prefixes of arrays


@dataclass(frozen=True, eq=False, kw_only=True)
class Message:
    """Arrays and facts of one kind ("ballot", "proposal" or "state")."""

    kind: str
    facts: Mapping[str, Any]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write the file whole or not at all; an existing one is not overwritten, except a state."""
        content = to_file({"format": FORMAT, "kind": self.kind, **self.facts}, self.arrays)
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
            facts, arrays = from_file(path.read_bytes())
            numbers = facts["run"], facts["left"]
            if facts.pop("format") != FORMAT or facts.pop("kind") != kind or {type(one) for one in numbers} != {int}:
                raise KeyError(kind)
        except UNREADABLE as problem:
            raise InputError(f"'{path}' is not a {kind} of this version. Ask for the right file.") from problem
        return cls(kind=kind, facts=facts, arrays=arrays)

    def method(self, pack: str | None = None, public: Path | None = None) -> PETS:
        """Return the method that the message describes, with the reader's own files of the same pack and public table.

        Without a pack, files are those that the message names: for a state, whose reader has written it.
        """
        try:
            method = PETS(**self.facts["options"])
        except (KeyError, TypeError) as problem:
            raise InputError(f"The {self.kind} was altered: it lacks options. Ask for the file again.") from problem
        if pack is None:
            return method
        if self.facts.get("pack") != load_pack(pack, PETS.name).sha256:
            raise InputError(f"The {self.kind} was made with another module pack. Give both sides the same one.")
        if self.facts.get("public") != (None if public is None else file_sha256(public)):
            raise InputError(f"The {self.kind} was made with other public series. Give both sides the same, or none.")
        return replace(method, pack=pack, public=None if public is None else str(public))


def open_run(
    method: PETS, panel: Panel, ledger: Ledger, guarantee: Guarantee, noise: NoiseSource, *, whole: bool = True
) -> Message:
    """Charge the whole run, release the facts, and return the first ballot; not `whole`: the first of several files.

    Privacy: the order is that of `Synthesizer.fit`: check, plan, charge, look. The ballot is public.
    """
    schema = panel.schema
    if method.selection != "votes":
        raise InputError("selection: 'votes' is expected. One noisy mean needs one place: use `understudy synth`.")
    if method.pack == DOMAIN:
        raise InputError("pack: 'general' or a file is expected, of which both sides have a copy.")
    schema.require_declared()
    method._check(schema, ledger)
    if schema.population.size is None:
        raise InputError("population: a declared size is expected. Buy it first with `understudy buy population`.")
    check_delta(guarantee.delta, schema.protected_units, reproduction=ledger.reproduction)
    plan = method.spending_plan(schema, guarantee)
    if not whole and any(entry.label != VOTES for entry in plan.entries):
        raise InputError(
            "Several files: the run buys facts before the votes, which need the table in one piece. Use scale = "
            "'bounds' and a schema without labels, gaps and varying lengths, or give one file."
        )
    grant = ledger.charge(plan, label=method.name, noise=noise)
    private = method.private_series(panel, schema.population.size)
    bought = method.release_facts(private, grant)
    facts = {
        "run": grant.receipt.run,
        "options": asdict(method),
        "schema": private.schema.dumps(),
        "noise": votes_event(grant.plan).noise_multiplier * private.influence,
        "voters": private.population,
        "pack": load_pack(str(method.pack), method.name).sha256,
        "public": None if method.public is None else file_sha256(method.public),
        "left": grant.remaining(VOTES),
    }
    arrays = {**prefixed(BOUGHT, bought), PUBLIC_CONTEXT: shared_context(private)}
    return Message(kind="ballot", facts=facts, arrays=arrays)


def answer(
    proposal: Message,
    panels: Iterable[Panel],
    schema: Schema,
    ledger: Ledger,
    noise: NoiseSource,
    *,
    pack: str = GENERAL,
    public: Path | None = None,
    overrides: Mapping[str, str] | None = None,
) -> Message:
    """Count one vote under the run's charge and return its ballot; the last one carries the certificate.

    Privacy: executes one histogram of those charged, or raises. The proposal comes from outside and decides only what
    is voted on; schema, unit, charge and noise are the holder's own.
    """
    grant = ledger.resume(proposal.facts["run"], noise=noise)
    event = votes_event(grant.plan)
    method = proposal.method(pack, public)
    method._check(schema, ledger)  # windows are the proposal's to choose, within what can be protected
    encoding = encoding_of(method.learned_schema(schema), below(proposal.arrays, BOUGHT))
    lattice = Lattice(**below(proposal.arrays, LATTICE))
    parts = _parts(method, panels, schema.population.size or 1)
    voters = voters_of(parts, encoding, method.environment_for(encoding), lattice)
    neighbours = 1 if event.one_vote else method.settings.neighbours
    vote = private_vote(voters, grant, lattice, neighbours, method.influence(schema))
    histogram = vote(proposal.arrays["embeddings"], proposal.arrays["group"])
    left, certificate = grant.remaining(VOTES), None
    if not left:
        issued = issue(
            grant, schema, method=method.name, public_inputs=method.own_inputs(), overrides=overrides,
            trust=method.trust(schema, grant.plan),
        )  # fmt: skip
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


def begin(ballot: Message, pack: str, public: Path | None = None) -> Message:
    """Return the state of a new evolution from the first ballot: a seed, and no histogram yet."""
    seed = int(np.random.default_rng().integers(2**31))
    method, facts = replace(ballot.method(pack, public), seed=seed), ballot.facts
    size = method.settings.num_candidates(facts["voters"], facts["noise"], num_labels(Schema.loads(facts["schema"])))
    arrays = {**ballot.arrays, "histograms": np.zeros((0, size))}
    return Message(kind="state", facts={**facts, "options": asdict(method)}, arrays=arrays)


def advance(state: Message, ballot: Message) -> Message:
    """Return the state after one more vote."""
    if ballot.facts["run"] != state.facts["run"] or "histogram" not in ballot.arrays:
        raise InputError("The ballot belongs to another run, or holds no votes. Give the answer to the last proposal.")
    histograms, histogram = state.arrays["histograms"], ballot.arrays["histogram"]
    if ballot.facts["left"] >= state.facts["left"]:
        raise InputError("This ballot has been counted already. Give the answer to the last proposal.")
    if histogram.shape != histograms.shape[1:]:
        raise InputError("The ballot counts other candidates than were proposed. Give the answer to the last proposal.")
    known = {name: ballot.facts.get(name) for name in ("left", "certificate")}
    arrays = {**state.arrays, "histograms": np.concatenate([histograms, histogram[None]])}
    return replace(state, facts={**state.facts, **known}, arrays=arrays)


def evolved(state: Message) -> "Message | Release":
    """Return the proposal that is voted on next, or the release after the last vote.

    The evolution runs again from its seed, through every histogram that was counted: a state needs nothing else.
    """
    facts, method, counted = state.facts, state.method(), state.arrays["histograms"]
    schema, bought = Schema.loads(facts["schema"]), below(state.arrays, BOUGHT)
    stages = method.settings.stages(float(facts["noise"]))[: len(counted) + facts["left"]]  # a lost vote has no stage

    def recorded(here: Setup) -> Vote:
        answers = iter(counted)

        def vote(embeddings: np.ndarray, group: np.ndarray) -> np.ndarray:
            answer = next(answers, None)
            if answer is None:
                raise _NotVoted(prefixed(LATTICE, vars(here.lattice)) | {"embeddings": embeddings, "group": group})
            return np.asarray(answer)

        return vote

    try:
        arrays = method.evolved(schema, bought, counted.shape[1], stages, recorded, lambda *done: None)
    except _NotVoted as asked:
        named = {name: facts[name] for name in ("run", "pack", "public", "options", "left")}
        return Message(kind="proposal", facts=named, arrays={**prefixed(BOUGHT, bought), **asked.args[0]})
    if facts.get("certificate") is None:
        raise InputError("The last ballot carries no certificate. Ask the data holder for it.")
    arrays[PUBLIC_CONTEXT] = state.arrays[PUBLIC_CONTEXT]
    certificate = Certificate.from_json(facts["certificate"])
    return Release(synthesizer=method, schema=schema, arrays=arrays, certificate=certificate)


class _NotVoted(Exception):
    """Candidates that no ballot has counted yet: arrays by name, as they are proposed."""
