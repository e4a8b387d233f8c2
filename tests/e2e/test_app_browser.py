"""The app in a real browser: from simulated homes to a verified release, and what can go wrong on the way."""

import contextlib
import os
import re
import shutil
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

import understudy as us
from tests.e2e.app_server import Started, started

SERIOUS = {"serious", "critical"}
SIZES = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
UNITS, LONG = "120", 120_000  # homes; milliseconds that a run may take where tests share two cores
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next((path for path in map(shutil.which, names) if path), None)
    if program is None:
        pytest.skip("no Chromium on this computer")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        yield opened
        opened.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Started]:
    with started(tmp_path / "project") as running:
        yield running


def entered(browser: Browser, server: Started, **options: Any) -> Page:
    """Returns a page of a new browser that was let in."""
    page = browser.new_context(viewport=options.pop("viewport", SIZES["desktop"]), **options).new_page()
    page.set_default_timeout(LONG)
    expect.set_options(timeout=LONG)
    page.said, page.asked = [], []  # type: ignore[attr-defined]
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    page.goto(server.link())
    return page


def make_homes(page: Page) -> str:
    """Makes simulated homes and returns the name of their population."""
    page.get_by_label("How many").fill(UNITS)
    page.get_by_role("button", name="Make them").click()
    expect(page.get_by_role("heading", name="Who is protected, and what is public")).to_be_visible()
    return page.get_by_label("Name of the population").input_value()


def to_budget(page: Page) -> None:
    page.get_by_role("button", name="Save, and see what a budget buys").click()
    expect(page.get_by_role("heading", name="What a budget buys")).to_be_visible()


def confirm(page: Page, name: str, epsilon: str = "1") -> None:
    """Goes from the budget to a run."""
    page.get_by_label("ε of this run", exact=True).fill(epsilon)
    page.get_by_role("button", name="Go on: confirm this run").click()
    page.get_by_label("Type the name of the population").fill(name)
    page.get_by_role("button", name="Charge it and run").click()


def looks_good(page: Page, pictures: Path | None, name: str) -> None:
    """Asks axe, and whether a phone shows it without scrolling sideways; keeps a picture of both widths."""
    for size, viewport in SIZES.items():
        page.set_viewport_size(viewport)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= viewport["width"], (name, size, wide)
        if pictures is not None:
            page.screenshot(path=pictures / f"{name}-{size}.png", full_page=True)
    page.set_viewport_size(SIZES["desktop"])
    found = Axe().run(page).response["violations"]
    assert [(name, bad["id"], bad["nodes"][0]["html"]) for bad in found if bad["impact"] in SERIOUS] == []
    assert len(page.content().encode()) < 150_000


def ledger_of(server: Started) -> us.Ledger:
    return us.Ledger.look(next(server.folder.glob("*/*.ledger")))


def has_ended(page: Page) -> None:
    expect(page.locator("#standing .verdict")).not_to_contain_text("is running")


def workers_of(server: Started) -> list[int]:
    """Returns the processes of the runs of this project."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = place.read_bytes().decode(errors="replace").split("\0")
            if "understudy.app.worker" in words and words[-2].startswith(str(server.folder.resolve())):
                found.append(int(place.parent.name))
    return found


def a_long_run(page: Page, server: Started) -> str:
    """Starts a run that takes minutes, waits until it is charged, and returns its address."""
    name = make_homes(page)
    to_budget(page)
    page.get_by_label("Method").select_option("dit")
    confirm(page, name)
    expect(page.locator("progress")).to_be_visible()
    while not list(server.folder.glob("*/*.ledger")) or not ledger_of(server).entries():
        assert "is running" in page.locator("#standing .verdict").inner_text()
        page.wait_for_timeout(200)
    return page.url


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_the_whole_walk_from_simulated_homes_to_a_verified_release(
    browser: Browser, server: Started, scheme: str
) -> None:
    pictures = Path(os.environ["APP_PICTURES"]) if scheme == "light" and "APP_PICTURES" in os.environ else None
    page = entered(browser, server, color_scheme=scheme)
    looks_good(page, pictures, "1-start")
    name = make_homes(page)
    looks_good(page, pictures, "2-schema")
    to_budget(page)
    expect(page.locator("#plan .verdict")).to_contain_text("This budget buys")
    expect(page.locator("#plan")).to_contain_text("on this machine")  # minutes, from a trial
    looks_good(page, pictures, "3-budget")
    page.get_by_label("ε of this run", exact=True).fill("1")
    page.get_by_role("button", name="Go on: confirm this run").click()
    looks_good(page, pictures, "4-confirm")
    page.get_by_label("Type the name of the population").fill(name)
    page.get_by_role("button", name="Charge it and run").click()
    expect(page.get_by_text("This run is")).to_be_visible()
    looks_good(page, pictures, "5-run")
    page.get_by_role("link", name="To the release").click()
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_text("Everything agrees with the certificate")).to_be_visible()
    expect(page.locator(".picture").first).to_be_visible()
    looks_good(page, pictures, "6-result")
    for where in ("Ledger", "Keys", "Verify"):
        page.get_by_role("navigation", name="Main").get_by_role("link", name=where).click()
        looks_good(page, pictures, f"7-{where.lower()}")
    made = next(server.folder.glob("*/*-release-??????"))
    assert us.verify(made).holds
    assert [one.label for one in ledger_of(server).entries()] == ["spectral"]
    assert page.said == []
    assert {re.sub(r"(http://127.0.0.1:\d+).*", "http://127.0.0.1", url) for url in page.asked} == {"http://127.0.0.1"}


def test_a_bad_schema_is_named_at_its_field_and_corrected_and_too_large_a_budget_is_refused(
    browser: Browser, server: Started
) -> None:
    page = entered(browser, server)
    make_homes(page)
    frequency = page.get_by_label("Distance between two steps")
    frequency.fill("1x")
    expect(page.locator("#checked")).to_contain_text("got '1x'")
    expect(page.locator('[data-key="time.frequency"]')).to_have_class(re.compile("wrong"))
    page.get_by_role("button", name="Save, and see what a budget buys").click()
    expect(page.get_by_role("heading", name="Who is protected, and what is public")).to_be_visible()
    expect(frequency).to_have_value("1x")  # nothing was saved, and nothing that was typed is lost
    frequency.fill("1h")
    expect(page.locator("#checked")).to_contain_text("The library accepts this schema")
    to_budget(page)
    page.get_by_label("ε of this run", exact=True).fill("50")
    expect(page.locator("#plan")).to_contain_text("more than the 3 left")
    page.get_by_role("button", name="Go on: confirm this run").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was charged")
    assert list(server.folder.rglob("*.ledger")) == []
    assert [line for line in page.said if "422" not in line] == []  # the browser reports the refusal itself


def test_the_sliders_and_the_confirmation_work_from_the_keyboard(browser: Browser, server: Started) -> None:
    page = entered(browser, server)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the content"
    name = make_homes(page)
    to_budget(page)
    slider = page.get_by_label("ε of this run, slider")
    slider.focus()
    before = float(page.get_by_label("ε of this run", exact=True).input_value())
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    after = page.get_by_label("ε of this run", exact=True).input_value()
    assert float(after) > before
    assert slider.get_attribute("aria-valuetext") == after
    expect(page.locator("#plan")).to_contain_text(f"ε = {float(after):.2g}"[:6])
    page.get_by_role("button", name="Go on: confirm this run").press("Enter")
    page.get_by_label("Type the name of the population").fill(f"not {name}")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text(f"'{name}' is expected")


@pytest.mark.slow
def test_a_run_that_is_cancelled_keeps_its_charge_and_says_why(browser: Browser, server: Started) -> None:
    page = entered(browser, server)
    a_long_run(page, server)
    page.get_by_role("button", name="Cancel this run").click()
    has_ended(page)
    expect(page.locator("#standing")).to_contain_text("was cancelled")
    expect(page.locator("#standing")).to_contain_text("stays charged")
    assert len(ledger_of(server).entries()) == 1
    assert list(server.folder.glob("*/*-release-??????")) == []
    for _ in range(100):  # its process puts its libraries away
        if not workers_of(server):
            break
        page.wait_for_timeout(300)
    assert workers_of(server) == []


@pytest.mark.slow
def test_after_kill_9_of_the_server_the_run_goes_on_and_after_kill_9_of_the_run_it_is_said_to_be_lost(
    browser: Browser, tmp_path: Path
) -> None:
    with started(tmp_path / "project") as server:
        page = entered(browser, server)
        where = a_long_run(page, server)
        server.kill()
    (worker,) = workers_of(server)
    with started(server.folder) as again:
        page = entered(browser, again)
        page.goto(again.origin + urlsplit(where).path)
        expect(page.locator("#standing")).to_contain_text("is running")
        os.kill(worker, signal.SIGKILL)
        has_ended(page)
        expect(page.locator("#standing")).to_contain_text("was lost")
        expect(page.locator("#standing")).to_contain_text("The charge stays")
    assert len(ledger_of(server).entries()) == 1


@pytest.mark.slow
def test_two_tabs_see_one_run_and_a_form_that_is_sent_twice_charges_once(browser: Browser, server: Started) -> None:
    page = entered(browser, server)
    name = make_homes(page)
    to_budget(page)
    page.get_by_role("button", name="Go on: confirm this run").click()
    form = page.locator('form[action^="/run"]')
    sent = {one.get_attribute("name"): one.get_attribute("value") for one in form.locator("input[type=hidden]").all()}
    sent["name"] = name
    page.get_by_label("Type the name of the population").fill(name)
    page.get_by_role("button", name="Charge it and run").click()
    expect(page.locator("#standing")).to_be_visible()
    other = page.context.new_page()
    other.goto(page.url)
    origin = re.match(r"http://[^/]+", page.url)[0]  # type: ignore[index]
    again = page.context.request.post(f"{origin}{form_action(page)}", form=sent, headers={"origin": origin})
    assert again.url == page.url
    for tab in (page, other):
        expect(tab.locator("#standing")).to_contain_text("is done")
    assert len(ledger_of(server).entries()) == 1


def form_action(page: Page) -> str:
    """Returns where the confirmed form was sent: the schema is named by the run's command."""
    command = page.locator('pre[aria-label="Command line"]').text_content() or ""
    return "/run?at=" + re.search(r"--schema (\S+)", command)[1]  # type: ignore[index]


@pytest.mark.slow
def test_of_two_browsers_that_race_for_the_last_budget_one_wins(browser: Browser, server: Started) -> None:
    one, other = entered(browser, server), entered(browser, server)
    name = make_homes(one)
    to_budget(one)
    other.goto(one.url)
    for page in (one, other):
        page.get_by_label("ε of this run", exact=True).fill("2")
        page.get_by_role("button", name="Go on: confirm this run").click()
        page.get_by_label("Type the name of the population").fill(name)
    for page in (one, other):
        page.get_by_role("button", name="Charge it and run").click(no_wait_after=True)
    for page in (one, other):
        has_ended(page)
    told = sorted(page.locator("#standing").inner_text() for page in (one, other))
    assert sum("is done" in text for text in told) == 1
    assert sum("was refused or failed" in text for text in told) == 1
    assert len(ledger_of(server).entries()) == 1
    assert len(list(server.folder.glob("*/*-release-*/certificate.json"))) == 1


@pytest.mark.slow
def test_a_release_that_is_dropped_is_verified_and_deleted(browser: Browser, server: Started, tmp_path: Path) -> None:
    made = tmp_path / "theirs"
    panel = us.simulate_households(120)
    us.synthesize(panel, epsilon=1, ledger=tmp_path / "theirs.ledger", save_to=made, progress=False)
    page = entered(browser, server)
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Verify").click()
    for text, verdict in ((None, "Everything agrees"), ("x", "Do not rely on it")):
        if text:
            (made / "synthetic.parquet").write_text(text)
        page.get_by_label("Drop the release's folder here, or choose it").set_input_files(made)
        expect(page.locator("#drop-status")).to_contain_text("ready to be verified")
        page.get_by_role("button", name="Verify what was dropped").click()
        expect(page.get_by_role("status").first).to_contain_text(verdict)
    assert list((server.folder / ".understudy-app" / "dropped").iterdir()) == []


def test_the_first_page_needs_less_than_two_seconds_of_a_processor(server: Started) -> None:
    """From the start of the command to the page; on an idle machine that is also the time a person waits."""
    with urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(server.link()) as answer:
        page = answer.read()
    ticks = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    assert b"From a table to a release" in page
    assert sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK") < 2.0
