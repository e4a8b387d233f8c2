"""The pages: what a browser asks for, and what it gets.

Privacy: before a release is made a page shows names, types and declared facts only. What was computed from real series
is shown on pages that say *internal*.
"""

import asyncio
import hashlib
import json
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from understudy.app import forms, pictures, tasks
from understudy.app.answering import Ask, TooLarge, answering, asset, entrance, environment, once, sent, to
from understudy.app.door import Door, Guard
from understudy.app.jobs import Job, Task, all_jobs
from understudy.app.project import Project
from understudy.errors import InputError, UnderstudyError
from understudy.files import whole_file

MOST_DROPPED_BYTES, MOST_DROPPED = 512 * 2**20, 40
_EVENT_SECONDS = 0.3
_MOST_JOBS = 12
_OTHER_PAGE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"  # of a file: no script, no origin
_FIGURE, _DROPPED, _BATCH = re.compile(r"[\w.-]+\.svg"), re.compile(r"[\w][\w. -]{0,99}"), re.compile(r"[0-9a-f]{32}")
_CAPTIONS = {
    "bands": "Quantile bands",
    "series": "Single series",
    "values": "Marginal distribution",
    "memory": "Autocorrelation",
    "spectrum": "Power spectral density",
}
EXAMPLES = {"homes": ("households", 2000), "stays": ("icu", 2000)}


# --- 1. Start ---------------------------------------------------------------------------------------------------------


def start(ask: Ask) -> Response:
    """A file or folder of the project, or invented data; and what was run here before."""
    listing = ask.project.listing(ask["folder"])
    return ask.page(
        "start.html", listing=listing, jobs=[(job, job.task, job.state) for job in all_jobs(ask.project)[:_MOST_JOBS]]
    )


def open_path(ask: Ask) -> Response:
    """Opens what a path names: a folder, a release, a schema, or a table, of which a schema is drafted."""
    path = ask.project.existing(ask["path"])
    name = ask.project.name(path)
    if (path / "certificate.json").is_file():
        return to("/release", at=name)
    if path.is_dir() and not ask["as_table"]:
        return to("/", folder=name)
    if path.suffix == ".toml":
        return to("/schema", at=name)
    known = ask.project.folder / f"{path.parent.relative_to(ask.project.folder) / path.stem}.schema.toml"
    return to("/schema", at=ask.project.name(known)) if known.exists() else _drafted(ask, path, known)


def draft_again(ask: Ask) -> Response:
    """Drafts the schema of a table again, with what a person says of it."""
    path = ask.schema_path
    return _drafted(ask, ask.project.existing(ask.project.tables_of(ask["at"])["table"]), path)


def _drafted(ask: Ask, table: Path, target: Path) -> Response:
    from understudy.data import draft_schema
    from understudy.data.schema import CsvFormat

    sign = "\t" if ask["delimiter"] == "\\t" else ask["delimiter"] or ","
    text = draft_schema(
        table,
        unit=ask["unit"] or None,
        time=ask["time"] or None,
        peek=bool(ask["peek"]),
        columns_are_public=bool(ask["columns_are_public"]),
        csv=CsvFormat(delimiter=sign, decimal=ask["decimal"] or ".", encoding=ask["encoding"] or "utf-8"),
    )
    with whole_file(target) as file:
        file.write_text(text, encoding="utf-8")
    name = ask.project.name(target)
    ask.project.choose(name, **{**ask.project.tables_of(name), "table": ask.project.name(table)})
    return to("/schema", at=name)


def example(ask: Ask) -> Response:
    """Writes invented data with a schema whose population has a name of its own, because a ledger is found by it."""
    from understudy.data import Schema, write_households, write_intensive_care

    if ask["which"] not in EXAMPLES:
        raise InputError(f"which: one of {', '.join(EXAMPLES)} is expected. Choose one.")
    units = tasks.number(ask["units"], "units", int) or EXAMPLES[ask["which"]][1]
    if not 100 <= units <= 20_000:
        raise InputError("units: a number from 100 to 20000 is expected. Correct the field.")
    folder = ask.project.unused(ask.project.folder / "x", f"invented-{ask['which']}")
    write = write_households if ask["which"] == "homes" else write_intensive_care
    made = {path.name: path for path in write(units, folder)}
    path = made["schema.toml"]
    replace(Schema.load(path), name=f"invented-{ask['which']}-{secrets.token_hex(2)}").save(path)
    table = next(name for name in made if name not in ("schema.toml", "context.parquet"))
    context = ask.project.name(made["context.parquet"]) if "context.parquet" in made else ""
    ask.project.choose(ask.project.name(path), table=ask.project.name(made[table]), context=context)
    return to("/schema", at=ask.project.name(path))


# --- 2. Who is protected, what is public ------------------------------------------------------------------------------


def schema(ask: Ask, problem: UnderstudyError | None = None) -> Response:
    """The schema as a form."""
    document = forms.read_document(ask.schema_path)
    shown = document if problem is None else _document(ask)
    return ask.page(
        "schema.html",
        422 if problem else 200,
        sections=forms.FIELDS,
        values=forms.values_of(shown) | ({"constraints": ask["constraints"]} if problem else {}),
        columns=forms.columns_of(shown),
        names=_column_names(document),
        unit=document.get("unit", {}).get("column", ""),
        time=document.get("time", {}).get("column", ""),
        groups=forms.GROUPS,
        kinds=forms.KINDS,
        tables=ask.project.tables_of(ask["at"]),
        **_checked(ask, shown, problem),
    )


def check(ask: Ask) -> Response:
    """What the library says of the form, while it is filled in."""
    try:
        return ask.page("checked.html", **_checked(ask, _document(ask)))
    except UnderstudyError as problem:
        return ask.page("checked.html", **_checked(ask, {}, problem))


def save_schema(ask: Ask) -> Response:
    """Saves the form as the schema file, and goes on where it is complete."""
    tables = {name: ask[name] and ask.project.name(ask.project.existing(ask[name])) for name in ("table", "context")}
    try:
        found = forms.save(_document(ask), ask.schema_path)
        ask.project.choose(ask["at"], **tables)
        if ask["next"] == "buy":
            return to("/buy", at=ask["at"])
        found.require_declared()
        ask.ledger(found)  # which may have been made for another declaration
    except UnderstudyError as problem:
        return schema(ask, problem)
    return to("/budget", at=ask["at"])


def _document(ask: Ask) -> forms.Document:
    saved = forms.read_document(ask.schema_path)
    try:
        return forms.document_of(saved, ask.given)
    except UnderstudyError:
        if ask["next"]:
            return saved
        raise


def _checked(ask: Ask, document: forms.Document, problem: UnderstudyError | None = None) -> dict[str, Any]:
    """Returns the first thing that is wrong, the facts that are open, and the text that would be written."""
    text = forms.toml(document)
    still_open: tuple[str, ...] = ()
    if problem is None:
        try:
            found = forms.checked(document, draft=True)
            still_open, text = tuple(fact.key for fact in found.missing_facts()), found.dumps()
            ask.ledger(found) if found.budget and not found.undecided and found.population.size else None
            found.require_declared()
        except UnderstudyError as error:
            problem = error
    told = "" if problem is None else str(problem).removeprefix("schema: ")
    key = "" if problem is None else str(problem.facts.get("key") or "")
    return {"problem": told[:1].upper() + told[1:], "key": key, "still_open": still_open, "text": text}


def _column_names(document: forms.Document) -> list[str]:
    groups = [column.get("name", "") for group in ("channels", "static") for column in document.get(group, [])]
    keys = [document.get(part, {}).get("column", "") for part in ("unit", "time")]
    return list(dict.fromkeys(name for name in (*keys, *groups, *document.get("ignore", [])) if name))


# --- Facts that can be bought -----------------------------------------------------------------------------------------


def buy(ask: Ask) -> Response:
    """What can be bought, and at what price; nothing is charged here."""
    found = ask.schema(draft=True)
    price = _price(ask, found) if ask["fact"] else None
    open_facts = [fact.key for fact in found.missing_facts()]
    columns = [column.name for column in (*found.channels, *found.static)]
    return ask.page("buy.html", schema=found, open_facts=open_facts, columns=columns, price=price, once=once())


def buy_run(ask: Ask) -> Response:
    """Starts a purchase that was confirmed."""
    found = ask.schema(draft=True)
    _require_name(ask, found)
    _price(ask, found)
    task = tasks.buy(ask.project, ask["at"], found, ask.given)
    job = Job.start(ask.project, ask["once"], task)
    ask.project.choose(job.task.makes, **ask.project.tables_of(ask["at"]))
    return to(f"/jobs/{job.name}")


def _price(ask: Ask, found: Any) -> dict[str, Any]:
    """Returns what a purchase costs, from public facts; refuses one that the ledger can't pay."""
    from understudy.api.charging import check_budget
    from understudy.planning.choices import guarantee_for, require_budget
    from understudy.privacy.purchases import BuyBounds, BuyCategories, BuyPopulation

    require_budget(found)
    ends = [tasks.number(ask[name], name) for name in ("low", "high")]
    if ask["fact"] == "bounds" and None in ends:
        raise InputError("between: two public numbers are expected. Fill in both fields.")
    purchases = {
        "bounds": lambda: BuyBounds(columns=(ask["column"],), low=ends[0], high=ends[1]),
        "categories": lambda: BuyCategories(column=ask["column"]),
        "population": BuyPopulation,
    }
    if ask["fact"] not in purchases:
        raise InputError(f"fact: one of {', '.join(purchases)} is expected. Choose one.")
    purchase: Any = purchases[ask["fact"]]()
    guarantee = guarantee_for(found, tasks.number(ask["epsilon"], "epsilon"), None)
    purchase.check(found, guarantee)
    plan, ledger = purchase.plan(guarantee), ask.ledger(found)
    check_budget(ask.schema_path.parent, found, plan, purchase.label)
    left = found.budget.epsilon if ledger is None else ledger.remaining().epsilon
    return {
        "label": purchase.label,
        "epsilon": plan.epsilon(),
        "delta": guarantee.delta,
        "left": left,
        **_gauge(found, left, plan.epsilon()),
    }


# --- 3. What a budget buys --------------------------------------------------------------------------------------------


def budget(ask: Ask) -> Response:
    """Sliders, and what they buy."""
    from understudy.planning.choices import guarantee_for, require_budget
    from understudy.privacy.budget import at_least  # what is offered has to be granted
    from understudy.synthesizers import METHODS

    found = ask.schema()
    require_budget(found)
    share = guarantee_for(found, None, None)
    given = {
        "epsilon": at_least(share.epsilon),
        "delta": at_least(share.delta),
        "method": "auto",
        "units": "",
        "schedule": "",
    }
    given |= {"holdout": "", "num_series": ""} | {name: value for name, value in ask.given.items() if value}
    return ask.page("budget.html", schema=found, given=given, methods=["auto", *METHODS])


def plan(ask: Ask) -> Response:
    """The live part of the page: noise, signal, odds, ledger; from public facts and without waiting for a trial."""
    made, found = _planned(ask, timed=False), ask.schema()
    left = found.budget.epsilon if made.ledger is None else made.ledger["epsilon"]
    asked = made.epsilon if made.schedule is None else made.schedule.whole.epsilon
    return ask.page(
        "plan.html",
        plan=made,
        odds=pictures.sentence(made.epsilon, made.delta, made.relation),
        belief=pictures.Belief(made.epsilon),
        gauge=_gauge(found, left, asked),
        runs=None if made.ledger is None else made.ledger["runs"],
        largest=max((one.signal_to_noise or 0.0 for one in made.releases), default=1.0) or 1.0,
    )


def minutes(ask: Ask) -> Response:
    """How long a run takes on this machine, from a trial on invented series."""
    return ask.page("minutes.html", words=_planned(ask, timed=True).cost_words)


def simulate(ask: Ask) -> Response:
    """Starts a trial of several budgets on invented series."""
    ask.schema()
    epsilon = tasks.number(ask["epsilon"], "epsilon") or 1.0
    task = tasks.simulate(ask["at"], f"{epsilon:g}", ask["method"] or "auto")
    return to(f"/jobs/{Job.start(ask.project, once(), task).name}")


def _planned(ask: Ask, *, timed: bool) -> Any:
    from understudy.planning import plan as planned

    return planned(
        ask.schema_path,
        tasks.number(ask["epsilon"], "epsilon"),
        delta=tasks.number(ask["delta"], "delta") if not ask["schedule"] else None,
        method=ask["method"] or "auto",
        population=tasks.number(ask["units"], "units", int),
        schedule=ask["schedule"].strip() or None,
        timed=timed,
    )


def _gauge(found: Any, left: float, asked: float = 0.0) -> dict[str, Any]:
    return pictures.gauge(found.budget.epsilon, left, asked)


# --- 4. Confirm, 5. Run -----------------------------------------------------------------------------------------------


def confirm(ask: Ask, problem: str = "") -> Response:
    """What will be charged, irrevocably."""
    from understudy.api.charging import check_budget
    from understudy.api.holdouts import check_share
    from understudy.planning.choices import chosen, guarantee_for, spending_plan

    found = ask.schema()
    guarantee = guarantee_for(found, tasks.number(ask["epsilon"], "epsilon"), tasks.number(ask["delta"], "delta"))
    method, _ = chosen(found, method=ask["method"] or "auto")
    spending = spending_plan(method, found, guarantee)
    check_share(tasks.number(ask["holdout"], "holdout"), found, allow_few_units=False)
    own = ask["once"] if problem else once()
    task = tasks.synth(ask.project, ask["at"], found, ask.given | {"once": own})
    check_budget(ask.schema_path.parent, found, spending, method.name)
    ledger = ask.ledger(found)
    left = found.budget.epsilon if ledger is None else ledger.remaining().epsilon
    return ask.page(
        "confirm.html",
        422 if problem else 200,
        schema=found,
        task=task,
        method=method.name,
        epsilon=spending.epsilon(),
        delta=guarantee.delta,
        gauge=_gauge(found, left, spending.epsilon()),
        odds=pictures.sentence(spending.epsilon(), guarantee.delta, "added or removed"),
        once=own,
        problem=problem,
        given={name: ask[name] for name in ("epsilon", "delta", "method", "holdout", "num_series")},
    )


def run(ask: Ask) -> Response:
    """Starts a run whose charge was confirmed."""
    found = ask.schema()
    try:
        _require_name(ask, found)
    except InputError as problem:
        return confirm(ask, str(problem))
    return to(
        f"/jobs/{Job.start(ask.project, ask['once'], tasks.synth(ask.project, ask['at'], found, ask.given)).name}"
    )


def _require_name(ask: Ask, found: Any) -> None:
    if ask["name"].strip() != found.name:
        raise InputError(f"name: '{found.name}' is expected, typed as it is written. Nothing was charged.")


def job(ask: Ask) -> Response:
    """A run: how far it is, what it says, and what it made."""
    return ask.page("job.html", **_standing(ask, _job(ask)))


def _standing(ask: Ask, found: Job) -> dict[str, Any]:
    task, state = found.task, found.state
    charges = found.charges() if state == "lost" else None
    made = bool(task.makes) and (ask.project.folder / task.makes).exists()
    return {
        "job": found, "task": task, "state": state, "progress": found.progress, "charges": charges, "made": made,
        "message": found.end.get("message", ""), "log": found.text("log.txt"), "output": found.text("output.txt"),
    }  # fmt: skip


def cancel(ask: Ask) -> Response:
    """Stops a run; what it was charged stays charged."""
    found = _job(ask)
    found.cancel()
    return to(f"/jobs/{found.name}")


async def events(ask: Ask) -> Response:
    """How a run stands, whenever that changes, until it is over."""
    found = _job(ask)

    async def standings() -> AsyncIterator[str]:
        before = ""
        while True:
            facts = await run_in_threadpool(_standing, ask, found)
            text = (
                environment()
                .get_template("standing.html")
                .render(ask=ask, form_token=ask.request.scope["form_token"], **facts)
            )
            if text != before:
                yield f"event: standing\ndata: {json.dumps({'html': text, 'state': facts['state']})}\n\n"
            if facts["state"] != "running":
                return
            before = text
            await asyncio.sleep(_EVENT_SECONDS)

    return StreamingResponse(standings(), media_type="text/event-stream")


def job_page(ask: Ask) -> Response:
    """The page that a run wrote: a report, an evaluation or a comparison."""
    task = _job(ask).task
    name = f"{task.makes}-report.html" if task.kind == "synth" else task.makes
    if task.kind not in ("synth", "evaluate", "compare"):
        raise InputError("page: this run writes none.")
    return sent(ask.project.existing(name), "text/html", policy=_OTHER_PAGE)


def job_file(ask: Ask) -> Response:
    """The series that a run sampled."""
    task = _job(ask).task
    if task.kind != "sample":
        raise InputError("file: this run makes none to download.")
    return sent(ask.project.existing(task.makes), "application/octet-stream", download=True)


def figure(ask: Ask) -> Response:
    """A picture of a release."""
    name = ask.request.path_params["name"]
    path = _job(ask).folder / "figures" / name
    if not _FIGURE.fullmatch(name) or not path.is_file():
        raise InputError("figure: no picture of that name was drawn.")
    return sent(path, "image/svg+xml", policy="default-src 'none'; style-src 'unsafe-inline'; sandbox")


def _job(ask: Ask) -> Job:
    return Job.named(ask.project, str(ask.request.path_params["job"]))


# --- 6. Result --------------------------------------------------------------------------------------------------------


def release(ask: Ask, verification: Any = None) -> Response:
    """A release: pictures, certificate, downloads, the commands for the same, and what can be done with it."""
    from understudy.privacy.certificate import Certificate

    path = ask.project.existing(ask["at"])
    certificate = Certificate.load(path)
    makers = [job for job in all_jobs(ask.project) if job.task.makes == ask["at"] and job.task.kind == "synth"]
    maker = makers[0] if makers else None
    drawn = sorted((maker.folder / "figures").glob("channel-*.svg")) if maker else []
    figures = [
        (file.name, _CAPTIONS[kind], int(number))
        for file in drawn
        for _, number, kind in [file.stem.split("-", 2)]
        if kind in _CAPTIONS
    ]
    described = _release_schema(path)
    held_out = path.with_name(f"{path.name}.holdout.csv")
    return ask.page(
        "release.html",
        certificate=certificate,
        title=path.name,
        maker=maker,
        task=maker.task if maker else None,
        figures=figures,
        channels=[channel.name for channel in described.channels] if described else [],
        labels=[str(one) for one in described.label_column.categories] if described and described.label_column else [],
        context=[channel.name for channel in described.context] if described else [],
        shipped=(path / "synthetic.parquet").is_file(),
        tables=ask.project.table_for(certificate.population),
        holdout=ask.project.name(held_out) if held_out.exists() else "",
        others=[name for name in ask.project.releases() if name != ask["at"]],
        verification=verification,
        once=once(),
    )


def _release_schema(path: Path) -> Any:
    from understudy.data import Schema

    try:
        return Schema.load(path / "schema.toml")
    except UnderstudyError:
        return None


def certificate(ask: Ask) -> Response:
    """The certificate on one page, of a release that holds."""
    import understudy as us
    from understudy.privacy.certificate_page import to_html

    found = us.verify(ask.project.existing(ask["at"]))
    if any(not one.ok and not one.unknown for one in found):
        raise InputError(f"certificate: {found.verdict}")
    return HTMLResponse(to_html(found.certificate), headers={"content-security-policy": _OTHER_PAGE})


def series(ask: Ask) -> Response:
    """The shipped series, as they are or as CSV in the schema's own format."""
    path = ask.project.existing(ask["at"])
    if ask["format"] != "csv":
        return sent(
            ask.project.existing(f"{ask['at']}/synthetic.parquet"),
            "application/octet-stream",
            download=True,
            name=f"{path.name}.parquet",
        )
    from understudy.data import read_panel, write_panel
    from understudy.synthesizers import Release

    opened = Release.load(path)
    target = ask.project.state / f"{secrets.token_hex(8)}.csv"
    panel = read_panel(path / "synthetic.parquet", opened.schema, context=opened.public_context, allow_few_units=True)
    write_panel(panel, target, with_context=True)
    return sent(target, "text/csv", download=True, name=f"{path.name}.csv", after=BackgroundTask(target.unlink))


def verify_release(ask: Ask) -> Response:
    """Checks a release of the project without its data."""
    import understudy as us

    return release(ask, us.verify(ask.project.existing(ask["at"])))


def work_on_release(ask: Ask) -> Response:
    """Starts an evaluation, an audit, a comparison, or more samples."""
    others = [value for name, value in sorted(ask.given.items()) if name.startswith("other.")]
    run_name = hashlib.sha256(f"{ask['once']} {ask['work']}".encode()).hexdigest()[:32]  # one form, several works
    given = ask.given | {"once": run_name}
    works: dict[str, Callable[[], Task]] = {
        "evaluate": lambda: tasks.evaluate(ask.project, ask["at"], given),
        "audit": lambda: tasks.audit(ask.project, ask["at"], given),
        "sample": lambda: tasks.sample(ask.project, ask["at"], given),
        "compare": lambda: tasks.compare(ask.project, [ask["at"], *others], given),
    }
    if ask["work"] not in works:
        raise InputError(f"work: one of {', '.join(works)} is expected.")
    if not _BATCH.fullmatch(ask["once"]):
        raise InputError("once: the form is incomplete. Load the page again.")
    return to(f"/jobs/{Job.start(ask.project, run_name, works[ask['work']]()).name}")


# --- 7. Ledger, keys, verify ------------------------------------------------------------------------------------------


def ledger(ask: Ask) -> Response:
    """What was ever charged to the populations of this folder."""
    from understudy.privacy.ledger import Ledger

    found, broken = [], []
    for path in ask.project.ledgers():
        try:
            one = Ledger.look(path)
            left = one.remaining()
            found.append(
                (one, left, pictures.gauge(one.guarantee.epsilon, left.epsilon), list(reversed(one.entries())))
            )
        except UnderstudyError as problem:
            broken.append((ask.project.name(path), str(problem)))
    return ask.page("ledger.html", ledgers=found, broken=broken)


def keys(ask: Ask, done: str = "") -> Response:
    """The keys that sign, and those that are trusted here."""
    from understudy.privacy import keys as known

    own = known.own()
    return ask.page("keys.html", own=own, trusted=[key for key in known.trusted() if key not in own], done=done)


def change_keys(ask: Ask) -> Response:
    """Makes a key, trusts one, or refuses one from now on."""
    from understudy.privacy import keys as known

    if ask["do"] == "create":
        key = known.create(ask["name"].strip() or known.DEFAULT_NAME).public
        return keys(ask, f"Made the key '{key.name}', fingerprint {key.fingerprint}.")
    if not ask["key"].strip():
        raise InputError("key: the line of a public key is expected, as `understudy keys export` prints it.")
    if ask["do"] == "revoke":
        key = known.revoke(_public_key(ask["key"]).hexadecimal, ask["reason"])
        return keys(ask, f"Nothing signed by {key.fingerprint} passes here from now on.")
    draft = ask.project.state / f"{secrets.token_hex(8)}.pub"
    try:
        known.export(_public_key(ask["key"]), draft)
        key = known.trust(draft, ask["name"].strip() or None)
    finally:
        draft.unlink(missing_ok=True)
    return keys(ask, f"Certificates signed by '{key.name}' ({key.fingerprint}) are trusted from now on.")


def _public_key(text: str) -> Any:
    """Returns a key from its line or digits, and never from a file of that name."""
    from understudy.privacy import keys as known

    if not re.fullmatch(r"\s*([0-9a-f]{64}|understudy-ed25519 [0-9a-f]{64} \S+.*)\s*", text):
        raise InputError("key: the line of a public key is expected, as `understudy keys export` prints it.")
    return known.given(text.strip())


def public_key(ask: Ask) -> Response:
    """The public half of an own key, for those who verify."""
    from understudy.privacy import keys as known

    key = next((key for key in known.own() if key.name == ask["name"]), None)
    if key is None:
        raise InputError("name: one of your own keys is expected.")
    line = f"understudy-ed25519 {key.hexadecimal} {key.name}\n"
    return Response(line, media_type="text/plain", headers={"content-disposition": 'attachment; filename="holder.pub"'})


def verify(ask: Ask) -> Response:
    """A place to drop someone else's release, and what was found."""
    import understudy as us

    found, trust = None, [ask["trust"].strip()] if ask["trust"].strip() else None
    if trust:
        _public_key(trust[0])
    if ask["dropped"]:
        folder = _dropped(ask)
        try:
            found = us.verify(folder, trust=trust)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    elif ask["path"]:
        found = us.verify(ask.project.existing(ask["path"]), trust=trust)
    return ask.page("verify.html", verification=found, releases=ask.project.releases(), batch=secrets.token_hex(16))


async def drop(ask: Ask) -> Response:
    """Takes one file of a release that is dropped; it is deleted as soon as it is verified."""
    folder, name = _dropped(ask), ask["name"]
    if not _DROPPED.fullmatch(name):
        raise InputError("name: a plain file name is expected.")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if len(list(folder.iterdir())) >= MOST_DROPPED:
        raise InputError(f"At most {MOST_DROPPED} files are expected. Drop one release.")
    size = 0
    with (folder / name).open("wb") as file:
        async for chunk in ask.request.stream():
            size += len(chunk)
            if size > MOST_DROPPED_BYTES:
                raise TooLarge
            file.write(chunk)
    return Response(status_code=204)


def _dropped(ask: Ask) -> Path:
    if not _BATCH.fullmatch(ask["dropped"]):
        raise InputError("dropped: the form is incomplete. Load the page again.")
    return ask.project.state / "dropped" / ask["dropped"]


_PAGES: tuple[tuple[str, str, Callable[[Ask], Any]], ...] = (
    ("GET", "/", start),
    ("POST", "/open", open_path),
    ("POST", "/example", example),
    ("GET", "/schema", schema),
    ("POST", "/schema/check", check),
    ("POST", "/schema", save_schema),
    ("POST", "/schema/draft", draft_again),
    ("GET", "/buy", buy),
    ("POST", "/buy", buy_run),
    ("GET", "/budget", budget),
    ("POST", "/budget/plan", plan),
    ("POST", "/budget/minutes", minutes),
    ("POST", "/budget/simulate", simulate),
    ("GET", "/confirm", confirm),
    ("POST", "/run", run),
    ("GET", "/jobs/{job}", job),
    ("GET", "/jobs/{job}/events", events),
    ("POST", "/jobs/{job}/cancel", cancel),
    ("GET", "/jobs/{job}/page", job_page),
    ("GET", "/jobs/{job}/file", job_file),
    ("GET", "/jobs/{job}/figures/{name}", figure),
    ("GET", "/release", release),
    ("POST", "/release/verify", verify_release),
    ("POST", "/release/work", work_on_release),
    ("GET", "/release/certificate", certificate),
    ("GET", "/release/series", series),
    ("GET", "/ledger", ledger),
    ("GET", "/keys", keys),
    ("POST", "/keys", change_keys),
    ("GET", "/keys/public", public_key),
    ("GET", "/verify", verify),
    ("POST", "/verify", verify),
    ("POST", "/verify/drop", drop),
)


def application(project: Project, door: Door) -> Any:
    """Returns the app of one project, behind its door."""
    routes = [Route(path, answering(project, handler), methods=[method]) for method, path, handler in _PAGES]
    own = [Route("/enter", entrance(door), methods=["GET", "POST"]), Route("/assets/{name}", asset)]
    return Guard(Starlette(routes=[*own, *routes]), door)
