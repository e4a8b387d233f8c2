"""Who may come in: a one-time link becomes a cookie, and every request has to come from the app's own pages.

The app trusts a browser that holds the cookie and nothing else: not the machine (other people and other programs use
it), not the network, not other pages in the same browser.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from understudy.errors import InputError

COOKIE = "understudy"
MOST_TRIES = 5  # of a password; after them the app has to be started again
_SAFE = ("GET", "HEAD")
_MOST_FIELDS = 5000
_OPEN = (
    "/enter",
    "/assets/app.css",
    "/assets/page.css",
    "/assets/icon.svg",
)  # what a browser without a cookie may ask for
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}


@dataclass
class Door:
    """The secrets of one server; they end with its process.

    Attributes:
        host: The only `Host` that is answered, which stops pages that rebind a name to this machine.
        password: Asked for besides the link, where others can reach the machine; None asks for none.
        announce: Takes the link for the next browser whenever one has been used.
    """

    host: str
    password: str | None
    announce: Callable[[str], None]
    _token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    _sessions: dict[str, str] = field(default_factory=dict)  # hash of the cookie → token of forms
    _tries: int = 0

    @property
    def origin(self) -> str:
        """The origin of the app's own pages."""
        return f"http://{self.host}"

    @property
    def link(self) -> str:
        """The link that lets one browser in, once."""
        return f"{self.origin}/enter?token={self._token}"

    def enter(self, token: str, password: str = "") -> str | None:
        """Returns a cookie for the right token and password; the token is worth nothing from then on."""
        if self._tries >= MOST_TRIES:
            return None
        right = hmac.compare_digest(token.encode(), self._token.encode())
        if self.password is not None and right:
            right = hmac.compare_digest(password.encode(), self.password.encode())
            self._tries += not right
        if not right:
            return None
        self._token, cookie = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._sessions[_hashed(cookie)] = secrets.token_urlsafe(32)
        self.announce(self.link)
        return cookie

    def form_token(self, headers: MutableMapping[str, str]) -> str | None:
        """Returns the token that forms of this browser have to send; None for a browser without a valid cookie."""
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return None
        return None if found is None else self._sessions.get(_hashed(found.value))

    def refusal(self, method: str, headers: MutableMapping[str, str]) -> str | None:
        """Returns why a request can't come from the app's own pages; None where it may."""
        if headers.get("host") != self.host:
            return "This address is not the app's. Open the link that `understudy app` printed."
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
        if origin is not None and origin != self.origin:
            return "This request comes from another page, and nothing was done."
        if method not in _SAFE and (origin is None or site != "same-origin"):
            return "This request comes from no page of the app, and nothing was done."
        if site == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            return "Another page asks for a part of the app, which it does not get."
        return None


class Guard:
    """Asks the door before anything else sees a request, and adds the policy to every answer."""

    def __init__(self, app: Any, door: Door) -> None:
        self.app, self.door = app, door

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers or refuses one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}

        async def with_policy(message: Any) -> None:
            if message["type"] == "http.response.start":
                given = {key for key, _ in message["headers"]}
                own = ((key.encode(), value.encode()) for key, value in HEADERS.items())
                message["headers"] = [*message["headers"], *(pair for pair in own if pair[0] not in given)]
            await send(message)

        told, status = self.door.refusal(scope["method"], headers), 403
        scope["form_token"] = self.door.form_token(headers)
        if told is None and scope["form_token"] is None and scope["path"] not in _OPEN:
            told, status = "This browser has no key to the app. Open the link that `understudy app` printed.", 401
        if told is None:
            await self.app(scope, receive, with_policy)
            return
        from starlette.responses import PlainTextResponse

        await PlainTextResponse(told + "\n", status)(scope, receive, with_policy)


def is_own_form(scope: Any, form: dict[str, str], headers: Any) -> bool:
    """Returns whether a form carries the token that this browser was given."""
    given = headers.get("x-form-token") or form.get("form_token", "")
    return scope["form_token"] is not None and hmac.compare_digest(given.encode(), scope["form_token"].encode())


def fields_of(body: bytes) -> dict[str, str]:
    """Returns the fields of a form; of several of one name the last."""
    text = body.decode("utf-8", errors="replace")
    try:
        found = parse_qs(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise InputError(f"At most {_MOST_FIELDS} fields are expected in a form. Nothing was done.") from None
    return {name: values[-1] for name, values in found.items()}


def _hashed(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()
