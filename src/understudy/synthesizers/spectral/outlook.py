"""What a budget will let be heard, from public facts: of each part the share that is data, the rest being prior."""

import numpy as np

from understudy.data import Schema
from understudy.privacy.budget import Guarantee
from understudy.privacy.plan import noise_multipliers
from understudy.statistics.basis import Basis, basis_of
from understudy.statistics.marginals import grid_of
from understudy.synthesizers.spectral import fitting
from understudy.synthesizers.spectral.dependence import choose_coupling
from understudy.synthesizers.spectral.recipe import budget_shares, num_singles

_DISTRIBUTION, _CORRELATION = 0.1, 0.3  # how far these typically lie from what is expected of them
_SURVIVES, _FAINT = 0.7, 0.3  # shares of the common rhythm


def expected_shares(schema: Schema, guarantee: Guarantee, series: float) -> dict[str, float]:
    """Returns the expected share of signal of each component; `series` of public number, over those of a unit."""
    noise = noise_multipliers(guarantee, budget_shares(schema, guarantee))
    counted = max(own for label, own in noise.items() if label.startswith("marginals"))
    basis, channels = basis_of(schema), schema.num_channels
    cell = counted * float(np.sqrt(channels)) / series
    error = cell * float(np.sqrt(max(grid_of(own, cell).num_cells for own in schema.channels))) / 2
    loud = noise["dependence"] / series
    clockless = schema.time.align == "relative" or not schema.unit.protects_a_person
    even = np.ones(schema.num_steps + 1)
    coupling = choose_coupling(num_singles(schema), even, channels, clockless=clockless, relative_noise=loud)
    return {
        "distributions": _heard(_DISTRIBUTION, error),
        "common rhythm": _rhythm(basis, channels, noise["profile"] / series),
        "strength of each speed": _speeds(basis, noise["spectrum"] * float(np.sqrt(channels)) / series),
        "correlations": _heard(_CORRELATION, loud * coupling.radius / coupling.cross_weight),
    }


def sentences(schema: Schema, shares: dict[str, float], prior: str | None) -> tuple[str, ...]:
    """Returns the shares in words, and whether seasonal structure survives."""
    told = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    rest = "a built-in prior" if prior is None else f"the prior '{prior}'"
    first = f"Expected shares of signal, the rest being {rest}: {told}."
    if not basis_of(schema).away.shape[1]:
        return (first,)
    share = shares["common rhythm"]
    if prior is not None:
        return (first, f"Of seasonal structure that series have in common, {1 - share:.0%} will be that of the prior.")
    how = "will be faint" if share > _FAINT else "will mostly be noise or missing"
    how = "will survive" if share > _SURVIVES else how
    return (first, f"Seasonal structure that series have in common {how}.")


def _heard(typical: float, noise: float) -> float:
    return typical**2 / (typical**2 + noise**2)


def _rhythm(basis: Basis, channels: int, noise: float) -> float:
    moments = fitting.Moments.of(basis, channels, noise)
    weight, prior = moments.weights[0, 1:] ** 2, moments.prior[0, 1:]
    left = (noise * np.hypot(moments.radius, fitting.weight_of_one(moments.radius, 1))) ** 2
    return float((prior * weight * prior / (weight * prior + left)).sum() / prior.sum()) if len(prior) else 1.0


def _speeds(basis: Basis, noise: float) -> float:
    expected = fitting.expected_directions(basis.spread_out(basis.shares))
    heard = [fitting.weight_of_mean(expected[own].mean(), noise / np.sqrt(len(own))) for own in basis.groups]
    return float(basis.shares @ np.array(heard))
