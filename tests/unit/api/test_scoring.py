"""Releases are judged by frames, paths and panels alike, and by units that their run has not seen."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import understudy as us
from understudy.data import write_households
from understudy.errors import InputError

HOMES = 200


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with simulated homes, and a release of them with a holdout."""
    folder = tmp_path_factory.mktemp("homes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERSTUDY_HOME", str(folder / "home"))
        write_households(HOMES, folder)
        table, context = folder / "households.parquet", folder / "context.parquet"
        given = {"context": context, "holdout": 0.3, "progress": False}
        us.synthesize(table, folder / "schema.toml", 1, save_to=folder / "release", **given)
        yield folder


def test_a_frame_and_a_path_give_the_same_scores(homes: Path) -> None:
    context = homes / "context.parquet"
    frame = pd.read_parquet(homes / "households.parquet")
    cards = [
        us.evaluate(homes / "release", real, context=context, suites=["general"], progress=False)
        for real in (frame, homes / "households.parquet")
    ]
    values = [[score.synthetic.value for score in card.scores] for card in cards]
    assert values[0] == values[1]
    assert not any("halved" in note for note in cards[0].notes), "the list beside the release was not used"
    cards[0].report(homes / "report.html")
    assert (homes / "report.html").stat().st_mode & 0o077 == 0


def test_releases_are_compared_by_name(homes: Path) -> None:
    release = us.synthesize(us.simulate_households(HOMES), epsilon=1, ledger=us.Ledger.scratch(), progress=False)
    panel = us.simulate_households(HOMES)
    found = us.compare({"one": release, "two": release}, panel, suites=["general"], progress=False)
    assert set(found.cards) == {"one", "two"}
    with pytest.raises(InputError, match="two to six releases are expected, got one"):
        us.compare(release, panel)  # type: ignore[arg-type]


def test_a_table_is_not_audited(homes: Path) -> None:
    panel = us.simulate_households(HOMES)
    with pytest.raises(InputError, match="a table has no certificate"):
        us.audit(panel, panel, progress=False)  # type: ignore[arg-type]
