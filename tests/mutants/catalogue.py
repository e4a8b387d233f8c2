"""All mutants. New mechanisms and methods bring their own."""

from tests.mutants import (
    accounting,
    audits,
    baselines,
    border,
    canaries,
    choosing,
    coins,
    crashes,
    data,
    dit,
    federated,
    ledger,
    pets,
    ppem,
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
    *ppem.MUTANTS,
    *vflgan_ts.MUTANTS,
    *baselines.MUTANTS,
    *federated.MUTANTS,
    *dit.MUTANTS,
    *canaries.MUTANTS,
    *audits.MUTANTS,
    *choosing.MUTANTS,
    *coins.MUTANTS,
)
