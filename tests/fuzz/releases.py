"""Damaged releases, and every command that reads one.

Some damages are sealed anew: hashes and signature fit what lies there. That is what somebody hands out who signs
whatever they like, and it lets the damage get past the first check and into every reader.
"""

import hashlib
import json
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st
from safetensors.numpy import load, save

from tests.fuzz.case import Case, Contents, Link
from tests.fuzz.commands import Command
from tests.fuzz.edits import FEW, Strategy, byte_edits, document_edits, to_json, values
from tests.fuzz.place import LONG_SCHEMA, signing_key
from tests.fuzz.schemas import edited_schema
from understudy.privacy import canonical

CERTIFICATE, MODEL, FACTS, SCHEMA = "certificate.json", "model.safetensors", "release.json", "schema.toml"
COMMANDS: tuple[Command, ...] = (
    ("verify", "release"),
    ("verify", "release", "--json"),
    ("verify", f"release/{CERTIFICATE}"),
    ("certificate", "release"),
    ("certificate", "release", "--format", "html"),
    ("certificate", "release", "--json"),
    ("sample", "release", "--n", "3", "--out", "made.csv"),
    ("sample", "release", "--n", "2", "--out", "made.parquet", "--label", "north"),
    ("ledger", "check", "schema.toml", "release"),
)
_events: Strategy = st.sampled_from(
    (
        {"type": "Gaussian", "noise_multiplier": 1e-9, "count": 10**12},
        {"type": "DiscreteGaussian", "noise_multiplier": 3.5, "count": 2, "one_vote": True},
        {"type": "SubsampledGaussian", "sampling_rate": 1e-3, "noise_multiplier": 1.0, "iterations": 10**4},
        {"type": "SubsampledGaussian", "sampling_rate": 1.0, "noise_multiplier": 1e-4, "iterations": 10**9},
        {"type": "MixtureOfGaussians", "sampling_rate": 0.1, "noise_multiplier": 9, "max_windows": 3, "iterations": 9},
        {"type": "PureDP", "epsilon": 1e300, "count": 10**9},
        {"type": "ApproximateDP", "epsilon": 0.5, "delta": 0.999},
        {"type": "Gaussian", "noise_multiplier": 3.0, "count": 1, "relation": "values"},
        {"type": "NonPrivate", "reason": "because"},
    )
)  # fmt: skip


_strange: Strategy = st.one_of(values, _events)
# Links that lead out of the release, to nowhere, in circles, or to a file without an end.
_TARGETS = ("../schema.toml", "../table.csv", "nowhere", ".", "..", CERTIFICATE, MODEL, "/dev/zero", "/dev/null")


def release_cases(pristine: Contents) -> Strategy:
    """Releases as they arrive after a bad disk, a bad copy or a bad hand."""
    files = {name.removeprefix("release/"): data for name, data in pristine.items() if name.startswith("release/")}
    whole = {name: data for name, data in files.items() if isinstance(data, bytes)}

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        sealed = draw(st.booleans())
        changed = _changed(draw, whole, odd=not sealed)
        if sealed:
            changed |= _sealed(whole | {name: data for name, data in changed.items() if isinstance(data, bytes)})
        laid = {f"release/{name}": data for name, data in changed.items()}
        return Case(arguments=draw(st.sampled_from(COMMANDS)), files=laid, damaged=not sealed)

    return cases()


def _changed(draw: st.DrawFn, whole: dict[str, bytes], *, odd: bool) -> Contents:
    """What lies in the release instead; `odd` lets files be gone, be links, or be one another."""
    changed: Contents = {}
    for _ in range(draw(FEW)):
        name = draw(st.sampled_from(sorted(whole)))
        oddly = odd and draw(st.integers(0, 2)) == 0
        changed[name] = draw(_oddities(whole)) if oddly else _content(draw, name, whole)
    if draw(st.integers(0, 6)) == 0:
        changed[draw(st.sampled_from(("extra.csv", "deep/er.bin", ".hidden")))] = b"x"
    return changed


def _oddities(whole: dict[str, bytes]) -> Strategy:
    """A file that is gone, is a link, is empty, or is another file of the release."""
    return st.one_of(
        st.none(), st.sampled_from(_TARGETS).map(Link), st.just(b""), st.sampled_from(list(whole.values()))
    )


def _content(draw: st.DrawFn, name: str, whole: dict[str, bytes]) -> bytes:
    """Other content for one file: broken bytes, or a well-formed file that says something else."""
    if name == SCHEMA:
        return edited_schema(draw, LONG_SCHEMA)
    if draw(st.integers(0, 2)) == 0:
        return byte_edits(draw, whole[name])
    if name == MODEL:
        return draw(st.sampled_from((edited_model, edited_arrays, edited_arrays)))(draw, whole[name])
    return to_json(document_edits(draw, _document(whole[name]), _strange if name == CERTIFICATE else values))


@cache
def _document(data: bytes) -> Any:
    return json.loads(data)


def edited_model(draw: st.DrawFn, data: bytes) -> bytes:
    """A safetensors file whose header says something else, or whose numbers are others."""
    (length,) = struct.unpack("<Q", data[:8])
    text, numbers = data[8 : 8 + length], data[8 + length :]
    if draw(st.booleans()):
        text = to_json(document_edits(draw, json.loads(text)))
    else:
        others = (byte_edits(draw, numbers), b"\xff" * len(numbers), bytes(len(numbers)))
        numbers = draw(st.sampled_from(others))
    stated = draw(st.sampled_from((len(text),) * 6 + (0, len(text) + 1, 2**63, 2**64 - 1)))
    return struct.pack("<Q", stated) + text + numbers


def edited_arrays(draw: st.DrawFn, data: bytes) -> bytes:
    """A well-formed safetensors file whose arrays are not those of the method."""
    arrays = load(data)
    for _ in range(draw(FEW)):
        name = draw(st.sampled_from(sorted(arrays)))
        changed = draw(st.sampled_from(_ARRAY_EDITS))(arrays[name])
        if changed is None:
            del arrays[name]
        else:
            arrays[draw(st.sampled_from((name, name, name, "public_context", "other")))] = np.ascontiguousarray(changed)
        if not arrays:
            break
    return save(arrays)


_ARRAY_EDITS: tuple[Callable[[np.ndarray], np.ndarray | None], ...] = (
    lambda array: None,
    lambda array: array.T,
    lambda array: array.ravel(),
    lambda array: array[:0],
    lambda array: array[None],
    lambda array: array[:1],
    lambda array: np.concatenate([array, array]) if array.ndim else array,
    lambda array: array.astype(np.int8),
    lambda array: array.astype(np.float32),
    lambda array: array.astype(bool),
    lambda array: np.full_like(array, 0),
    lambda array: np.full_like(array, -1),
    lambda array: np.full(array.shape, np.nan),
    lambda array: np.full(array.shape, np.inf),
    lambda array: np.full(array.shape, 1e300),
    lambda array: np.full(array.shape, 2**62),
)


def _sealed(files: dict[str, bytes]) -> Contents:
    """A certificate that fits whatever is there: hashes and signature made anew, if it can be read at all."""
    try:
        body = json.loads(files[CERTIFICATE])
        hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items() if name != CERTIFICATE}
        if isinstance(body.get("files"), dict):
            body["files"] = hashes
        key = signing_key()
        body["signer"] = key.public.hexadecimal
        unsigned = {name: value for name, value in body.items() if name != "signature"}
        body["signature"] = key.sign(b"understudy certificate\n" + canonical.dumps(unsigned).encode())
        return {CERTIFICATE: to_json(body)}
    except (ValueError, AttributeError, TypeError, RecursionError):
        return {}
