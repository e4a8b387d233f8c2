"""From released generators to synthetic series. Nothing here has ever seen private data."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import nn

from understudy.data import Panel, Schema
from understudy.synthesizers.base import Draw, num_pooled
from understudy.synthesizers.frame.encoding import Encoding
from understudy.synthesizers.frame.facts import Facts
from understudy.synthesizers.spectral.marginals import bounded_scores
from understudy.synthesizers.vflgan_ts.fitting import generate
from understudy.synthesizers.vflgan_ts.holdings import holdings_of, joined
from understudy.synthesizers.vflgan_ts.party import generators_for
from understudy.synthesizers.vflgan_ts.recipe import LATENT, Recipe
from understudy.training.networks import load_arrays

PARTY = "party"  # arrays of a party's generators begin with it and the party's place
_NODES = 513
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


def draw_classes(facts: Facts, request: Draw) -> np.ndarray:
    """Returns the class of each row: as asked for, or in released proportions."""
    share = facts.label_share
    if request.label is not None:
        return np.full(request.num_series, request.label)
    return request.rng.choice(len(share), size=request.num_series, p=share / share.sum())


def score_nodes(series: np.ndarray) -> np.ndarray:
    """Returns quantiles [working channel, node] of generated scores [row, step, channel]."""
    ranks = np.linspace(0, 1, _NODES)
    return np.stack([np.quantile(series[:, :, channel], ranks) for channel in range(series.shape[2])])


def calibrated(series: np.ndarray, nodes: np.ndarray, encoding: Encoding) -> np.ndarray:
    """Returns scores with a normal distribution over all rows, so that the bought distributions come out."""
    made = series.copy()
    codes = {place for begin, end in encoding.channel_codes for place in range(begin, end)}
    for channel in set(range(len(nodes))) - codes:
        ranks = np.interp(series[:, :, channel], nodes[channel], np.linspace(0, 1, nodes.shape[1]))
        made[:, :, channel] = bounded_scores(ranks)
    return made


def panel_of(
    schema: Schema,
    request: Draw,
    encoding: Encoding,
    facts: Facts,
    classes: np.ndarray,
    working: tuple[np.ndarray, np.ndarray],
) -> Panel:
    """Returns the panel in the user's units: gaps and lengths as bought, the label from the class."""
    rng, (series, static) = request.rng, working
    lengths = facts.draw_lengths(schema, request.num_series, rng)
    values = encoding.values(series)
    values[facts.draw_missing(schema, encoding.ranked(series), lengths, rng)] = np.nan
    own = encoding.static_values(static)
    own[rng.random(own.shape) < facts.static_missing] = np.nan
    columns = np.empty((request.num_series, len(schema.static)))
    columns[:, [place for place, column in enumerate(schema.static) if column.name != schema.label]] = own
    if schema.label_column is not None:
        place = [column.name for column in schema.static].index(schema.label_column.name)
        columns[:, place] = np.where(classes < len(schema.label_column.categories), classes, np.nan)
    return request.panel(schema, values, lengths, columns)


def pool_nodes(
    generators: tuple[nn.Module, ...], recipe: Recipe, encoding: Encoding, facts: Facts, num_classes: int, seed: int
) -> np.ndarray:
    """Returns the quantiles by which scores are calibrated; empty if no distributions were bought."""
    if not facts.marginals:
        return np.zeros((0, _NODES))
    rng = np.random.default_rng(seed)
    share = facts.label_share
    classes = rng.choice(len(share), size=num_pooled(encoding.schema, _POOL), p=share / share.sum())
    return score_nodes(working_rows(generators, recipe, encoding, classes, num_classes, rng)[0])
