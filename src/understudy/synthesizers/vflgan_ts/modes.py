"""Who is protected from whom, by which noise: four modes, and one that is refused."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import binom
from torch import Tensor

from understudy.privacy import accounting, contributions
from understudy.privacy.border import Listed, Statistic
from understudy.privacy.events import Event, Gaussian, SubsampledGaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.vflgan_ts.published import (
    CLAIMED_EPSILON,
    Batches,
    FirstLayerUpdate,
    Rows,
    claimed_noise,
)
from understudy.synthesizers.vflgan_ts.recipe import Recipe
from understudy.synthesizers.vflgan_ts.updates import ClippedUpdate, MakeUpdate, PlainUpdate
from understudy.training.batches import UnitWindows
from understudy.training.plan import TRAINING, charged_config

NOISY_ROWS = "records"  # label under which mode `local` charges a noisy copy of every row
NOT_PRIVATE = {
    "plain": "VFLGAN-TS as published without differential privacy; nothing was noised",
    "paper": "DPVFLGAN-TS as published, with noise on first layers only: Theorem 4.3 does not hold",
}
_ALIGNED = "Which units take part is known to every party and to the aggregator: rows were aligned before training."
TRUST = {
    "sound": (
        "Mode sound: recipients of the release who are not a party are protected. Every parameter that has seen real "
        "rows is clipped and noised, at each party and at the aggregator, as one mechanism.",
        "Not protected against the aggregator, which is trusted: it is sent features of single rows, and they can be "
        "inverted. Nor against a party that keeps what it is sent during training: gradients of single rows that "
        "depend on the other parties' columns.",
        _ALIGNED,
    ),
    "local": (
        "Mode local: every party noises its rows once, before anything else, and all it computes or sends is made from "
        "the noisy rows. Aggregator, other parties and recipients are covered alike; sampling amplifies nothing.",
        _ALIGNED,
    ),
    "plain": ("Mode plain: no unit is protected.",),
    "paper": ("Mode paper: no unit is protected. For comparison with the published figures only.",),
}
_VALUES_WITHIN = 0.5  # root mean square, in attribute scale, up to which a row is kept as it is in mode `local`


def against_a_party(plan: SpendingPlan) -> float:
    """Returns epsilon towards an adversary who knows the batches: sampling hides nothing from them.

    A unit is sampled more than `most` times with probability δ/2 at the most; if not, `most` plain Gaussian releases of
    it cost (ε, δ/2). Batches do not depend on data, so (ε, δ) holds in all.
    """
    event, delta = training_event(plan), plan.guarantee.delta / 2
    most = event.iterations
    if event.sampling_rate < 1:
        most = int(binom.isf(delta, event.iterations, event.sampling_rate))
    others: list[Event] = [entry.event for entry in plan.entries if entry.label != TRAINING]
    return accounting.epsilon((*others, Gaussian(event.noise_multiplier, max(1, most))), delta)


@dataclass(frozen=True)
class Rule:
    """How parties and the aggregator update in one mode, and which rows are in a batch."""

    party: MakeUpdate
    aggregator: MakeUpdate
    batches: Batches


def sound_rule(
    grant: Grant,
    recipe: Recipe,
    num_parties: int,
    population: int,
    influence: int = 1,
    unit: NDArray[np.int64] | None = None,
    per_unit: int = 1,
) -> Rule:
    """Returns joint clipping and noise of M + 1 owners, with batches after the iterations that were executed.

    `unit` says whose each row is; without it every unit has `per_unit` rows, one after the other.

    Privacy: the caller counts iterations as executed before they run.
    """
    plan, executed = charged_config(training_event(grant.plan), population, recipe.clipping_norm), grant.executed
    update = partial(ClippedUpdate, block=plan.split(num_parties + 1, influence), noise=grant.noise)

    def batches(num_rows: int) -> Iterator[Tensor]:
        rows = np.arange(num_rows)
        owner = rows // per_unit if unit is None else unit
        windows = UnitWindows({"row": rows}, owner, np.random.default_rng())
        for drawn in plan.draw(windows.num_candidates, grant.noise, done=executed[TRAINING]):
            yield windows.batch(drawn)["row"]

    return Rule(update, update, batches)


def unprotected_rule(mode: str, grant: Grant, recipe: Recipe, population: int, seed: int, done: int = 0) -> Rule:
    """Returns updates without noise, or with that of the paper; rows of `local` were noised before."""
    batches = fixed_batches(recipe.batch, seed, done)
    if mode in NOT_PRIVATE and grant.remaining(TRAINING):
        grant.without_privacy(TRAINING)
    if mode != "paper":
        return Rule(PlainUpdate, PlainUpdate, batches)
    rate = min(1.0, recipe.batch / population)
    noise = claimed_noise(CLAIMED_EPSILON, rate, recipe.iterations, grant.plan.guarantee.delta)
    # C = 1/64 on the mean of a batch of 64, as in the released code; the shared discriminator takes raw gradients.
    update = partial(FirstLayerUpdate, clipping_norm=1 / recipe.batch, noise_multiplier=noise, noise=grant.noise)
    return Rule(update, PlainUpdate, batches)


def noisy_rows(
    rows: Sequence[Rows], grant: Grant, private: PrivateSeries, num_values: int | None = None
) -> tuple[Rows, ...]:
    """Returns every party's rows with the noise of mode `local`; whatever is made from them is covered.

    Args:
        num_values: Values of a row over all parties, if `rows` are those of some parties only.

    Privacy: each party's part of a row has its share of the length. A unit's rows are apart from one another, so
    together they are √(series of a unit) times as long as one. Each party can add its own part of the noise.
    """
    whole = [torch.cat([part.series.flatten(1), part.label], 1).numpy() for part in rows]
    parts_of_rows = (contributions.shortened(part.astype(np.float64), row_bound(part.shape[1])) for part in whole)
    joined = np.concatenate(list(parts_of_rows), axis=1)
    bound = row_bound(joined.shape[1])
    others = row_bound(num_values or joined.shape[1]) / bound  # of all parties' rows
    reach = private.reach * math.sqrt(private.schema.unit.max_series) * others
    statistic = Statistic(label=NOISY_ROWS, shape=joined.shape, bound=bound)
    noisy = grant.release(statistic, Listed(joined, reach))
    sizes = [size for part in rows for size in (math.prod(part.series.shape[1:]), part.label.shape[1])]
    parts = iter(torch.from_numpy(noisy.astype(np.float32)).split(sizes, dim=1))
    return tuple(Rows(next(parts).reshape(part.series.shape), next(parts).contiguous()) for part in rows)


def row_bound(num_values: int) -> float:
    """Returns the clipping norm of rows of `num_values` values in mode `local`; a public number."""
    return _VALUES_WITHIN * math.sqrt(num_values)


def fixed_batches(batch: int, seed: int, done: int = 0) -> Batches:
    """Returns batches of a fixed size without replacement, as published, after those of the iterations done."""

    def batches(num_rows: int) -> Iterator[Tensor]:
        rng = np.random.default_rng(seed)
        for iteration in count():
            drawn = rng.permutation(num_rows)[:batch]
            if iteration >= done:
                yield torch.from_numpy(drawn)

    return batches


def training_event(plan: SpendingPlan) -> SubsampledGaussian:
    """Returns what all iterations of the mode `sound` cost."""
    event = plan.event(TRAINING)
    assert isinstance(event, SubsampledGaussian)
    return event
