"""The methods there are: a line each, what they need, and their options."""

from dataclasses import dataclass
from importlib import import_module

from understudy import display
from understudy.errors import MissingExtra
from understudy.synthesizers import METHODS

COLUMNS = ("method", "idea", "needs", "options")


@dataclass(frozen=True)
class MethodList:
    """Methods by name, each with its idea, what it needs and its options; it shows itself in a notebook."""

    rows: tuple[tuple[str, str, str, str], ...]

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {idea}" for name, idea, *_ in self.rows)

    def _repr_html_(self) -> str:
        return display.html_table(COLUMNS, self.rows)


def methods() -> MethodList:
    """Returns the methods that are installed.

    Example:
        >>> import understudy as us
        >>> [name for name, *_ in us.methods().rows][:2]
        ['spectral', 'pets']
    """
    return MethodList(tuple(_row(name) for name in METHODS))


def _row(name: str) -> tuple[str, str, str, str]:
    try:
        kind = METHODS[name]
    except MissingExtra as missing:
        return name, "", str(missing), ""
    told = (import_module(kind.__module__).__doc__ or "").split("\n\n")[0]
    idea = " ".join(told.split()).removeprefix(f"`{name}`: ")
    options = [option for option, field in kind.__dataclass_fields__.items() if field.init]
    return name, idea, kind.needs, ", ".join(options)
