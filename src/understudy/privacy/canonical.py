"""One way to write JSON, so that equal facts have equal bytes, hashes and signatures, and one way to read it."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

import pydantic

Kind = TypeVar("Kind")


def dumps(body: Any) -> str:
    """Sorted keys, no spaces, plain UTF-8; infinities as the string "inf" (JSON has none)."""
    return json.dumps(_plain(body), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def loads(text: str | bytes) -> Any:
    """Reads untrusted JSON; what `dumps` could not write again is a `ValueError`."""
    try:
        body = json.loads(text, parse_int=_whole, object_pairs_hook=_said_once)
        dumps(body).encode()
    except RecursionError:
        raise ValueError("JSON is expected that is not nested so deeply.") from None
    return body


def sha256(text: str) -> str:
    """Hexadecimal digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_sha256(path: str | Path) -> str:
    """Hexadecimal digest of a file, read in pieces."""
    with Path(path).open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _spelled_out(value: Any) -> Any:
    return {"inf": math.inf, "-inf": -math.inf}.get(value, value) if isinstance(value, str) else value


Number = Annotated[float, pydantic.BeforeValidator(_spelled_out)]  # a field that `typed` reads, infinities included


def typed(kind: Callable[..., Kind], body: Mapping[str, Any]) -> Kind:
    """An object of this kind from what `loads` read; a `ValueError` where a field is missing or of another type."""
    found: Kind = _adapter(kind).validate_json(json.dumps(body), strict=True)
    return found


@cache
def _adapter(kind: Any) -> pydantic.TypeAdapter[Any]:
    return pydantic.TypeAdapter(kind)


def _said_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose fields each stand there once; of two, readers and programs would believe different ones."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("JSON is expected that says each field once.")
    return found


def _whole(digits: str) -> int:
    """A whole number of 64 bits; larger ones are no count and overflow elsewhere."""
    value = int(digits)
    if not -(2**63) <= value < 2**63:
        raise ValueError("A whole number of at most 64 bits is expected.")
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value
