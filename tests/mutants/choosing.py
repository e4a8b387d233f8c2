"""Defects where releases are compared or chosen, and where a page is made that may leave."""

from tests.mutants.mutant import Mutant

ODDS = "tests/statistical/test_private_choice.py"
CHOOSING = "tests/unit/evaluation/test_choosing.py"
RECORD = "tests/unit/report/test_record.py"
COMMANDS = "tests/e2e/test_cli_report.py"
WATCH = "tests/unit/cli/test_watch.py"

MUTANTS = (
    Mutant(
        name="a choice twice as sharp",
        why="a choice costs twice what was charged",
        file="privacy/grant.py",
        before="return self._place(event.epsilon * totals)",
        after="return self._place(2 * event.epsilon * totals)",
        tests=(ODDS,),
    ),
    Mutant(
        name="ratings not cut off",
        why="one unit decides the choice alone",
        file="privacy/grant.py",
        before="np.clip(np.nan_to_num(merits, nan=0.5), 0.0, 1.0).sum(axis=0)",
        after="np.nan_to_num(merits, nan=0.5).sum(axis=0)",
        tests=(ODDS,),
    ),
    Mutant(
        name="a choice that is not counted",
        why="one charge pays for any number of choices",
        file="privacy/grant.py",
        before="""\
        self._execute(label)
        self._chosen.add(label)
        return self._place(event.epsilon * totals)""",
        after="        return self._place(event.epsilon * totals)",
        tests=(CHOOSING,),
    ),
    Mutant(
        name="every series rates",
        why="a unit with a hundred series moves the choice a hundredfold",
        file="evaluation/choosing.py",
        before="losses = _by_unit(self._losses(private), private)",
        after="losses = self._losses(private)",
        tests=(CHOOSING,),
    ),
    Mutant(
        name="ratings scaled by private series",
        why="one unit changes the ratings of all others",
        file="evaluation/choosing.py",
        before="np.clip(0.5 + _advantages(losses) / (2 * self._usual_advantage), 0.0, 1.0)",
        after="np.clip(0.5 + _advantages(losses) / (2 * np.abs(_advantages(losses)).max()), 0.0, 1.0)",
        tests=(CHOOSING,),
    ),
    Mutant(
        name="features that are not whole",
        why="a unit's rating depends on the rows beside it in the last bits",
        file="evaluation/choosing.py",
        before="np.rint(_GRID * scaled).reshape(len(part), -1)",
        after="(_GRID * scaled).reshape(len(part), -1)",
        tests=(CHOOSING,),
    ),
    Mutant(
        name="events choose like entities",
        why="a neighbour changes a row by two, and noise is for one",
        file="evaluation/choosing.py",
        before='if schema.unit.kind != "entity":',
        after='if schema.unit.kind == "none":',
        tests=(CHOOSING,),
    ),
    Mutant(
        name="a comparison that leaves no trace",
        why="nobody can tell that a release was chosen by looking at real data",
        file="evaluation/judging.py",
        before="    record_uncovered(ledger, ",
        after="    dict(ledger=ledger, what=",
        tests=(COMMANDS,),
    ),
    Mutant(
        name="a release without protection that leaves no trace",
        why="later certificates of the same population do not name it",
        file="api/charging.py",
        before="    record_uncovered(ledger, ",
        after="    dict(ledger=ledger, what=",
        tests=("tests/e2e/test_cli_presets.py",),
    ),
    Mutant(
        name="a public page with its internal half",
        why="real series go out with the release",
        file="cli/evaluate.py",
        before="shown = made.without_internal() if public else made",
        after="shown = made",
        tests=(COMMANDS,),
    ),
    Mutant(
        name="public figures with real series",
        why="real series go out in the figures of a paper",
        file="cli/evaluate.py",
        before="for drawing in drawings(shown)",
        after="for drawing in drawings(made)",
        tests=(COMMANDS,),
    ),
    Mutant(
        name="passwords in a run record",
        why="whoever reads the record can open the ledger of the team",
        file="cli/watch.py",
        before='return f"{scheme}://…" if apart else',
        after="return str(value) if apart else",
        tests=(WATCH,),
    ),
    Mutant(
        name="scores in a run record",
        why="figures of real series, which no guarantee covers, lie in a file that a monitor reads",
        file="cli/console.py",
        before="for name in _PUBLIC if name in facts}",
        after="for name in facts}",
        tests=(WATCH,),
    ),
    Mutant(
        name="the text of an unforeseen error in a run record",
        why="it may quote a value or an identifier",
        file="cli/watch.py",
        before="[type(problem).__name__, *_notes(problem)]",
        after="[str(problem), *_notes(problem)]",
        tests=(WATCH,),
    ),
    Mutant(
        name="a public half as large as the holdout",
        why="the number of real series is told by the number of synthetic ones that are shown",
        file="report/record.py",
        before="panels, synthetic = card.judged.panels, card.judged.synthetic",
        after="panels, synthetic = card.judged.panels, card.judged.panels.synthetic",
        tests=(RECORD,),
    ),
)
