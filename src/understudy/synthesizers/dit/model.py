"""The network of a run and of a release: made from public facts, filled with weights that were released or public."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from understudy.data import Schema
from understudy.errors import InputError
from understudy.statistics.columns import num_labels
from understudy.statistics.facts import Facts
from understudy.synthesizers.dit.denoising import Denoising
from understudy.synthesizers.dit.published import MaskedDiT
from understudy.synthesizers.dit.recipe import Network
from understudy.synthesizers.dit.scores import NormalScores
from understudy.synthesizers.packs import Pack
from understudy.training.networks import load_arrays

if TYPE_CHECKING:
    from understudy.synthesizers.dit.method import DiT

NETWORK = "network."  # prefix of the released weights
AUTOCOVARIANCE = "autocovariance"  # as `interpolation.ROWS` has it
SCALES = "scales"  # sizes of the channels that are scaled
REFERENCE = "reference"  # magnitudes (C₀, Γ₀, B₀, A₀) that bounds are shares of
METHOD = "dit"
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
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Released:
    """A release put together again: what a trained network needs to be asked."""

    model: MaskedDiT
    facts: Facts
    encoding: NormalScores
    denoising: Denoising

    @classmethod
    def of(cls, method: "DiT", schema: Schema, arrays: Mapping[str, np.ndarray]) -> "Released":
        """Returns what the arrays of a release describe."""
        condition, scale, shift, gate = (float(size) for size in arrays[REFERENCE])
        network = method.shape(schema)
        model = empty_network(network, schema, (condition, scale, shift, gate), method.seed)
        load_arrays(model, arrays, NETWORK)
        facts = Facts.from_arrays(arrays)
        return cls(
            model=model.train(False),
            facts=facts,
            encoding=NormalScores(schema, tuple(facts.marginals), network.patch_for(schema.num_steps), arrays[SCALES]),
            denoising=method.denoising(schema, arrays[AUTOCOVARIANCE]),
        )


# --- packs: reference magnitudes for the bounds, and weights to start from, from public data only ---------------------


def load_pack(file: str | None) -> Pack | None:
    """Returns the pack of a file; None without one."""
    return None if file is None else Pack.load(file, METHOD)


def pack_sha256(file: str) -> str:
    """Returns the hash by which a certificate names the pack."""
    return Pack.load(file, METHOD).sha256


def shape_of(network: Network, schema: Schema) -> dict[str, int]:
    """Returns what weights have to agree on with the run that starts from them."""
    return {
        "width": network.width,
        "depth": network.depth,
        "num_heads": network.num_heads,
        "patch": network.patch_for(schema.num_steps),
        "columns": num_columns(schema),
        "context": len(schema.context),
        "classes": num_labels(schema),
    }


def check_pack(file: str | None, network: Network, schema: Schema) -> None:
    """Refuses, before anything is charged, a pack that does not fit."""
    pack = load_pack(file)
    if pack is None or not _has_weights(pack):
        return
    wanted = shape_of(network, schema)
    wrong = [name for name in wanted if pack.shape.get(name) != wanted[name]]
    if wrong:
        told = ", ".join(f"{name} {pack.shape.get(name)} instead of {wanted[name]}" for name in wrong)
        raise InputError(
            f"pack: weights for another network: {told}. Train one on public series with the same columns "
            "(`understudy pretrain dit`), or set the network's options as the pack has them."
        )


def reference_of(pack: Pack | None, network: Network) -> Reference:
    """Returns the pack's magnitudes, or the constants that stand for them."""
    if pack is None:
        return default_reference(network.width)
    condition, scale, shift, gate = (float(size) for size in pack.arrays[REFERENCE])
    return condition, scale, shift, gate


def start_from(pack: Pack | None, model: MaskedDiT) -> None:
    """Puts the pack's weights into a network, if it has any."""
    if pack is not None and _has_weights(pack):
        load_arrays(model, pack.arrays, NETWORK)


def _has_weights(pack: Pack) -> bool:
    return any(name.startswith(NETWORK) for name in pack.arrays)
