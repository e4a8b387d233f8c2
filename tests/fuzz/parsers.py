"""Readers of text that anybody may have written, each as one function of bytes, and good seeds for them.

A reader may refuse with one of the package's own errors; anything else that it raises is a defect.
"""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from safetensors.numpy import save

from tests.fuzz.harness import DOCUMENTED
from tests.fuzz.kinds import CORPUS
from tests.fuzz.place import HOME, SCHEMAS, build
from understudy.data import Schema
from understudy.errors import UnderstudyError
from understudy.privacy import canonical
from understudy.privacy.certificate import Certificate, verify
from understudy.privacy.certificate_page import to_html, to_markdown
from understudy.privacy.ledger import Ledger
from understudy.privacy.sqlite import Sqlite
from understudy.privacy.store import Store
from understudy.synthesizers import release


def read_schema(data: bytes) -> None:
    """A schema, complete or as a draft; what can be read has to come back from its own text."""
    draft, text = data[:1] == b"d", data[1:].decode("utf-8", errors="replace")
    schema = Schema.loads(text, draft=draft)
    assert Schema.loads(schema.dumps(), draft=draft) == schema


def read_certificate(data: bytes) -> None:
    """A certificate: every question is put to it, and it is printed in all forms."""
    certificate = Certificate.loads(data.decode("utf-8", errors="replace"))
    assert Certificate.loads(certificate.dumps()) == certificate
    if all(check.ok or check.unknown for check in verify(certificate, None, ())):
        certificate.sentence()
    to_markdown(certificate)
    to_html(certificate)


def read_ledger(data: bytes) -> None:
    """A ledger whose facts and rows are the lines of the input, chained as they should be."""
    facts, *rows = data.splitlines() or [b""]
    store = Store.create(Sqlite(None), _document(facts))
    with store.writing() as writer:
        for row in rows:
            kind, _, body = row.partition(b" ")
            writer.append(kind.decode("utf-8", errors="replace"), _document(body))
    ledger = Ledger.of(store)
    ledger.remaining()
    ledger.entries()


def _document(data: bytes) -> dict[str, Any]:
    """A JSON object, as the hash chain of a file would have let it through; other texts are none."""
    try:
        body = canonical.loads(data)
    except ValueError:
        body = None
    return body if isinstance(body, dict) else {}


def read_release(data: bytes) -> None:
    """What a release says about its method on the first line, and then its arrays."""
    facts, _, model = data.partition(b"\n")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, release.FACTS_FILE).write_bytes(facts)
        Path(folder, release.MODEL_FILE).write_bytes(model)
        release._arrays(Path(folder))
        release._synthesizer(Path(folder))


READERS: dict[str, Callable[[bytes], None]] = {
    "schema": read_schema,
    "certificate": read_certificate,
    "ledger": read_ledger,
    "release": read_release,
}


def try_to_read(name: str, data: bytes) -> bool:
    """Says whether the reader took the input; an error that is not one of ours, or blames us, comes out."""
    try:
        READERS[name](data)
    except UnderstudyError as problem:
        if problem.exit_code not in DOCUMENTED:
            raise
        return False
    return True


def seeds(name: str, folder: Path) -> list[bytes]:
    """Good inputs, and those of the corpus; a fuzzer that watches lines grows the rest."""
    return _good(name, folder) + [file.read_bytes() for file in sorted((CORPUS / name).glob("*"))]


def _good(name: str, folder: Path) -> list[bytes]:
    """Inputs that the package itself makes, in an empty folder."""
    if name == "schema":
        return [kind + text.encode() for text in SCHEMAS.values() for kind in (b"c", b"d")]
    with patch.dict(os.environ, UNDERSTUDY_HOME=str(folder / HOME)):
        build(folder)
        if name == "certificate":
            return [(folder / "release" / "certificate.json").read_bytes()]
        if name == "ledger":
            store = Store(Sqlite(folder / "clinic.ledger"))
            rows = [f"{row.kind} {canonical.dumps(row.body)}" for row in store.rows()]
            return ["\n".join([canonical.dumps(store.facts), *rows[:number]]).encode() for number in (0, 1, len(rows))]
    facts = json.loads((folder / "release" / release.FACTS_FILE).read_text())
    return [json.dumps(facts).encode() + b"\n" + save({"nothing": np.zeros(2)})]
