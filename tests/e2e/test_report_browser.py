"""The report of the demo in a real browser: quiet, self-sufficient, usable by everybody."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from filelock import FileLock
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from tests.e2e.commands import run
from tests.unit.report.toy import HOSTILE, toy_record
from understudy.report.page import render, render_comparison

SERIOUS = {"serious", "critical"}
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 375, "height": 700}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next((path for path in map(shutil.which, names) if path), None)
    if program is None:
        pytest.skip("no Chromium on this computer")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The demo's report and certificate, its public twin's kind, a comparison, and a page full of hostile names.

    Made once, however many processes share the tests.
    """
    run_of_tests = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    shared = tmp_path_factory.getbasetemp().parent / f"pages-{run_of_tests}"
    folder = tmp_path_factory.mktemp("pages") if run_of_tests is None else shared
    with FileLock(f"{folder}.lock"):
        if not (folder / "comparison.html").exists():
            _make_pages(folder)
    demo = {"demo": folder / "demo" / "report.html", "certificate": folder / "demo" / "certificate.html"}
    return demo | {name: folder / f"{name}.html" for name in ("public", "hostile", "comparison", "interactive")}


def _make_pages(folder: Path) -> None:
    outcome = run("demo", "--out", folder / "demo", "--n", "300", "--quiet")
    assert outcome.code == 0, outcome.err
    hostile = toy_record(name=HOSTILE)
    written = {
        "public": render(toy_record().without_internal()),
        "hostile": render(hostile),
        "comparison": render_comparison({"first": toy_record(), HOSTILE: hostile}, recorded="Nowhere."),
        "interactive": render(hostile, interactive=True),
    }
    for name, text in written.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")


def opened(browser: Browser, path: Path, **options: Any) -> tuple[Page, list[str], list[str]]:
    """Returns a page with whatever it said on the console and whatever it asked for."""
    page = browser.new_context(viewport=options.pop("viewport", DESKTOP), **options).new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    return page, said, asked


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        *(("demo", "light"), ("demo", "dark"), ("public", "light"), ("hostile", "light"), ("comparison", "dark")),
        *(("certificate", "light"), ("certificate", "dark"), ("interactive", "light"), ("interactive", "dark")),
    ],
)
def test_it_is_quiet_asks_for_nothing_and_passes_axe(browser: Browser, pages: dict, name: str, scheme: str) -> None:
    page, said, asked = opened(browser, pages[name], color_scheme=scheme)
    for summary in page.locator("summary").all():
        summary.evaluate("summary => summary.parentElement.open = true")
    found = Axe().run(page).response["violations"]
    assert [(bad["id"], bad["nodes"][0]["html"]) for bad in found if bad["impact"] in SERIOUS] == []
    assert said == []
    assert asked == [pages[name].as_uri()]
    assert pages[name].stat().st_size <= 1_500_000
    page.context.close()


def test_axe_would_see_a_violation(browser: Browser, tmp_path: Path) -> None:
    """Negative control."""
    bad = tmp_path / "bad.html"
    bad.write_text("<!doctype html><html><body><input><img src='data:,'></body></html>")
    page, _, _ = opened(browser, bad)
    assert {found["impact"] for found in Axe().run(page).response["violations"]} & SERIOUS
    page.context.close()


def test_an_outside_request_and_a_script_would_be_seen_and_are_stopped_by_the_policy(
    browser: Browser, pages: dict, tmp_path: Path
) -> None:
    """Negative control: the page with mark-up smuggled in."""
    text = pages["public"].read_text(encoding="utf-8")
    smuggled = '<img src="http://localhost:9/x.png"><script>document.title = "owned"</script></body>'
    (tmp_path / "smuggled.html").write_text(text.replace("</body>", smuggled), encoding="utf-8")
    page, said, asked = opened(browser, tmp_path / "smuggled.html")
    assert asked[1:] == ["http://localhost:9/x.png"]
    assert sum("violates" in line and "Content Security Policy" in line for line in said) == 2
    assert page.title() != "owned"
    page.context.close()


def test_the_legend_hides_and_shows_a_kind_by_mouse_and_by_keyboard(browser: Browser, pages: dict) -> None:
    page, _, _ = opened(browser, pages["demo"])
    real, synthetic = (page.locator(f"figure .{kind}").first for kind in ("real", "synthetic"))
    assert real.is_visible()
    page.get_by_label("real", exact=True).uncheck()
    assert not real.is_visible()
    assert synthetic.is_visible()
    page.get_by_label("real", exact=True).focus()
    page.keyboard.press("Space")
    assert real.is_visible()
    page.context.close()


def test_pointing_at_a_figure_reads_it_out(browser: Browser, pages: dict) -> None:
    page, _, _ = opened(browser, pages["demo"])
    strip = page.locator("#channel-1-memory .hit").nth(20)
    assert not strip.locator("text").is_visible()
    strip.locator("rect").hover()
    assert strip.locator("text").is_visible()
    assert strip.locator("text").text_content().startswith("Autocorrelation at a lag of ")
    assert " h): real " in strip.locator("text").text_content()
    page.context.close()


def test_every_figure_has_a_text_alternative_and_a_caption(browser: Browser, pages: dict) -> None:
    page, _, _ = opened(browser, pages["demo"])
    figures = page.locator("figure")
    assert figures.count() >= 15
    for figure in figures.all():
        assert len(figure.locator("svg[role=img]").get_attribute("aria-label") or "") > 20
        assert figure.locator("figcaption").inner_text().strip()
    page.context.close()


@pytest.mark.parametrize("name", ["demo", "public", "hostile", "comparison", "certificate", "interactive"])
def test_a_phone_shows_it_without_scrolling_sideways(browser: Browser, pages: dict, name: str) -> None:
    page, _, _ = opened(browser, pages[name], viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.context.close()


def test_it_prints_in_light_colours_on_a_dark_screen(browser: Browser, pages: dict) -> None:
    page, _, _ = opened(browser, pages["demo"], color_scheme="dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)" != dark
    assert page.pdf().startswith(b"%PDF")
    page.context.close()


def test_a_figure_is_enlarged_and_closed_again(browser: Browser, pages: dict) -> None:
    page, _, _ = opened(browser, pages["demo"])
    figure = page.locator("#channel-1-bands")
    before = figure.bounding_box()
    figure.locator(".zoom").click()
    assert figure.bounding_box()["width"] == DESKTOP["width"] > 2 * before["width"]
    figure.locator(".close").click()
    assert figure.bounding_box()["width"] == before["width"]
    page.context.close()


def dragged(page: Page, drawing: Locator, across: tuple[float, float], up: tuple[float, float] = (0.3, 0.6)) -> None:
    """Drags over a part of a figure, given as shares of its width and height."""
    drawing.scroll_into_view_if_needed()
    box = drawing.bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in zip(across, up, strict=True)]
    page.mouse.move(*places[0])
    page.mouse.down()
    page.mouse.move(*places[1], steps=3)
    page.mouse.up()


def test_dragging_over_a_figure_zooms_and_a_double_click_shows_all(browser: Browser, pages: dict) -> None:
    page, said, asked = opened(browser, pages["interactive"])
    drawing = page.locator("#channel-1-bands > svg")
    ticks, strips = drawing.locator(".zoom-ticks text"), drawing.locator(".hit rect")
    curve = drawing.locator("path.real, .real path").last
    narrow, before = strips.nth(3).bounding_box()["width"], curve.bounding_box()["width"]
    assert ticks.count() == 0
    dragged(page, drawing, (0.4, 0.6))
    assert 3 < strips.nth(3).bounding_box()["width"] / narrow < 5  # a fifth of the drawing, more of the axis
    assert curve.bounding_box()["width"] > 3 * before
    assert ticks.count() >= 2
    assert not drawing.locator(".xtick").first.is_visible()
    drawing.dblclick()
    assert ticks.count() == 0
    assert strips.nth(3).bounding_box()["width"] == pytest.approx(narrow, abs=0.1)
    assert drawing.locator(".xtick").first.is_visible()
    assert (said, asked[1:]) == ([], [])
    page.context.close()


def test_buttons_zoom_and_move_by_keyboard(browser: Browser, pages: dict) -> None:
    page, said, _ = opened(browser, pages["interactive"])
    figure = page.locator("#channel-1-bands")
    ticks = figure.locator(".zoom-ticks text")
    assert not figure.get_by_role("button", name="Later").is_visible()
    figure.get_by_role("button", name="Zoom in").press("Enter")
    first = ticks.all_text_contents()
    figure.get_by_role("button", name="Later").press("Enter")
    assert ticks.all_text_contents() != first
    figure.get_by_role("button", name="Show all").press("Space")
    assert (ticks.count(), said) == (0, [])
    page.context.close()


def test_a_cloud_of_points_zooms_in_both_directions(browser: Browser, pages: dict) -> None:
    page, said, _ = opened(browser, pages["interactive"])
    drawing = page.locator("#pca > svg")
    places = (
        "svg => [...svg.querySelectorAll('[clip-path] use')].map(use => use.getAttribute('x') + use.getAttribute('y'))"
    )
    before = drawing.evaluate(places)
    dragged(page, drawing, (0.3, 0.7))
    assert drawing.evaluate(places) != before
    drawing.dblclick()
    assert len(before) > 20
    assert (page.locator("#pca > svg.zoomed").count(), said) == (0, [])
    page.context.close()


def test_a_certificate_is_one_sheet_of_paper(browser: Browser, pages: dict) -> None:
    page, _, _ = opened(browser, pages["certificate"])
    pdf = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page[^s]", pdf)) == 1
    page.context.close()
