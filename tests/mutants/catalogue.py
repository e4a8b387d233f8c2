"""All mutants. New mechanisms and methods bring their own."""

from tests.mutants import accounting, border, canaries, choosing, crashes, data, ledger, pets, releases, training
from tests.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *border.MUTANTS,
    *accounting.MUTANTS,
    *ledger.MUTANTS,
    *crashes.MUTANTS,
    *training.MUTANTS,
    *data.MUTANTS,
    *releases.MUTANTS,
    *pets.MUTANTS,
    *canaries.MUTANTS,
    *choosing.MUTANTS,
)
