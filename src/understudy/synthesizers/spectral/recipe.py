"""How `spectral` divides its budget, and who counts which columns where several organisations hold them.

In the vertical form a party counts the values of its own columns, noises the counts itself, and turns its values into
normal scores by what it released. Scores, single columns and gaps of every row then go to an aggregator, which sums and
noises all that needs columns of several parties: factors, profiles, spectra, second moments.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from understudy.data import Schema
from understudy.privacy.budget import Guarantee
from understudy.privacy.plan import noise_multipliers
from understudy.statistics.columns import gappy_channels, num_labels, single_columns
from understudy.statistics.queries import MARGINALS, Held

SINGLES = "singles"  # label under which means of what a series has once are charged
DEFAULT: Mapping[str, Any] = {}
_SHARES = {  # of mu²: (few units under much noise, many units under little)
    "marginals": (0.38, 0.30),
    "factors": (0.03, 0.04),
    "levels": (0.01, 0.03),
    "profile": (0.26, 0.15),
    "spectrum": (0.24, 0.06),
    "shape": (0.04, 0.16),
    "dependence": (0.02, 0.29),
    "absence": (0.04, 0.10),
    SINGLES: (0.01, 0.04),
}
_SIGNAL = (50.0, 1000.0)  # units over the noise multiplier of one release, at which they are few, and many
_UNITS_PER_KIND = 1500  # a population is divided no further than this


def budget_shares(schema: Schema, guarantee: Guarantee) -> dict[str, float]:
    """Returns the share of mu² that each release gets, by its label, from public facts.

    The less units stand out of the noise, the more is spent on what few numbers say. Shares move evenly with the
    logarithm of that signal.
    """
    population, noise = schema.population.size, noise_multipliers(guarantee, {"all": 1.0})["all"]
    signal = _SIGNAL[1] if population is None else population / noise
    many = float(np.clip(np.log(signal / _SIGNAL[0]) / np.log(_SIGNAL[1] / _SIGNAL[0]), 0, 1))
    shares = {label: few ** (1 - many) * much**many for label, (few, much) in _SHARES.items()}
    if population is not None and schema.unit.kind == "entity" and not affordable_splits(schema, population):
        del shares["levels"]
    if not gappy_channels(schema) and schema.time.min_steps is None:
        del shares["absence"]
    if schema.num_channels == 1:
        del shares["factors"]
    if num_labels(schema) == 1 or not num_singles(schema):
        del shares[SINGLES]
    total = sum(shares.values())
    shares = {label: share / total for label, share in shares.items()}
    if not schema.unit.protects_a_person:  # windows at every offset of one series: no step differs from another
        for label, change in (("profile", -0.12), ("marginals", 0.05), ("shape", 0.04), ("dependence", 0.03)):
            shares[label] += change
    held = held_columns(schema)  # the share of the marginals is divided so that all counts get the same noise
    whole, number = shares.pop(MARGINALS), sum(map(len, held.values()))
    return {label: whole * len(places) / number for label, places in held.items()} | shares


def num_singles(schema: Schema) -> int:
    """Returns how many numbers a series has once: its single columns, and steps of channels that may be missing."""
    return len(single_columns(schema, schema.own_contexts)) + len(gappy_channels(schema))


def affordable_splits(schema: Schema, population: int) -> int:
    """Returns how often the series of a label may be divided by level."""
    return int(np.log2(max(1.0, population / _UNITS_PER_KIND / num_labels(schema))))


def parties_of(schema: Schema) -> tuple[str, ...]:
    """Returns the organisations that hold columns, in the order in which the schema names them."""
    named = (column.party for column in (*schema.channels, *schema.static) if column.party is not None)
    return tuple(dict.fromkeys(named))


def held_columns(schema: Schema) -> Held:
    """Returns which columns are counted together; columns of no party are left to the aggregator."""
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
        "was summed and noised by an aggregator. Other organisations and recipients of the release see noisy "
        "answers only: the guarantee holds against both, for what they do not hold themselves.",
        "Not protected against the aggregator, which is trusted: it sees every row, as values or as scores from which "
        "values can be read back.",
        "Which units take part is known to every organisation and to the aggregator: rows were aligned before.",
    )
