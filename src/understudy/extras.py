"""Packages that only some commands need, and the one sentence about a missing one."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from understudy.errors import MissingExtra

# Import name → (name a reader knows, extra of this distribution that brings it).
_EXTRAS = {
    "torch": ("PyTorch", "neural"),
    "einops": ("einops", "neural"),
    "sklearn": ("scikit-learn", "report"),
    "matplotlib": ("Matplotlib", "report"),
    "jinja2": ("Jinja", "report"),
    "markdown_it": ("markdown-it", "report"),
    "starlette": ("Starlette", "app"),
    "uvicorn": ("uvicorn", "app"),
    "dask": ("Dask", "scale"),
    "distributed": ("Dask", "scale"),
    "fsspec": ("fsspec", "scale"),
    "adbc_driver_postgresql": ("ADBC for PostgreSQL", "sql"),
    "duckdb": ("DuckDB", "sql"),
    "grpc": ("gRPC", "vertical"),
    "psycopg": ("psycopg", "sql"),
    "private_set_intersection": ("OpenMined PSI", "vertical"),
}


def require_extra(module: str, *, by: str, extra: str | None = None) -> None:
    """Raise `MissingExtra` unless `module` can be imported; nothing is imported here.

    Args:
        module: Import name of the package, such as "torch".
        by: What needs it, as the user typed it: a method, a command or an option.
        extra: Extra that brings it; None for the one of a package this module knows.
    """
    if find_spec(module.partition(".")[0]) is None:
        raise _missing(module, by, extra)


@contextmanager
def naming_extras(by: str) -> Iterator[None]:
    """Turn the failed import of an optional package within the block into `MissingExtra`."""
    try:
        yield
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] not in _EXTRAS:
            raise
        raise _missing(str(problem.name), by) from problem


def _missing(module: str, by: str, extra: str | None = None) -> MissingExtra:
    name, known = _EXTRAS.get(module.partition(".")[0], (module, extra))
    package = f"'understudy[{extra or known}]'" if extra or known else module
    return MissingExtra(
        f"`{by}` needs {name}, which is not installed. Install it with: pip install {package}.",
        module=module,
        extra=extra or known,
    )
