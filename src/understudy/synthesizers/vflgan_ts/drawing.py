"""From released generators to synthetic series. Nothing here has ever seen private data."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import nn

from understudy.statistics.encoding import Encoding
from understudy.statistics.facts import Facts
from understudy.synthesizers.sampling import NODES, num_pooled, score_nodes
from understudy.synthesizers.vflgan_ts.fitting import generate
from understudy.synthesizers.vflgan_ts.holdings import holdings_of, joined
from understudy.synthesizers.vflgan_ts.party import generators_for
from understudy.synthesizers.vflgan_ts.recipe import LATENT, Recipe
from understudy.training.networks import load_arrays

PARTY = "party"  # arrays of a party's generators begin with it and the party's place
_POOL = 4096  # synthetic rows by which scores are calibrated


def generators_of(
    arrays: Mapping[str, np.ndarray], recipe: Recipe, num_attributes: Sequence[int], num_latent: int, num_steps: int
) -> tuple[nn.Module, ...]:
    """Returns every party's released generators."""
    found = []
    for place, number in enumerate(num_attributes):
        module = generators_for(recipe, num_latent, number, num_steps)
        load_arrays(module, arrays, f"{PARTY}{place}.")
        found.append(module)
    return tuple(found)


def latents(
    num_rows: int, classes: np.ndarray, num_classes: int, num_parties: int, rng: np.random.Generator, *, shared: bool
) -> list[torch.Tensor]:
    """Returns each party's latent: the same rows for all, or, without anybody who joins them, noise of its own."""
    hot = np.eye(num_classes)[classes] if num_classes else np.zeros((num_rows, 0))
    noise = [rng.standard_normal((num_rows, LATENT)) for _ in range(1 if shared else num_parties)]
    made = [torch.from_numpy(np.concatenate([part, hot], 1).astype(np.float32)) for part in noise]
    return made * num_parties if shared else made


def working_rows(
    generators: tuple[nn.Module, ...],
    recipe: Recipe,
    encoding: Encoding,
    classes: np.ndarray,
    num_classes: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns (series, static columns) in working scale: every party generates its own, the requester joins them."""
    holdings = holdings_of(encoding.schema)
    shared = recipe.model != "party-coscigan"
    given = latents(len(classes), classes, num_classes, len(generators), rng, shared=shared)
    parts = [generate(module, latent).numpy() for module, latent in zip(generators, given, strict=True)]
    if recipe.model == "central-coscigan":
        parts = np.split(parts[0], np.cumsum([holding.num_attributes for holding in holdings])[:-1], axis=1)
    return joined(holdings, tuple(parts), encoding)


def pool_nodes(
    generators: tuple[nn.Module, ...], recipe: Recipe, encoding: Encoding, facts: Facts, num_classes: int, seed: int
) -> np.ndarray:
    """Returns the quantiles by which scores are calibrated; empty if no distributions were bought."""
    if not facts.marginals:
        return np.zeros((0, NODES))
    rng = np.random.default_rng(seed)
    share = facts.label_share
    classes = rng.choice(len(share), size=num_pooled(encoding.schema, _POOL), p=share / share.sum())
    return score_nodes(working_rows(generators, recipe, encoding, classes, num_classes, rng)[0])
