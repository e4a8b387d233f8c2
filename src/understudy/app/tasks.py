"""What a person can have done, as the command line for it: the app runs nothing that could not be typed."""

import shlex
from pathlib import Path
from typing import Any

from understudy.app.jobs import Task
from understudy.app.project import Project
from understudy.data import Schema
from understudy.errors import InputError


def number(text: str, name: str, kind: type[float] | type[int] = float) -> Any:
    """Returns the number that a person typed; None for an empty field."""
    if not text.strip():
        return None
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"{name}: a number is expected. Correct the field.") from None


def synth(project: Project, schema_name: str, schema: Schema, given: dict[str, str]) -> Task:
    """A run: charge, learn, write a release."""
    tables = project.tables_of(schema_name)
    path = project.existing(schema_name)
    release = _beside(project, path, f"{_plain(schema.name)}-release", given)
    arguments = {
        "data": _named(project, tables["table"], "table"),
        "schema": schema_name,
        "epsilon": number(given["epsilon"], "epsilon"),
        "delta": number(given.get("delta", ""), "delta"),
        "context": _named(project, tables["context"], "context") if tables["context"] else None,
        "method": given.get("method") or "auto",
        "holdout": number(given.get("holdout", ""), "holdout"),
        "num_series": number(given.get("num_series", ""), "num_series", int),
        "save_to": release,
    }
    options = {"epsilon": "--epsilon", "delta": "--delta", "context": "--context", "method": "--method"}
    options |= {"holdout": "--holdout", "num_series": "--n", "save_to": "--out"}
    words = ["synth", arguments["data"], "--schema", schema_name]
    for name, option in options.items():
        if arguments[name] is not None:
            words += [option, str(arguments[name])]
    kept = {name: value for name, value in arguments.items() if value is not None}
    first = ", ".join(repr(kept.pop(name)) for name in ("data", "schema", "epsilon"))
    more = "".join(f", {name}={value!r}" for name, value in kept.items())
    return Task(
        kind="synth",
        title=f"A release of {schema.name} at ε = {arguments['epsilon']:g}",
        schema=schema_name,
        arguments={name: value for name, value in arguments.items() if value is not None},
        command=typed(words),
        python=f"import understudy as us\n\nrelease = us.synthesize({first}{more})",
        makes=release,
        ledger=ledger_file(path, schema),
    )


def buy(project: Project, schema_name: str, schema: Schema, given: dict[str, str]) -> Task:
    """A purchase of one fact for the schema."""
    fact, path = given.get("fact", ""), project.existing(schema_name)
    out = _beside(project, path, f"schema-with-{_plain(fact)}", given, ".toml")
    words = ["buy", fact, _named(project, project.tables_of(schema_name)["table"], "table"), "--schema", schema_name]
    if fact in ("bounds", "categories"):
        words += ["--column", given.get("column", "")]
    if fact == "bounds":
        words += ["--between", given.get("low", ""), given.get("high", "")]
    words += ["--epsilon", given["epsilon"], "--out", out]
    return _command(words, f"Buy the {fact} of {schema.name}", schema_name, makes=out, ledger=ledger_file(path, schema))


def simulate(schema_name: str, epsilon: str, method: str) -> Task:
    """A plan that is tried on invented series; reads no table."""
    words = ["plan", schema_name, "--epsilon", epsilon, "--method", method, "--simulate"]
    return _command(words, "What several budgets buy, tried on invented series", schema_name)


def evaluate(project: Project, release: str, given: dict[str, str]) -> Task:
    """Scores of a release against the real table. Internal."""
    out = _beside(project, project.existing(release), f"{Path(release).name}-evaluation", given, ".html")
    words = ["evaluate", release, *_real(project, release, given), "--suite", "general", "--report", out]
    return _command(words, f"Compare {release} with the real series", makes=out, internal=True)


def audit(project: Project, release: str, given: dict[str, str]) -> Task:
    """Attacks on a release within a time. Internal."""
    work = _beside(project, project.existing(release), f"{Path(release).name}-audit", given)
    minutes = number(given.get("minutes", "") or "1", "minutes")
    more = ["--budget-minutes", f"{minutes:g}", "--work", work]
    return _command(["audit", release, *_real(project, release, given), *more], f"Attack {release}", internal=True)


def compare(project: Project, releases: list[str], given: dict[str, str]) -> Task:
    """Several releases side by side. Internal."""
    named = [project.name(project.existing(release)) for release in releases]
    if not named:
        raise InputError("release: two to six releases are expected. Choose them.")
    out = _beside(project, project.existing(named[0]), "comparison", given, ".html")
    words = ["compare", *named, *_real(project, named[0], given), "--report", out]
    return _command(words, f"Compare {len(named)} releases", makes=out, internal=True)


def sample(project: Project, release: str, given: dict[str, str]) -> Task:
    """More series from a release, free of charge."""
    suffix = ".csv" if given.get("format") == "csv" else ".parquet"
    out = _beside(project, project.existing(release), f"{Path(release).name}-samples", given, suffix)
    words = ["sample", release, "--out", out]
    for name, option in (("num_series", "--n"), ("label", "--label"), ("start", "--start"), ("context", "--context")):
        if given.get(name, "").strip():
            words += [option, given[name].strip() if name != "context" else _named(project, given[name], "context")]
    return _command(words, f"Sample more from {release}", makes=out)


def typed(words: list[str]) -> str:
    """Returns a command line as a person would type it in the project folder."""
    return shlex.join(["understudy", *words])


def ledger_file(path: Path, schema: Schema) -> str:
    """Returns where the ledger of a schema is, or will be made."""
    from understudy.privacy.ledger import Ledger

    found = Ledger.find_for(schema, path.parent) if schema.budget is not None else None
    return str(path.parent / f"{schema.name}.ledger" if found is None else found.path)


def _command(words: list[str], title: str, schema: str = "", **more: Any) -> Task:
    return Task(kind=words[0], title=title, schema=schema, arguments=words, command=typed(words), **more)


def _real(project: Project, release: str, given: dict[str, str]) -> list[str]:
    """Returns the options that name real series: the private table, those kept out of the run, and public context."""
    words = ["--real", _named(project, given.get("table", ""), "table")]
    for name in ("holdout", "context"):
        if given.get(name, "").strip():
            words += [f"--{name}", _named(project, given[name], name)]
    return words


def _beside(project: Project, path: Path, stem: str, given: dict[str, str], suffix: str = "") -> str:
    """Returns the name of what a run makes; it ends in the run's own, so that two runs never meet in one place."""
    return project.name(path.with_name(f"{stem}-{given.get('once', '')[:6]}{suffix}"))


def _named(project: Project, text: str, what: str) -> str:
    """Returns a path as a command takes it; one that looks like an option is written so that it does not."""
    if not text.strip():
        raise InputError(f"{what}: the name of a file or folder in the project is expected. Fill in the field.")
    name = project.name(project.existing(text))
    return f"./{name}" if name.startswith("-") else name


def _plain(name: str) -> str:
    return (
        "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name).strip("-")[:60]
        or "population"
    )
