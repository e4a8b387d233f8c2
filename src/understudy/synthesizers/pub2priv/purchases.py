"""What is bought beside the gradients, and what public facts and these purchases make of a schema."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from understudy.data import Panel, Schema, read_panel
from understudy.privacy.budget import Guarantee
from understudy.privacy.calibrate import noise_multipliers, round_up
from understudy.privacy.events import Gaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry
from understudy.synthesizers.base import PrivateSeries, Progress
from understudy.synthesizers.frame import facts
from understudy.synthesizers.frame.encoding import Encoding, linear_scales
from understudy.synthesizers.pub2priv.coordinates import Coordinates
from understudy.synthesizers.spectral import Spectral
from understudy.synthesizers.spectral.learning import Learning
from understudy.synthesizers.spectral.model import Model
from understudy.synthesizers.spectral.sampling import num_labels

SPECTRAL = "spectral."  # prefix of the arrays of the `spectral` release that the fast network starts from
_SPECTRAL_SHARE = 0.6  # of mu²


def without_context(schema: Schema) -> Schema:
    """Returns the contract that the purchases are made under: no context, and no rule, which is kept when sampling."""
    return replace(schema, context=(), constraints=())


def entries(network: str, schema: Schema, guarantee: Guarantee) -> tuple[PlanEntry, ...]:
    """What is bought: a `spectral` release for the fast network, single facts for the published one."""
    if network == "paper":
        shares = facts.shares_of(schema, marginals=True)
        return tuple(PlanEntry(label, Gaussian(noise)) for label, noise in noise_multipliers(guarantee, shares).items())
    whole = Spectral(max_splits=0).plan(without_context(schema), guarantee)
    stretch = _SPECTRAL_SHARE**-0.5  # of every noise multiplier: the release gets its share of mu²
    return tuple(
        PlanEntry(entry.label, Gaussian(round_up(entry.event.noise_multiplier * stretch)))
        for entry in whole.entries
        if isinstance(entry.event, Gaussian)
    )


def buy(network: str, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
    """Makes the purchases and returns them as public arrays.

    Privacy: `spectral`'s releases, or those of `facts.buy`; nothing else is looked at.
    """
    schema = without_context(private.panel.schema)
    bare = replace(private, panel=replace(private.panel, schema=schema, context=None))
    learning = Learning(bare, grant, 0, progress)
    if network == "paper":
        linear = linear_scales(schema, None)
        return {**facts.buy(learning, linear).to_arrays(), "linear": linear}
    model = learning.run()
    return {f"{SPECTRAL}{name}": array for name, array in model.to_arrays().items()}


def model_of(bought: Mapping[str, np.ndarray]) -> Model:
    """Returns the `spectral` release."""
    return Model.from_arrays({n.removeprefix(SPECTRAL): a for n, a in bought.items() if n.startswith(SPECTRAL)})


def coordinates_of(schema: Schema, bought: Mapping[str, np.ndarray]) -> Coordinates:
    """Returns the road that a `spectral` release describes."""
    return Coordinates(model_of(bought), without_context(schema))


def encoding_of(schema: Schema, bought: Mapping[str, np.ndarray]) -> Encoding:
    """Returns the encoding that released facts define."""
    return Encoding.of(schema, facts.Facts.from_arrays(bought).marginals, bought["linear"])


def public_panel(file: str, schema: Schema) -> Panel:
    """Reads public series with the same columns."""
    return replace(read_panel(file, schema, allow_few_units=True), private=False)


def classes(panel: Panel) -> np.ndarray:
    """Returns the class of each public series, as `facts.classes_of` does for private ones."""
    if panel.label is None:
        return np.zeros(panel.num_series, dtype=np.int64)
    return np.where(panel.label < 0, num_labels(panel.schema) - 1, panel.label)
