"""Every mutant still fits the source: a catalogue that rots would prove nothing."""

import ast

import pytest

from tests.meta.pages import ROOT
from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_patch_fits_the_source_and_leaves_a_program(mutant: Mutant) -> None:
    assert mutant.problem(ROOT) is None
    assert mutant.before != mutant.after
    source = mutant.path(ROOT).read_text(encoding="utf-8")
    ast.parse(source.replace(mutant.before, mutant.after))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_tests_named_for_it_are_there(mutant: Mutant) -> None:
    assert mutant.tests
    for test in mutant.tests:
        file, _, node = test.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert not node or f"def {node.partition('[')[0]}(" in text


def test_no_two_mutants_share_a_name_or_a_patch() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.before, mutant.after) for mutant in MUTANTS}) == len(MUTANTS)


def test_a_patch_that_no_longer_fits_would_be_noticed() -> None:
    gone = Mutant(name="x", why="x", file="errors.py", before="no such text", after="y", tests=("tests/conftest.py",))
    assert gone.problem(ROOT) == "its text occurs 0 times in errors.py"
