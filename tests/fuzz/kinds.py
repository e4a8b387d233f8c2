"""The four kinds of input, and how to try many of them."""

import hashlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings

from tests.fuzz.case import Case, Contents
from tests.fuzz.edits import Strategy
from tests.fuzz.harness import Harness
from tests.fuzz.ledgers import ledger_cases
from tests.fuzz.releases import release_cases
from tests.fuzz.schemas import schema_cases
from tests.fuzz.tables import table_cases

CORPUS = Path(__file__).parent / "corpus"  # inputs that broke a rule once
KINDS: dict[str, Callable[[Contents], Strategy]] = {
    "schemas": lambda pristine: schema_cases(),
    "tables": lambda pristine: table_cases(),
    "releases": release_cases,
    "ledgers": ledger_cases,
}


def fuzz(
    kind: str,
    num_inputs: int,
    harness: Harness,
    *,
    corpus: Path = CORPUS,
    subprocess: bool = False,
    shrink: bool = True,
) -> Counter[int]:
    """Tries that many fresh inputs and returns how often each exit code came; a broken rule is an error.

    The error names the rule and shows the smallest input that Hypothesis found for it (the first one without `shrink`),
    which is kept in `corpus`.
    """
    codes: Counter[int] = Counter()
    failing: list[Case] = []

    @settings(
        max_examples=num_inputs,
        derandomize=False,  # not even in CI: other inputs every time
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=KINDS[kind](harness.pristine))
    def each(case: Case) -> None:
        failing.append(case)
        codes[harness.check(case, subprocess=subprocess).code] += 1
        failing.pop()

    try:
        each()
    except BaseException as problem:
        for case in failing[-1:]:
            problem.add_note(f"Kept as {keep(case, kind, corpus)}; test_fuzz_corpus.py tries it again.")
        raise
    assert codes.total() >= num_inputs
    return codes


def keep(case: Case, kind: str, corpus: Path) -> Path:
    """Writes an input where every later run of the tests tries it again."""
    text = case.dumps()
    path = corpus / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.json"
    path.write_text(text)
    return path
