"""Thirty mistakes of newcomers: each is refused before it costs anything, with an error that says what to do."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy import extras
from understudy.errors import BudgetExceeded, InputError, MissingData, MissingExtra, UnderstudyError

HOMES, STEPS = 120, 12


@dataclass(frozen=True)
class Desk:
    """What a newcomer has in front of them: a frame, its schema, a panel, a release and the file of a ledger."""

    meters: pd.DataFrame
    schema: us.Schema
    panel: us.Panel
    release: us.Release
    ledger: str

    def synthesize(self, **changed: Any) -> us.Release:
        """Asks for a run that would be right but for what is changed."""
        given = {"data": self.meters, "schema": self.schema, "epsilon": 1, "ledger": self.ledger, "progress": False}
        return us.synthesize(**{**given, **changed})


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    times = pd.date_range("2024-03-04", periods=STEPS, freq="h", name="when")
    loads = np.random.default_rng(7).gamma(2, 1, (HOMES, STEPS)).clip(0, 20)
    return pd.concat([pd.DataFrame({"meter": m, "kwh": one}, index=times) for m, one in enumerate(loads)])


@pytest.fixture
def desk(table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.chdir(tmp_path)
    draft = us.Schema.draft(table, unit="meter", time="when", name="meters")
    schema = draft.with_facts(
        population=HOMES, budget=3.0, bounds={"kwh": (0, 20)}, start="2024-03-04", frequency="1h", steps=STEPS
    )
    panel = us.read_panel(table, schema)
    release = us.synthesize(panel, epsilon=1, ledger=us.Ledger.scratch(), method="independent", progress=False)
    return Desk(table, schema, panel, release, "meters.ledger")


Mistake = Callable[[Desk], Any]
MISTAKES: dict[str, tuple[Mistake, type[UnderstudyError], tuple[str, ...]]] = {
    "a frame where a panel is fitted": (
        lambda desk: us.Spectral().fit(desk.meters, us.Ledger.scratch()),
        InputError,
        ("Panel", "got DataFrame", "us.synthesize(df, schema, epsilon=1"),
    ),
    "no ledger object for fit": (
        lambda desk: us.Spectral().fit(desk.panel, "meters.ledger"),  # type: ignore[arg-type]
        InputError,
        ("fit: ledger", "got str", "Ledger.open_for(schema)"),
    ),
    "frame and schema swapped": (
        lambda desk: desk.synthesize(data=desk.schema, schema=desk.meters),
        InputError,
        ("data: a data frame, a path or a Panel is expected, got Schema", "us.synthesize(df, schema"),
    ),
    "no schema": (
        lambda desk: desk.synthesize(schema=None),
        InputError,
        ("schema: Schema", "got NoneType", "Schema.draft(df, unit="),
    ),
    "a schema as a dict": (
        lambda desk: desk.synthesize(schema={"kwh": (0, 20)}),
        InputError,
        ("got dict", "Schema.draft(df, unit="),
    ),
    "a draft that is not complete": (
        lambda desk: desk.synthesize(schema=us.Schema.draft(desk.meters, unit="meter", time="when")),
        InputError,
        ("with_facts(", "population"),
    ),
    "a schema file that is not there": (
        lambda desk: desk.synthesize(schema="meters.toml"),
        MissingData,
        ("meters.toml", "understudy init"),
    ),
    "a table that is not there": (
        lambda desk: desk.synthesize(data="meters.parquet"),
        MissingData,
        ("data: nothing is at 'meters.parquet'",),
    ),
    "a misspelt method": (
        lambda desk: desk.synthesize(method="spectrl"),
        InputError,
        ("method: one of auto, spectral", "Did you mean 'spectral'?"),
    ),
    "a method's class": (
        lambda desk: desk.synthesize(method=us.Spectral),
        InputError,
        ("method: str or Synthesizer is expected", "Spectral()"),
    ),
    "options beside a method that has its own": (
        lambda desk: desk.synthesize(method=us.Spectral(), window_steps=6),
        InputError,
        ("Set them there",),
    ),
    "a misspelt argument": (
        lambda desk: desk.synthesize(windowsteps=6),
        InputError,
        ("'windowsteps'", "Did you mean 'window_steps'?"),
    ),
    "a misspelt option of a method": (
        lambda desk: us.Spectral().set_params(window=6),
        InputError,
        ("one of window_steps", "got 'window'"),
    ),
    "windows longer than the series": (
        lambda desk: desk.synthesize(window_steps=STEPS + 1),
        InputError,
        ("window_steps: at most the schema's 12 steps",),
    ),
    "epsilon of zero": (
        lambda desk: desk.synthesize(epsilon=0),
        InputError,
        ("epsilon must be above 0", "1 is strict"),
    ),
    "epsilon as text": (
        lambda desk: desk.synthesize(epsilon="1"),
        InputError,
        ("epsilon", "got str"),
    ),
    "infinite epsilon": (
        lambda desk: desk.synthesize(epsilon=float("inf")),
        InputError,
        ("epsilon: a finite number above 0 is expected", "not_private=True"),
    ),
    "delta too large": (
        lambda desk: desk.synthesize(delta=0.01),
        InputError,
        ("too large for a population of 120", "or less"),
    ),
    "no ledger": (
        lambda desk: desk.synthesize(ledger=None),
        InputError,
        ("ledger: a file is expected", "ledger='meters.ledger'"),
    ),
    "a budget as the ledger": (
        lambda desk: desk.synthesize(ledger=us.Guarantee(1.0, 1e-6)),
        InputError,
        ("ledger:", "got Guarantee", "Ledger.scratch()"),
    ),
    "more than the budget": (
        lambda desk: desk.synthesize(epsilon=4),
        BudgetExceeded,
        ("spectral", "3"),
    ),
    "a holdout without a place for its list": (
        lambda desk: desk.synthesize(holdout=0.2),
        InputError,
        ("holdout: a place for the list", "save_to='release'"),
    ),
    "a holdout in percent": (
        lambda desk: desk.synthesize(holdout=20, save_to="release"),
        InputError,
        ("holdout: a share between 0 and 1", "holdout=0.2"),
    ),
    "a holdout that leaves too few": (
        lambda desk: desk.synthesize(holdout=0.5, save_to="release"),
        InputError,
        ("at least 100 units are expected to remain", "allow_few_units"),
    ),
    "the holdout of an earlier run as a name": (
        lambda desk: desk.synthesize(holdout="first.holdout.csv"),
        MissingData,
        ("nothing is at 'first.holdout.csv'",),
    ),
    "a release that is there already": (
        lambda desk: (Path("release").mkdir(), desk.synthesize(save_to="release")),
        InputError,
        ("save_to: 'release' exists already", "another name"),
    ),
    "a panel with another schema": (
        lambda desk: desk.synthesize(data=desk.panel, schema=desk.schema.with_facts(population=500)),
        InputError,
        ("a Panel has a schema of its own", "Omit `schema`"),
    ),
    "an empty reason": (
        lambda desk: desk.synthesize(allow_few_units=" "),
        InputError,
        ("allow_few_units: the reason is expected",),
    ),
    "context that nobody declared": (
        lambda desk: desk.synthesize(context=desk.meters),
        InputError,
        ("Context", "Declare [[context]]"),
    ),
    "a label that the schema does not have": (
        lambda desk: desk.synthesize(label="tariff"),
        InputError,
        ("label", "got 'tariff'"),
    ),
    "text as a number of samples": (
        lambda desk: desk.release.sample("1000"),  # type: ignore[arg-type]
        InputError,
        ("num_series", "got str", "sample(500)"),
    ),
    "scores without the real table": (
        lambda desk: us.evaluate(desk.release, real=None),
        InputError,
        ("real: a data frame, a path or a Panel is expected, got NoneType", "us.evaluate(release, real=df)"),
    ),
    "scores of a frame": (
        lambda desk: us.evaluate(desk.meters, real=desk.meters),  # type: ignore[arg-type]
        InputError,
        ("release:", "got DataFrame"),
    ),
    "a folder that is no release": (
        lambda desk: (Path("release").mkdir(), us.verify("release")),
        UnderstudyError,
        ("certificate", "release folder"),
    ),
    "a frame to verify": (
        lambda desk: us.verify(desk.meters),  # type: ignore[arg-type]
        InputError,
        ("verify: release", "got DataFrame"),
    ),
    "one release compared": (
        lambda desk: us.compare({"a": desk.release}, desk.panel, progress=False),
        InputError,
        ("Two to 6 releases are expected, got 1",),
    ),
    "a plan for a frame": (
        lambda desk: us.plan(desk.meters, epsilon=1),  # type: ignore[arg-type]
        InputError,
        ("schema:", "got DataFrame", "Schema.draft(df"),
    ),
    "bounds bought of a column that is not there": (
        lambda desk: us.buy.bounds(
            desk.meters, desk.schema, columns="kw", between=(0, 9), epsilon=0.5, ledger=desk.ledger
        ),
        InputError,
        ("one of kwh is expected, got 'kw'",),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_newcomers_mistake_is_refused_with_what_to_do(mistake: str, desk: Desk) -> None:
    make, kind, words = MISTAKES[mistake]
    with pytest.raises(UnderstudyError) as caught:
        make(desk)
    assert isinstance(caught.value, kind), repr(caught.value)
    told = str(caught.value)
    for word in words:
        assert word in told, told
    assert not Path(desk.ledger).exists(), "a mistake was charged"
    assert len(told) < 600


def test_there_are_thirty_mistakes_and_more() -> None:
    assert len(MISTAKES) >= 30


def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "sklearn" else object())
    with pytest.raises(MissingExtra, match=r"pip install 'understudy\[report\]'"):
        us.evaluate(desk.release, real=desk.panel)
