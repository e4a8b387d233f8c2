"""Understudy: synthetic time series that can stand in for sensitive ones, under a guarantee that is true.

`__init__.pyi` lists the whole public surface. Names load on first use, so `import understudy` costs nothing.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_ROOMS = {
    one.name: f"{line.module}.{one.name}" if line.module == "understudy.api" else str(line.module)
    for line in _STUB.body
    if isinstance(line, ast.ImportFrom)
    for one in line.names
}
__all__ = sorted(_ROOMS)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("understudy")
    if name not in _ROOMS:
        raise AttributeError(f"module 'understudy' has no attribute '{name}'")
    from understudy.extras import naming_extras

    with naming_extras(name):
        room = import_module(_ROOMS[name])
        value = room if room.__name__.endswith(f".{name}") else getattr(room, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "__version__"])
