"""From a table to a release in one call: what is charged, what is kept out, what is refused and shown."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import understudy as us
from understudy.data.simulators import households_schema
from understudy.errors import BudgetExceeded, InputError, UnderstudyWarning
from understudy.synthesizers import METHODS

HOMES, STEPS = 150, 24


@pytest.fixture
def meters() -> pd.DataFrame:
    """Hourly loads of simulated homes, their times in an index with a time zone."""
    times = pd.date_range("2024-03-04", periods=STEPS, freq="h", tz="Europe/Paris", name="timestamp")
    loads = np.random.default_rng(7).gamma(2, 1, (HOMES, STEPS)).clip(0, 20)
    frames = [pd.DataFrame({"meter_id": home, "kwh": load}, index=times) for home, load in enumerate(loads)]
    return pd.concat(frames)


@pytest.fixture
def schema(meters: pd.DataFrame) -> us.Schema:
    draft = us.Schema.draft(meters, unit="meter_id", time="timestamp", name="meters")
    start = "2024-03-04T00:00:00+01:00"
    return draft.with_facts(population=HOMES, bounds={"kwh": (0, 20)}, start=start, frequency="1h", steps=STEPS)


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_frame_goes_in_and_a_frame_of_the_same_form_comes_out(meters: pd.DataFrame, schema: us.Schema) -> None:
    release = us.synthesize(meters, schema, epsilon=1, ledger="meters.ledger", progress=False)
    made = release.sample(20).to_pandas()
    assert made.index.dtype.tz.key == "Europe/Paris"
    assert list(made.columns) == list(meters.columns)
    assert made.index.name == "timestamp"
    assert len(made) == 20 * STEPS


def test_two_frames_with_a_ledger_each_are_two_populations(meters: pd.DataFrame, schema: us.Schema) -> None:
    """A draft of a frame has no name; the registry would take the second ledger for a replaced first one."""
    nameless = replace(schema, name=us.Schema.draft(meters, unit="meter_id", time="timestamp").name)
    first = us.synthesize(meters, nameless, epsilon=1, ledger="north.ledger", progress=False)
    second = us.synthesize(meters, nameless, epsilon=1, ledger="south.ledger", progress=False)
    assert [one.certificate.population for one in (first, second)] == ["north", "south"]
    with pytest.raises(BudgetExceeded):
        us.synthesize(meters, nameless, epsilon=1, ledger="north.ledger", progress=False)


def test_a_ledger_made_for_a_schema_without_a_budget_holds_that_run_and_no_more(
    meters: pd.DataFrame, schema: us.Schema
) -> None:
    us.synthesize(meters, schema, epsilon=1, ledger="meters.ledger", progress=False)
    with pytest.raises(BudgetExceeded):
        us.synthesize(meters, schema, epsilon=0.1, ledger="meters.ledger", progress=False)
    ledger = us.Ledger.open("meters.ledger")
    assert len(ledger.entries()) == 1
    ledger.raise_budget(epsilon=2.0, max_runs=2, reason="a second month")
    us.synthesize(meters, schema, epsilon=0.5, ledger=ledger, progress=False)
    assert len(ledger.entries()) == 2


def test_a_budget_that_is_declared_counts(meters: pd.DataFrame, schema: us.Schema) -> None:
    declared = schema.with_facts(budget=3.0)
    us.synthesize(meters, declared, epsilon=1, ledger="meters.ledger", progress=False)
    assert us.Ledger.open("meters.ledger").guarantee.epsilon == 3.0


def test_a_release_charged_to_a_scratch_ledger_is_not_private() -> None:
    release = us.synthesize(us.simulate_households(HOMES), epsilon=1, ledger=us.Ledger.scratch(), progress=False)
    assert release.certificate.status.startswith("not private: charged to a scratch ledger")
    assert "scratch" in release.certificate.sentence()
    assert next(check for check in us.verify(release) if check.name == "status").ok


def test_a_certificate_that_hides_its_scratch_ledger_does_not_hold() -> None:
    release = us.synthesize(us.simulate_households(HOMES), epsilon=1, ledger=us.Ledger.scratch(), progress=False)
    forged = replace(release.certificate, status="private")
    assert not next(check for check in us.verify(forged) if check.name == "status").ok


def test_units_kept_out_are_listed_beside_the_release_for_its_owner_only(
    meters: pd.DataFrame, schema: us.Schema
) -> None:
    options: dict[str, Any] = {"ledger": "meters.ledger", "holdout": 0.3, "progress": False}
    release = us.synthesize(meters, schema, 1, save_to="release", **options)
    listed = Path("release.holdout.csv")
    assert listed.stat().st_mode & 0o077 == 0
    kept_out = set(pd.read_csv(listed)["meter_id"])
    assert 20 <= len(kept_out) <= 100
    assert kept_out < set(meters["meter_id"])
    assert us.verify(release).holds
    assert us.verify("release")
    assert (Path("release") / "synthetic.parquet").is_file()


def test_a_panel_brings_its_schema_and_keeps_its_own_context() -> None:
    panel = us.simulate_households(HOMES)
    schema = households_schema(HOMES)
    release = us.synthesize(panel, schema, epsilon=1, ledger="homes.ledger", label="tariff", progress=False)
    assert release.sample(10, label="night").num_series == 10
    assert us.Ledger.open("homes.ledger").guarantee.epsilon == 3.0


def test_a_method_may_come_with_its_options(meters: pd.DataFrame, schema: us.Schema) -> None:
    made = [
        us.synthesize(meters, schema, 1, ledger=us.Ledger.scratch(), method=method, progress=False, **more)
        for method, more in ((us.Spectral(window_steps=12), {}), ("spectral", {"window_steps": 12}))
    ]
    assert [release.synthesizer for release in made] == [us.Spectral(window_steps=12)] * 2


def test_the_caller_is_told_how_far_a_run_is(meters: pd.DataFrame, schema: us.Schema) -> None:
    told: list[tuple[str, float]] = []

    def note(stage: str, share: float) -> None:
        told.append((stage, share))

    us.synthesize(meters, schema, 1, ledger=us.Ledger.scratch(), progress=note)
    assert told[0] == ("reading", 0.0)
    assert [share for _, share in told] == sorted(share for _, share in told)


def test_nothing_is_printed_without_progress(
    meters: pd.DataFrame, schema: us.Schema, capfd: pytest.CaptureFixture[str]
) -> None:
    us.synthesize(meters, schema, 1, ledger=us.Ledger.scratch(), progress=False)
    assert capfd.readouterr() == ("", "")


def test_a_run_whose_noise_drowns_gradients_is_warned_of(meters: pd.DataFrame, schema: us.Schema) -> None:
    method = METHODS["dit"].from_preset("default")
    with pytest.warns(UnderstudyWarning, match="Expect poor series"), pytest.raises(BudgetExceeded):
        us.synthesize(meters, schema, 1, ledger=us.Ledger.scratch(epsilon=0.5), method=method, progress=False)


@pytest.mark.parametrize("name", METHODS.own)
def test_methods_are_cloned_and_changed_as_scikit_learn_does(name: str) -> None:
    options = {"sensitive": ("tariff",)} if name == "ppem" else {}
    method = METHODS[name](**options)
    assert clone(method) == method
    assert method.set_params(window_steps=12) == replace(method, window_steps=12)
    assert method.window_steps is None
    with pytest.raises(InputError, match="window_step'"):
        method.set_params(window_step=12)


def test_methods_are_listed_with_what_they_are_and_need() -> None:
    rows = {name: (idea, needs, options) for name, idea, needs, options in us.methods().rows}
    assert set(METHODS.own) <= set(rows)
    for name in METHODS.own:
        assert len(rows[name][0]) > 20, name
        assert rows[name][1], name
        assert "window_steps" in rows[name][2]


SHOWN: dict[str, Callable[[us.Release], Any]] = {
    "schema": lambda release: release.schema,
    "release": lambda release: release,
    "certificate": lambda release: release.certificate,
    "ledger": lambda _: us.Ledger.open("meters.ledger"),
    "plan": lambda release: us.plan(release.schema, epsilon=1, method="independent"),
    "verification": us.verify,
    "methods": lambda _: us.methods(),
}


@pytest.mark.parametrize("what", SHOWN)
def test_what_a_notebook_shows_is_small_and_holds_no_private_value(
    what: str, meters: pd.DataFrame, schema: us.Schema
) -> None:
    meters.iloc[7, 1] = 6.28318
    release = us.synthesize(meters, schema, 1, ledger="meters.ledger", progress=False)
    shown = SHOWN[what](release)
    page, line = shown._repr_html_(), repr(shown)
    assert len(page) < 8_000
    assert len(line) < 2_000
    assert "6.28" not in page + line
    assert page.count("<table>") == page.count("</table>") <= 1


def test_names_of_columns_are_escaped(meters: pd.DataFrame, schema: us.Schema) -> None:
    draft = us.Schema.draft(meters.rename(columns={"kwh": "<script>"}), unit="meter_id", time="timestamp")
    assert "<script>" not in draft._repr_html_()
    assert "&lt;script&gt;" in draft._repr_html_()


def test_a_purchase_takes_the_delta_that_its_ledger_gives_a_run() -> None:
    homes = us.simulate_households(120)
    ledger = us.Ledger.scratch(max_runs=100)
    us.buy.bounds(homes, homes.schema, columns="load_kw", between=(0, 100), epsilon=1, ledger=ledger)
    assert ledger.entries()[0].delta <= ledger.composition.run_delta
