"""Benchmarks of PPEM: baselines learn, a control is not trivial, loaders read what users bring, pictures are drawn."""

import gzip
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from understudy_bench.cells import Cells
from understudy_bench.pictures.draw import drawings
from understudy_bench.ppem import data as ppem_data
from understudy_bench.ppem import tables
from understudy_bench.ppem.baselines import BASELINES
from understudy_bench.ppem.tables import notes
from understudy_bench.ppem.work import Scale, Work

from tests.unit.synthesizers.ppem.toy import method, panel
from understudy.data import Panel
from understudy.errors import MissingData
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource


@pytest.mark.parametrize("kind", BASELINES)
def test_a_baseline_moves_towards_the_rows_it_learns_from(kind: str) -> None:
    """SteinGAN, whose energy nothing holds back, moves the right way and too far: PPEM saw it unstable as well."""
    rows = np.random.default_rng(0).normal([2.0, -2.0], 0.3, (500, 2))
    middle = rows.mean(axis=0)
    early, late = (BASELINES[kind](rows, iterations, 0).mean(axis=0) for iterations in (5, 250))
    assert late @ middle > early @ middle + 1.0
    assert kind == "steingan" or np.linalg.norm(late - middle) < 0.8 * np.linalg.norm(early - middle)


def test_kept_out_rows_are_not_compared_with_themselves() -> None:
    """Their effect is what chance makes of two real samples: above nothing, and below that of another marginal."""
    train, rest = ppem_data.split(panel(600))
    work = Work(train, rest, ("region",), Scale(10, 400, 0))
    found = work.holdout()["metrics"]
    assert 0 < found["effect_wasserstein"] < 0.2
    assert found["auroc"] < 1.0  # tested on rows that it was not trained on
    moved = np.array(rest.static)
    moved[:, 0] = 2
    other = work.measures.figures(replace(rest, static=moved))
    assert other["effect_wasserstein"] > 0.6
    assert other["p_mmd"] < 0.01


def test_credit_rows_become_a_table_with_the_class_as_label(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {f"V{place}": rng.normal(0, 30, 40).round() for place in range(3)}
    table = pa.table({**columns, "Amount": rng.uniform(0, 9000, 40).round(), "label": np.arange(40) % 2 * 1.0})
    (tmp_path / "credit").mkdir()
    pq.write_table(table, tmp_path / "credit" / "creditcard_rounded_113922rows.parquet")
    found, facts = ppem_data.credit(tmp_path)
    assert found.values.shape == (40, 1, 4)
    assert np.abs(found.values[:, :, :3]).max() <= 15
    assert facts["partial"]
    with pytest.raises(MissingData):
        ppem_data.mimic(tmp_path)


def test_diagnoses_become_indicators_of_patients(tmp_path: Path) -> None:
    (tmp_path / "mimic_demo").mkdir()
    lines = ["row_id,subject_id,hadm_id,seq_num,icd9_code"]
    lines += [f"{n},{n},{n},1,40{n % 2}1" for n in range(20)] + ["99,3,3,2,E8497"]
    (tmp_path / "mimic_demo" / "DIAGNOSES_ICD.csv").write_text("\n".join(lines) + "\n")
    found, facts = ppem_data.mimic(tmp_path)
    assert [channel.name for channel in found.schema.channels] == ["icd_400", "icd_401"]  # the rare one is left out
    assert found.values.sum() == 20
    assert facts["stand_in"]


def test_the_files_of_the_paper_are_taken_where_they_are_there(tmp_path: Path) -> None:
    """Kaggle's creditcard.csv and DIAGNOSES_ICD of MIMIC-III, all rows and columns; parts of them stay behind."""
    (tmp_path / "credit").mkdir()
    names = ["Time", *(f"V{place}" for place in range(1, 29)), "Amount", "Class"]
    rows = [[str(n), *("-1.3598071336738" for _ in range(28)), "149.62", f'"{n % 2}"'] for n in range(40)]
    text = "\n".join([",".join(f'"{name}"' for name in names), *(",".join(row) for row in rows)])
    (tmp_path / "credit" / "creditcard.csv").write_text(text + "\n")
    found, facts = ppem_data.credit(tmp_path)
    assert [channel.name for channel in found.schema.channels] == [*names[1:-1]]
    assert found.values[0, 0, 0] == np.float32(-1.3598071336738)
    assert (found.num_units, found.static[:, 0].sum(), facts.get("partial")) == (40, 20, None)

    (tmp_path / "mimic").mkdir()
    lines = ['"ROW_ID","SUBJECT_ID","HADM_ID","SEQ_NUM","ICD9_CODE"']
    lines += [f'{n},{n % 30},{n},1,"{n % 7}0{n % 9}1"' for n in range(60)] + ['61,3,3,2,"E8497"', "62,3,3,,"]
    for name, write in (("DIAGNOSES_ICD.csv", open), ("DIAGNOSES_ICD.csv.gz", gzip.open)):
        with write(tmp_path / "mimic" / name, "wt") as file:
            file.write("\n".join(lines) + "\n")
        found, facts = ppem_data.mimic(tmp_path)
        assert (found.num_units, facts["stand_in"], facts.get("partial")) == (30, False, None)
        assert "icd_E849" in [channel.name for channel in found.schema.channels]  # however rare
        (tmp_path / "mimic" / name).unlink()


def test_as_many_diagnoses_are_hidden_as_in_the_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mimic").mkdir()
    lines = [
        "row_id,subject_id,hadm_id,seq_num,icd9_code",
        *(f"{n},{n % 99},{n},1,{100 + n % 250}1" for n in range(500)),
    ]
    (tmp_path / "mimic" / "DIAGNOSES_ICD.csv").write_text("\n".join(lines) + "\n")
    asked: list[int] = []

    def seen(
        name: str, scale: str, panel: Panel, data: dict, secret: tables.Secret, *more: object, **other: object
    ) -> dict:
        asked.append(secret.sensitive[0].count("+") + 1)
        return {"rows": [{"method": "ppem"}], "controls": []}

    monkeypatch.setattr(tables, "_run", seen)
    found = tables.mimic("quick", tmp_path, lambda stage, share: None, Cells())
    assert asked == [50, 200]
    assert [line["hidden"] for line in found["rows"]] == [50, 200]


def test_pictures_are_drawn_from_results() -> None:
    line = {"method": "paper mixture", "metrics": {"rejected": 0.03}}
    ranks = {name: list(range(201)) for name in ("normalised", "studentised")}
    (estimators,) = drawings({"rows": [line], "ppem_tests": {"true": ranks, "other": ranks}})
    assert estimators.name == "ppem-estimators"
    train, rest = ppem_data.split(panel(600))
    work = Work(train, rest, ("region+income",), Scale(10, 400, 0))
    (shown,) = drawings({"rows": [], "ppem": {"ppem, lmdp": work.measures.shown(train)}})
    assert [row[0] for row in shown.rows[:2]] == ["x′: region", "x′: income"]
    assert shown.rows[2][0].startswith("x* near region ")
    assert float(shown.rows[0][1]) < 0.2
    assert "<svg" in shown.svg()


def test_what_is_kept_is_judged_by_an_interval_over_kept_out_units_and_seeds() -> None:
    """Two real samples of one population come within it; rows whose x* was moved by a deviation do not."""
    train, rest = ppem_data.split(panel(2000))
    measures = Work(train, rest, ("region",), Scale(10, 2000, 0)).measures
    halves = [train.take_units(np.arange(place, train.num_units, 2)) for place in (0, 1)]
    real = measures.held_out_gap(halves)
    assert real is not None
    assert real["low"] < real["mean"] < real["high"] < 0.3
    moved = np.array(train.values)
    moved[:, :, 0] = np.minimum(moved[:, :, 0] + 2, 10)
    other = measures.held_out_gap([replace(train, values=moved)])
    assert other is not None
    assert other["low"] > real["high"]
    assert measures.held_out_gap([train.take_units(np.arange(20))]) is None


@pytest.mark.parametrize(("own", "words"), [(0.5, "lies within"), (0.7, "is beyond"), (0.1, "is nearer than")])
def test_notes_say_whether_the_penalty_costs_what_is_kept(own: float, words: str) -> None:
    lines = [
        {"method": "ppem, lmdp", "metrics": {"given_gap": {"mean": own, "low": 0.0, "high": 1.0}}},
        {"method": "ppem, lmdp without penalty",
         "metrics": {"given_gap": {"mean": 0.4, "low": 0.3, "high": 0.6}, "p_ksd": 0.001}},
        {"method": "ppem, sound, different, checked", "metrics": {}, "epsilon": 5.0},
    ]  # fmt: skip
    first, second, third = notes(lines, [])
    assert words in first
    assert "rejects without any penalty" in second
    assert "nothing released" in third
    assert "too few rows" in notes(lines[2:], [])[0]


def test_x_that_lie_elsewhere_are_not_blamed_for_what_they_are_given() -> None:
    """Rows of the same population, most of them rich: x* given x′ is as it was, and only the marginal differs."""
    train, rest = ppem_data.split(panel(4000))
    income = train.static[:, 1]
    rng = np.random.default_rng(0)
    rich = train.take_units(np.flatnonzero(rng.random(len(income)) < 1 / (1 + np.exp(-3 * income))))
    measures = Work(train, rest, ("income",), Scale(10, 4000, 0)).measures
    assert measures.apart(rich, rest)["effect_wasserstein"] > 0.05
    moved, same = measures.held_out_gap([rich]), measures.held_out_gap([train])
    assert moved is not None
    assert same is not None
    assert moved["mean"] < same["mean"] + 0.1


def test_a_release_can_be_asked_about_the_attributes_of_kept_out_rows() -> None:
    train, rest = ppem_data.split(panel(400))
    hiding = method(sensitive="region+income", mode="lmdp")
    ledger = Ledger.in_memory(Guarantee(math.inf, 1e-6))
    release = hiding.fit(train, ledger, noise=NoiseSource.seeded(0))
    drawn = Work(train, rest, ("region+income",), Scale(10, 400, 0)).measures.given(hiding, release)
    known = {tuple(row) for row in rest.static[:, :2].round(4).tolist()}
    assert {tuple(row) for row in drawn.static[:, :2].round(4).tolist()} <= known
    assert drawn.num_series == 4000


def test_one_column_of_a_table_is_predicted_where_one_is_named() -> None:
    """Real rows explain about as much of others as of themselves; rows in another order explain nothing."""
    train, rest = ppem_data.split(panel(2000, steps=1))
    measures = Work(train, rest, ("region",), Scale(10, 2000, 0), "spending").measures
    real = measures.tasks(train, rest)
    assert real["regression_r2"] > 0.7
    assert abs(real["regression_mse"] - (1 - real["regression_r2"])) < 0.2
    values = np.array(train.values)
    values[:, :, 0] = values[np.random.default_rng(0).permutation(len(values)), :, 0]
    assert measures.tasks(replace(train, values=values), rest)["regression_r2"] < 0.1
