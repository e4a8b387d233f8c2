"""One way to write JSON, so that equal facts have equal bytes, hashes and signatures."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any


def dumps(body: Any) -> str:
    """Sorted keys, no spaces, plain UTF-8; infinities as the string "inf" (JSON has none)."""
    return json.dumps(_plain(body), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sha256(text: str) -> str:
    """Hexadecimal digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """Hexadecimal digest of a file, read in pieces."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def number(value: Any) -> float:
    """The float that `dumps` wrote, infinite ones included."""
    return float(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value
