"""Encoders for PETS side by side: what they cost, whether they vote as TS2Vec does, and whether votes make sense.

Three disjoint groups of people (or sensors) play the public, the private and the synthetic part. Every private window
votes for its nearest synthetic one; an encoder is compared with a reference TS2Vec by where these votes go. How far
two TS2Vecs that differ by their seed alone agree is the most that can be asked of any other encoder.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr

from understudy.nn.nearest import nearest
from understudy.synthesizers.packs import GENERAL, load_pack
from understudy.synthesizers.pets.modules import EncoderSimilarity, Modules, PooledConv, Similarity, fitted
from understudy.synthesizers.pets.pretraining import (
    MAX_ENCODER_STEPS,
    distil,
    drawn_from,
    seen_by_voters,
    train_ts2vec,
)
from understudy_bench.cells import Cells
from understudy_bench.pets.data import Windows, har, traffic, wisdm
from understudy_bench.result import Progress, Row, Stopwatch, row, spread

_SETS: Mapping[str, tuple[str, ...]] = {"quick": ("wisdm",), "target": ("wisdm", "pemsd7"), "full": ("wisdm", "pemsd7")}
_ITERATIONS = {"quick": 100, "target": 600, "full": 600}  # of TS2Vec; 600 as published for arrays of this size
_DISTILLED = {"quick": 600, "target": 4000, "full": 4000}  # updates of the small encoder that learns from it
_PUBLIC, _VOTERS, _CANDIDATES = 6000, 2000, 2000
_UNTRAINED_SEEDS = (1, 2, 3)


@dataclass(frozen=True, eq=False, kw_only=True)
class Election:
    """Three groups of windows of different owners."""

    public: Windows
    voters: Windows
    candidates: Windows


def election(windows: Windows, seed: int = 0) -> Election:
    """Splits owners at random into three groups of equal size."""
    rng = np.random.default_rng(seed)
    groups = np.array_split(rng.permutation(np.unique(windows.owner)), 3)
    parts = []
    for owners, size in zip(groups, (_PUBLIC, _VOTERS, _CANDIDATES), strict=True):
        rows = np.flatnonzero(np.isin(windows.owner, owners))
        parts.append(windows.take(rng.permutation(rows)[:size]))
    return Election(public=parts[0], voters=parts[1], candidates=parts[2])


def encoder_rows(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> tuple[list[Row], list[Row]]:
    """Returns (rows, controls): cost and votes of every encoder on public data."""
    parts = [cells(f"{scale} general pack", partial(general_pack_rows, data_root))]
    for place, name in enumerate(_SETS[scale], start=1):
        progress(f"encoders {name}", place / (len(_SETS[scale]) + 1))
        parts.append(cells(f"{scale} encoders {name}", partial(_compare, name, scale, data_root)))
    rows, controls = ([line for part in parts for line in part[kind]] for kind in ("rows", "controls"))
    return rows, controls


def _compare(name: str, scale: str, data_root: Path | None) -> dict[str, list[Row]]:
    made = election(wisdm(data_root) if name == "wisdm" else traffic(name, data_root))
    public = made.public.values
    watch = Stopwatch()
    train = partial(train_ts2vec, public, iterations=_ITERATIONS[scale], batch=16)
    teacher = train(seed=0)
    reference = _Measured.of(EncoderSimilarity(network=teacher), made)
    steps, general = min(public.shape[1], MAX_ENCODER_STEPS), _general(public.shape[1])
    seen = seen_by_voters(drawn_from(public), general.variation, _PUBLIC, np.random.default_rng(0))
    small = distil(teacher, seen, iterations=_DISTILLED[scale], batch=64, seed=0, num_steps=steps)[0]
    judge = partial(_row, made=made, data=name, reference=reference)
    rows = [
        judge("pooled-conv, distilled", EncoderSimilarity(network=small, num_steps=steps)),
        judge("TS2Vec, depth 5, width 32", EncoderSimilarity(network=train(seed=0, depth=5, hidden=32))),
        judge("general pack", general.similarity),
    ]
    controls = [
        judge("TS2Vec, the reference", EncoderSimilarity(network=teacher)),
        judge("TS2Vec, another seed", EncoderSimilarity(network=train(seed=1))),
        judge("pooled-conv, untrained", EncoderSimilarity(network=_untrained(1), num_steps=steps)),
    ]
    rows[0]["seconds"] = round(watch.seconds, 3)
    return {"rows": rows, "controls": controls}


def general_pack_rows(data_root: Path | None) -> dict[str, list[Row]]:
    """Returns how often a person's window has its nearest neighbour, among others' windows, in the same activity."""
    rows, controls = [], []
    for name, windows in (("wisdm", wisdm(data_root)), ("har", har(data_root))):
        made = election(windows)
        general = _general(windows.values.shape[1]).similarity
        assert isinstance(general, EncoderSimilarity)
        rows.append(row("general pack", {"same_activity": same_activity(general, made)}, data=name))
        untrained = [
            same_activity(EncoderSimilarity(network=_untrained(seed), level_weight=general.level_weight), made)
            for seed in _UNTRAINED_SEEDS
        ]
        controls.append(row("general pack's shape, untrained", {"same_activity": spread(untrained)}, data=name))
    return {"rows": rows, "controls": controls}


def same_activity(similarity: Similarity, made: Election) -> float:
    """Returns the share of voters whose nearest candidate shows the activity of the voter."""
    chosen = nearest(similarity(made.voters.values), similarity(made.candidates.values))[0][:, 0]
    assert made.voters.activity is not None
    assert made.candidates.activity is not None
    return float((made.voters.activity == made.candidates.activity[chosen]).mean())


@dataclass(frozen=True, eq=False, kw_only=True)
class _Measured:
    """Squared distances [voter, candidate] under one encoder, and milliseconds per series to embed."""

    distances: np.ndarray
    milliseconds: float

    @classmethod
    def of(cls, similarity: Similarity, made: Election) -> "_Measured":
        ours, theirs = similarity(made.voters.values), similarity(made.candidates.values)
        products = (theirs**2).sum(axis=1) - 2 * ours @ theirs.T
        return cls(distances=products + (ours**2).sum(axis=1)[:, None], milliseconds=_cost(similarity, made))


def _cost(similarity: Similarity, made: Election) -> float:
    """Returns milliseconds of processor time per series, the least of three turns on one thread."""
    some, threads = made.candidates.values[:512], torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return min(_processor_seconds(lambda: similarity(some)) for _ in range(3)) / len(some) * 1e3
    finally:
        torch.set_num_threads(threads)


def _processor_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _row(method: str, similarity: Similarity, *, made: Election, data: str, reference: _Measured) -> Row:
    watch, own = Stopwatch(), _Measured.of(similarity, made)
    metrics = {
        **agreement(reference.distances, own.distances),
        "milliseconds_per_series": own.milliseconds,
        "cost_ratio": own.milliseconds / reference.milliseconds,
    }
    if made.voters.activity is not None:
        metrics["same_activity"] = same_activity(similarity, made)
    return row(method, metrics, seconds=watch.seconds, data=data)


def agreement(reference: np.ndarray, other: np.ndarray) -> dict[str, float]:
    """Returns how far two matrices of distances [voter, candidate] lead to the same votes.

    `same_nearest`: share of voters with the same nearest candidate. `nearest_among_ten`: share whose vote is one of
    the reference's ten nearest. `histogram_correlation`: rank correlation of the two histograms of votes.
    """
    expected, chosen = reference.argmin(axis=1), other.argmin(axis=1)
    nearer = (reference < reference[np.arange(len(chosen)), chosen][:, None]).sum(axis=1)
    histograms = [np.bincount(votes, minlength=reference.shape[1]) for votes in (expected, chosen)]
    return {
        "same_nearest": float((expected == chosen).mean()),
        "nearest_among_ten": float((nearer < 10).mean()),
        "histogram_correlation": float(spearmanr(*histograms).statistic),
    }


def _general(num_steps: int) -> Modules:
    return fitted(load_pack(GENERAL, "pets"), num_steps, 1)


def _untrained(seed: int) -> PooledConv:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return PooledConv(channels=1).train(False)
