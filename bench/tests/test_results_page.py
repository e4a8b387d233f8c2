"""The kept page of results is what the kept results say."""

from pathlib import Path

from understudy_bench.cli import results_of
from understudy_bench.results import page as results_page

DOCS = Path(__file__).resolve().parents[1] / "docs"


def test_the_page_of_results_is_what_the_kept_results_say() -> None:
    """Nothing on it is typed in: `understudy-bench report docs/record --markdown docs/results.md` writes it."""
    written = (DOCS / "results.md").read_text(encoding="utf-8")
    assert written == results_page.markdown(results_of(DOCS / "record"))
