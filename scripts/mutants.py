"""Plants one privacy defect after another into a copy of the package and expects tests to notice each.

    python scripts/mutants.py [--only NAME] [--workers 2]

Exit 0 when every mutant is killed by a test named for it; 1 when one survives, no longer fits the source, or
stops the tests from running at all, and when the tests fail without any mutant.
"""

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.mutants.catalogue import MUTANTS  # noqa: E402
from tests.mutants.mutant import Mutant  # noqa: E402

COPIED = ("src", "tests", "bench", "pyproject.toml")
PATIENCE = 300  # seconds for the tests of one mutant
LONG_PATIENCE = 1200  # seconds for all named tests of a tree, before any mutant
KILLED, SURVIVED, BROKEN = "killed", "SURVIVED", "BROKEN"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of one mutant: `detail` is the test that killed it, or what went wrong."""

    mutant: Mutant
    outcome: str
    detail: str
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the gate and returns its exit code."""
    options = _options(arguments)
    chosen = [mutant for mutant in MUTANTS if not options.only or mutant.name in options.only]
    if not chosen:
        print(f"No mutant is called so. Known: {', '.join(mutant.name for mutant in MUTANTS)}.")
        return 1
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trees = [_copy(Path(folder) / f"tree-{number}") for number in range(options.workers)]
        if not all(_imports_its_own(tree) for tree in trees) or not _passes_untouched(trees, chosen):
            return 1
        verdicts = _judge_all(trees, chosen)
    killed = sum(verdict.outcome == KILLED for verdict in verdicts)
    print(f"\n{killed} of {len(verdicts)} mutants killed in {time.monotonic() - begun:.0f} s.")
    for verdict in verdicts:
        if verdict.outcome != KILLED:
            print(f"{verdict.outcome}: {verdict.mutant.name} ({verdict.mutant.why}): {verdict.detail}")
    return 0 if killed == len(verdicts) else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="run this mutant alone; may be repeated")
    parser.add_argument("--workers", type=int, default=2, help="mutants at a time, each in a tree of its own")
    return parser.parse_args(arguments)


def _copy(tree: Path) -> Path:
    """A tree of its own for each worker; no compiled files, which could outlive a change."""
    tree.mkdir()
    for name in COPIED:
        source, ignored = ROOT / name, shutil.ignore_patterns("__pycache__", "*.egg-info")
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=ignored)
        else:
            shutil.copy(source, tree / name)
    return tree


def _environment(tree: Path) -> dict[str, str]:
    # CI=true: Hypothesis tries the same examples every time, and a skipped test is no proof.
    quiet = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CI": "true", "UNDERSTUDY_HOME": str(tree / "home")}
    return {**os.environ, **quiet, "PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree / "bench" / "src")])}


def _imports_its_own(tree: Path) -> bool:
    """A package found elsewhere would make every mutant look like a survivor, or worse, a corpse."""
    command = [sys.executable, "-c", "import understudy; print(understudy.__file__)"]
    done = subprocess.run(command, cwd=tree, env=_environment(tree), capture_output=True, text=True, timeout=PATIENCE)
    found = Path(done.stdout.strip() or "nowhere")
    if tree.resolve() in found.resolve().parents:
        return True
    print(f"The copy imports another package: {found}. {done.stderr}")
    return False


def _pytest(tree: Path, tests: Iterable[str], patience: float = PATIENCE) -> tuple[int, str]:
    flags = ["-p", "no:cacheprovider", "-x", "--tb=line", "-rfE"]
    command = [sys.executable, "-m", "pytest", *flags, *tests]
    try:
        done = subprocess.run(
            command, cwd=tree, env=_environment(tree), capture_output=True, text=True, timeout=patience
        )
    except subprocess.TimeoutExpired:
        return -1, f"no end after {patience} s"
    return done.returncode, done.stdout + done.stderr


def _passes_untouched(trees: list[Path], chosen: list[Mutant]) -> bool:
    """Runs every named test once without a mutant, shared among the trees."""
    files = sorted({test.split("::")[0] for mutant in chosen for test in mutant.tests})
    named = {file: sorted({t for m in chosen for t in m.tests if t.split("::")[0] == file}) for file in files}
    whole = [[file] if file in tests else tests for file, tests in named.items()]
    shares = [[test for tests in whole[place :: len(trees)] for test in tests] for place in range(len(trees))]
    begun = time.monotonic()
    with ThreadPoolExecutor(len(trees)) as pool:
        runs = [
            pool.submit(_pytest, tree, share, LONG_PATIENCE) for tree, share in zip(trees, shares, strict=True) if share
        ]
        results = [run.result() for run in runs]
    broken = [text for code, text in results if code != 0]
    for text in broken:
        print(f"Without any mutant the tests fail:\n{text}")
    if not broken:
        number, seconds = sum(map(len, shares)), time.monotonic() - begun
        print(f"Without any mutant: {number} named tests or files pass, {seconds:.0f} s.\n", flush=True)
    return not broken


def _judge_all(trees: list[Path], chosen: list[Mutant]) -> list[Verdict]:
    free: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for tree in trees:
        free.put(tree)

    def judge(mutant: Mutant) -> Verdict:
        tree = free.get()
        try:
            verdict = _judge(tree, mutant)
        finally:
            free.put(tree)
        print(
            f"{mutant.name:46} {verdict.outcome:9} {verdict.seconds:5.1f} s  {verdict.detail.removeprefix('tests/')}",
            flush=True,
        )
        return verdict

    with ThreadPoolExecutor(len(trees)) as pool:
        return list(pool.map(judge, chosen))


def _judge(tree: Path, mutant: Mutant) -> Verdict:
    begun = time.monotonic()
    problem = mutant.problem(tree)
    if problem is not None:
        return Verdict(mutant=mutant, outcome=BROKEN, detail=problem, seconds=0.0)
    path = mutant.path(tree)
    genuine = path.read_text(encoding="utf-8")
    try:
        _rewrite(path, genuine.replace(mutant.before, mutant.after))
        code, text = _pytest(tree, mutant.tests)
    finally:
        _rewrite(path, genuine)
    outcome, detail = _read_result(code, text)
    return Verdict(mutant=mutant, outcome=outcome, detail=detail, seconds=time.monotonic() - begun)


def _rewrite(path: Path, text: str) -> None:
    """Writes a module and forgets its compiled form, which might have the same size and second."""
    path.write_text(text, encoding="utf-8")
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
        compiled.unlink()


def _read_result(code: int, text: str) -> tuple[str, str]:
    """A kill is a test that ran and failed; a module that no longer loads would prove nothing about tests."""
    failed = re.search(r"^FAILED ((?:bench/)?tests/\S+(?: [^-\s]\S*)*)", text, re.MULTILINE)
    if code == 1 and failed:
        return KILLED, failed[1]
    if code == 0:
        return SURVIVED, "all tests pass"
    return BROKEN, " ".join(text.split())[-600:]


if __name__ == "__main__":
    raise SystemExit(main())
