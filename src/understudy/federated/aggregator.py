"""The aggregator's side of a whole run: it hears all parties, trains the shared discriminator and joins the release.

It holds nobody's table. It still keeps a ledger of the joined people: features of single rows reach it, its own
network is part of the mechanism, and what it counts is what the certificate says.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.errors import InputError
from understudy.federated import milestones, vouching
from understudy.federated.account import Account, iterations_left
from understudy.federated.alignment import passed_on
from understudy.federated.certificates import AGGREGATOR
from understudy.federated.contract import Contract
from understudy.federated.documents import (
    Documents,
    documents_of,
    frame_of,
    from_arrays,
    from_json,
    to_json,
    whole_numbers,
)
from understudy.federated.party import FAREWELL
from understudy.files import whole_file, whole_folder
from understudy.privacy import canonical
from understudy.privacy.certificate import FILE_NAME, Certificate
from understudy.privacy.grant import Grant
from understudy.privacy.keys import SigningKey
from understudy.synthesizers.frame.facts import Facts
from understudy.synthesizers.release import Release
from understudy.synthesizers.vflgan_ts import owners, parts
from understudy.synthesizers.vflgan_ts.aggregator import Aggregator
from understudy.synthesizers.vflgan_ts.protocol import END, AggregatorSide, Frames

LOSSES = "losses.json"
_CHECKPOINTS = "checkpoints"
Step = Generator[Frames, Frames, Frames]  # answers frames, returns those that come next
Heard = Mapping[str, Documents]  # by party


@dataclass(frozen=True, kw_only=True, repr=False)
class Chair:
    """Whoever leads one run; attributes as for a party."""

    contract: Contract
    account: Account
    state: Path
    key: SigningKey
    out: Path
    progress: Callable[[str, float], None] = lambda stage, share: None

    def side(self) -> AggregatorSide:
        """Leads from the first word to the release.

        Privacy: sees features of single rows, which can be inverted; it is trusted not to keep them.
        """
        contract, parties = self.contract, self.contract.parties
        frames = yield {}
        frames = yield from self._greeted(frames)
        if contract.alignment == "psi":
            frames = yield from passed_on(parties, frames)
        known = self._heard(frames, "open", {"known"})
        grant = self.account.grant(contract, AGGREGATOR)
        done, last = self._agreed(known, grant)
        frames = yield self._to_all("open", {"agreed": to_json([done, last])})
        bought = self._heard(frames, "facts", {"facts"})
        facts = self._facts(bought)
        frames = yield self._to_all("facts", {})
        frames = yield from self._trained(frames, grant, facts, done, last)
        yield from self._released(frames, grant, facts)

    def _greeted(self, frames: Frames) -> Step:
        for party, said in self._heard(frames, "hello", {"contract"}).items():
            if said["contract"] != self.contract.digest.encode():
                raise InputError(
                    f"'{party}' means another run: its schema, its options or its version differ. Give all sides the "
                    "same contract. Nothing was charged."
                )
        return (yield self._to_all("hello", {}))

    def _agreed(self, known: Heard, grant: Grant) -> tuple[int, int]:
        """Returns the last checkpoint that all sides have, and the iteration with which what all may still run ends."""
        sides = [whole_numbers(said["known"], party) for party, said in known.items()]
        sides.append([iterations_left(grant, self.contract), *milestones.reached(self.state / _CHECKPOINTS)])
        left = min(side[0] for side in sides)
        done = max(set.intersection(*(set(side[1:]) for side in sides)), default=0)
        return done, done + left if self.contract.method.mode == "sound" else self.contract.method.recipe.iterations

    def _facts(self, bought: Heard) -> Facts:
        """Puts the parties' parts together; a party that sends other columns than it holds is refused."""
        try:
            own = {party: Facts.from_arrays(from_arrays(said["facts"], party)) for party, said in bought.items()}
            return parts.joined_facts(self.contract.schema, own)
        except (KeyError, ValueError, StopIteration, IndexError) as problem:
            if isinstance(problem, InputError):
                raise
            raise InputError("A party sent other facts than its columns have. All sides need one version.") from problem

    def _trained(self, frames: Frames, grant: Grant, facts: Facts, done: int, last: int) -> Step:
        contract, parties = self.contract, self.contract.parties
        update, draws = owners.aggregator_update(contract.method, grant, len(parties), contract.population, done)
        server = Aggregator(parties, contract.agreement, update, draws, facts.label_share)
        if contract.noise_seed is not None:
            server.coins.manual_seed(contract.test_seed("coins"))
        kept = milestones.Milestones(
            self.state / _CHECKPOINTS, grant, contract, {"shared": server.update}, server.coins, server.losses
        )
        kept.begin(done, last)

        def before(iteration: int) -> None:
            kept.before(iteration)
            self.progress("training", iteration / max(1, last))

        frames = yield from _until_the_end(server.side(before, done, last), frames)
        kept.end()
        with whole_file(self.state / LOSSES) as draft:  # public in every mode
            draft.write_text(canonical.dumps(server.losses), encoding="utf-8")
        return frames

    def _released(self, frames: Frames, grant: Grant, facts: Facts) -> AggregatorSide:
        """Joins all generators, has all parties sign, and writes the release."""
        heard, contract = self._heard(frames, "release", {"generators", "entry"}), self.contract
        generators = {party: from_arrays(said["generators"], party) for party, said in heard.items()}
        entries = {party: _entry(party, said["entry"]) for party, said in heard.items()}
        method = contract.method
        try:
            arrays = parts.released_arrays(contract.schema, method.recipe, method.seed, facts, generators)
        except (KeyError, RuntimeError, ValueError) as problem:
            raise InputError("A party sent other generators than agreed. All sides need one version.") from problem
        release = Release(
            synthesizer=method, schema=contract.schema, arrays=dict(arrays), certificate=vouching.claim(grant, contract)
        )
        with whole_folder(self.out) as draft:
            release.write_files(draft)
            certificate = vouching.joint_certificate(grant, contract, entries, draft, self.key)
            shown = {name: (draft / name).read_bytes() for name in vouching.FILES}
            frames = yield self._to_all("release", {FILE_NAME: to_json(certificate.to_json()), **shown})
            final = self._signed(frames, certificate)
            (draft / FILE_NAME).write_text(final.dumps(), encoding="utf-8")
        self.progress(END, 1.0)
        yield self._to_all(FAREWELL, {FILE_NAME: to_json(final.to_json())})

    def _signed(self, frames: Frames, certificate: Certificate) -> Certificate:
        signatures = self._heard(frames, "sign", {"signature"})
        by_party = {party: said["signature"].decode("ascii", "replace") for party, said in signatures.items()}
        return vouching.cosigned(certificate, by_party, self.key)

    def _heard(self, frames: Frames, stage: str, names: set[str]) -> Heard:
        return {party: documents_of(frame, 0, stage, names, party) for party, frame in frames.items()}

    def _to_all(self, stage: str, documents: Documents) -> Frames:
        return {party: frame_of(0, stage, documents) for party in self.contract.parties}


def _until_the_end(side: AggregatorSide, frames: Frames) -> Step:
    """Runs an inner conversation to its end, and returns the frames that come after it."""
    next(side)
    ended = False
    while not ended:
        answers = side.send(frames)
        ended = all(answer.stage == END for answer in answers.values())
        frames = yield answers
    side.close()
    return frames


def _entry(party: str, content: bytes) -> dict[str, Any]:
    entry = from_json(content, party)
    if not isinstance(entry, dict) or entry.get("party") != party or not isinstance(entry.get("executed"), dict):
        raise InputError(f"'{party}': an entry about itself is expected, got another. The run is stopped.")
    return entry
