"""`--set NAME=VALUE`: a method's own options from the command line, checked against their declared types."""

import tomllib
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from understudy.errors import InputError

if TYPE_CHECKING:
    from understudy.synthesizers import Synthesizer

Options = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="An option of the method, such as start=public; repeatable."),
]
TASK_HELP = "What auto chooses for. series: to share series. complete: to fill gaps and forecast."
_ELSEWHERE = ("window_steps", "window_stride")  # options of the command itself


def configured(kind: type["Synthesizer"], given: Sequence[str], **arguments: Any) -> "Synthesizer":
    """Returns the method with `arguments` and what `--set` gave, which may name parts: recipe.iterations=3."""
    whole, parts = _sorted(kind, given)
    method = kind(**arguments | {name: _checked(kind, name, value) for name, value in whole.items()})
    for name, values in parts.items():
        part: Any = getattr(method, name)
        if not hasattr(part, "__dataclass_fields__"):
            raise InputError(f"--set: '{name}' of '{kind.name}' has no parts. Write {name}=VALUE.")
        known = {inner: _checked(type(part), inner, value, f"{name}.") for inner, value in values.items()}
        changed: dict[str, Any] = {name: replace(part, **known)}
        method = replace(method, **changed)
    return method


def _sorted(kind: type["Synthesizer"], given: Sequence[str]) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Returns values by option, and by option and part."""
    whole: dict[str, str] = {}
    parts: dict[str, dict[str, str]] = {}
    for text in given:
        name, equals, value = text.partition("=")
        name, _, part = name.strip().replace("-", "_").partition(".")
        if not equals:
            raise InputError(f"--set: NAME=VALUE is expected, got '{text}'.")
        _known(kind, name, "")
        (parts.setdefault(name, {}) if part else whole)[part or name] = value.strip()
    return whole, parts


def _known(kind: Any, name: str, prefix: str) -> None:
    names = [field.name for field in fields(kind) if field.init and field.name not in _ELSEWHERE]
    if name not in names:
        told = ", ".join(prefix + one for one in names) or "none"
        raise InputError(f"--set: one of {told} is expected, got '{prefix}{name}'.")


def _checked(kind: Any, name: str, text: str, prefix: str = "") -> Any:
    """Returns the value in the option's own type."""
    from pydantic import TypeAdapter, ValidationError

    _known(kind, name, prefix)
    hint = get_type_hints(kind)[name]
    if is_dataclass(hint):
        raise InputError(f"--set: '{prefix}{name}' has parts. Write {prefix}{name}.PART=VALUE.")
    told = ""
    for value in (_value(text), text):
        try:
            return TypeAdapter(hint).validate_python(value)
        except ValidationError as problem:
            told = told or str(problem.errors()[0]["msg"])
    raise InputError(f"--set {prefix}{name}: {told}; got '{text}'.")


def _value(text: str) -> Any:
    """Returns a TOML value, such as 3, 0.5, true or [0.2, 0.8]; anything else is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
