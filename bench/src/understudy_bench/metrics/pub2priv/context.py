"""How strongly series follow their public context, compared between series of the same context."""

from dataclasses import dataclass

import numpy as np

from understudy.data import Panel
from understudy.data.channels import num_codes
from understudy.evaluation.metric import Effort, Measured, Metric, Undefined
from understudy.evaluation.panels import Comparison
from understudy.nn.nearest import nearest
from understudy_bench.metrics.distances import bootstrap_mean


def context_correlation_gap(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    """|Corr_meta|: how much the correlation with the context differs between a candidate and a real series.

    The paper samples the n-th synthetic series for the n-th real context. Here each candidate series meets a real
    series of the same context, drawn at random where there are several, or of the nearest context where there is none.
    """
    places = _ordered_context(comparison)
    pairs = _pairs(comparison, np.random.default_rng(seed))
    gaps = np.abs(
        _with_context(comparison, comparison.candidate, places)
        - _with_context(comparison, comparison.real, places)[pairs.real_rows]
    )
    names = [comparison.real.schema.context[place].name for place in places]
    parts = {
        f"{channel} ~ {name}": float(gaps[:, row, column].mean())
        for row, channel in enumerate(comparison.numeric_names)
        for column, name in enumerate(names)
    }
    note = (
        f"{100 * pairs.exact:.0f} % of the series met a real series of exactly their context, the rest of the nearest."
    )
    return Measured(
        value=float(gaps.mean()),
        replicates=bootstrap_mean(gaps.mean(axis=(1, 2)), effort.replicates, seed),
        parts=parts,
        notes=(note,),
    )


def correlations(series: np.ndarray, context: np.ndarray) -> np.ndarray:
    """Returns Pearson's correlation over time [series, channel, context]; 0 where one of the two is at rest.

    Args:
        series: [series, step, channel], NaN where not observed.
        context: [series, step, context], NaN where not observed.
    """
    found = np.zeros((len(series), series.shape[2], context.shape[2]))
    for row in range(series.shape[2]):
        for column in range(context.shape[2]):
            found[:, row, column] = _pearson(series[:, :, row], context[:, :, column])
    return found


def _pearson(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    both = ~(np.isnan(first) | np.isnan(second))
    count = np.maximum(both.sum(axis=1, keepdims=True), 1)
    centred, moves = [], np.ones(len(first), dtype=bool)
    for values in (first, second):
        mean = np.where(both, values, 0).sum(axis=1, keepdims=True, dtype=np.float64) / count
        centred.append(np.where(both, values - mean, 0))
        moves &= np.where(both, values, -np.inf).max(axis=1) > np.where(both, values, np.inf).min(axis=1)
    product = np.einsum("st,st->s", *centred)
    size = np.sqrt(np.prod([np.einsum("st,st->s", part, part) for part in centred], axis=0))
    return np.where(moves, product / np.where(moves, size, 1), 0.0)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """A real series for each candidate series, and the share that has exactly the same context."""

    real_rows: np.ndarray
    exact: float


def _pairs(comparison: Comparison, rng: np.random.Generator) -> _Pairs:
    real, of_real = _distinct(comparison.real)
    candidate, of_candidate = _distinct(comparison.candidate)
    low = real.min(axis=0)
    width = np.ptp(real, axis=0)
    scaled = [(contexts - low) / np.where(width > 0, width, 1) for contexts in (candidate, real)]
    meets = nearest(*scaled)[0][:, 0]
    exact = (candidate == real[meets]).all(axis=1)
    order = rng.permutation(len(of_real))  # real series at random within each context
    grouped = order[np.argsort(of_real[order], kind="stable")]
    start = np.searchsorted(of_real[grouped], np.arange(len(real)))
    size = np.bincount(of_real, minlength=len(real))
    group = meets[of_candidate]
    chosen = start[group] + (rng.random(len(group)) * size[group]).astype(int)
    return _Pairs(grouped[chosen], float(exact[of_candidate].mean()))


def _distinct(panel: Panel) -> tuple[np.ndarray, np.ndarray]:
    """Returns the distinct contexts, flattened, and which of them each series has."""
    context = panel.context
    assert context is not None
    if context.strides[0] == 0:
        return np.nan_to_num(context[:1].reshape(1, -1)), np.zeros(len(context), dtype=np.int64)
    flat = np.nan_to_num(context.reshape(len(context), -1))
    distinct, which = np.unique(flat, axis=0, return_inverse=True)
    return distinct, which.ravel()


def _with_context(comparison: Comparison, panel: Panel, places: list[int]) -> np.ndarray:
    assert panel.context is not None
    return correlations(comparison.numeric(panel), panel.context[:, :, places])


def _ordered_context(comparison: Comparison) -> list[int]:
    """Returns the places of context channels whose values are ordered and move in the real series."""
    schema, context = comparison.real.schema, comparison.real.context
    if context is None or comparison.candidate.context is None:
        raise Undefined("there is no public context; declare context channels and sample for them.")
    if not comparison.numeric_names:
        raise Undefined("no channel holds numbers; it needs a continuous or an integer one.")
    ordered = [place for place, channel in enumerate(schema.context) if (num_codes(channel) or 2) == 2]
    moving = [place for place in ordered if (np.nan_to_num(np.ptp(context[:, :, place], axis=1)) > 0).any()]
    if not moving:
        raise Undefined("the context never moves within a series; it needs a channel that changes over time.")
    return moving


METRICS = (
    Metric(
        name="pub2priv.corr_meta",
        title="Correlation with the public context: difference within pairs of series",
        direction="lower",
        range=(0.0, 2.0),
        reference="Pub2Priv, App. F, |Corr_meta|",
        measure=context_correlation_gap,
    ),
)
