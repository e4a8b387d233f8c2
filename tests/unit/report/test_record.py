"""Records: two halves, strict reading, and a public half that real series can't move."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.unit.report.toy import PLANTED, real_waves, release, toy_record
from understudy.errors import InputError
from understudy.report.record import RunRecord, public_record


def test_a_record_survives_a_file(tmp_path: Path) -> None:
    record = toy_record()
    (tmp_path / "record.json").write_text(record.dumps(), encoding="utf-8")
    again = RunRecord.load(tmp_path / "record.json")
    assert again.dumps() == record.dumps()
    assert json.loads(record.dumps())["format"] == 2


def test_the_public_half_is_the_same_whatever_and_however_many_the_real_series_are() -> None:
    one, other = toy_record(), toy_record(number=45, seed=9, planted=0.123)
    assert one.internal != other.internal
    assert one.without_internal().dumps() == other.without_internal().dumps()


def test_planted_values_are_found_in_the_internal_half_and_not_in_the_public_one() -> None:
    record = toy_record()
    assert f"{PLANTED:.4g}" in record.dumps()
    assert f"{PLANTED:.4g}" not in record.without_internal().dumps()


def test_private_series_are_never_called_synthetic() -> None:
    with pytest.raises(ValueError, match="synthetic"):
        public_record(release(), replace(real_waves(), private=True))


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: text[: len(text) // 2], "JSON is expected"),
        (lambda text: text.replace('"format":2', '"format":1'), "format 2 is expected"),
        (lambda text: text.replace('"format":2', '"format":[]'), "format 2 is expected"),
        (lambda text: text.replace('"title":"waves"', '"title":"waved"'), "not as it was written"),
        (lambda text: text.replace('"synthetic"', '"sympathetic"'), "not as it was written"),
        (lambda text: '{"hello": 1}', "not a record"),
        (lambda text: "[1, 2]", "not a record"),
        (lambda text: "", "JSON is expected"),
    ],
)
def test_damage_and_other_versions_are_refused_with_a_remedy(damage, says: str) -> None:
    with pytest.raises(InputError, match=says) as found:
        RunRecord.loads(damage(toy_record().dumps()))
    assert "understudy evaluate --record" in str(found.value)


def test_a_picture_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(InputError, match="not text"):
        RunRecord.load(tmp_path / "picture.png")


def test_a_record_without_certificate_says_that_nothing_is_known() -> None:
    synthetic = release().sample(30, rng=np.random.default_rng(0))
    assert "nothing is known about their privacy" in public_record(None, synthetic).public["cautions"][0]
