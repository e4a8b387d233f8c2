"""Packages that only some commands need, and the one sentence about a missing one."""

from importlib.util import find_spec

from understudy.errors import MissingExtra

_NAMES = {
    "dask": "Dask",
    "duckdb": "DuckDB",
    "grpc": "gRPC",
    "jinja2": "Jinja",
    "matplotlib": "Matplotlib",
    "sklearn": "scikit-learn",
    "torch": "PyTorch",
}


def require_extra(module: str, *, extra: str, by: str) -> None:
    """Raise `MissingExtra` unless `module` can be imported; nothing is imported here.

    Args:
        module: Import name of the package, such as "torch".
        extra: Extra of this distribution that brings it, such as "neural".
        by: What needs it, as the user typed it: a method, a command or an option.
    """
    if find_spec(module) is None:
        raise MissingExtra(
            f"`{by}` needs {_NAMES.get(module, module)}, which is not installed. "
            f"Install it with: pip install 'understudy[{extra}]'.",
            module=module,
            extra=extra,
        )
