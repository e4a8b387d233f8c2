"""From released generators to synthetic series. Nothing here has ever seen private data."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from understudy.data import Panel, Schema
from understudy.synthesizers.base import Draw
from understudy.synthesizers.frame.encoding import Encoding, Scores
from understudy.synthesizers.frame.facts import Facts
from understudy.synthesizers.ppem import contest, donors, targets
from understudy.synthesizers.ppem.attributes import Partition, parse
from understudy.synthesizers.ppem.purchases import encoding_of
from understudy.synthesizers.ppem.recipe import LATENT
from understudy.synthesizers.spectral.marginals import bounded_scores
from understudy.synthesizers.vflgan_ts.drawing import panel_of
from understudy.training.networks import load_arrays, to_arrays

if TYPE_CHECKING:
    from understudy.synthesizers.ppem.method import Ppem

NETWORK, NODES, TARGET = "generator.", "nodes", "target"  # arrays of a release
_CHOICES = 8  # rows of which the one nearest to an asked label is taken
_RANKS = np.linspace(0, 1, 513)
_CHUNK = 4096


def draw(method: "Ppem", arrays: dict[str, np.ndarray], schema: Schema, request: Draw) -> Panel:
    """Returns series: x′ by the released marginal, the rest by the conditional generator."""
    if method.conditional == "spectral":
        return donors.draw(arrays, schema, request)
    facts = Facts.from_arrays(arrays)
    partition = partition_of(method, schema, facts)
    made = contest.made(partition, method.recipe, method.seed, marginal=method.has_generator)
    load_arrays(made, arrays, NETWORK)
    values, rest = rows(method, partition, made, arrays[TARGET], request)
    series, static, classes = partition.joined(values, rest)
    if request.label is not None:
        classes = np.full(len(rest), request.label)
    series, static = calibrated(series, static, arrays[NODES], partition.encoding)
    return panel_of(schema, request, partition.encoding, facts, classes, (series, static))


def partition_of(method: "Ppem", schema: Schema, facts: Facts) -> Partition:
    """Returns how series of the schema are taken apart."""
    attributes = tuple(one for group in parse(schema, method.sets) for one in group)
    return Partition(encoding_of(schema.without_context(), facts, attributes), attributes)


def rows(
    method: "Ppem", partition: Partition, made: contest.Generators, given: np.ndarray, request: Draw
) -> tuple[np.ndarray, np.ndarray]:
    """Returns (sensitive columns, x*) of the asked number of series, and of the asked label."""
    label_is_sensitive = any(attribute.kind == "label" for attribute in partition.attributes)
    if request.label is None or label_is_sensitive:
        values = marginal(method, partition, made, given, request.num_series, request.rng)
        if request.label is not None:
            place = [column.name for column in partition.columns].index(partition.schema.label or "")
            values[:, place] = request.label
        return values, conditional(made, partition, values, request.rng)
    number = request.num_series
    values = marginal(method, partition, made, given, _CHOICES * number, request.rng)
    rest = conditional(made, partition, values, request.rng)
    wanted = rest[:, rest.shape[1] - partition.num_classes + request.label].reshape(number, _CHOICES)
    best = np.arange(number) * _CHOICES + wanted.argmax(axis=1)
    return values[best], rest[best]


def marginal(
    method: "Ppem", partition: Partition, made: contest.Generators, given: np.ndarray, number: int,
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """Returns sensitive columns [series, column] by the released marginal."""
    if made.marginal is None:
        return targets.draw(method.target, partition.columns, partition.attributes, given, number, rng)
    return partition.decoded(_generated(made.marginal, number, None, rng))


def conditional(
    made: contest.Generators, partition: Partition, values: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Returns x* for sensitive columns."""
    assert made.conditional is not None
    return _generated(made.conditional, len(values), partition.encoded(values), rng)


@torch.no_grad()
def _generated(module: nn.Module, number: int, given: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    latent = torch.from_numpy(rng.standard_normal((number, LATENT)).astype(np.float32))
    parts = []
    for begin in range(0, number, _CHUNK):
        condition = None if given is None else torch.from_numpy(given[begin : begin + _CHUNK])
        parts.append(module(latent[begin : begin + _CHUNK], condition).numpy())
    return np.concatenate(parts)


def measured_nodes(
    partition: Partition, made: contest.Generators, points: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Returns quantiles [column, node] of what is generated for points of the sketch.

    Under x′ as they are, released distributions have to come out as they are. Under another marginal of x′ the same map
    is used, so what x* is given x′ does not change.
    """
    series, static, _ = partition.joined(points, conditional(made, partition, points, rng))
    columns = [series[:, :, place] for place in _scored(partition.encoding, "channel")]
    columns += [static[:, place] for place in _scored(partition.encoding, "static")]
    return np.stack([np.quantile(c, _RANKS) for c in columns]) if columns else np.zeros((0, len(_RANKS)))


def calibrated(
    series: np.ndarray, static: np.ndarray, nodes: np.ndarray, encoding: Encoding
) -> tuple[np.ndarray, np.ndarray]:
    """Returns scores with the ranks that the nodes give them."""
    own = iter(nodes)
    for held, places in ((series, _scored(encoding, "channel")), (static, _scored(encoding, "static"))):
        for place in places:
            held[..., place] = bounded_scores(np.interp(held[..., place], next(own), _RANKS))
    return series, static


def _scored(encoding: Encoding, kind: str) -> list[int]:
    """Returns working places of numbers whose scale is a bought distribution."""
    channels = kind == "channel"
    scales = encoding.channel_scales if channels else encoding.static_scales
    groups = encoding.channel_codes if channels else encoding.static_codes
    begins = dict(groups)
    places, working = [], 0
    for scale in scales:
        if working in begins:
            working = begins[working]
            continue
        if isinstance(scale, Scores):
            places.append(working)
        working += 1
    return places


def arrays_of(facts: Facts, nodes: np.ndarray, given: np.ndarray, made: contest.Generators) -> Mapping[str, np.ndarray]:
    """Returns what is released, but for what is said about obfuscation."""
    return {**facts.to_arrays(), NODES: nodes, TARGET: given, **to_arrays(made, NETWORK)}
