"""One person more or less changes nothing about a command but released numbers.

Files, shapes, messages, progress, log lines, ledger rows and exit codes of two runs are compared; `view` says what is
left out and why. No command is told how many series to write, so that a default that followed the table would show.
False alarms: a category that a single person holds is found with probability delta, 10⁻⁷ here.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.e2e.commands import NUM_PERSONS, OPTIONS, Clinic, Rows, make_clinic, one_per_mechanism, schema_for
from tests.twins.view import View, view
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.registry import METHODS
from understudy.synthesizers.spectral import Spectral

SYNTH = ("synth", "clinic.csv", "--schema", "schema.toml", "--epsilon", "0.5", "--out", "release")
BUY = ("--epsilon", "20", "--out", "bought.toml", "--schema")
COMMANDS: dict[str, tuple[str, ...]] = {
    **{
        f"synth {method}": ("synth", *SYNTH[4:], *OPTIONS.get(method, ()), "--method", method) for method in METHODS.own
    },
    "synth with a holdout": (*SYNTH, "--holdout", "0.4", "--allow-few-units", "a test"),
    "synth in windows": (*SYNTH, "--window-steps", "3"),
    "synth for a program": (*SYNTH, "--json"),
    "synth of so many series": (*SYNTH, "--n", "30"),
    "synth with a kept-out half of few": (*SYNTH, "--holdout", "0.5", "--allow-few-units", "a test"),
    "buy bounds": ("buy", "bounds", "clinic.csv", *BUY, "open.toml", "--column", "pulse", "--between", "-50", "50"),
    "buy categories": ("buy", "categories", "clinic.csv", *BUY, "wards.toml", "--column", "ward"),
    "buy population": ("buy", "population", "clinic.csv", *BUY, "count.toml", "--json"),
    "init": ("init", "clinic.csv", "--out", "drafted.toml"),
}


def clinic_with(folder: Path, edit: Callable[[Rows], Rows]) -> Clinic:
    clinic = make_clinic(folder)
    clinic.edit_rows(edit)
    clinic.edit_schema("epsilon = 2.0\nmax_runs = 8", "epsilon = 100.0\nmax_runs = 100\ndelta = 1e-5")
    text = clinic.schema.read_text()
    (folder / "open.toml").write_text(text.replace("low = 0\nhigh = 10\n", ""))
    (folder / "wards.toml").write_text(text.replace('categories = ["north", "south"]\n', ""))
    (folder / "count.toml").write_text(text.replace("population = 120", "population = { count_epsilon = 1.0 }"))
    return clinic


def as_it_is(rows: Rows) -> Rows:
    return rows


def one_more(ward: str) -> Callable[[Rows], Rows]:
    """Somebody at the bounds, whose rows come last."""
    return lambda rows: [*rows, *(["somebody", row[1], "10", ward] for row in rows[1:7])]


def one_less(rows: Rows) -> Rows:
    return [rows[0], *rows[7:]]


def seen(folder: Path, edit: Callable[[Rows], Rows], command: tuple[str, ...]) -> View:
    clinic, method = clinic_with(folder, edit), command[-1]
    named = ("clinic.csv", *schema_for(clinic, method)) if method in METHODS else ()
    return view(clinic.folder, (command[0], *named, *command[1:]))


@pytest.mark.parametrize("name", one_per_mechanism(COMMANDS))
def test_one_person_more_or_less_changes_nothing_but_numbers_of(name: str, tmp_path: Path) -> None:
    ward = "nowhere" if name == "buy categories" else "south"
    first = seen(tmp_path / "as it is", as_it_is, COMMANDS[name])
    assert first.exit_code == 0, first.complained
    assert first.differences(seen(tmp_path / "one more", one_more(ward), COMMANDS[name])) == []
    assert first.differences(seen(tmp_path / "one less", one_less, COMMANDS[name])) == []


@pytest.mark.parametrize("more", [(), ("--json",), ("--label", "north")], ids=["", "json", "label"])
def test_one_person_more_or_less_does_not_change_how_much_a_release_gives(
    more: tuple[str, ...], tmp_path: Path
) -> None:
    """A release is drawn from where the table no longer is, and no number of series is asked for."""
    labelled = [part for part in SYNTH if part != "schema.toml"]
    labelled.insert(3, "labelled.toml")
    views = []
    for name, edit in (("as it is", as_it_is), ("one more", one_more("south")), ("one less", one_less)):
        clinic = clinic_with(tmp_path / name, edit)
        text = clinic.schema.read_text()
        (clinic.folder / "labelled.toml").write_text(
            text.replace("population = 120", 'population = 120\nlabel = "ward"')
        )
        assert view(clinic.folder, labelled).exit_code == 0
        clinic.table.unlink()
        views.append(view(clinic.folder, ("sample", "release", "--out", "more.parquet", *more)))
        assert views[-1].exit_code == 0, views[-1].complained
    assert views[0].files["more.parquet"][1] == 120
    assert [views[0].differences(other) for other in views[1:]] == [[], []]


REFUSED: dict[str, Callable[[Rows], Rows]] = {
    "values beyond the bounds": lambda rows: [*rows[:-1], [*rows[-1][:2], "11", rows[-1][3]]],
    "an unknown category": lambda rows: [*rows[:-1], [*rows[-1][:3], "east"]],
    "a timestamp twice": lambda rows: [*rows[:-1], [rows[-1][0], rows[-2][1], *rows[-1][2:]]],
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_refusal_reads_the_same_with_one_person_more_because_of(kind: str, tmp_path: Path) -> None:
    spoil, more = REFUSED[kind], one_more("south")
    first = seen(tmp_path / "as it is", spoil, SYNTH)
    assert first.exit_code == 2
    assert first.differences(seen(tmp_path / "one more", lambda rows: more(spoil(rows)), SYNTH)) == []


def leak_a_log_line(learn: Any) -> Any:
    def leaky(self: Any, private: Any, *rest: Any) -> Any:
        logging.getLogger("understudy").debug("learning from %s series", private.panel.num_series)
        return learn(self, private, *rest)

    return leaky


def leak_a_shape(learn: Any) -> Any:
    return lambda self, private, *rest: {**learn(self, private, *rest), "rows": np.zeros(private.panel.num_series)}


def leak_a_stage(learn: Any) -> Any:
    def leaky(self: Any, private: Any, grant: Any, progress: Any) -> Any:
        progress(f"{private.panel.num_series} series", 0.5)
        return learn(self, private, grant, progress)

    return leaky


def leak_a_print(learn: Any) -> Any:
    def leaky(self: Any, private: Any, *rest: Any) -> Any:
        print(f"{private.panel.num_series} series")
        return learn(self, private, *rest)

    return leaky


def leak_a_sentence(learn: Any) -> Any:
    """Words as if they were about the release, which says nothing like it."""

    def leaky(self: Any, private: Any, *rest: Any) -> Any:
        print(f"Of the release: {private.panel.num_series} series.")
        return learn(self, private, *rest)

    return leaky


def leak_an_exit(learn: Any) -> Any:
    def leaky(self: Any, private: Any, *rest: Any) -> Any:
        if private.panel.num_series > NUM_PERSONS:
            raise ValueError
        return learn(self, private, *rest)

    return leaky


def leak_a_number_of_series(learn: Any) -> Any:
    """A declared population that was counted: what `synth` and `sample` write by default follows it."""

    def leaky(self: Any, private: Any, *rest: Any) -> Any:
        object.__setattr__(private.panel.schema.population, "size", private.panel.num_series)
        return learn(self, private, *rest)

    return leaky


LEAKS = {
    "number of series": (leak_a_number_of_series, "synthetic.parquet"),
    "log line": (leak_a_log_line, "logged"),
    "shape": (leak_a_shape, "model.safetensors"),
    "progress": (leak_a_stage, "progress"),
    "print": (leak_a_print, "printed"),
    "sentence": (leak_a_sentence, "printed"),
    "exit": (leak_an_exit, "exit_code"),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_planted_leak_is_seen(leak: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: each kind of leak shows in the part of the view that is meant for it."""
    spoil, where = LEAKS[leak]
    monkeypatch.setattr(Spectral, "learn", spoil(Spectral.learn))
    first = seen(tmp_path / "as it is", as_it_is, SYNTH)
    assert where in " ".join(first.differences(seen(tmp_path / "one more", one_more("south"), SYNTH)))


def test_a_planted_leak_into_the_ledger_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a charge that says how many rows it was for."""
    charge = Ledger.charge

    def leaky(self: Ledger, plan: Any, *, label: str, noise: Any) -> Any:
        rows = len(Path("clinic.csv").read_text().splitlines())
        return charge(self, plan, label=f"{label} on {rows} rows", noise=noise)

    monkeypatch.setattr(Ledger, "charge", leaky)
    first = seen(tmp_path / "as it is", as_it_is, SYNTH)
    assert "ledger" in first.differences(seen(tmp_path / "one more", one_more("south"), SYNTH))
