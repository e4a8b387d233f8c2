"""Sentences that every certificate carries: the relation, the threat model, assumptions and limits."""

from collections.abc import Iterable

NOISY_ROWS = (
    "records"  # label under which a noisy copy of every row is charged, as `vflgan-ts` makes it in the mode `local`
)
ADJACENCY = (
    "Add or remove: two datasets are neighbours if one has a unit that the other has not. The replace-one figure is "
    "for neighbours in which one unit's data is exchanged for other data."
)
VALUES_ADJACENCY = (
    "Values: two datasets are neighbours if they hold the same units with as many series or windows each, and one "
    "unit's values are in one of them and count as nothing in the other. That a unit takes part, and with how many, is "
    "known and not protected. The replace-one figure is for neighbours in which one unit's values are exchanged for "
    "other values."
)
THREAT_MODEL = (
    "Protected against: whoever receives the synthetic data or the model, with any side knowledge, any feasible "
    "computing power and full knowledge of this software.",
    "Not protected against: whoever runs the tool or holds the table (trusted curator).",
    "Not protected against: whoever sees evaluation or audit reports, timings, memory or error messages of the run.",
)
ASSUMPTIONS = (
    "The schema (bounds, categories, time axis, population size) and all public inputs were chosen without looking at "
    "the private table, or were bought with differential privacy as a charge to the same ledger.",
    "The unit column names the same person, meter or account wherever it appears, in this and in every other run.",
    "The ledger file was not replaced by an older copy of itself.",
    "Answers whose arithmetic is exact are sums of whole numbers with exact discrete noise. The others (gradients, "
    "choices) are analysed in real arithmetic and computed in floating point.",
)
NOT_PROTECTED = (
    "Facts about the population as a whole: learning them is the purpose of the release.",
    "What a person's data has in common with many others, including what can be inferred from it about that person.",
    "Several units that belong together (a family, a company) are protected less: k of them by k times this epsilon, "
    "at a delta that grows faster than k.",
    "Anything declared public: bounds, categories, context columns, the time axis, the population size.",
)


def adjacency(labels: Iterable[str]) -> str:
    """Returns which datasets are neighbours for a run that was charged under some labels: noisy rows can be counted."""
    return VALUES_ADJACENCY if NOISY_ROWS in labels else ADJACENCY
