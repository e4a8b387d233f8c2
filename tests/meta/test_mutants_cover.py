"""No defect that every reader would ask about is missing from the catalogue."""

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.required import REQUIRED


@pytest.mark.parametrize("defect", REQUIRED)
def test_the_catalogue_holds_the_defect(defect: str) -> None:
    assert REQUIRED[defect]
    assert set(REQUIRED[defect]) <= {mutant.name for mutant in MUTANTS}


def test_the_list_of_defects_has_not_shrunk() -> None:
    assert len(REQUIRED) >= 33
