"""What a party checks before it signs, and what a verifier finds when somebody has changed a joint certificate."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as dump_arrays

from tests.unit.federated.banks import sines, usual
from understudy.errors import CertificateError
from understudy.privacy import keys
from understudy.privacy.certificate import FILE_NAME, Certificate, sign, verify
from understudy.privacy.certificate_page import to_html, to_markdown
from understudy.synthesizers.release import MODEL_FILE, Release
from understudy.synthesizers.vflgan_ts.protocol import (
    AggregatorSide,
    Frame,
    Frames,
    converse,
    documents_of,
    frame_of,
    from_json,
    to_json,
)

Change = Callable[[dict[str, bytes]], dict[str, bytes]]


def changed(documents: dict[str, bytes], **fields: Any) -> dict[str, bytes]:
    body = from_json(documents[FILE_NAME], "aggregator") | fields
    return documents | {FILE_NAME: to_json(body)}


def _smaller_epsilon(documents: dict[str, bytes]) -> dict[str, bytes]:
    return changed(documents, epsilon=0.1, status="private")


def _fewer_trusted(documents: dict[str, bytes]) -> dict[str, bytes]:
    return changed(documents, threat_model=["Protected against everybody."])


def _without_shop(documents: dict[str, bytes]) -> dict[str, bytes]:
    return changed(documents, parties=from_json(documents[FILE_NAME], "")["parties"][:1])


def _another_ledger(documents: dict[str, bytes]) -> dict[str, bytes]:
    bank, shop = from_json(documents[FILE_NAME], "")["parties"]
    return changed(documents, parties=[bank | {"ledger": shop["ledger"]}, shop])


def _other_generators(documents: dict[str, bytes]) -> dict[str, bytes]:
    arrays = load_arrays(documents[MODEL_FILE])
    name = next(name for name in arrays if name.startswith("party0."))
    return documents | {MODEL_FILE: dump_arrays(arrays | {name: np.zeros_like(arrays[name])})}


def _other_options(documents: dict[str, bytes]) -> dict[str, bytes]:
    return documents | {"release.json": documents["release.json"].replace(b'"plain"', b'"sound"')}


def tampering(side: AggregatorSide, change: Change, rehash: bool) -> AggregatorSide:
    """An aggregator that shows the parties something else than they made."""
    import hashlib

    frames = yield next(side)
    while True:
        answers: Frames = side.send(frames)
        if any(frame.stage == "release" for frame in answers.values()):
            shown = {}
            for party, frame in answers.items():
                documents = change(dict(documents_of(frame, 0, "release", set(frame.tensors), "")))
                if rehash:
                    files = {n: hashlib.sha256(c).hexdigest() for n, c in documents.items() if n != FILE_NAME}
                    documents = changed(documents, files=files)
                shown[party] = frame_of(0, "release", documents)
            answers = shown
        frames = yield answers


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_smaller_epsilon, "differs from what this ledger paid for"),
        (_fewer_trusted, "differs from what this ledger paid for"),
        (_without_shop, "names other parties"),
        (_another_ledger, "names other parties, or this one wrongly"),
        (_other_generators, "generators are other ones"),
        (_other_options, "of another contract"),
    ],
)
def test_a_party_signs_nothing_but_what_it_made_and_paid_for(tmp_path: Path, change: Change, says: str) -> None:
    made = usual(tmp_path, sines())
    parties = {name: member.side() for name, member in made.members.items()}
    with pytest.raises(CertificateError, match=says):
        converse(parties, tampering(made.aggregator.side(), change, rehash=True))
    assert not (tmp_path / "bank" / "release").exists()


def test_files_that_the_certificate_does_not_name_are_not_signed(tmp_path: Path) -> None:
    made = usual(tmp_path, sines())
    parties = {name: member.side() for name, member in made.members.items()}
    with pytest.raises(CertificateError, match="files are not those"):
        converse(parties, tampering(made.aggregator.side(), _other_generators, rehash=False))


def test_an_aggregator_that_changes_nothing_gets_its_signatures(tmp_path: Path) -> None:
    """The control of the tests above."""
    made = usual(tmp_path, sines())
    parties = {name: member.side() for name, member in made.members.items()}
    converse(parties, tampering(made.aggregator.side(), dict, rehash=True))
    assert (tmp_path / "bank" / "release").exists()


def test_a_certificate_changed_after_it_was_signed_is_not_kept(tmp_path: Path) -> None:
    made = usual(tmp_path, sines())

    def swapped(side: AggregatorSide) -> AggregatorSide:
        frames = yield next(side)
        while True:
            answers = side.send(frames)
            if any(frame.stage == "farewell" for frame in answers.values()):
                for party, frame in answers.items():
                    certificate = Certificate.from_json(from_json(frame.tensors[FILE_NAME].numpy().tobytes(), ""))
                    other = sign(replace(certificate, delta=1e-9), keys.load("aggregator"))
                    answers = {**answers, party: frame_of(0, "farewell", {FILE_NAME: to_json(other.to_json())})}
            frames = yield answers

    parties = {name: member.side() for name, member in made.members.items()}
    with pytest.raises(CertificateError, match="changed after this party signed"):
        converse(parties, swapped(made.aggregator.side()))
    assert not (tmp_path / "bank" / "release").exists()


@pytest.fixture(scope="module")
def joint(tmp_path_factory: pytest.TempPathFactory) -> tuple[Certificate, dict[str, keys.SigningKey]]:
    """A certificate of two parties and all keys that signed it."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("joint")
        patch.setenv("UNDERSTUDY_HOME", str(folder / "home"))
        usual(folder, sines()).run()
        signing = {side: keys.load(side) for side in ("aggregator", "bank", "shop")}
        return Release.load(folder / "bank" / "release").certificate, signing


def failed(certificate: Certificate, trusted: list[keys.PublicKey] | None = None) -> set[str]:
    checks = verify(certificate, None, trusted or [])
    return {check.name for check in checks if not check.ok and not check.unknown}


def test_a_joint_certificate_holds_and_survives_its_file(joint: Any) -> None:
    certificate, signing = joint
    assert failed(certificate) == set()
    assert Certificate.loads(certificate.dumps()) == certificate
    assert failed(certificate, [key.public for key in signing.values()]) == set()


def test_a_party_whose_key_is_not_trusted_is_named(joint: Any) -> None:
    certificate, signing = joint
    checks = verify(certificate, None, [signing["aggregator"].public, signing["bank"].public])
    assert [check.name for check in checks if not check.ok] == ["party shop"]


def test_an_aggregator_can_leave_nobody_out_and_change_nothing_alone(joint: Any) -> None:
    certificate, signing = joint
    key = signing["aggregator"]
    fewer = sign(replace(certificate, parties=certificate.parties[:1]), key)
    assert failed(fewer) == {"party bank"}
    cheaper = sign(replace(certificate, population="others"), key)
    assert {"party bank", "party shop"} <= failed(cheaper)
    swapped = [dict(entry) for entry in certificate.parties]
    swapped[0]["signature"], swapped[1]["signature"] = swapped[1]["signature"], swapped[0]["signature"]
    assert failed(sign(replace(certificate, parties=tuple(swapped)), key)) == {"party bank", "party shop"}


@pytest.mark.parametrize("entry", [{}, {"party": "bank", "ledger": [1]}, {"party": 3, "signer": [], "signature": None}])
def test_an_entry_of_another_form_fails_and_breaks_nothing(joint: Any, entry: dict[str, Any]) -> None:
    certificate, signing = joint
    odd = sign(replace(certificate, parties=(entry,)), signing["aggregator"])
    assert len(failed(odd)) == 1
    assert to_html(odd)
    assert to_markdown(odd)


def test_a_certificate_of_one_holder_has_no_such_field(joint: Any) -> None:
    certificate, signing = joint
    alone = sign(replace(certificate, parties=()), signing["aggregator"])
    assert "parties" not in alone.to_json()
    assert Certificate.loads(alone.dumps()) == alone
    assert failed(alone) == set()


def test_the_page_for_regulators_names_every_party(joint: Any) -> None:
    certificate, _ = joint
    for page in (to_markdown(certificate), to_html(certificate)):
        assert "Signed by bank" in page
        assert "Signed by shop" in page


def test_a_frame_without_documents_is_refused() -> None:
    import torch

    from understudy.errors import InputError

    with pytest.raises(InputError, match="holds no documents"):
        documents_of(Frame(0, "hello", {"contract": torch.zeros(3)}), 0, "hello", {"contract"}, "bank")
