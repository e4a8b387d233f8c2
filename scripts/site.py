"""Builds the documentation site into build/site, offline: pages, notebooks run from clean kernels, search.

    python scripts/site.py

The pages are those that a code host shows. They are copied to build/pages, where links between them are rewritten to
the places that they have on the site; a link to a file that is no page leads to the source. A broken link, a page that
zensical.toml does not name, a notebook that fails or warns, and any warning of zensical end the build.
"""

import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbconvert import MarkdownExporter

ROOT = Path(__file__).resolve().parents[1]
PAGES, SITE = ROOT / "build" / "pages", ROOT / "build" / "site"
SOURCE = "https://understudy.example/source"
PATIENCE = 300  # seconds of one cell
_LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?\)")
_CODE_WITH_BAR = re.compile(r"`([^`\n]*\\\|[^`\n]*)`")
_BLOCK = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


def pages() -> dict[Path, str]:
    """Returns the place on the site of every page, notebook and picture of the project."""
    docs = {path: path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*") if path.is_file()}
    found = {path: place.replace(".ipynb", ".md") for path, place in docs.items()}
    for path in (ROOT / "bench").rglob("*"):
        if path.suffix in (".md", ".png", ".svg") and "record" not in path.parts:
            found[path] = f"bench/{path.relative_to(ROOT / 'bench').as_posix()}".replace("README", "index")
    named = {path: f"project/{path.name.lower()}" for path in ROOT.glob("*.md") if path.stem != "README"}
    return found | named | {ROOT / "README.md": "index.md"}


def moved(text: str, page: Path, places: dict[Path, str]) -> str:
    """Returns a page's text with links that hold on the site; fails where one leads nowhere."""

    def link(match: re.Match[str]) -> str:
        target = (page.parent / match[2]).resolve()
        if not target.exists():
            raise SystemExit(f"{page.relative_to(ROOT)}: the link to {match[2]} leads nowhere.")
        anchor = match[3] or ""
        if target not in places:
            return f"{match[1]}{SOURCE}/{target.relative_to(ROOT).as_posix()}{anchor})"
        return f"{match[1]}{os.path.relpath(places[target], Path(places[page]).parent)}{anchor})"

    parts = _BLOCK.split(text)
    return "".join(
        part if part.startswith("```") else _CODE_WITH_BAR.sub(_bar, _LINK.sub(link, part)) for part in parts
    )


def _bar(match: re.Match[str]) -> str:
    """Returns code in a table whose bars are entities: Python-Markdown would show the stroke before them."""
    return f"<code>{html.escape(match[1]).replace(chr(92) + '|', '&#124;')}</code>"


def executed(path: Path, book: Any, folder: Path) -> tuple[str, dict[str, bytes]]:
    """Returns a notebook as Markdown with its outputs, after a run in an empty folder, and its pictures by name."""
    folder.mkdir(parents=True)
    os.environ["UNDERSTUDY_HOME"] = str(folder / ".understudy")  # keys and register of this run; the kernel inherits it
    with tempfile.TemporaryDirectory() as sockets:  # not a port that others on this machine could reach
        manager = KernelManager(kernel_name="python3", transport="ipc", ip=f"{sockets}/kernel")
        place = {"metadata": {"path": folder}}
        try:
            NotebookClient(book, km=manager, timeout=PATIENCE, startup_timeout=PATIENCE, resources=place).execute()
        finally:
            manager.shutdown_kernel(now=True)
    if any(out.get("name") == "stderr" for cell in book.cells for out in cell.get("outputs", ())):
        raise SystemExit(f"{path.relative_to(ROOT)}: a cell writes to stderr.")
    text, resources = MarkdownExporter().from_notebook_node(book, {"unique_key": path.stem})
    return re.sub(r"(<table) [^>]*", r"\1", text), resources.get("outputs", {})


def stage(runs: Path) -> None:
    """Writes every page to `PAGES`; notebooks run in folders below `runs`."""
    places = pages()
    for path, place in places.items():
        target = PAGES / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".ipynb":
            text, pictures = executed(path, nbformat.read(path, as_version=4), runs / path.stem)
            target.write_text(moved(text, path, places | {path.parent / name: name for name in pictures}), "utf-8")
            for name, content in pictures.items():
                (target.parent / name).write_bytes(content)
        elif path.suffix == ".md":
            if path != ROOT / "README.md":
                target.write_text(moved(path.read_text("utf-8"), path, places), "utf-8")
        else:
            shutil.copyfile(path, target)


def listed(nav: Any) -> Iterator[str]:
    """Yields the pages of a navigation."""
    if isinstance(nav, str):
        yield nav
    for part in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from listed(part)


def main() -> None:
    """Builds the site, or ends with a sentence."""
    shutil.rmtree(ROOT / "build" / "runs", ignore_errors=True)
    for folder in (PAGES, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    stage(ROOT / "build" / "runs")
    known = set(listed(tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["nav"]))
    made = {path.relative_to(PAGES).as_posix() for path in PAGES.rglob("*.md")}
    if known != made:
        raise SystemExit(f"zensical.toml: nav lacks {sorted(made - known)} and names {sorted(known - made)} in vain.")
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    print(built.stdout + built.stderr)
    if built.returncode or re.search(r"\b(warning|error)\b", built.stdout + built.stderr, re.IGNORECASE):
        raise SystemExit("zensical reported a problem; see above.")
    print(f"Wrote {SITE.relative_to(ROOT)}, {len(made)} pages.")


if __name__ == "__main__":
    main()
