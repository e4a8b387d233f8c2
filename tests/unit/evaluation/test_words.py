"""Verdicts and warnings say what the figures say."""

import pytest

from understudy.evaluation import words
from understudy.evaluation.words import figure, internal_cautions, printable, public_cautions, verdict
from understudy.report.page import standing


def score(synthetic: float | None, *, low=0.0, high=0.1, held=0.05, control: float = 1.0, direction="lower"):
    """A score as records hold it."""
    position = None if synthetic is None else (synthetic - held) / (control - held)
    beyond = synthetic is not None and {
        "lower": synthetic > high, "higher": synthetic < low, "near": not low <= synthetic <= high,
    }[direction]  # fmt: skip
    return {
        "title": "toy",
        "direction": direction,
        "synthetic": {"value": synthetic, "problem": None if synthetic is not None else "failed (KeyError)."},
        "holdout": {"value": held, "low": low, "high": high},
        "independent": {"value": control},
        "like_real": None if synthetic is None else not beyond,
        "position": position,
    }


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (score(0.08), words.LIKE_REAL),
        (score(0.3), words.NEAR_REAL),
        (score(0.8), words.BETWEEN),
        (score(1.2), words.NO_BETTER),
        (score(None), words.UNKNOWN),
        (score(0.4, high=0.46, control=0.49), words.BLIND),  # inside a wide interval, and almost at the control
        (score(0.9, low=0.4, high=0.6, held=0.5, control=0.1, direction="near"), words.BEYOND),
        (score(0.3, control=0.02), words.NO_BETTER),  # the control passes for real, and this does not
    ],
)
def test_a_verdict_says_where_a_score_stands(found, expected: str) -> None:
    assert verdict(found) == expected


def test_scores_have_a_line_only_where_the_control_can_be_told_from_real() -> None:
    assert standing(score(0.3, control=0.02)) is None
    at = standing(score(0.05))
    assert at is not None
    assert at["synthetic"] == at["real"] < at["control"]


def test_an_epsilon_that_buys_nothing_is_called_that() -> None:
    certificate = {"status": "private"}
    useless = {"scores": [score(1.1), score(1.0), score(2.0), score(0.01)]}
    assert internal_cautions(useless, certificate)[0].startswith("This epsilon buys nothing here: on 3 of the 4")
    assert internal_cautions(useless, None)[0].startswith("These series are worth no more than no data")
    assert internal_cautions({"scores": [score(0.01)] * 4}, certificate) == []
    assert "internal error" in internal_cautions({"scores": [score(None)]}, certificate)[0]


def test_measures_that_the_control_passes_prove_nothing_about_epsilon() -> None:
    blind = {"scores": [score(0.5, control=0.02)] * 4}
    assert not any("buys nothing" in caution for caution in internal_cautions(blind, {"status": "private"}))


def test_public_facts_alone_give_warnings() -> None:
    fine = {"status": "private", "epsilon": 1.0, "ledger": {"kind": "file"}, "overrides": {}}
    assert public_cautions(fine) == []
    assert "weak" in public_cautions(fine | {"epsilon": 8.0})[0]
    assert "memory only" in public_cautions(fine | {"ledger": {"kind": "in-memory"}})[0]
    assert "few units (a pilot)" in public_cautions(fine | {"overrides": {"few_units": "a pilot"}})[0]
    assert public_cautions(fine | {"status": "not private: seeded", "epsilon": "inf"}) == [
        "This release is not private: seeded."
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.5, "0.5"), (-1.25, "−1.25"), (1e-6, "1 × 10⁻⁶"), (None, "–"), (float("inf"), "∞"), (12345.678, "1.23 × 10⁴")],
)
def test_numbers_are_short(value, shown: str) -> None:
    assert figure(value) == shown


def test_names_become_one_short_line() -> None:
    assert printable("a\x00b\nc") == "a\ufffdb\ufffdc"
    assert len(printable("x" * 500)) == 40
