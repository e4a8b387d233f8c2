"""The built site: links hold, nothing is fetched from elsewhere, axe finds nothing serious. `make docs` runs this."""

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlparse

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from jupyter_client.manager import start_new_kernel
from nbclient.exceptions import CellExecutionError
from playwright.sync_api import Browser, sync_playwright

from scripts.site import SITE, executed
from tests.meta.pages import ROOT

FIVE = ["/", "/tour/", "/spectral/", "/reference/python/", "/notebooks/3-is-it-good/"]
SERIOUS = {"serious", "critical"}


class Links(HTMLParser):
    """Collects targets and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {str(found[key]) for key in ("id", "name") if found.get(key)}
        self.targets += [str(found[key]) for key in ("href", "src") if found.get(key)]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    assert (SITE / "index.html").exists(), "Run `make docs`, which builds the site first."
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = next(path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


def test_every_link_and_anchor_inside_the_site_leads_somewhere() -> None:
    pages = {path: Links(path.read_text("utf-8")) for path in SITE.rglob("*.html") if path.name != "404.html"}
    broken = []
    for page, links in pages.items():
        own = "/" + page.relative_to(SITE).as_posix().removesuffix("index.html")
        for target in links.targets:
            parsed = urlparse(urljoin(own, unquote(target)))
            if parsed.scheme or parsed.netloc:
                continue
            file = SITE / parsed.path.lstrip("/")
            file = file / "index.html" if parsed.path.endswith("/") else file
            known = file in pages and (not parsed.fragment or parsed.fragment in pages[file].anchors)
            if not (known or (file.is_file() and file not in pages)):
                broken.append(f"{own} → {target}")
    assert len(pages) > 60
    assert not broken


@pytest.mark.parametrize("path", FIVE)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_asks_nobody_else_fits_a_phone_and_passes_axe(
    path: str, scheme: str, address: str, browser: Browser
) -> None:
    page = browser.new_page(color_scheme=scheme, viewport={"width": 390, "height": 800})  # type: ignore[arg-type]
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address + path)
    page.wait_for_load_state("networkidle")
    found = Axe().run(page).response["violations"]
    assert [url for url in asked if not url.startswith(address)] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found if one["impact"] in SERIOUS] == []
    page.close()


def test_a_notebook_that_fails_or_warns_ends_the_build(tmp_path: Path) -> None:
    for cell in ("raise ValueError", "import sys; print(1, file=sys.stderr)"):
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
        path = ROOT / "docs" / "notebooks" / "none.ipynb"
        with pytest.raises((CellExecutionError, SystemExit)):
            executed(path, book, tmp_path / str(len(cell)))


def test_a_bar_moves_below_the_cell_of_a_notebook_and_is_gone_at_the_end(tmp_path: Path) -> None:
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(tmp_path))
    client.execute(
        "from understudy.api.progress import shown\nimport time\n"
        "with shown(True) as report:\n"
        "    for step in range(4):\n        report('learning <fast>', step / 4); time.sleep(0.3)"
    )
    told: list[str] = []
    while (message := client.get_iopub_msg(timeout=60))["content"].get("execution_state") != "idle":
        told.append(message["content"].get("data", {}).get("text/html", "none"))
    manager.shutdown_kernel(now=True)
    bars = [text for text in told if "<progress" in text]
    assert len(bars) >= 3
    assert all("learning &lt;fast&gt;" in bar for bar in bars)
    assert [text for text in told if text != "none"][-1] == ""


def test_the_search_finds_a_term_of_the_field(address: str, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(address)
    page.wait_for_load_state("networkidle")
    page.keyboard.press("Control+k")
    page.keyboard.type("noise multiplier", delay=20)
    page.get_by_text("Gaussian release").locator("visible=true").first.wait_for()
    page.close()


def test_every_example_of_the_reference_runs(tmp_path: Path) -> None:
    environment = os.environ | {"UNDERSTUDY_HOME": str(tmp_path / ".understudy")}
    script = [sys.executable, str(ROOT / "scripts" / "examples.py")]
    done = subprocess.run(script, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
