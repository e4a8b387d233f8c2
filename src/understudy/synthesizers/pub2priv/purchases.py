"""What is bought beside the gradients, and what public facts and these purchases make of a schema."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from understudy.data import Panel, Schema, read_panel
from understudy.errors import InputError, MissingData
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry, noise_multipliers, round_up
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics import facts
from understudy.statistics.copula import Model
from understudy.statistics.encoding import Encoding, linear_scales
from understudy.synthesizers.base import Progress, Synthesizer
from understudy.synthesizers.pub2priv.basis import Basis
from understudy.synthesizers.pub2priv.conditions import Conditions
from understudy.synthesizers.pub2priv.coordinates import Coordinates
from understudy.synthesizers.pub2priv.followed import FOLLOWED, followed_bound
from understudy.synthesizers.pub2priv.moments import LOUDEST, Layout
from understudy.synthesizers.pub2priv.public_file import read_signals
from understudy.synthesizers.pub2priv.shapes import most_frequencies, shape_reach, shape_square
from understudy.synthesizers.pub2priv.sketched import FOLLOWED_SHARE, MOMENTS
from understudy.synthesizers.registry import METHODS

SPECTRAL = "spectral."  # prefix of the arrays of the `spectral` release that the fast network starts from
AUTO = "auto"
_SPECTRAL_SHARE = {"projected": 0.6, MOMENTS: 0.4, FOLLOWED: 0.7}  # of mu²
_MOST_WINDOWS = 2_000  # of a public table of context that are looked at


def entries(network: str, conditions: Conditions, guarantee: Guarantee) -> tuple[PlanEntry, ...]:
    """What is bought beside gradients: single facts for the published network, else a `spectral` release.

    Where no gradients follow, the rest of the budget buys the sum of products, or how closely series follow their
    context; "auto" asks public facts whether noise would drown the former.
    """
    if network == AUTO:
        network = FOLLOWED if _drowned(conditions, guarantee) else MOMENTS
    schema = conditions.schema
    if network == "paper":
        shares = facts.shares_of(schema, marginals=True)
        return tuple(PlanEntry(label, Gaussian(noise)) for label, noise in noise_multipliers(guarantee, shares).items())
    whole = _base().plan(schema.without_context(), guarantee)
    share = _SPECTRAL_SHARE[network]
    release = tuple(
        PlanEntry(entry.label, Gaussian(round_up(entry.event.noise_multiplier * share**-0.5)))  # its share of mu²
        for entry in whole.entries
        if isinstance(entry.event, Gaussian)
    )
    if network == "projected":
        return release
    rest = noise_multipliers(guarantee, {network: 1 - share})[network]
    return (*release, PlanEntry(network, Gaussian(rest)))


def _base() -> Synthesizer:
    """Returns the method whose release everything else is measured on."""
    return METHODS.create("spectral", max_splits=0)


def _drowned(conditions: Conditions, guarantee: Guarantee) -> bool:
    """Whether noise on a response to one direction of context is louder than what would count as heard.

    From public facts alone. A population that is bought counts as large, as nothing else is known when this is
    planned, and so do events, of which one series has many.
    """
    schema = conditions.schema
    size, channels = schema.population.size, schema.num_channels
    if size is None or schema.unit.kind == "event":
        return False
    noise = noise_multipliers(guarantee, {MOMENTS: 1 - _SPECTRAL_SHARE[MOMENTS]})[MOMENTS]
    error = mean_error(conditions, PlanEntry(MOMENTS, Gaussian(noise)), size)
    return channels * (1 + _frequencies(schema)) * error**2 > LOUDEST * shape_square(channels)


def _frequencies(schema: Schema) -> int:
    return min(most_frequencies(schema.num_channels), max(schema.num_steps - 1, 0))


def buy(network: str, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
    """Makes the purchases that come first and returns them as public arrays.

    Privacy: `spectral`'s releases, or those of `facts.buy`; nothing else is looked at.
    """
    bare = private.without_context()
    if network == "paper":
        linear = linear_scales(bare.schema, None)
        return {**facts.buy(bare, grant, linear).to_arrays(), "linear": linear}
    released = _base().learn(bare, grant, progress)
    return {f"{SPECTRAL}{name}": array for name, array in released.items()}


def model_of(bought: Mapping[str, np.ndarray]) -> Model:
    """Returns the `spectral` release."""
    return Model.from_arrays({n.removeprefix(SPECTRAL): a for n, a in bought.items() if n.startswith(SPECTRAL)})


def coordinates_of(schema: Schema, bought: Mapping[str, np.ndarray]) -> Coordinates:
    """Returns the road that a `spectral` release describes."""
    return Coordinates(model_of(bought), schema.without_context())


def encoding_of(schema: Schema, bought: Mapping[str, np.ndarray]) -> Encoding:
    """Returns the encoding that released facts define."""
    return Encoding.of(schema, facts.Facts.from_arrays(bought).marginals, bought["linear"])


def public_panel(file: str, schema: Schema) -> Panel:
    """Reads public series with the same columns."""
    return replace(read_panel(file, schema, allow_few_units=True), private=False)


def mean_error(conditions: Conditions, entry: PlanEntry, population: float) -> float:
    """Returns the noise on a mean product of shape and context, from public facts, where no window is public."""
    assert isinstance(entry.event, Gaussian)
    schema = conditions.schema
    if entry.label == FOLLOWED:
        return entry.event.noise_multiplier * followed_bound(schema.num_channels, conditions.num_columns) / population
    frequencies = _frequencies(schema)
    basis = Basis.plain(conditions.num_features(frequencies), conditions.feature_reach)
    layout = Layout(
        num_shape=schema.num_channels * (1 + frequencies),
        num_context=basis.size,
        shape_reach=shape_reach(schema.num_channels),
        context_reach=basis.reach,
        context_known=basis.known,
    )
    beside = np.hypot(1.0, FOLLOWED_SHARE) if conditions.num_columns else 1.0
    return float(entry.event.noise_multiplier * layout.bound * beside / population)


def public_windows(file: str | None, schema: Schema) -> np.ndarray | None:
    """Returns windows [window, step, context] of a public table of context, as long as series are; None without."""
    if file is None:
        return None
    if not Path(file).is_file():
        raise MissingData(f"public_context: '{file}' is not there.")
    table, steps = read_signals(Path(file), "public_context"), schema.num_steps
    if table.shape[2] != len(schema.context) or table.shape[1] < steps:
        raise InputError(
            f"public_context: {len(schema.context)} columns of numbers over at least {steps} steps are expected, in "
            f"the order of the schema's context; got {table.shape[2]} over {table.shape[1]}."
        )
    windows = np.lib.stride_tricks.sliding_window_view(table, steps, axis=1)  # [series, first, context, step]
    flat = np.swapaxes(windows.reshape(-1, *windows.shape[2:]), 1, 2)
    return np.array(flat[:: max(1, -(-len(flat) // _MOST_WINDOWS))])
