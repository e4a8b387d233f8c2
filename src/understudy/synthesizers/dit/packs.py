"""Packs of `dit`: reference magnitudes for the bounds, and weights to start from, both from public data only."""

from understudy.data import Schema
from understudy.errors import InputError
from understudy.statistics.columns import num_labels
from understudy.synthesizers.dit.model import NETWORK, REFERENCE, Reference, default_reference, num_columns
from understudy.synthesizers.dit.network import MaskedDiT
from understudy.synthesizers.dit.recipe import Network, Tuned
from understudy.synthesizers.packs import Pack
from understudy.training.networks import load_arrays

METHOD = "dit"


def load(file: str | None) -> Pack | None:
    """Returns the pack of a file; None without one."""
    return None if file is None else Pack.load(file, METHOD)


def sha256(file: str) -> str:
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


def check(file: str | None, network: Network, tuned: Tuned, schema: Schema) -> None:
    """Refuses, before anything is charged, a pack that does not fit."""
    pack = load(file)
    if tuned == "conditioning" and (pack is None or not _has_weights(pack)):
        raise InputError("tuned: 'conditioning' leaves most weights as a pack has them. Name a pack with weights.")
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


def reference(pack: Pack | None, network: Network) -> Reference:
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
