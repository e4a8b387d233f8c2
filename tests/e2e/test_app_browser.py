"""The app in a real browser: from simulated homes to a verified release, and what can go wrong on the way."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    page.said, page.asked, page.heavy = [], [], []  # type: ignore[attr-defined]
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


def test_the_whole_walk_from_simulated_homes_to_a_verified_release(
    browser: Browser, server: Started, pytestconfig: pytest.Config
) -> None:
    import os

    pictures = Path(os.environ["APP_PICTURES"]) if "APP_PICTURES" in os.environ else None
    page = entered(browser, server)
    looks_good(page, pictures, "1-start")
    name = make_homes(page)
    looks_good(page, pictures, "2-schema")
    to_budget(page)
    expect(page.locator("#plan .verdict")).to_contain_text("This budget buys")
    expect(page.locator("#plan")).to_contain_text("at most")
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
    made = next(server.folder.glob("*/*-release"))
    assert us.verify(made).holds
    assert [one.label for one in us.Ledger.open(next(server.folder.glob("*/*.ledger"))).entries()] == ["spectral"]
    assert page.said == []
    assert {re.sub(r"(http://127.0.0.1:\d+).*", "http://127.0.0.1", url) for url in page.asked} == {"http://127.0.0.1"}
