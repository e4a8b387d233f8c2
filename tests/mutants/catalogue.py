"""All mutants. New mechanisms and methods bring their own."""

from tests.mutants import (
    accounting,
    border,
    canaries,
    choosing,
    crashes,
    data,
    dit,
    ledger,
    pets,
    pub2priv,
    releases,
    training,
    vflgan_ts,
)
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
    *pub2priv.MUTANTS,
    *vflgan_ts.MUTANTS,
    *dit.MUTANTS,
    *canaries.MUTANTS,
    *choosing.MUTANTS,
)
