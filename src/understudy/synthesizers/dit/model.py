"""The network of a run and of a release: made from public facts, filled with weights that were released or public."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from understudy.data import Schema
from understudy.statistics.columns import num_labels
from understudy.statistics.facts import Facts
from understudy.synthesizers.dit.columns import Columns
from understudy.synthesizers.dit.denoising import Denoising
from understudy.synthesizers.dit.network import MaskedDiT, conditioning_names
from understudy.synthesizers.dit.recipe import Network
from understudy.training.networks import load_arrays

if TYPE_CHECKING:
    from understudy.synthesizers.dit.method import Dit

NETWORK = "network."  # prefix of the released weights
MEMORY = "memory"  # level and movement in each column, and how fast movement fades
SCALES = "scales"  # sizes of the channels that are scaled
REFERENCE = "reference"  # magnitudes (C₀, Γ₀, B₀, A₀) that bounds are shares of
Reference = tuple[float, float, float, float]


def default_reference(width: int) -> Reference:
    """Returns C₀ = √d, the length of d standard normal numbers, and 1 for scale, shift and gate."""
    return float(np.sqrt(width)), 1.0, 1.0, 1.0


def num_columns(schema: Schema) -> int:
    """Returns the columns that the network sees: channels and static columns but the label."""
    return schema.num_channels + len([column for column in schema.static if column.name != schema.label])


def empty_network(network: Network, schema: Schema, reference: Reference, seed: int) -> MaskedDiT:
    """Returns the network before it learned anything, the same for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MaskedDiT(
            channels=num_columns(schema),
            context=len(schema.context),
            num_classes=num_labels(schema),
            width=network.width,
            depth=network.depth,
            num_heads=network.num_heads,
            patch=network.patch_for(schema.num_steps),
            bounds=network.bounds(reference),
            literal=network.literal,
        )


def freeze_all_but_conditioning(model: MaskedDiT) -> None:
    """Leaves the conditioning path and the last layer to be trained."""
    trained = conditioning_names(model)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in trained or name.startswith("predict."))


@dataclass(frozen=True, eq=False, kw_only=True)
class Released:
    """A release put together again: what a trained network needs to be asked."""

    model: MaskedDiT
    facts: Facts
    columns: Columns
    denoising: Denoising

    @classmethod
    def of(cls, method: "Dit", schema: Schema, arrays: Mapping[str, np.ndarray]) -> "Released":
        """Returns what the arrays of a release describe."""
        condition, scale, shift, gate = (float(size) for size in arrays[REFERENCE])
        network = method.shape(schema)
        model = empty_network(network, schema, (condition, scale, shift, gate), method.seed)
        load_arrays(model, arrays, NETWORK)
        facts = Facts.from_arrays(arrays)
        return cls(
            model=model.train(False),
            facts=facts,
            columns=Columns(schema, tuple(facts.marginals), network.patch_for(schema.num_steps), arrays[SCALES]),
            denoising=method.denoising(schema, arrays[MEMORY]),
        )
