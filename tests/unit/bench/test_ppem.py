"""Benchmarks of PPEM: baselines learn, a control is not trivial, loaders read what users bring, pictures are drawn."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.synthesizers.ppem.toy import panel
from understudy.bench import ppem_data
from understudy.bench.ppem_baselines import BASELINES
from understudy.bench.ppem_tables import Scale, _Work
from understudy.errors import MissingData
from understudy.report.bench_pictures import drawings


@pytest.mark.parametrize("kind", BASELINES)
def test_a_baseline_moves_towards_the_rows_it_learns_from(kind: str) -> None:
    """SteinGAN, whose energy nothing holds back, moves the right way and too far: paper 002 saw it unstable as well."""
    rows = np.random.default_rng(0).normal([2.0, -2.0], 0.3, (500, 2))
    middle = rows.mean(axis=0)
    early, late = (BASELINES[kind](rows, iterations, 0).mean(axis=0) for iterations in (5, 250))
    assert late @ middle > early @ middle + 1.0
    assert kind == "steingan" or np.linalg.norm(late - middle) < 0.8 * np.linalg.norm(early - middle)


def test_kept_out_rows_are_not_compared_with_themselves() -> None:
    """Their effect is what chance makes of two real samples: above nothing, and below that of another marginal."""
    train, rest = ppem_data.split(panel(600))
    work = _Work(train, rest, ("region",), Scale(10, 400, 0))
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


def test_pictures_are_drawn_from_results() -> None:
    line = {"method": "paper mixture", "metrics": {"rejected": 0.03}}
    ranks = {name: list(range(201)) for name in ("normalised", "studentised", "finite")}
    (estimators,) = drawings({"rows": [line], "ppem_tests": {"true": ranks, "other": ranks}})
    assert estimators.name == "ppem-estimators"
    (shown,) = drawings({"rows": [], "ppem": {"ppem, lmdp": {"x′ 0": [[0.0, 1.0], [0.0, 2.0]]}}})
    assert shown.rows[0][0] == "x′ 0"
    assert "<svg" in shown.svg()
