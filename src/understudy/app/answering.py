"""Requests and answers: what every page shares, from the form that comes in to the error that goes out."""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from understudy.app.door import COOKIE, Door, fields_of, is_own_form
from understudy.app.project import Project
from understudy.app.words import filters
from understudy.errors import UnderstudyError

MOST_FORM_BYTES = 256 * 1024
_ASSETS = {
    "app.css": "text/css",
    "app.js": "text/javascript",
    "htmx.min.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "page.css": "text/css",
}


@dataclass(frozen=True)
class Ask:
    """One request: the project, and what the browser sent, as text."""

    project: Project
    request: Request
    given: dict[str, str]

    def __getitem__(self, name: str) -> str:
        return self.given.get(name, "")

    @property
    def schema_path(self) -> Path:
        """The schema file that the page is about."""
        return self.project.existing(self["at"])

    def schema(self, *, draft: bool = False) -> Any:
        """The schema that the page is about, from its file."""
        from understudy.data import Schema

        return Schema.load(self.schema_path, draft=draft)

    def ledger(self, schema: Any) -> Any:
        """The ledger of a schema; None where the first run makes it."""
        from understudy.privacy.ledger import Ledger

        return Ledger.find_for(schema, self.schema_path.parent)

    def problem(self, text: str, status: int = 422) -> Response:
        """Says what went wrong: on a page, or where a part of a page was asked for in its place."""
        part = "problem_part.html" if self.request.headers.get("hx-request") else "problem.html"
        return self.page(part, status, problem=text)

    def page(self, name: str, status: int = 200, **facts: Any) -> Response:
        """Fills in a template."""
        shown = {"ask": self, "at": self["at"], "form_token": self.request.scope.get("form_token"), **facts}
        return HTMLResponse(environment().get_template(name).render(**shown), status)


@cache
def environment() -> Environment:
    loader = PackageLoader("understudy.app")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters |= filters()
    return made


class TooLarge(Exception):
    """A body is larger than its page takes."""


def once() -> str:
    """Returns the name of the run that a form starts, however often it is sent."""
    return secrets.token_hex(16)


def to(path: str, **query: str) -> Response:
    return RedirectResponse(f"{path}?{urlencode(query)}" if query else path, 303)


def sent(
    path: Path, kind: str, *, policy: str = "", download: bool = False, name: str | None = None, after: Any = None
) -> Response:
    headers = {"content-security-policy": policy} if policy else None
    shown = name or path.name if download else None
    return FileResponse(path, media_type=kind, headers=headers, filename=shown, background=after)


def asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _ASSETS:
        return Response("Nothing is here.\n", 404)
    package, folder = ("understudy.report", "templates") if name == "page.css" else ("understudy.app", "assets")
    return Response(
        (files(package) / folder / name).read_bytes(),
        media_type=_ASSETS[name],
        headers={"cache-control": "max-age=3600"},
    )


def entrance(door: Door) -> Callable[[Request], Any]:
    """The page that a link opens: it takes the password, where there is one, and gives the cookie."""

    async def enter(request: Request) -> Response:
        given = dict(request.query_params)
        if request.method == "POST":
            given |= fields_of(await body_of(request))
        if door.password is not None and request.method == "GET":
            return HTMLResponse(
                environment().get_template("enter.html").render(token=given.get("token", ""), wrong=False)
            )
        cookie = door.enter(given.get("token", ""), given.get("password", ""))
        if cookie is None and door.password is not None:
            return HTMLResponse(
                environment().get_template("enter.html").render(token=given.get("token", ""), wrong=True), 403
            )
        if cookie is None:
            return Response("This link was used already, or is not the app's. The terminal shows a new one.\n", 403)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(COOKIE, cookie, httponly=True, samesite="strict")
        return answer

    return enter


async def body_of(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_FORM_BYTES:
            raise TooLarge
    return body


def answering(project: Project, handler: Callable[[Ask], Any]) -> Callable[[Request], Any]:
    """Returns an endpoint: it checks the form's token, calls the page, and turns errors into pages without values."""

    own_body = asyncio.iscoroutinefunction(handler)  # it reads what is sent itself, piece by piece

    async def answer(request: Request) -> Response:
        ask = Ask(project, request, dict(request.query_params))
        try:
            if request.method == "POST":
                form = {} if own_body else fields_of(await body_of(request))
                if not is_own_form(request.scope, form, request.headers):
                    return ask.problem(
                        "This form is not the app's own, or is from an earlier start. Load the page again.", 403
                    )
                ask = replace(ask, given=ask.given | form)
            if own_body:
                made: Response = await handler(ask)
                return made
            return await run_in_threadpool(handler, ask)
        except UnderstudyError as problem:
            return ask.problem(" ".join([str(problem), *getattr(problem, "__notes__", [])]))
        except (TooLarge, ClientDisconnect):
            return ask.problem("Less is expected in a form, or the connection ended. Nothing was done.", 413)
        except Exception as problem:  # its text may quote a value
            return ask.problem(f"Internal error: {type(problem).__name__}. Please report it.", 500)

    return answer
