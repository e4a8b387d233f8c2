"""Defects that show when a process dies, a disk fails, or somebody looks at more than the numbers of a run."""

from tests.mutants.mutant import Mutant

FILES = "tests/unit/test_files.py"
KEY = "tests/unit/privacy/test_store_crashes.py::test_a_key_is_made_whole_or_not_at_all"
LEDGER = "tests/unit/privacy/test_store_crashes.py::test_a_ledger_file_is_made_whole_or_not_at_all"
TOLD = "tests/faults/test_crashes.py::test_an_error_after_the_charge_says_that_the_charge_stays"
LISTED = "tests/faults/test_crashes.py::test_a_run_that_fails_leaves_no_list_of_kept_out_units"
SHOWN = "tests/planted/test_shown.py"

MUTANTS = (
    Mutant(
        name="a name before its bytes",
        why="after a power cut a release or a key is there and empty, and nobody knows what was charged for it",
        file="files.py",
        before="        sync(draft)  # before it gets its name: a name may reach the disk sooner than bytes\n",
        after="",
        tests=(FILES,),
    ),
    Mutant(
        name="a release before its bytes",
        why="after a power cut a charged release is there under its name and holds nothing",
        file="files.py",
        before="""\
        for path in (*draft.rglob("*"), draft):
            sync(path)
""",
        after="",
        tests=(FILES,),
    ),
    Mutant(
        name="a release readable while it is written",
        why="others on the machine read a release that is not certified yet",
        file="files.py",
        before='    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))\n',
        after="""\
    draft = target.with_name(f".{target.name}-{os.getpid()}")
    draft.mkdir(mode=0o755)
""",
        tests=(FILES,),
    ),
    Mutant(
        name="keys written in place",
        why="a killed process leaves half a key under its final name, and no release can be signed any more",
        file="privacy/keys.py",
        before="        with whole_file(path, replace=False) as draft:\n            handle = os.open(draft,",
        after="        for draft in (path,):\n            handle = os.open(draft,",
        tests=(KEY,),
    ),
    Mutant(
        name="a charge that lies beside its file",
        why="a ledger copied or moved without the files next to it gives its last charges back",
        file="privacy/sqlite.py",
        before='connection.execute("PRAGMA journal_mode=DELETE")',
        after='connection.execute("PRAGMA journal_mode=WAL")',
        tests=("tests/unit/privacy/test_whole_file.py",),
    ),
    Mutant(
        name="a failing disk called damage",
        why="somebody is told to restore an older ledger, which forgets what has been spent",
        file="privacy/sqlite.py",
        before="        if kind in _DAMAGE:",
        after="        if kind not in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):",
        tests=(LEDGER,),
    ),
    Mutant(
        name="an error that says nothing was charged",
        why="whoever believes it takes the run for free and the budget for whole",
        file="privacy/sqlite.py",
        before='            "write to."\n',
        after='            "write to. Nothing was charged."\n',
        tests=(TOLD,),
    ),
    Mutant(
        name="list of kept-out units left behind",
        why="a run that failed leaves identifiers in a file that nobody was told of",
        file="api/holdouts.py",
        before="        target.unlink(missing_ok=True)\n        raise\n",
        after="        raise\n",
        tests=(LISTED,),
    ),
    Mutant(
        name="rows of a table shown",
        why="a traceback or a log line that shows what is being read quotes identifiers and values",
        file="data/io/read.py",
        before="@dataclass(frozen=True, eq=False, kw_only=True, repr=False)\nclass Grid:",
        after="@dataclass(frozen=True, eq=False, kw_only=True)\nclass Grid:",
        tests=(SHOWN,),
    ),
    Mutant(
        name="number of series shown",
        why="a traceback or a log line that shows what units add tells how many there are",
        file="privacy/contributions.py",
        before="@dataclass(frozen=True, eq=False, repr=False)\nclass Cells:",
        after="@dataclass(frozen=True, eq=False)\nclass Cells:",
        tests=(SHOWN,),
    ),
)
