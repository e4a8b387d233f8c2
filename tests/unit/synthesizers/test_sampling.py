from pathlib import Path

import numpy as np
import pytest

from understudy.data import Binary, Continuous, Integer, Panel, Population, PrivacyUnit, Schema, Time
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.synthesizers import Release
from understudy.synthesizers.independent import Independent
from understudy.synthesizers.sampling import cautions, inside_bounds

VALUES = np.array([[-3.0], [0.26], [0.31], [7.04], [99.0], [np.nan]])


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (Continuous("x", 0.1, 10.0), [0.1, 0.26, 0.31, 7.04, 10.0, np.nan]),
        (Continuous("x", 0.1, 10.0, resolution=0.5), [0.1, 0.5, 0.5, 7.0, 10.0, np.nan]),
        (Integer("x", 0, 10), [0, 0, 0, 7, 10, np.nan]),
        (Binary("x"), [0, 0, 0, 1, 1, np.nan]),
    ],
)
def test_samples_are_rounded_as_declared_and_stay_inside_the_bounds(column, expected: list[float]) -> None:
    np.testing.assert_allclose(inside_bounds((column,), VALUES)[:, 0], expected)


@pytest.mark.parametrize(
    ("shares", "ends", "useless"),
    [
        ((0.5, 0.45), (0, 50), True),
        ((0.3, 0.2), (2, 48), True),  # the ends of a released distribution
        ((0.3, 0.2), (20, 30), False),
        ((0.93, 0.0), (0, 50), False),
        ((0.15, 0.15), (0, 50), False),
    ],
)
def test_values_at_both_ends_of_the_range_are_said_to_be_of_no_use(
    shares: tuple[float, float], ends: tuple[float, float], useless: bool, tmp_path: Path
) -> None:
    """Many values at one end are no sign: most hours have no rain."""
    rng = np.random.default_rng(0)
    schema = Schema(
        name="weather", population=Population(200), unit=PrivacyUnit(column="station"),
        time=Time(column="hour", steps=24), channels=(Continuous("rain", 0.0, 50.0), Binary("frost")),
    )  # fmt: skip
    drawn = rng.random((200, 24))
    low, high = ends
    rain = np.where(drawn < shares[0], low, np.where(drawn > 1 - shares[1], high, rng.uniform(*ends, drawn.shape)))
    values = np.stack([rain, rng.integers(0, 2, rain.shape)], axis=2).astype(np.float32)
    panel = Panel(
        schema=schema, values=values, lengths=np.full(200, 24, dtype=np.int32), unit=np.arange(200),
        static=np.zeros((200, 0), dtype=np.float32), context=None, private=False,
    )  # fmt: skip
    assert bool(cautions(panel)) is useless
    guarantee = Guarantee(1.0, 1e-6)
    release = Independent().fit(panel, Ledger.in_memory(guarantee), guarantee=guarantee)
    saved = release.save(tmp_path / "release", samples=panel)
    assert saved.certificate.findings == cautions(panel)
    assert (b"of no use" in (tmp_path / "release" / "certificate.json").read_bytes()) is useless
    assert Release.load(tmp_path / "release").certificate == saved.certificate
