"""Writes docs/reference from help, schema and docstrings. Run it after a change to these; a test compares the pages."""

import ast
import dataclasses
import inspect
import json
import re
import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any

import typer

import understudy
from understudy.cli.app import app
from understudy.data import Continuous, Population, Schema

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"
EXAMPLES = ROOT / "scripts" / "examples.py"
_ARGUMENTS = {  # what public names take and hand back
    "Synthesizer": "understudy.synthesizers.base",
    "Options": "understudy.privacy.charges",
    "RunOptions": "understudy.api.synthesis",
    "MethodOptions": "understudy.planning.choices",
    "ScoreOptions": "understudy.api.scoring",
    "Scorecard": "understudy.evaluation.scorecard",
    "AuditResult": "understudy.auditing.release",
    "Bought": "understudy.privacy.purchases",
}
_EVERYWHERE = {"json", "quiet", "help", "log-json", "run-record", "metrics"}
_ENTRIES = re.compile(r"^    (\w+): (.*(?:\n {8,}.*)*)", re.MULTILINE)
_WORDS = {str: "text", int: "whole number", float: "number", bool: "`true` or `false`"}
_SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def command_line() -> Iterator[str]:
    """Yield the page of commands."""
    yield "# Command line"
    yield "Every command also takes `--json` (print one JSON object), `--quiet` (print errors only), `--help`, and"
    yield "`--log-json`, `--run-record`, `--metrics` ([for machines](../for-a-team.md#watch-runs))."
    yield "[The tour](../tour.md) shows them in use and lists the exit codes."
    yield from _command(typer.main.get_command(app), "understudy")


def _command(command: Any, called: str) -> Iterator[str]:
    yield from (f"## {called}", " ".join((command.help or "").split()))
    context = command.make_context(called, [], resilient_parsing=True)
    told = (one.get_help_record(context) for one in command.get_params(context))
    rows = [(f"`{name}`", " ".join(meaning.split())) for name, meaning in told if _word(name) not in _EVERYWHERE]
    yield from _table("argument or option | meaning", rows)
    for name in getattr(command, "commands", {}):
        yield from _command(command.resolve_command(context, [name])[1], f"{called} {name}")


def _word(option: str) -> str:
    return option.rpartition("--")[2].partition(" ")[0]


def schema() -> Iterator[str]:
    """Yield the page of keys."""
    yield "# Keys of a schema"
    yield "A TOML file, the public contract of one population: [example](../tour.md#2-a-schema-what-is-public)."
    yield "A key without a default is required; *none* means that it is left out. Other keys are refused."
    yield from ("## Top of the file", *_keys(Schema))
    yield from ("`population` is a whole number, or a table with one of these keys:", *_keys(Population))
    yield "A column of `[[static]]` or `[[context]]` has the kinds and keys of `[[channels]]`."
    for name, hint in typing.get_type_hints(Schema).items():
        kinds = _tables(hint) if name not in ("static", "context") else []
        for kind in kinds:
            yield f"## [{name}]" if len(kinds) == 1 else f'## [[{name}]], kind = "{kind.kind}"'
            yield from _keys(kind)


def _tables(hint: Any) -> list[Any]:
    """Return the kinds of table that a key of a schema takes; none for a key with a plain value."""
    kinds = [kind for one in (hint, *typing.get_args(hint)) for kind in (one, *typing.get_args(one))]
    tables = [kind for kind in kinds if isinstance(kind, type) and dataclasses.is_dataclass(kind)]
    return [kind for kind in dict.fromkeys(tables) if kind is not Population]


def _keys(kind: Any) -> Iterator[str]:
    hints, (summary, entries), rows = typing.get_type_hints(kind, include_extras=True), _told(inspect.getdoc(kind)), []
    entries = _told(inspect.getdoc(Continuous))[1] | entries  # what columns have in common is said there
    yield summary
    for field in (one for one in dataclasses.fields(kind) if not _tables(hints[one.name])):
        required = field.default is dataclasses.MISSING or field.name in ("version", "frequency", "steps")
        default = "" if required else f"`{json.dumps(field.default)}`".replace("`null`", "none")
        rows.append((f"`{field.name}`", _type(hints[field.name]), default, entries[field.name].replace("None", "none")))
    yield from _table("key | type | default | meaning", rows)


def _type(hint: Any) -> str:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return " or ".join(f"`{json.dumps(one)}`" for one in inner)
    if origin is typing.Annotated:
        limits = [limit for info in inner[1:] for limit in getattr(info, "metadata", ())]
        told = [(sign, getattr(limit, key, 2**60)) for limit in limits for key, sign in _SIGNS.items()]
        return f"{_type(inner[0])} {' and '.join(f'{sign} {end}' for sign, end in told if abs(end) < 2**60)}".strip()
    if origin in (typing.Union, UnionType):
        return " or ".join(dict.fromkeys(_type(one) for one in inner if one is not NoneType))
    return f"list: {_type(inner[0])}" if origin is tuple else _WORDS.get(hint, "whole number or table")


def python() -> Iterator[str]:
    """Yield the page of names, read from the source: annotations as written, and no torch."""
    start, shown = examples()
    yield from ("# Python", "`from understudy import …` has these names; each loads on first use. Examples start from")
    yield f"```py\n{start}\n```"
    for name in (*understudy.__all__, *_ARGUMENTS):
        node, rows = _definition(name), []
        summary, told = _told(ast.get_docstring(node))
        parts = node.body if isinstance(node, ast.ClassDef | ast.Module) else []
        of = ", ".join(ast.unparse(base) for base in getattr(node, "bases", []))
        for part in (one for one in parts if isinstance(one, ast.AnnAssign) and "ClassVar" not in ast.unparse(one)):
            key, *facts = (ast.unparse(one) if one else "" for one in (part.target, part.annotation, part.value))
            rows.append((f"`{key}`", *(f"`{fact}`" if fact else "" for fact in facts), told.pop(key, "")))
        functions = [one for one in parts if isinstance(one, ast.FunctionDef) and one.name[0] != "_"]
        head = f"class {name}({of})".replace("()", "") if parts else _signature(node)
        head = f"module {name}" if isinstance(node, ast.Module) else head
        yield from (f"## {name}", f"`{head}`", summary)
        yield f"```py\n{shown[name]}\n```" if name in shown else ""
        yield from _table("name | type | default | meaning", rows)
        yield "\n".join(f"- `{key}`: {meaning}" for key, meaning in told.items())
        if of != "Synthesizer":
            yield "\n".join(f"- `{_signature(one)}`: {_told(ast.get_docstring(one))[0]}" for one in functions)


def examples() -> tuple[str, dict[str, str]]:
    """Return what all examples start from, and the example of each name."""
    start, *rest = re.split(r"^# %% (\w+)\n", EXAMPLES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    told = {name: text.strip() for name, text in zip(rest[::2], rest[1::2], strict=True)}
    return start.split('"""\n', 1)[1].strip(), told


def _definition(name: str) -> Any:
    """Return the class or function of a name, which lies below the module that `understudy` imports it from."""
    place = ROOT / "src" / (understudy._ROOMS | _ARGUMENTS)[name].replace(".", "/")
    name = "Methods" if name == "METHODS" else name
    if place.stem == name:
        return ast.parse(place.with_suffix(".py").read_text(encoding="utf-8"))
    files = place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]
    texts = (text for file in files if re.search(rf"(class|def) {name}\b", text := file.read_text(encoding="utf-8")))
    (found,) = (node for text in texts for node in ast.parse(text).body if getattr(node, "name", "") == name)
    return found


def _signature(node: Any) -> str:
    if "property" in map(ast.unparse, node.decorator_list):
        return str(node.name)
    given = re.sub(r"^(self|cls)(, )?", "", ast.unparse(node.args))
    return f"{node.name}({given})" + (f" -> {ast.unparse(node.returns)}" if node.returns else "")


def _told(doc: str | None) -> tuple[str, dict[str, str]]:
    """Return a docstring's first paragraph, and what it says under Attributes or Args, by name."""
    entries = {name: " ".join(told.split()) for name, told in _ENTRIES.findall(doc or "")}
    return " ".join((doc or "").split("\n\n")[0].split()), entries


def _table(head: str, rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    lines = [" | ".join(cell.replace("|", r"\|") for cell in row) for row in rows]
    if lines:
        yield "\n".join(f"| {line} |" for line in [head, re.sub(r"[^|]+", " --- ", head).strip(), *lines])


def pages() -> dict[str, str]:
    """Return the text of every page by file name."""
    note = "<!-- scripts/reference.py writes this page. Change the program, not the page. -->"
    parts = {"command-line.md": command_line(), "schema.md": schema(), "python.md": python()}
    return {name: "\n\n".join(filter(None, [note, *page])) + "\n" for name, page in parts.items()}


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
