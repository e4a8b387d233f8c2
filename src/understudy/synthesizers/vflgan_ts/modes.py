"""What is protected, from whom, by which noise: four modes, and one that is refused."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from scipy.stats import binom
from torch import Tensor

from understudy.data import Schema
from understudy.errors import InputError
from understudy.privacy import accounting, contributions
from understudy.privacy.border import Given, Statistic
from understudy.privacy.events import Event, Gaussian, SubsampledGaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.vflgan_ts.aggregator import Draws
from understudy.synthesizers.vflgan_ts.holdings import Holding, holdings_of
from understudy.synthesizers.vflgan_ts.party import Rows
from understudy.synthesizers.vflgan_ts.recipe import Recipe
from understudy.synthesizers.vflgan_ts.updates import ClippedUpdate, FirstLayerUpdate, MakeUpdate, PlainUpdate
from understudy.training.batches import UnitWindows
from understudy.training.plan import TRAINING, MechanismPlan, UnitBatches, charged_config, noise_ratio, split_plan

Mode = Literal["sound", "plain", "paper", "local"]
MODES = ("sound", "plain", "paper", "local")
NOISY_ROWS = "records"  # label under which mode `local` charges a noisy copy of every row

NOT_PRIVATE = {
    "plain": "VFLGAN-TS as published without differential privacy; nothing was noised",
    "paper": "noise on first layers only, as in paper 004: Theorem 4.3 does not hold",
}
_MASKED = (
    "mode: 'masked', the larger batches of section 4.5 of paper 004 of which each party masks some rows, has no proof: "
    "nobody has shown what a party learns from rows it was shown and told to ignore. Use 'sound' with a trusted "
    "aggregator, or 'local'."
)
_ALIGNED = "Which units take part is known to every party and to the aggregator: rows were aligned before training."
_TRUST = {
    "sound": (
        "Mode sound: whoever receives the release and is not a party is protected. Every parameter that has seen real "
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
    "plain": ("Mode plain: nobody is protected.",),
    "paper": ("Mode paper: nobody is protected. Published for comparison with paper 004 only.",),
}
_VALUES_WITHIN = 0.5  # root mean square, in attribute scale, up to which a row is kept as it is in mode `local`


def check_mode(mode: str) -> None:
    """Refuses a mode that does not exist, or that nobody has proved anything about."""
    if mode == "masked":
        raise InputError(_MASKED)
    if mode not in MODES:
        raise InputError(f"mode: one of {', '.join(MODES)} is expected, got '{mode}'.")


def check_rows_stay(schema: Schema) -> None:
    """Refuses units of which a noisy row could be there or not: rows of mode `local` can be counted."""
    if schema.unit.kind == "event":
        raise InputError(
            "mode: 'local' can't protect events: one event less may empty a window or a series, whose noisy row would "
            "be gone, which everybody sees. Use 'sound', or protect entities."
        )


def trust(mode: str, plan: SpendingPlan) -> tuple[str, ...]:
    """Returns what a certificate says about who is trusted."""
    if mode != "sound":
        return _TRUST[mode]
    cost = against_a_party(plan)
    told = (
        f"Against a party that keeps nothing, but knows which rows were drawn: epsilon = {cost:.4g} at the same delta."
    )
    return (*_TRUST[mode], told)


def against_a_party(plan: SpendingPlan) -> float:
    """Returns epsilon for somebody who knows the draws: sampling hides nothing from them.

    A unit is drawn more than `most` times with probability δ/2 at the most; if not, `most` plain Gaussian releases of
    it cost (ε, δ/2). Draws do not depend on data, so (ε, δ) holds in all.
    """
    event, delta = plan.event(TRAINING), plan.guarantee.delta / 2
    assert isinstance(event, SubsampledGaussian)
    most = event.iterations
    if event.sampling_rate < 1:
        most = int(binom.isf(delta, event.iterations, event.sampling_rate))
    others: list[Event] = [entry.event for entry in plan.entries if entry.label != TRAINING]
    return accounting.epsilon((*others, Gaussian(event.noise_multiplier, max(1, most))), delta)


def outlook(mode: str, schema: Schema, plan: SpendingPlan, recipe: Recipe) -> tuple[str, ...]:
    """Returns what public facts foretell about a run."""
    holdings = holdings_of(schema)
    if mode == "local":
        event = plan.event(NOISY_ROWS)
        assert isinstance(event, Gaussian)
        values = schema.num_steps * sum(holding.num_attributes for holding in holdings)
        noise = event.noise_multiplier * math.sqrt(values * schema.unit.max_series)
        return (f"Every value of every row gets noise {noise:.3g} times as large as a typical value, before training.",)
    event = plan.event(TRAINING)
    assert isinstance(event, SubsampledGaussian)
    number = num_parameters(holdings, schema.num_steps, recipe)
    noise = event.noise_multiplier * math.sqrt(number)
    drawn = event.sampling_rate * (schema.population.size or 1)
    return (
        f"{len(holdings)} parties and an aggregator noise {number} parameters {event.iterations} times: the sum of "
        f"{drawn:.3g} gradients of length {recipe.clip_norm:g} at the most against noise of length {noise:.3g}.",
        trust(mode, plan)[-1],
    )


def gradient_noise(schema: Schema, plan: SpendingPlan, recipe: Recipe) -> float:
    """Returns the ratio of the noise on a summed gradient, in all hands together, to the largest possible sum."""
    event = plan.event(TRAINING)
    assert isinstance(event, SubsampledGaussian)
    number = num_parameters(holdings_of(schema), schema.num_steps, recipe)
    return noise_ratio(event.noise_multiplier, number, event.sampling_rate * (schema.population.size or 1))


def num_parameters(holdings: tuple[Holding, ...], num_steps: int, recipe: Recipe) -> int:
    """Returns how many parameters see real rows: discriminators, extractors and the shared discriminator."""
    sizes = (num_steps, *recipe.widths, 1)
    alone = sum((first + 1) * second for first, second in pairwise(sizes))
    together = (recipe.features * len(holdings), *recipe.shared_widths, 1)
    shared = sum((first + 1) * second for first, second in pairwise(together))
    inputs = [holding.num_attributes * num_steps for holding in holdings]
    return (
        sum(holding.num_attributes * alone for holding in holdings)
        + shared
        + sum(recipe.features * (n + 1) for n in inputs)
    )


@dataclass(frozen=True)
class Rule:
    """How parties and the aggregator update in one mode, and which rows are drawn."""

    party: MakeUpdate
    aggregator: MakeUpdate
    draws: Draws


def sound_rule(private: PrivateSeries, grant: Grant, recipe: Recipe, num_parties: int) -> Rule:
    """Joint clipping and noise in M + 1 hands.

    Privacy: all iterations are counted as executed before the first one runs.
    """
    plan, update = sound_update(grant, recipe, num_parties, private.population, private.influence)
    grant.begin_block(TRAINING, plan.sampler.iterations)
    panel = private.panel
    by_itself = panel.schema.unit.kind == "event"  # then every window is drawn
    unit = np.arange(panel.num_series) if by_itself else panel.unit
    windows = UnitWindows({"row": np.arange(panel.num_series)}, unit, UnitBatches(), np.random.default_rng())

    def draws(num_rows: int) -> Iterator[Tensor]:
        for drawn in plan.sampler.draw(windows.num_candidates, grant.noise):
            yield windows.batch(drawn, "cpu")["row"]

    return Rule(update, update, draws)


def sound_update(
    grant: Grant, recipe: Recipe, num_parties: int, population: int, influence: int = 1
) -> tuple[MechanismPlan, MakeUpdate]:
    """Returns the plan of all owners together, and how each of them updates its block with its own grant's noise."""
    event = grant.plan.event(TRAINING)
    assert isinstance(event, SubsampledGaussian)
    plan = charged_config(event, population, recipe.clip_norm, UnitBatches()).plan()
    return plan, partial(ClippedUpdate, block=split_plan(plan, num_parties + 1, influence), noise=grant.noise)


def paper_rule(recipe: Recipe, noise_multiplier: float, grant: Grant, seed: int) -> Rule:
    """First layers of the parties' networks; the aggregator's discriminator takes raw gradients."""
    update = partial(FirstLayerUpdate, clip_norm=1 / recipe.batch, noise_multiplier=noise_multiplier, noise=grant.noise)
    return Rule(update, PlainUpdate, fixed_batches(recipe.batch, seed))


def plain_rule(recipe: Recipe, seed: int) -> Rule:
    """No noise at all."""
    return Rule(PlainUpdate, PlainUpdate, fixed_batches(recipe.batch, seed))


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
    bound, number = row_bound(joined.shape[1]), len(joined)
    others = row_bound(num_values or joined.shape[1]) / bound  # of all parties' rows
    reach = private.reach * math.sqrt(private.schema.unit.max_series) * others
    statistic = Statistic(label=NOISY_ROWS, shape=joined.shape, bound=bound)
    noisy = grant.release(statistic, Given(contributions.Rows(joined, np.arange(number), number), reach))
    parts = np.split(noisy.astype(np.float32), np.cumsum([part.shape[1] for part in whole])[:-1], axis=1)
    return tuple(_rows_like(part, noisy_part) for part, noisy_part in zip(rows, parts, strict=True))


def row_bound(num_values: int) -> float:
    """Returns the length to which rows of so many values are clipped in mode `local`; a public number."""
    return _VALUES_WITHIN * math.sqrt(num_values)


def fixed_batches(batch: int, seed: int) -> Draws:
    """Returns draws of a fixed number of rows without repetition, as in paper 004; no amplification is claimed."""

    def draws(num_rows: int) -> Iterator[Tensor]:
        rng = np.random.default_rng(seed)
        while True:
            yield torch.from_numpy(rng.permutation(num_rows)[:batch])

    return draws


def _rows_like(part: Rows, noisy: np.ndarray) -> Rows:
    num_values = part.series[0].numel() if len(part.series) else noisy.shape[1] - part.label.shape[1]
    tensor = torch.from_numpy(noisy)
    return Rows(tensor[:, :num_values].reshape(part.series.shape), tensor[:, num_values:].contiguous())
