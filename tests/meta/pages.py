"""Reads the project's own pages: which there are, their code blocks, links and headings."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").rglob("*.md")])
CLAIMS = sorted([*(ROOT / "docs/claims").glob("*.md"), *(ROOT / "bench/docs/claims").glob("*.md")])

_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Command:
    """One line of a console block; a trailing `# exit N` announces its exit code."""

    line: str
    exit_code: int = 0


def name(page: Path) -> str:
    """Short name of a page, for test identifiers and messages."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    """Code blocks of one language, in the page's order."""
    return [body for found, body in _BLOCK.findall(page.read_text(encoding="utf-8")) if found == language]


def commands(page: Path) -> list[Command]:
    """Commands of all console blocks, in the page's order; a backslash joins lines."""
    found = []
    for block in blocks(page, "console"):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                text, _, announced = line[2:].partition("# exit ")
                found.append(Command(text.split(" #")[0].strip(), int(announced or 0)))
    return found


def links(page: Path) -> list[str]:
    """Targets of links and images outside code blocks that lead to another place in this project."""
    prose = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    return [target for target in _LINK.findall(prose) if "://" not in target]


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as code hosts make them."""
    prose = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
