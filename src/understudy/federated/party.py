"""One organisation's side of a whole run: align, charge, buy, train, vouch.

Everything that leaves is written here as a conversation (`synthesizers.vflgan_ts.protocol`), so it runs in one process
as well as over sockets.
"""

import secrets
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.torch import load as load_tensors
from safetensors.torch import save as dump_tensors

from understudy.data import Panel
from understudy.data.io.checks import check_units
from understudy.errors import InputError
from understudy.federated import milestones, vouching
from understudy.federated.account import Account, iterations_left, lost, once
from understudy.federated.alignment import aligned
from understudy.federated.contract import Contract
from understudy.federated.documents import (
    documents_of,
    frame_of,
    from_arrays,
    from_json,
    say,
    to_arrays,
    to_json,
    whole_numbers,
)
from understudy.files import whole_file
from understudy.privacy.certificate import FILE_NAME, Certificate, cosigned_bytes
from understudy.privacy.grant import Grant
from understudy.privacy.keys import SigningKey
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.frame.facts import Facts
from understudy.synthesizers.vflgan_ts import owners, parts
from understudy.synthesizers.vflgan_ts.modes import NOISY_ROWS, noisy_rows
from understudy.synthesizers.vflgan_ts.party import Party, Rows
from understudy.synthesizers.vflgan_ts.protocol import END, Frame, PartySide
from understudy.training.networks import to_arrays as network_arrays

FAREWELL = "farewell"  # stage of the last answer of a whole run
_CHECKPOINTS, _FACTS, _ROWS, _ORDER = "checkpoints", "facts.safetensors", "rows.safetensors", "order.key"


@dataclass(frozen=True, kw_only=True, repr=False)
class Member:
    """One organisation in one run.

    Attributes:
        panel: Its table, read by its part of the joined schema; private.
        state: Its own folder for what a resumed run needs; private.
        out: Where the release is to lie.
        progress: Is told the stage and the share of all iterations.
    """

    contract: Contract
    party: str
    panel: Panel
    account: Account
    state: Path
    key: SigningKey
    out: Path
    progress: Callable[[str, float], None] = lambda stage, share: None

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
        party = self._trained_by(grant, private, facts)
        kept = milestones.Milestones(
            self.state / _CHECKPOINTS,
            grant,
            contract,
            {"judges": party.update, "generators": party.generator_update},
            party.coins,
        )
        kept.begin(done, last)
        yield from party.side(self._told(kept.before, last), done, last)
        kept.end()
        yield from self._vouched(grant, network_arrays(party.generators, ""))

    def _aligned(self) -> Generator[Frame, Frame, PrivateSeries]:
        """Brings the table's units into the order that all parties have."""
        panel, contract = self.panel, self.contract
        if contract.alignment == "psi":
            if panel.unit_ids is None:
                raise InputError("alignment: 'psi' needs a table with a column of ids. Give it one.")
            self.progress("aligning", 0.0)
            order = yield from aligned(self.party, contract.parties, panel.unit_ids, self._order_key())
            panel = panel.take_units(order)
        check_units(panel.unit, panel.schema, allow_few_units=contract.few_units is not None)
        return parts.private_series(panel, contract.population)

    def _order_key(self) -> bytes:
        """Returns the key by which rows are put in order; kept, so that a resumed run has them in the same."""
        if self.contract.noise_seed is not None:
            return self.contract.test_seed("order").to_bytes(8, "little")
        kept = self.state / _ORDER
        if not kept.exists():
            with whole_file(kept, replace=False) as draft:
                draft.write_bytes(secrets.token_bytes(32))
        return kept.read_bytes()

    def _opened(self, grant: Grant) -> Generator[Frame, Frame, tuple[int, int]]:
        """Agrees with all sides on the iterations that are done and on the last one."""
        known = [iterations_left(grant, self.contract), *milestones.reached(self.state / _CHECKPOINTS)]
        heard = yield from say("open", {"known": to_json(known)}, {"agreed"})
        done, last, *_ = (*whole_numbers(heard["agreed"], "aggregator"), 0)
        return done, last

    def _facts(self, grant: Grant, private: PrivateSeries) -> Facts:
        """Buys this party's part of the facts, or finds what it bought before."""
        kept, own = self.state / _FACTS, private.panel.schema
        if kept.exists():
            return Facts.from_arrays(from_arrays(kept.read_bytes(), self.party))
        charged = {entry.label for entry in grant.plan.entries} & set(parts.parts_of(own, self.contract.schema))
        for label in charged:
            if not once(grant, label):
                raise lost(label, self.contract)
        self.progress("buying", 0.0)
        facts = parts.buy_part(private, grant, self.contract.schema)
        with whole_file(kept) as draft:
            draft.write_bytes(to_arrays(facts.to_arrays()))
        return facts

    def _trained_by(self, grant: Grant, private: PrivateSeries, facts: Facts) -> Party:
        """Makes the networks, with updates as the mode has them."""
        contract = self.contract
        rows = parts.own_rows(private, facts, contract.schema)
        if contract.method.mode == "local":
            rows = self._noisy(rows, grant, private)
        update = owners.party_update(contract.method, grant, len(contract.parties), contract.population)
        party = Party(self.party, rows, contract.agreement, update)
        if contract.noise_seed is not None:
            party.coins.manual_seed(contract.test_seed(f"coins of {self.party}"))
        return party

    def _noisy(self, rows: Rows, grant: Grant, private: PrivateSeries) -> Rows:
        """Noises the rows of mode `local` once in a run, and keeps what came out."""
        kept = self.state / _ROWS
        if kept.exists():
            return Rows(**load_tensors(kept.read_bytes()))
        if not once(grant, NOISY_ROWS):
            raise lost(NOISY_ROWS, self.contract)
        (noisy,) = noisy_rows([rows], grant, private, parts.num_values(self.contract.schema))
        with whole_file(kept) as draft:
            draft.write_bytes(dump_tensors({"series": noisy.series.contiguous(), "label": noisy.label}))
        return noisy

    def _told(self, before: Callable[[int], None], last: int) -> Callable[[int], None]:
        def told(iteration: int) -> None:
            before(iteration)
            self.progress("training", iteration / max(1, last))

        return told

    def _vouched(self, grant: Grant, generators: dict[str, np.ndarray]) -> PartySide:
        """Hands its generators over, checks the release that all made, signs it and keeps a copy."""
        self.progress(END, 1.0)
        entry = vouching.entry_of(self.party, grant, self.key)
        shown = yield from say(
            "release",
            {"generators": to_arrays(generators), "entry": to_json(entry)},
            {FILE_NAME, *vouching.FILES},
        )
        proposal = vouching.Proposal.of(shown)
        own = vouching.claim(grant, self.contract)
        proposal.check(from_json(to_json(entry), self.party), own, self.contract, generators)
        signature = self.key.sign(cosigned_bytes(proposal.certificate))
        answer = yield frame_of(0, "sign", {"signature": signature.encode()})
        final = documents_of(answer, 0, FAREWELL, {FILE_NAME}, "aggregator")
        certificate = Certificate.from_json(from_json(final[FILE_NAME], "aggregator"))
        proposal.write(self.out, certificate)
