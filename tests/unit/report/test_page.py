"""The page as text: nothing from outside, nothing of a user's taken for mark-up, nothing real in the public one."""

import base64
import hashlib
import html
import re
from pathlib import Path

import numpy as np
import pytest

from tests.unit.report.toy import HOSTILE, PLANTED, toy_record
from understudy.report.page import drawings, render, render_comparison
from understudy.report.record import RunRecord


@pytest.fixture(scope="module")
def page() -> str:
    return render(toy_record())


def test_the_policy_lets_in_the_style_sheet_and_nothing_else(page: str) -> None:
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    (sheet,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    assert html.unescape(policy) == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert not re.search(r"<script|<link|<img|<iframe|\son\w+=|\sstyle=|url\((?!#)|@import|javascript:", page)
    assert not re.search(r'(?:href|src|action)="(?!#)', page)


def test_an_interactive_page_lets_in_its_own_script_and_no_other() -> None:
    page = render(toy_record().without_internal(), interactive=True)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"; script-src 'sha256-{digest}';" in html.unescape(policy)
    assert not re.search(r"fetch|XMLHttp|WebSocket|import\(|eval|innerHTML|https?://(?!www\.w3\.org)", script)
    assert page.count("<script") == 1
    assert page.count("data-box=") >= 5


def test_every_figure_has_a_caption_and_a_text_alternative(page: str) -> None:
    figures = re.findall(r"<figure id=\"[^\"]*\">(.*?)</figure>", page, re.DOTALL)
    assert len(figures) > 12
    for body in figures:
        (alternative,) = re.findall(r'role="img" aria-label="([^"]*)"', body)
        (caption,) = re.findall(r"<figcaption>(.*?)</figcaption>", body, re.DOTALL)
        assert min(len(alternative), len(caption)) > 20


def test_names_in_the_page_are_unique(page: str) -> None:
    names = re.findall(r'\sid="([^"]*)"', page)
    assert len(names) == len(set(names))
    for target in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page):
        assert "".join(target) in names


def test_the_page_says_what_is_promised_what_was_charged_and_how_it_scores(page: str) -> None:
    text = html.unescape(re.sub(r"<[^>]+>", " ", page))
    for said in (
        "Internal.", "Who is protected", "What is not protected", "Gap of means", "Means only.", "Yearly rhythm",
        "needs a year of steps", "canary", "ward", "no private data",
    ):  # fmt: skip
        assert said.lower() in text.lower(), said


def test_planted_real_values_are_in_the_internal_page_and_nowhere_in_the_public_one(page: str) -> None:
    public = render(toy_record().without_internal())
    shown = f"{PLANTED:.3g}"
    assert shown in page
    assert shown not in public
    assert "Internal." not in public
    assert 'class="real"' not in public


def test_the_public_page_is_the_same_whatever_the_real_series_are() -> None:
    other = toy_record(number=45, seed=9, planted=0.123)
    assert render(toy_record().without_internal()) == render(other.without_internal())


def test_names_that_are_mark_up_stay_names(page: str) -> None:
    hostile = render(toy_record(name=HOSTILE))
    assert "<script" not in hostile
    assert html.escape("<script>") in hostile
    assert hostile.count("<figure") == page.count("<figure")


def test_the_largest_portraits_fit_into_a_mebibyte_and_a_half() -> None:
    """Eight channels of many steps, six static columns of many categories, eighty measures."""
    from tests.unit.report.largest import largest_record

    record = largest_record()
    assert len(render(record).encode()) < 1.5 * 2**20
    assert len(record.dumps()) < 1.5 * 2**20


def test_figures_are_saved_for_papers(tmp_path: Path) -> None:
    made = [path for drawing in drawings(toy_record())[:2] for path in drawing.save(tmp_path)]
    assert {path.suffix for path in made} == {".svg", ".png"}
    assert made[1].read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in made[0].read_bytes()


def test_public_figures_are_fewer_and_hold_no_cloud_of_real_points() -> None:
    names = {drawing.name for drawing in drawings(toy_record().without_internal())}
    assert names < {drawing.name for drawing in drawings(toy_record())}
    assert "pca" not in names


def test_a_comparison_says_first_that_choosing_by_it_is_not_covered() -> None:
    records = {"first": toy_record(), HOSTILE: toy_record(number=45, seed=9, planted=0.123)}
    page = render_comparison(records, recorded="Written down in the ledger.", chosen="Chosen: first.")
    body = page[page.index("<body>") :]
    assert body.index("covered by no guarantee") < body.index("<section")
    assert "Written down in the ledger." in body
    assert "Chosen: first." in body
    assert "<script" not in page


def _at(epsilon: float, control: float) -> RunRecord:
    """The toy at another epsilon, its only measured metric at `control` for the control."""
    record = toy_record()
    card = record.internal["scorecard"]
    score = card["scores"][0]
    told = {**score, "independent": {**score["independent"], "value": control}, "position": 0.3}
    return RunRecord(
        public={**record.public, "certificate": {**record.public["certificate"], "epsilon": epsilon}},
        internal={**record.internal, "scorecard": {**card, "scores": [told, *card["scores"][1:]]}},
    )


def test_epsilons_are_put_against_utility_where_there_are_several_and_a_metric_tells() -> None:
    for epsilons, control, drawn in (((0.5, 2.0), 9.0, True), ((1.0, 1.0), 9.0, False), ((0.5, 2.0), 0.0, False)):
        records = {f"{place}": _at(epsilon, control) for place, epsilon in enumerate(epsilons)}
        assert ('id="utility-epsilon"' in render_comparison(records, recorded="")) == drawn


def test_series_without_numbers_or_memory_are_drawn_without_complaint(recwarn: pytest.WarningsRecorder) -> None:
    from tests.unit.evaluation.sets import panel_of
    from understudy.report.record import public_record

    for values in (np.full((5, 1, 1), 0.5), np.full((5, 6, 2), np.nan), np.full((5, 3, 1), 0.0)):
        assert "<figure" in render(public_record(None, panel_of(values)))
    assert not recwarn.list
