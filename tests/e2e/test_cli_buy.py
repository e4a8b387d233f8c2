"""`understudy buy`: charged first, refused in time, and what was bought can be used.

False alarms: the noise is real, so each test of a bought fact says how often honest noise would fail it; none above
1e-9. Where that is not a line of arithmetic, the test computes it from the mechanism's own odds.
"""

import tomllib
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.e2e.commands import MAGIC_CATEGORY, MAGIC_PERSON, MAGIC_VALUE, Clinic, charges, make_clinic, run

FALSE_ALARM = 1e-9
HOMES = 300
EPSILON = 10.0


@pytest.fixture
def homes(tmp_path: Path) -> Path:
    """Simulated homes with a draft: load and tariff are open, the budget is large."""
    folder = tmp_path / "homes"
    assert run("data", "make", "households", "--n", str(HOMES), "--out", folder).code == 0
    text = (folder / "schema.toml").read_text()
    for old, new in (
        ("low = 0.0\nhigh = 20.0\n", ""),
        ('categories = ["flat", "night", "dynamic"]\n', ""),
        ("epsilon = 3.0", "epsilon = 40.0"),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "draft.toml").write_text(text)
    return folder


def buy(folder: Path, what: str, *more: str, epsilon: float = EPSILON, draft: str = "draft", out: str = "out") -> list:
    table, schema, target = folder / "households.parquet", folder / f"{draft}.toml", folder / f"{out}.toml"
    return ["buy", what, table, "--schema", schema, "--epsilon", str(epsilon), "--out", target, *more]


def load_bounds(folder: Path, *more: str, **options: object) -> list:
    return buy(folder, "bounds", "--column", "load_kw", "--between", "-100", "100", *more, **options)


def column(schema: Path, name: str) -> dict:
    document = tomllib.loads(schema.read_text())
    return next(table for group in ("channels", "static") for table in document[group] if table["name"] == name)


def largest_loads(folder: Path) -> np.ndarray:
    table = pq.read_table(folder / "households.parquet", columns=["household", "load_kw"])
    return table.group_by("household").aggregate([("load_kw", "max")])["load_kw_max"].to_numpy()


def odds_of_holding(maxima: np.ndarray, share: float, coverage: float) -> float:
    """Probability that the upper bound, drawn at half of EPSILON, lies above at least `share` of the maxima."""
    from understudy.privacy.purchases import round_numbers
    from understudy.privacy.selections import quantile_scores

    points = round_numbers(-100, 100)
    weights = np.exp(EPSILON / 2 * quantile_scores(maxima, points, coverage) / (2 * coverage))
    holds = (maxima[None, :] <= points[:, None]).mean(axis=1) >= share
    return float(weights[holds].sum() / weights.sum())


def test_bought_bounds_hold_for_nearly_all_homes(homes: Path) -> None:
    outcome = run(*load_bounds(homes, "--json"))
    assert outcome.code == 0, outcome.err
    maxima, found = largest_loads(homes), column(homes / "out.toml", "load_kw")
    assert 1 - odds_of_holding(maxima, 0.95, 0.99) < FALSE_ALARM
    assert (maxima <= found["high"]).mean() >= 0.95
    assert found["low"] >= 0, "the declared constraint says so, whatever the noise"
    assert found["out_of_bounds"] == "clip"
    assert outcome.facts["bought"] == {"load_kw": {"low": found["low"], "high": found["high"]}}
    assert outcome.facts["still_open"] == ["tariff"]


def test_the_check_of_bought_bounds_would_see_bounds_that_hold_for_fewer(homes: Path) -> None:
    """Negative control: bounds for 60 % of the homes."""
    assert run(*load_bounds(homes, "--coverage", "0.6")).code == 0
    maxima = largest_loads(homes)
    assert odds_of_holding(maxima, 0.95, 0.6) < FALSE_ALARM
    assert (maxima <= column(homes / "out.toml", "load_kw")["high"]).mean() < 0.95


def test_several_columns_are_one_charge_within_the_price(homes: Path) -> None:
    arguments = load_bounds(homes, "--column", "solar_kw", epsilon=1.0)
    assert run(*arguments).code == 0
    (entry,) = charges(homes / "households.ledger")
    assert entry.label == "bounds of load_kw, solar_kw"
    assert 0.99 < entry.epsilon <= 1.0
    assert entry.executed == {"bounds of load_kw": 2, "bounds of solar_kw": 2}
    solar = column(homes / "out.toml", "solar_kw")
    assert solar["low"] <= 0 <= solar["high"], "a declared constraint needs zero, whatever the noise"


def test_a_price_too_small_to_find_anything_is_said_to_be(homes: Path) -> None:
    outcome = run(*load_bounds(homes, epsilon=0.1))
    assert outcome.code == 0
    assert "far beyond" in outcome.out
    assert "far beyond" not in run(*load_bounds(homes, "--coverage", "0.9", out="second")).out


def test_categories_and_bounds_make_a_schema_that_synth_takes(homes: Path) -> None:
    """300 homes in three tariffs, the smallest above 30: noise of scale 0.1 hides one with odds below e^-200."""
    assert run(*load_bounds(homes, out="bounds")).code == 0
    outcome = run(*buy(homes, "categories", "--column", "tariff", draft="bounds", out="whole"))
    assert outcome.code == 0, outcome.err
    assert "refused" in outcome.out
    assert column(homes / "whole.toml", "tariff")["categories"] == ["dynamic", "flat", "night"]
    table, schema, context = (homes / name for name in ("households.parquet", "whole.toml", "context.parquet"))
    options = ("--context", context, "--epsilon", "2", "--out", homes / "release")
    assert run("synth", table, "--schema", schema, *options).code == 0
    assert run("verify", homes / "release").code == 0
    shown = run("ledger", "show", homes / "draft.toml", "--json").facts
    assert [charge["label"] for charge in shown["charges"]] == ["bounds of load_kw", "categories of tariff", "spectral"]
    assert shown["remaining"]["epsilon"] == pytest.approx(40 - 2 * EPSILON - 2, abs=1e-2)
    assert shown["remaining"]["runs"] == 2


def test_a_bought_population_is_declared_from_then_on(homes: Path) -> None:
    """At epsilon = 10 the count is off by more than 2 with odds below 2e-13."""
    draft = homes / "draft.toml"
    assert run(*buy(homes, "population")).code == 2
    text = draft.read_text().replace(f"population = {HOMES}", "population = { count_epsilon = 0.5 }")
    draft.write_text(text)
    assert "delta" in run(*buy(homes, "population")).err
    draft.write_text(text.replace("max_runs = 5", "max_runs = 5\ndelta = 1e-5"))
    outcome = run(*buy(homes, "population"), "--json")
    assert outcome.code == 0, outcome.err
    size = tomllib.loads((homes / "out.toml").read_text())["population"]
    assert abs(size - HOMES) <= 2
    assert outcome.facts["bought"] == {"population": size}
    assert run(*load_bounds(homes, draft="out", out="next")).code == 0, "the new schema charges the same ledger"
    assert len(charges(homes / "households.ledger")) == 2


def test_nothing_is_computed_before_the_charge_is_written(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from understudy.privacy import purchases

    seen = []

    def watched(*arguments: object) -> None:
        seen.append([entry.label for entry in charges(homes / "households.ledger")])
        raise RuntimeError("stop here")

    monkeypatch.setattr(purchases, "one_per_unit", watched)
    outcome = run(*load_bounds(homes))
    assert seen == [["bounds of load_kw"]]
    assert outcome.code == 1
    assert "stays charged" in outcome.err
    assert not (homes / "out.toml").exists()


def test_a_fact_that_cannot_be_written_is_told(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from understudy.data import Schema

    def full(schema: Schema, path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Schema, "save", full)
    outcome = run(*load_bounds(homes))
    assert outcome.code == 2
    assert "stays charged" in outcome.err
    assert "by hand" in outcome.err
    assert "'high'" in outcome.err
    assert not (homes / "out.toml").exists()


def test_a_spent_ledger_sells_nothing(homes: Path) -> None:
    assert run(*load_bounds(homes, epsilon=35.0)).code == 0
    before = _files(homes)
    for arguments in (
        load_bounds(homes, out="second"),
        buy(homes, "categories", "--column", "tariff", out="second"),
    ):
        outcome = run(*arguments, "--json")
        assert outcome.code == outcome.facts["exit_code"] == 4, outcome.err
    assert _files(homes) == before


def test_more_than_the_whole_budget_is_refused_before_there_is_a_ledger(homes: Path) -> None:
    before = _files(homes)
    assert run(*load_bounds(homes, epsilon=41.0)).code == 4
    assert _files(homes) == before


def test_one_purchase_more_than_runs_is_refused(homes: Path) -> None:
    draft = homes / "draft.toml"
    draft.write_text(draft.read_text().replace("max_runs = 5", "max_runs = 1"))
    assert "0 of 1 runs" in run(*load_bounds(homes, epsilon=1.0)).out
    assert run(*load_bounds(homes, epsilon=1.0, out="second")).code == 4


REFUSED: dict[str, tuple[list[str], str]] = {
    "a column that does not exist": (["--column", "gas", "--between", "0", "1"], "'gas'"),
    "a column without bounds": (["--column", "tariff", "--between", "0", "1"], "'tariff'"),
    "a column twice": (["--column", "load_kw", "--column", "load_kw", "--between", "0", "1"], "once"),
    "public context": (["--column", "temperature_c", "--between", "0", "1"], "'temperature_c'"),
    "numbers the wrong way round": (["--column", "load_kw", "--between", "1", "0"], "--between"),
    "a number that is none": (["--column", "load_kw", "--between", "nan", "1"], "--between"),
    "one number": (["--column", "load_kw", "--between", "1"], "--between"),
    "a coverage of everybody": (["--column", "load_kw", "--between", "0", "1", "--coverage", "1"], "--coverage"),
    "bounds that contradict a constraint": (["--column", "load_kw", "--between", "-9", "-1"], "load_kw"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_bounds_are_refused_for(kind: str, homes: Path) -> None:
    options, word = REFUSED[kind]
    before = _files(homes)
    outcome = run(*buy(homes, "bounds", *options))
    assert outcome.code == 2
    assert word in outcome.err
    assert _files(homes) == before


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_an_epsilon_is_refused_that_is(epsilon: float, homes: Path) -> None:
    before = _files(homes)
    assert run(*load_bounds(homes, epsilon=epsilon)).code == 2
    assert _files(homes) == before


def test_a_place_is_refused_that_is_taken_or_away_from_the_ledger(homes: Path) -> None:
    before = _files(homes)
    assert run(*load_bounds(homes, out="schema")).code == 2
    assert run(*load_bounds(homes, out="elsewhere/out")).code == 2
    assert run(*load_bounds(homes, draft="nothing")).code == 3
    assert _files(homes) == before


def test_a_schema_without_a_budget_and_protected_events_are_refused(homes: Path) -> None:
    draft = homes / "draft.toml"
    text = draft.read_text()
    draft.write_text(text[: text.index("[budget]")])
    assert "[budget]" in run(*load_bounds(homes)).err
    draft.write_text(text.replace('kind = "entity"', 'kind = "event"'))
    assert "'event'" in run(*load_bounds(homes)).err
    assert not (homes / "households.ledger").exists()


def test_a_price_at_which_no_category_could_be_found_is_refused(homes: Path) -> None:
    outcome = run(*buy(homes, "categories", "--column", "tariff", epsilon=0.01))
    assert outcome.code == 2
    assert "Nothing was charged" in outcome.err
    assert not (homes / "households.ledger").exists()


def test_a_category_that_one_person_holds_is_never_printed(tmp_path: Path) -> None:
    """A run's delta of 1e-10 is the chance that it is; noise of scale 0.2 hides a ward of 60 with odds below e^-150."""
    clinic = _open_clinic(tmp_path, 'categories = ["north", "south"]\n')
    clinic.edit_rows(lambda rows: [[*row[:3], MAGIC_CATEGORY] if row[0] == MAGIC_PERSON else row for row in rows])
    outcome = run(*_clinic_buy(clinic, "categories", "--column", "ward"))
    assert outcome.code == 0, outcome.err
    written = (clinic.folder / "out.toml").read_text()
    assert 'categories = ["north", "south"]' in written
    for secret in (MAGIC_CATEGORY, MAGIC_PERSON, MAGIC_VALUE):
        assert secret not in outcome.out + outcome.err + written


def test_bounds_of_a_csv_file_print_no_value_and_no_person(tmp_path: Path) -> None:
    clinic = _open_clinic(tmp_path, "low = 0\nhigh = 10\n")
    outcome = run(*_clinic_buy(clinic, "bounds", "--column", "pulse", "--between", "0", "1000"))
    assert outcome.code == 0, outcome.err
    assert MAGIC_PERSON not in outcome.out
    assert MAGIC_VALUE not in outcome.out


def test_a_bad_table_is_refused_before_the_charge(tmp_path: Path) -> None:
    clinic = _open_clinic(tmp_path, "low = 0\nhigh = 10\n")
    clinic.edit_rows(lambda rows: rows[: 1 + 6 * 99])
    outcome = run(*_clinic_buy(clinic, "bounds", "--column", "pulse", "--between", "0", "1000"))
    assert outcome.code == 2
    assert "100" in outcome.err
    assert not clinic.ledger.exists()


def test_quiet_prints_nothing(homes: Path) -> None:
    outcome = run(*load_bounds(homes, "--quiet"))
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


def _open_clinic(folder: Path, fact: str) -> Clinic:
    clinic = make_clinic(folder / "clinic")
    clinic.edit_schema(fact, "")
    clinic.edit_schema("epsilon = 2.0\nmax_runs = 8", "epsilon = 20.0\nmax_runs = 8\ndelta = 8e-10")
    return clinic


def _clinic_buy(clinic: Clinic, what: str, *more: str) -> list:
    target = clinic.folder / "out.toml"
    return ["buy", what, clinic.table, "--schema", clinic.schema, "--epsilon", "5", "--out", target, *more]


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
