"""From a released network to series: whole ones, or the hidden entries of somebody's. Nothing here saw private data."""

from typing import TYPE_CHECKING

import numpy as np

from understudy.data import Panel, Schema
from understudy.statistics.columns import static_values
from understudy.synthesizers.dit.columns import nodes_of, ranks_by_nodes
from understudy.synthesizers.dit.denoising import Asked
from understudy.synthesizers.dit.model import Released, num_columns
from understudy.synthesizers.sampling import CompletionRequest, SampleRequest, num_pooled

if TYPE_CHECKING:
    from understudy.synthesizers.dit.method import Dit

NODES = "nodes"  # quantiles of what the network draws, by which its marginals are put right
_MEASURED = 256  # series that these quantiles are measured on


def draw(method: "Dit", arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
    """Returns whole series: everything is hidden, and filled."""
    released, rng, number = Released.of(method, schema, arrays), request.rng, request.num_series
    facts, channels = released.facts, schema.num_channels
    labels = np.full(number, request.label if request.label is not None else 0)
    if request.label is None:
        labels = rng.choice(len(facts.label_share), size=number, p=facts.label_share / facts.label_share.sum())
    scores = whole(method, released, labels, request.context, rng)
    ranks = ranks_by_nodes(scores, arrays[NODES])
    lengths = facts.sample_lengths(schema, number, rng)
    values = released.columns.values(ranks)
    values[facts.sample_missing(schema, scores[:, : schema.num_steps, :channels], lengths, rng)] = np.nan
    single = released.columns.marginals[channels:]
    static = static_values(schema, labels, ranks[:, 0, channels:], single, facts.static_missing, rng)
    return request.panel(schema, values, lengths, static)


def whole(
    method: "Dit", released: Released, labels: np.ndarray, context: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    """Returns scores [series, step, column] of whole series of the given classes."""
    shape = (len(labels), released.columns.num_steps, num_columns(released.columns.schema))
    asked = Asked(
        scores=np.broadcast_to(np.float32(np.nan), shape),
        hidden=np.broadcast_to((np.arange(shape[1]) < released.columns.schema.num_steps)[None, :, None], shape),
        label=labels.astype(np.int64),
        context=_context(released, context, len(labels)),
        rng=rng,
    )
    return released.denoising.fill(released.model, asked, num_steps=method.sampling_steps, guidance=method.guidance)


def measured_nodes(
    method: "Dit", released: Released, context: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    """Returns quantiles [column, node] of what the network draws; it costs no privacy to look at its output."""
    shares = released.facts.label_share
    labels = rng.choice(len(shares), size=num_pooled(released.columns.schema, _MEASURED), p=shares / shares.sum())
    return nodes_of(whole(method, released, labels, context, rng)[:, : released.columns.schema.num_steps])


def complete(method: "Dit", arrays: dict[str, np.ndarray], schema: Schema, gaps: CompletionRequest) -> np.ndarray:
    """Returns values [series, step, channel] with the asked entries drawn, the others as they were."""
    released = Released.of(method, schema, arrays)
    scores = released.columns.scores(gaps.values, gaps.static)
    hidden = np.zeros(scores.shape, dtype=bool)
    hidden[:, : schema.num_steps, : schema.num_channels] = gaps.hidden
    none_said = released.denoising.num_classes
    label = np.full(len(scores), none_said) if gaps.label is None else np.where(gaps.label < 0, none_said, gaps.label)
    asked = Asked(
        scores=scores,
        hidden=hidden,
        label=label.astype(np.int64),
        context=_context(released, gaps.context, len(scores)),
        rng=gaps.rng,
        draws=gaps.draws,
    )
    filled = released.denoising.fill(released.model, asked, num_steps=method.sampling_steps, guidance=method.guidance)
    return np.where(gaps.hidden, released.columns.values_of_scores(filled), gaps.values)


def _context(released: Released, context: np.ndarray | None, number: int) -> np.ndarray | None:
    """Returns the context as the network takes it: all unsaid where a declared one is not given."""
    schema = released.columns.schema
    if not schema.context:
        return None
    given = np.full((schema.num_steps, len(schema.context)), np.nan) if context is None else context
    return released.columns.context(given, number)
