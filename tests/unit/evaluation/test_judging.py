"""`evaluate` and `compare` from Python: what they take, what they return and what they refuse."""

from pathlib import Path

import numpy as np
import pytest

from tests.unit.report.toy import HOSTILE, METRICS, real_waves, release
from understudy.data import Panel
from understudy.errors import InputError
from understudy.evaluation.judging import compare, evaluate
from understudy.evaluation.metric import QUICK
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger

EFFORT = {"effort": QUICK, "metrics": METRICS}


def test_a_release_is_sampled_judged_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    card = evaluate(release(), real_waves(60), holdout=real_waves(60, seed=3), **EFFORT)
    assert card["toy.mean"].synthetic.value is not None
    assert not any("No holdout" in note for note in card.notes)
    card.show()
    assert card.headline["sentence"] in capsys.readouterr().out.replace("\n", " ")
    page = tmp_path / "report.html"
    card.report(page)
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert page.stat().st_mode & 0o077 == 0
    with pytest.raises(FileExistsError):
        card.report(page)


def test_how_many_series_are_sampled_does_not_depend_on_the_real_ones() -> None:
    cards = [evaluate(release(), real_waves(number), **EFFORT) for number in (48, 90)]
    shown = [card.judged.synthetic.values for card in cards if card.judged is not None]
    assert np.array_equal(*shown)


def test_a_table_made_elsewhere_has_no_release() -> None:
    made = release().sample(60, rng=np.random.default_rng(3))
    card = evaluate(made, real_waves(60), **EFFORT)
    assert card.judged is not None
    assert card.judged.release is None


def test_a_notebook_shows_names_as_text() -> None:
    cards = compare({HOSTILE: release(), "second": release()}, real_waves(60), **EFFORT)
    assert "<script" not in cards._repr_html_()
    assert "<script" not in cards[HOSTILE]._repr_html_()
    assert len(repr(cards[HOSTILE])) < 300


def test_a_comparison_is_written_into_the_ledger_of_the_population(tmp_path: Path) -> None:
    name = release().schema.name
    ledger = Ledger.create(tmp_path / "own.ledger", name=name, unit_sentence="A home.", guarantee=Guarantee(2.0, 1e-4))
    cards = compare({"first": release(), "second": release()}, real_waves(60), **EFFORT)
    assert "says that they were compared" in cards.recorded
    assert [entry.label for entry in ledger.entries()] == ["compared with real data, not covered: first, second"]
    page = tmp_path / "compare.html"
    cards.report(page)
    assert "covered by no guarantee" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("number", [1, 7])
def test_a_comparison_is_of_two_to_six(number: int) -> None:
    with pytest.raises(InputError, match="Two to 6"):
        compare({f"{place}": release() for place in range(number)}, real_waves(60), **EFFORT)


@pytest.mark.parametrize("wrong", [{"release": "release"}, {"real": np.zeros((60, 8, 1))}])
def test_arguments_of_another_type_are_refused_with_what_to_pass(wrong: dict[str, object]) -> None:
    given: dict[str, object] = {"release": release(), "real": real_waves(60), **wrong}
    with pytest.raises(InputError, match=r"is expected, got (str|ndarray)\. (Load|Read)"):
        evaluate(given["release"], given["real"], **EFFORT)  # type: ignore[arg-type]


def test_panels_stay_out_of_what_a_scorecard_prints_and_stores() -> None:
    card = evaluate(release(), real_waves(60), **EFFORT)
    assert "judged" not in card.as_dict()
    assert not any(isinstance(value, Panel) for value in card.as_dict().values())
