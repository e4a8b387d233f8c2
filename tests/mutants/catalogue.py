"""All mutants. New mechanisms and methods bring their own."""

from tests.mutants import accounting, border, data, ledger, releases, training
from tests.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *border.MUTANTS,
    *accounting.MUTANTS,
    *ledger.MUTANTS,
    *training.MUTANTS,
    *data.MUTANTS,
    *releases.MUTANTS,
)
