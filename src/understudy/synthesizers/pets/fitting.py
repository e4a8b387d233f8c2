"""Makes a pack's modules fit a panel: other lengths are resampled, other channel counts refused."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from understudy.errors import InputError
from understudy.synthesizers.pets.networks import ConvVAE, PooledConv, TS2Vec
from understudy.synthesizers.pets.similarity import EncoderSimilarity
from understudy.synthesizers.pets.variation import VAEVariation

if TYPE_CHECKING:
    from understudy.synthesizers.pets.modules import ModulePack, Modules

ENCODERS: Mapping[str, Callable[..., nn.Module]] = {"pooled-conv": PooledConv, "ts2vec": TS2Vec}
MIN_STEPS = 4
_MAX_STRETCH = 2  # an encoder reads series of up to twice or half the length it was trained on as they are


def fit_pack(pack: "ModulePack", num_steps: int, num_channels: int) -> "Modules":
    """Returns the modules and says how they were made to fit."""
    from understudy.synthesizers.pets.modules import Modules

    if num_steps < MIN_STEPS:
        raise InputError(f"PETS needs series of at least {MIN_STEPS} steps, got {num_steps}. Use another method.")
    if pack.num_channels not in (1, num_channels):
        raise InputError(
            f"The pack was trained on {pack.num_channels} channels together and these series have {num_channels}. "
            "Nothing was adapted. Train one with `understudy pretrain pets`, or use the general pack."
        )
    shape = dict(pack.similarity)
    kind, level_weight, steps = shape.pop("kind"), shape.pop("level_weight"), shape.pop("num_steps")
    if kind not in ENCODERS:
        raise InputError("The pack was written by another version of Understudy. Make it anew.")
    encoder = _network(ENCODERS[kind], shape, pack.weights, "similarity.")
    autoencoder = _network(ConvVAE, pack.variation, pack.weights, "variation.")
    as_is = steps == pack.num_steps and steps / _MAX_STRETCH <= num_steps <= steps * _MAX_STRETCH
    return Modules(
        variation=VAEVariation(network=autoencoder),
        similarity=EncoderSimilarity(network=encoder, level_weight=level_weight, num_steps=None if as_is else steps),
        adaptation=_sentence(pack, num_steps, num_channels, None if as_is else steps),
    )


def _network(make: Callable[..., Any], shape: Mapping[str, Any], weights: dict[str, np.ndarray], prefix: str) -> Any:
    network = make(**shape)
    own = {name: array for name, array in weights.items() if name.startswith(prefix)}
    try:
        network.load_state_dict({name.removeprefix(prefix): torch.as_tensor(array) for name, array in own.items()})
    except RuntimeError as problem:
        raise InputError("The pack is damaged: its weights do not fit its description. Make it anew.") from problem
    return network.train(False)


def _sentence(pack: "ModulePack", num_steps: int, num_channels: int, resampled_to: int | None) -> str:
    parts = []
    if num_steps == pack.num_steps:
        parts.append(f"series have the {num_steps} steps the pack was trained on")
    else:
        parts.append(f"series of {num_steps} steps are varied at the pack's {pack.num_steps}, finer detail kept apart")
    if resampled_to is not None:
        parts.append(f"and compared at {resampled_to}")
    if num_channels > 1:
        alone = f"each of the {num_channels} channels is embedded by itself"
        parts.append(alone if pack.num_channels == 1 else f"all {num_channels} channels are embedded together")
    return "; ".join(parts) + "."
