"""Both sides of a whole run, from the greeting to the co-signed release: align, charge, buy, train, sign.

All that leaves a side is a frame of the protocol, so a run works in one process as well as over sockets. The aggregator
holds no table, but keeps a ledger of the joined people: features of single rows reach it, and its network is part of
the mechanism.

Iterations are counted before they run and saved after, so that a side killed at any moment can take part again. All
sides save after the same iterations and keep the last two checkpoints: one killed while saving has the one before.

Privacy: checkpoints are made from noisy gradients that were charged before (or in modes that protect no unit, from
anything). The state of noise is never saved, nor in `sound` that of latents.
"""

import secrets
import shutil
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pydantic
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as dump_tensors

from understudy.data import Panel
from understudy.data.io.read import check_units
from understudy.errors import InputError
from understudy.federated import cosigning
from understudy.federated.alignment import aligned, passed_on
from understudy.federated.config import Account, Contract
from understudy.federated.transport import AGGREGATOR
from understudy.files import whole_file, whole_folder
from understudy.privacy import canonical, events
from understudy.privacy.certificate import FILE_NAME, Certificate, cosigned_bytes
from understudy.privacy.grant import Grant
from understudy.privacy.keys import SigningKey
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.facts import Facts
from understudy.synthesizers.release import PUBLIC_CONTEXT, Release
from understudy.synthesizers.vflgan_ts.modes import NOISY_ROWS, Rule, noisy_rows, sound_rule, unprotected_rule
from understudy.synthesizers.vflgan_ts.partition import buy_part, joined_facts, num_values, own_rows, parts_of
from understudy.synthesizers.vflgan_ts.protocol import (
    END,
    AggregatorSide,
    Documents,
    Frame,
    Frames,
    PartySide,
    documents_of,
    frame_of,
    from_arrays,
    from_json,
    say,
    to_arrays,
    to_json,
)
from understudy.synthesizers.vflgan_ts.published import Aggregator, Owner, Party, Rows
from understudy.synthesizers.vflgan_ts.updates import Update
from understudy.training import checkpoint
from understudy.training.networks import to_arrays as network_arrays
from understudy.training.plan import TRAINING

FAREWELL = "farewell"  # stage of the last answer of a whole run
LOSSES = "losses.json"
_KEPT, _REST = 2, "rest.safetensors"  # checkpoints that stay, and what they hold besides networks
_CHECKPOINTS, _FACTS, _ROWS, _ORDER = "checkpoints", "facts.safetensors", "rows.safetensors", "order.key"
Progress = Callable[[str, float], None]  # is told the stage and the share of all iterations
Step = Generator[Frames, Frames, Frames]  # answers frames, returns those that come next
Received = Mapping[str, Documents]  # by party
_Count = Annotated[int, pydantic.Field(ge=0)]
_Known = Annotated[list[_Count], pydantic.Field(min_length=1)]  # iterations left, then those that were saved after
_Agreed = Annotated[list[_Count], pydantic.Field(min_length=2, max_length=2)]  # iterations done, and the last one


def kept(file: Path, make: Callable[[], bytes]) -> bytes:
    """Returns what a run made before, or makes it and keeps it, so that a resumed run has the same."""
    if not file.exists():
        content = make()
        with whole_file(file) as draft:
            draft.write_bytes(content)
    return file.read_bytes()


def known(grant: Grant, contract: Contract, checkpoints: Path) -> list[int]:
    """Returns how many iterations may still run, then those after which there is a checkpoint."""
    left = contract.method.recipe.iterations
    if contract.sound:
        left = grant.remaining(TRAINING)
    return [left, *reached(checkpoints)]


def require_unused(grant: Grant, label: str, contract: Contract) -> None:
    """Refuses to release a label a second time, where a crash came between its release and the disk."""
    if not grant.remaining(label):
        raise InputError(
            f"'{label}' was bought and lost in a crash before it was saved, and is not given twice. Start a run of "
            f"another name than '{contract.name}'; it has its own charge."
        )


def reached(folder: Path) -> list[int]:
    """Returns the iterations after which there is a checkpoint."""
    return sorted(int(path.name) for path in folder.glob("*") if path.name.isdigit())


@dataclass(frozen=True, kw_only=True, repr=False)
class _Side:
    """One organisation in one run."""

    contract: Contract
    account: Account
    state: Path  # its own folder for what a resumed run needs; private
    key: SigningKey
    out: Path  # where the release is to lie
    progress: Progress = lambda stage, share: None

    def _rule(self, grant: Grant, done: int) -> Rule:
        """Returns how this side updates its networks, with noise of its own."""
        contract, method = self.contract, self.contract.method
        if contract.sound:
            per_unit = contract.learned.unit.max_series
            return sound_rule(grant, method.recipe, len(contract.parties), contract.population, per_unit=per_unit)
        return unprotected_rule(method.mode, grant, method.recipe, contract.population, method.seed, done)


@dataclass(frozen=True, eq=False, repr=False)
class Checkpoints:
    """One side's checkpoints of one run, from the one after `done` iterations on; not all sides have later ones."""

    run: _Side
    grant: Grant
    owner: Owner
    done: int
    last: int

    def __post_init__(self) -> None:
        if self.done == self.last == 0:
            raise InputError(
                "All iterations of the run were counted before the first checkpoint was saved: none is left. Start a "
                "run of another name, with a smaller checkpoint_every."
            )
        if self.done and self.done not in reached(self.folder):
            raise InputError(f"'aggregator': it goes on from iteration {self.done}, which was not saved here.")
        for path in self.folder.glob("*"):
            if not path.name.isdigit() or int(path.name) > self.done:  # drafts of a crash, too
                shutil.rmtree(path)
        if self.run.contract.noise_seed is not None:
            self.owner.randomness.manual_seed(self.run.contract.test_seed(f"coins of {self.owner.name}"))
        if self.done:
            self._load()

    @property
    def folder(self) -> Path:
        """Where they lie."""
        return self.run.state / _CHECKPOINTS

    def before(self, iteration: int) -> None:
        """Saves what a whole block of iterations has made, then counts the next block as executed."""
        self.run.progress("training", iteration / max(1, self.last))
        done, contract = iteration - 1, self.run.contract
        if (done - self.done) % contract.checkpoint_every:
            return
        if done > self.done:
            self._save(done)
        if contract.sound:
            self.grant.begin_block(TRAINING, min(contract.checkpoint_every, self.last - done))

    def end(self) -> None:
        """Saves the result, so that a crash after the last iteration costs none."""
        if self.last not in reached(self.folder):
            self._save(self.last)

    def _save(self, iteration: int) -> None:
        owner = self.owner
        with whole_folder(self.folder / str(iteration)) as draft:
            for name, update in owner.updates.items():
                checkpoint.save(draft / name, self._identity(update), iteration, update.flat, update.optimiser)
            rest = {"losses": torch.tensor(owner.losses, dtype=torch.float64), "average": owner.average}
            if not self.run.contract.sound:
                rest["randomness"] = owner.randomness.get_state()
            (draft / _REST).write_bytes(dump_tensors(rest))
        for old in reached(self.folder)[:-_KEPT]:
            shutil.rmtree(self.folder / str(old))

    def _load(self) -> None:
        folder, owner = self.folder / str(self.done), self.owner
        executed = self.grant.executed[TRAINING] if self.run.contract.sound else self.done
        for name, update in owner.updates.items():
            checkpoint.load(folder / name, self._identity(update), executed, update.flat, update.optimiser)
        rest = load_tensors((folder / _REST).read_bytes())
        if "randomness" in rest:
            owner.randomness.set_state(rest["randomness"])
        owner.losses[:] = rest["losses"].tolist()
        owner.average.copy_(rest["average"])

    def _identity(self, update: Update) -> dict[str, Any]:
        charged = [events.to_json(entry.event) for entry in self.grant.plan.entries if entry.label == TRAINING]
        clipping_norm, size = self.run.contract.method.recipe.clipping_norm, update.flat.values.numel()
        event = charged[0] if charged else {}
        return checkpoint.identity(self.grant.receipt, self.run.contract.label, event, clipping_norm, size)


@dataclass(frozen=True, kw_only=True, repr=False)
class PartyRun(_Side):
    """A party's side of a run; its table `panel`, read by its part of the joined schema, is private."""

    party: str
    panel: Panel

    def side(self) -> PartySide:
        """Takes part from the first word to the release.

        Privacy: values are read after the charge is on the disk. Ids are compared before, which epsilon does not cover.
        """
        contract = self.contract
        yield from say("hello", {"contract": contract.digest.encode()}, set())
        private = yield from self._aligned()
        grant = self.account.grant(contract, self.party)
        done, last = yield from self._opened(grant)
        facts = self._facts(grant, private)
        yield from say("facts", {"facts": to_arrays(facts.to_arrays())}, set())
        rows = self._rows(grant, private, facts)
        party = Party(self.party, rows, contract.method.run_config(contract.learned), self._rule(grant, done).party)
        saved = Checkpoints(self, grant, party, done, last)
        yield from party.side(saved.before, done, last)
        saved.end()
        party.settle()
        yield from self._cosigned(grant, network_arrays(party.generators, ""))

    def _aligned(self) -> Generator[Frame, Frame, PrivateSeries]:
        """Brings the table's units into the order that all parties have."""
        panel, contract = self.panel, self.contract
        if contract.alignment == "psi":
            if panel.unit_ids is None:
                raise InputError("alignment: 'psi' needs a table with a column of ids. Give it one.")
            self.progress("aligning", 0.0)
            order = yield from aligned(self.party, contract.parties, panel.unit_ids, self._order_key())
            panel = panel.take_units(order)
        few = contract.few_units is not None
        check_units(panel.num_units, panel.num_series, panel.schema, allow_few_units=few)
        return contract.method.private_series(panel, contract.population)

    def _order_key(self) -> bytes:
        """Returns the key by which rows are put in order; kept, so that a resumed run has them in the same."""
        if self.contract.noise_seed is not None:
            return self.contract.test_seed("order").to_bytes(8, "little")
        return kept(self.state / _ORDER, lambda: secrets.token_bytes(32))

    def _opened(self, grant: Grant) -> Generator[Frame, Frame, tuple[int, int]]:
        """Agrees with all sides on the iterations that are done and on the last one."""
        own = known(grant, self.contract, self.state / _CHECKPOINTS)
        received = yield from say("open", {"known": to_json(own)}, {"agreed"})
        done, last = from_json(received["agreed"], "aggregator", _Agreed)
        return done, last

    def _facts(self, grant: Grant, private: PrivateSeries) -> Facts:
        """Buys this party's part of the facts, or finds what it bought before."""

        def bought() -> bytes:
            parts = parts_of(private.schema, self.contract.learned)
            for label in {entry.label for entry in grant.plan.entries} & set(parts):
                require_unused(grant, label, self.contract)
            self.progress("buying", 0.0)
            return to_arrays(buy_part(private, grant, self.contract.learned).to_arrays())

        return Facts.from_arrays(from_arrays(kept(self.state / _FACTS, bought), self.party))

    def _rows(self, grant: Grant, private: PrivateSeries, facts: Facts) -> Rows:
        """Returns the rows to train on; those of mode `local` are noised once in a run and kept."""
        contract = self.contract
        rows = own_rows(private, facts, contract.method.run_config(contract.learned).frequencies)
        if self.contract.method.mode != "local":
            return rows

        def noised() -> bytes:
            require_unused(grant, NOISY_ROWS, self.contract)
            (noisy,) = noisy_rows([rows], grant, private, num_values(contract.learned))
            return dump_tensors({"series": noisy.series.contiguous(), "label": noisy.label})

        return Rows(**load_tensors(kept(self.state / _ROWS, noised)))

    def _cosigned(self, grant: Grant, generators: dict[str, np.ndarray]) -> PartySide:
        """Hands its generators over, checks the release that all made, co-signs it and keeps a copy."""
        self.progress(END, 1.0)
        entry = cosigning.entry_of(self.party, grant, self.key)
        sent = {"generators": to_arrays(generators), "entry": to_json(entry)}
        shown = yield from say("release", sent, {FILE_NAME, *cosigning.FILES})
        proposal = cosigning.Proposal.of(shown)
        own = cosigning.claim(grant, self.contract)
        proposal.check(from_json(to_json(entry), self.party), own, self.contract, generators)
        signature = self.key.sign(cosigned_bytes(proposal.certificate))
        answer = yield frame_of(0, "sign", {"signature": signature.encode()})
        final = documents_of(answer, 0, FAREWELL, {FILE_NAME}, "aggregator")
        certificate = Certificate.from_json(from_json(final[FILE_NAME], "aggregator"))
        proposal.write(self.out, certificate)


@dataclass(frozen=True, kw_only=True, repr=False)
class AggregatorRun(_Side):
    """The aggregator's side of a run."""

    def side(self) -> AggregatorSide:
        """Leads from the first word to the release.

        Privacy: sees features of single rows, which can be inverted; it is trusted not to keep them.
        """
        contract = self.contract
        frames = yield {}
        for party, said in self._received(frames, "hello", {"contract"}).items():
            if said["contract"] != contract.digest.encode():
                raise InputError(
                    f"'{party}': the contract of this run is expected, got another: its schema, its options or its "
                    "version differ. Give all sides the same contract. Nothing was charged."
                )
        frames = yield self._to_all("hello", {})
        if contract.alignment == "psi":
            frames = yield from passed_on(contract.parties, frames)
        opened = self._received(frames, "open", {"known"})
        grant = self.account.grant(contract, AGGREGATOR)
        done, last = self._agreed(opened, grant)
        frames = yield self._to_all("open", {"agreed": to_json([done, last])})
        facts = self._facts(self._received(frames, "facts", {"facts"}))
        frames = yield self._to_all("facts", {})
        frames = yield from self._trained(frames, grant, facts, done, last)
        yield from self._released(frames, grant, facts)

    def _agreed(self, received: Received, grant: Grant) -> tuple[int, int]:
        """Returns the last checkpoint that all sides have, and the iteration with which what all may still run ends."""
        sides = [from_json(said["known"], party, _Known) for party, said in received.items()]
        sides.append(known(grant, self.contract, self.state / _CHECKPOINTS))
        left = min(side[0] for side in sides)
        done = max(set.intersection(*(set(side[1:]) for side in sides)), default=0)
        return done, done + left if self.contract.sound else self.contract.method.recipe.iterations

    def _facts(self, bought: Received) -> Facts:
        """Puts the parties' parts together; a party that sends other columns than it holds is refused."""
        own = {party: from_arrays(said["facts"], party) for party, said in bought.items()}
        try:
            facts = {party: Facts.from_arrays(arrays) for party, arrays in own.items()}
            return joined_facts(self.contract.learned, facts)
        except (KeyError, ValueError, StopIteration, IndexError) as problem:
            raise InputError("A party sent other facts than its columns have. All sides need one version.") from problem

    def _trained(self, frames: Frames, grant: Grant, facts: Facts, done: int, last: int) -> Step:
        contract, rule = self.contract, self._rule(grant, done)
        config = contract.method.run_config(contract.learned)
        aggregator = Aggregator(contract.parties, config, rule.aggregator, rule.batches, facts.label_share)
        saved = Checkpoints(self, grant, aggregator, done, last)
        frames = yield from aggregator.lead(frames, saved.before, done, last)
        saved.end()
        with whole_file(self.state / LOSSES) as draft:  # public in every mode
            draft.write_text(canonical.dumps(aggregator.losses), encoding="utf-8")
        return frames

    def _released(self, frames: Frames, grant: Grant, facts: Facts) -> AggregatorSide:
        """Joins all generators, has all parties sign, and writes the release."""
        sent, contract = self._received(frames, "release", {"generators", "entry"}), self.contract
        generators = {party: from_arrays(said["generators"], party) for party, said in sent.items()}
        entries = {party: _entry(party, said["entry"]) for party, said in sent.items()}
        try:
            arrays = contract.method.released_arrays(contract.learned, facts, generators)
        except (KeyError, RuntimeError, ValueError) as problem:
            raise InputError("A party sent other generators than agreed. All sides need one version.") from problem
        release = Release(
            synthesizer=contract.method,
            schema=contract.learned,
            arrays={**arrays, PUBLIC_CONTEXT: np.zeros((0, 0), dtype=np.float32)},
            certificate=cosigning.claim(grant, contract),
        )
        with whole_folder(self.out) as draft:
            release.write_files(draft)
            certificate = cosigning.joint_certificate(grant, contract, entries, draft, self.key)
            shown = {name: (draft / name).read_bytes() for name in cosigning.FILES}
            frames = yield self._to_all("release", {FILE_NAME: to_json(certificate.to_json()), **shown})
            signed = self._received(frames, "sign", {"signature"})
            signatures = {party: said["signature"].decode("ascii", "replace") for party, said in signed.items()}
            final = cosigning.cosigned(certificate, signatures, self.key)
            (draft / FILE_NAME).write_text(final.dumps(), encoding="utf-8")
        self.progress(END, 1.0)
        yield self._to_all(FAREWELL, {FILE_NAME: to_json(final.to_json())})

    def _received(self, frames: Frames, stage: str, names: set[str]) -> Received:
        return {party: documents_of(frame, 0, stage, names, party) for party, frame in frames.items()}

    def _to_all(self, stage: str, documents: Documents) -> Frames:
        return {party: frame_of(0, stage, documents) for party in self.contract.parties}


def _entry(party: str, content: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = from_json(content, party, dict[str, Any])
    if entry.get("party") != party or not isinstance(entry.get("executed"), dict):
        raise InputError(f"'{party}': an entry about itself is expected, got another. The run is stopped.")
    return entry
