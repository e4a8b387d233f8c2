"""The app asked without a network: whole requests in, whole answers out, as a browser would send and get them."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from understudy.app.door import COOKIE, Door
from understudy.app.pages import application
from understudy.app.project import Project

HOST = "127.0.0.1:8471"
ORIGIN = f"http://{HOST}"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")

    @property
    def goes_to(self) -> str:
        return self.headers.get("location", "")

    @property
    def problem(self) -> str:
        """What the page says went wrong."""
        return " ".join(re.findall(r'role="alert"><p>(.*?)</p>', self.text, re.DOTALL))


@dataclass
class Browser:
    """One browser before one app; `headers` of a request replace its own, and None leaves one out."""

    app: Any
    cookie: str | None = None
    form_token: str = ""
    own: dict[str, str | None] = field(default_factory=lambda: {"host": HOST, "origin": ORIGIN})

    def get(self, path: str, **headers: str | None) -> Answer:
        return self.send("GET", path, b"", headers)

    def post(self, path: str, form: Mapping[str, str] | bytes = b"", **headers: str | None) -> Answer:
        body = form if isinstance(form, bytes) else urlencode({"form_token": self.form_token, **form}).encode()
        return self.send("POST", path, body, headers)

    def send(self, method: str, path: str, body: bytes, headers: Mapping[str, str | None]) -> Answer:
        cookie = None if self.cookie is None else f"{COOKIE}={self.cookie}"
        told = {"cookie": cookie, **self.own, **{name.replace("_", "-"): value for name, value in headers.items()}}
        lines = [(k.encode(), v.encode("latin-1", "replace")) for k, v in told.items() if v is not None]
        return asyncio.run(_asked(self.app, method, path, lines, body))


async def _asked(app: Any, method: str, target: str, headers: list[tuple[bytes, bytes]], body: bytes) -> Answer:
    parts, sent = urlsplit(target), []
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": parts.path,
        "raw_path": quote(parts.path).encode(),
        "query_string": parts.query.encode(),
        "headers": headers,
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 8471),
    }
    chunks = [body[start : start + 65536] for start in range(0, len(body), 65536)] or [b""]
    messages = [{"type": "http.request", "body": one, "more_body": one is not chunks[-1]} for one in chunks]

    async def receive() -> Any:
        if not messages:
            await asyncio.Event().wait()  # the browser stays
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    head = {key.decode().lower(): value.decode() for key, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], head, b"".join(message.get("body", b"") for message in sent[1:]))


def new_app(folder: Path, password: str | None = None) -> tuple[Any, Door, list[str]]:
    """Returns an app on a project folder, its door, and the links that it announces."""
    folder.mkdir(parents=True, exist_ok=True)
    links: list[str] = []
    door = Door(HOST, password, links.append)
    links.append(door.link)
    return application(Project.at(folder), door), door, links


def let_in(app: Any, link: str) -> Browser:
    """Returns a browser that followed a link."""
    browser = Browser(app)
    answer = browser.get(link.removeprefix(ORIGIN))
    assert answer.status == 303, answer.text
    browser.cookie = re.search(rf"{COOKIE}=([^;]+)", answer.headers["set-cookie"])[1]  # type: ignore[index]
    found = re.search(r'name="form_token" value="([^"]+)"', browser.get("/").text)
    browser.form_token = found[1] if found else ""
    return browser
