"""`spectral` in vertical form: who counts which columns where several organisations hold them.

A party counts the values of its own columns, noises the counts itself, and turns its values into normal scores by what
it released. Scores, single columns and gaps of every row then go to an aggregator, which sums and noises all that needs
columns of several parties: factors, profiles, spectra, second moments.
"""

from understudy.data import Schema
from understudy.statistics.columns import single_columns
from understudy.statistics.queries import MARGINALS, Held


def parties_of(schema: Schema) -> tuple[str, ...]:
    """Returns the organisations that hold columns, in the order in which the schema names them."""
    named = (column.party for column in (*schema.channels, *schema.static) if column.party is not None)
    return tuple(dict.fromkeys(named))


def held_columns(schema: Schema) -> Held:
    """Returns which columns are counted together; columns that name nobody are left to the aggregator."""
    columns = (*schema.channels, *single_columns(schema, schema.own_contexts))
    if len(parties_of(schema)) < 2:
        return {MARGINALS: range(len(columns))}
    held: dict[str, list[int]] = {}
    for place, column in enumerate(columns):
        label = MARGINALS if column.party is None else f"{MARGINALS} of {column.party}"
        held.setdefault(label, []).append(place)
    return held


def vertical_trust(schema: Schema) -> tuple[str, ...]:
    """Returns who is trusted with what, a sentence each; nothing where one organisation holds everything."""
    number = len(parties_of(schema))
    if number < 2:
        return ()
    return (
        f"Columns of {number} organisations: the counts of each one's own columns were noised by themselves, all else "
        "was summed and noised by an aggregator. Other organisations and whoever receives the release see noisy "
        "answers only: the guarantee holds against both, for what they do not hold themselves.",
        "Not protected against the aggregator, which is trusted: it sees every row, as values or as scores from which "
        "values can be read back.",
        "Which units take part is known to every organisation and to the aggregator: rows were aligned before.",
    )
