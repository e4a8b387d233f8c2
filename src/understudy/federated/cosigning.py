"""The joint release: its certificate, what each party checks before it co-signs, and the signatures."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from understudy.errors import CertificateError, InputError
from understudy.federated.config import Contract
from understudy.files import whole_folder
from understudy.privacy.certificate import (
    FILE_NAME,
    Certificate,
    cosigned_bytes,
    file_hashes,
    is_as_signed,
    issue,
    ledger_facts,
    sign,
)
from understudy.privacy.grant import Grant
from understudy.privacy.keys import SigningKey, is_signed_by
from understudy.synthesizers.release import FACTS_FILE, MODEL_FILE, SCHEMA_FILE
from understudy.synthesizers.vflgan_ts.method import PARTY
from understudy.synthesizers.vflgan_ts.protocol import Documents, from_arrays, from_json

FILES = (MODEL_FILE, FACTS_FILE, SCHEMA_FILE)
# What depends on who issues a certificate, or on the machine; everything else has to be what a party would say itself.
_OF_THE_ISSUER = {"ledger", "executed", "versions", "files", "parties", "signer", "signature", "noise", "issued"}


def claim(grant: Grant, contract: Contract) -> Certificate:
    """Returns what a side says about the run: all of it follows from the contract and from its own ledger."""
    return issue(
        grant,
        contract.schema,
        method=contract.method.name,
        public_inputs={"contract": contract.digest},
        overrides={} if contract.few_units is None else {"few_units": contract.few_units},
        trust=contract.trust,
    )


def entry_of(party: str, grant: Grant, key: SigningKey) -> dict[str, Any]:
    """Returns what a certificate says about one party."""
    return {
        "party": party,
        "ledger": ledger_facts(grant.receipt),
        "executed": grant.executed,
        "noise_is_secure": grant.receipt.secure_noise,
        "signer": key.public.hexadecimal,
    }


def joint_certificate(
    grant: Grant, contract: Contract, entries: Mapping[str, Mapping[str, Any]], folder: Path, key: SigningKey
) -> Certificate:
    """Returns the certificate that all parties are asked to sign; the aggregator is named and signs last."""
    own = claim(grant, contract)
    if any(entry.get("noise_is_secure") is not own.noise_is_secure for entry in entries.values()):
        raise InputError(
            "Noise of one kind is expected from all parties, got secure noise and reproducible noise. Start a new run."
        )
    counts = [grant.executed, *(entry["executed"] for entry in entries.values())]
    return replace(
        own,
        executed={label: max(count.get(label, 0) for count in counts) for label in own.labels},
        files=file_hashes(folder),
        parties=tuple(entries[party] for party in contract.parties),
        signer=key.public.hexadecimal,
    )


def cosigned(certificate: Certificate, signatures: Mapping[str, str], key: SigningKey) -> Certificate:
    """Returns the certificate with all signatures, the aggregator's over all others."""
    message = cosigned_bytes(certificate)
    for entry in certificate.parties:
        if not is_signed_by(entry["signer"], signatures[entry["party"]], message):
            raise CertificateError(f"'{entry['party']}' did not sign this certificate. The run is stopped.")
    signed = tuple({**entry, "signature": signatures[entry["party"]]} for entry in certificate.parties)
    return sign(replace(certificate, parties=signed), key)


@dataclass(frozen=True)
class Proposal:
    """The release as a party is shown it before it co-signs."""

    certificate: Certificate
    files: Documents

    @classmethod
    def of(cls, documents: Documents) -> "Proposal":
        """Reads what the aggregator sent."""
        certificate = Certificate.from_json(from_json(documents[FILE_NAME], "aggregator"))
        return cls(certificate, {name: documents[name] for name in FILES})

    def check(
        self, entry: Mapping[str, Any], own: Certificate, contract: Contract, generators: Mapping[str, np.ndarray]
    ) -> None:
        """Refuses a release that is not what this party made, or claims more than its own ledger paid for."""
        said, meant = self.certificate.to_json(), own.to_json()
        other = [name for name in meant if name not in _OF_THE_ISSUER and said.get(name) != meant[name]]
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items()}
        parties = [dict(found) for found in self.certificate.parties]
        wrong = {
            f"its certificate differs from what this ledger paid for ({', '.join(other)})": bool(other),
            "its files are not those its certificate names": hashes != dict(self.certificate.files),
            "it names other parties, or this one wrongly": (
                [found.get("party") for found in parties] != list(contract.parties) or dict(entry) not in parties
            ),
            "it is of another contract": not self._keeps(contract),
            "this party's generators are other ones in it": not self._holds(entry["party"], contract, generators),
        }
        for reason in (reason for reason, refused in wrong.items() if refused):
            raise CertificateError(f"The release is not signed: {reason}. Ask who runs the aggregator.")

    def write(self, target: Path, certificate: Certificate) -> None:
        """Writes the release with all signatures; what was signed meanwhile must be what was shown."""
        parties = tuple({k: v for k, v in entry.items() if k != "signature"} for entry in certificate.parties)
        bare = replace(certificate, parties=parties, signature=None)
        if bare != replace(self.certificate, signature=None) or not is_as_signed(certificate):
            raise CertificateError("The certificate was changed after this party signed it. Do not use the release.")
        with whole_folder(target) as draft:
            for name, content in self.files.items():
                (draft / name).write_bytes(content)
            (draft / FILE_NAME).write_text(certificate.dumps(), encoding="utf-8")

    def _keeps(self, contract: Contract) -> bool:
        facts = from_json(self.files[FACTS_FILE], "aggregator")
        options = json.loads(json.dumps(asdict(contract.method)))
        schema = self.files[SCHEMA_FILE].decode("utf-8", errors="replace")
        return isinstance(facts, dict) and facts.get("options") == options and schema == contract.learned.dumps()

    def _holds(self, party: str, contract: Contract, generators: Mapping[str, np.ndarray]) -> bool:
        arrays = from_arrays(self.files[MODEL_FILE], "aggregator")
        prefix = f"{PARTY}{contract.parties.index(party)}."
        found = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        return set(found) == set(generators) and all(np.array_equal(found[n], generators[n]) for n in generators)
