"""Nobody comes in without the link, no other page can ask for anything, and every answer carries the policy."""

from pathlib import Path

import pytest

from tests.unit.app.asking import HOST, ORIGIN, Browser, let_in, new_app
from understudy.app.answering import MOST_FORM_BYTES
from understudy.app.door import HEADERS, MOST_TRIES
from understudy.app.pages import _PAGES
from understudy.app.server import Address
from understudy.errors import InputError

PATHS = sorted({path.replace("{job}", "0" * 32).replace("{name}", "a.svg") for _, path, _ in _PAGES})


def test_a_link_works_once_and_the_next_is_announced(tmp_path: Path) -> None:
    app, _, links = new_app(tmp_path)
    first = let_in(app, links[0])
    assert first.get("/").status == 200
    again = Browser(app).get(links[0].removeprefix(ORIGIN))
    assert (again.status, "set-cookie" in again.headers) == (403, False)
    assert len(links) == 2
    assert let_in(app, links[1]).get("/").status == 200
    assert first.get("/").status == 200


def test_the_cookie_is_kept_from_scripts_and_other_sites(tmp_path: Path) -> None:
    app, _, links = new_app(tmp_path)
    told = Browser(app).get(links[0].removeprefix(ORIGIN)).headers["set-cookie"]
    assert "HttpOnly" in told
    assert "SameSite=strict" in told


@pytest.mark.parametrize("path", PATHS)
def test_without_a_cookie_every_page_is_refused(tmp_path: Path, path: str) -> None:
    app, _, _ = new_app(tmp_path)
    for cookie in (None, "guessed"):
        browser = Browser(app, cookie)
        assert {browser.get(path).status, browser.post(path, {}).status} == {401}


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "localhost:8471"},
        {"host": None},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"https://{HOST}"},
        {"origin": None},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
def test_a_post_from_anywhere_else_is_refused(tmp_path: Path, headers: dict[str, str | None]) -> None:
    app, _, links = new_app(tmp_path)
    browser = let_in(app, links[0])
    assert browser.post("/example", {"which": "homes"}, **headers).status == 403
    assert list(tmp_path.glob("invented*")) == []


@pytest.mark.parametrize("token", ["", "guessed", None])
def test_a_post_without_the_token_of_its_browser_is_refused(tmp_path: Path, token: str | None) -> None:
    app, _, links = new_app(tmp_path)
    browser, other = let_in(app, links[0]), let_in(app, links[1])
    given = {"form_token": other.form_token if token is None else token, "which": "homes"}
    assert browser.post("/example", given).status == 403
    assert list(tmp_path.glob("invented*")) == []


def test_every_answer_has_the_policy_and_no_page_has_a_script_of_its_own(tmp_path: Path) -> None:
    app, _, links = new_app(tmp_path)
    browser = let_in(app, links[0])
    for path in ("/", "/ledger", "/keys", "/verify", "/nothing", "/schema?at=../x", "/assets/app.js"):
        answer = browser.get(path)
        assert {name: answer.headers[name] for name in HEADERS if name != "cache-control"} == {
            name: value for name, value in HEADERS.items() if name != "cache-control"
        }
        assert " style=" not in answer.text or path.startswith("/assets")
        assert "<script>" not in answer.text
    assert "unsafe" not in HEADERS["content-security-policy"]
    assert Browser(app).get("/").headers["content-security-policy"] == HEADERS["content-security-policy"]


def test_a_form_that_is_too_large_is_refused(tmp_path: Path) -> None:
    app, _, links = new_app(tmp_path)
    browser = let_in(app, links[0])
    assert browser.post("/open", {"path": "x" * MOST_FORM_BYTES}).status == 413
    assert browser.post("/open", b"&".join([b"a=1"] * 6000)).status in (403, 422)


def test_a_password_is_asked_for_and_five_wrong_ones_close_the_door(tmp_path: Path) -> None:
    app, _, links = new_app(tmp_path, password="right")  # pragma: allowlist secret
    browser, token = Browser(app), links[0].rpartition("=")[2]
    assert 'type="password"' in browser.get(f"/enter?token={token}").text
    assert browser.post("/enter", {"token": token, "password": "right"}).status == 303  # pragma: allowlist secret
    token = links[1].rpartition("=")[2]
    for _ in range(MOST_TRIES):
        assert browser.post("/enter", {"token": token, "password": "wrong"}).status == 403  # pragma: allowlist secret
    assert browser.post("/enter", {"token": token, "password": "right"}).status == 403  # pragma: allowlist secret


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.org", "192.0.2.1"])
def test_an_address_that_others_reach_needs_a_password_and_is_one_address(host: str) -> None:
    with pytest.raises(InputError, match="--listen"):
        Address(host=host)
    assert Address().host == "127.0.0.1"
    assert Address(host="192.0.2.1", password="right").password  # pragma: allowlist secret
