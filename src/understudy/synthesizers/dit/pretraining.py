"""Trains a pack on public series: how large conditions get in a network without bounds, and weights to start from."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from understudy.data import Panel
from understudy.errors import InputError
from understudy.statistics.columns import classes_of, single_columns, single_values
from understudy.statistics.marginals import Marginal, grid_of, marginal_from, vote_counts
from understudy.synthesizers.base import Progress
from understudy.synthesizers.dit.denoising import Denoising
from understudy.synthesizers.dit.interpolation import autocovariance_of, products
from understudy.synthesizers.dit.method import NETWORK, REFERENCE, DiT, season_of
from understudy.synthesizers.dit.published import MaskedDiT, Modulation
from understudy.synthesizers.dit.scores import NormalScores, scale_votes, scaled_channels, scales_of
from understudy.synthesizers.packs import Pack
from understudy.training.networks import to_arrays, train_on_public_data

MIN_SERIES = 20
_BATCH, _MEASURED, _HELD_OUT = 128, 512, 0.1
_BOUNDED = 0.5  # iterations with bounds, per iteration without them


def pretrain(
    public: Panel,
    method: DiT,
    *,
    iterations: int,
    with_weights: bool,
    provenance: Mapping[str, Any],
    progress: Progress,
) -> Pack:
    """Returns a pack for series with the columns of a public panel, without weights magnitudes only."""
    if public.num_series < MIN_SERIES:
        raise InputError(f"Public series: at least {MIN_SERIES} are expected. Cut long ones into windows.")
    schema, network, seed = public.schema, method.recipe.network, method.seed
    examples, neighbours = public_examples(public, method)
    order = np.random.default_rng(seed).permutation(len(examples["x"]))
    held = max(1, int(_HELD_OUT * len(order)))
    learned, held_out = ({name: array[rows] for name, array in examples.items()} for rows in np.split(order, [-held]))
    denoising, rate = method.denoising(schema, neighbours), method.recipe.learning_rate
    without = replace(method, recipe=replace(method.recipe, network=replace(network, tightness="none")))
    model = without.empty_network(schema)
    quality, share = {"error_untrained": _error(model, denoising, held_out)}, 1 / (1 + _BOUNDED * with_weights)
    train_on_public_data(
        model, _loss(model, denoising, learned, seed), iterations=iterations, learning_rate=rate,
        progress=lambda done, planned: progress("without bounds", share * done / planned),
    )  # fmt: skip
    quality["error_without_bounds"] = _error(model, denoising, held_out)
    arrays = {REFERENCE: measured_reference(model, denoising, learned, seed)}
    if with_weights:
        bounded = method.empty_network(schema, arrays[REFERENCE])
        bounded.load_state_dict(model.state_dict())
        train_on_public_data(
            bounded, _loss(bounded, denoising, learned, seed + 1), iterations=max(1, int(_BOUNDED * iterations)),
            learning_rate=rate / 2,
            progress=lambda done, planned: progress("within bounds", share + (1 - share) * done / planned),
        )  # fmt: skip
        quality["error"] = _error(bounded, denoising, held_out)
        arrays |= to_arrays(bounded, NETWORK)
    facts = {**provenance, "quality": {name: round(figure, 4) for name, figure in quality.items()}}
    return Pack(method=method.name, arrays=arrays, shape=method.pack_shape(schema), provenance=facts)


def _loss(
    model: MaskedDiT, denoising: Denoising, examples: Mapping[str, np.ndarray], seed: int
) -> Callable[[int], Tensor]:
    """Returns the mean loss of batches drawn one after another."""
    rng, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    return lambda iteration: denoising.loss(model, _some(examples, rng, _BATCH), generator).mean()


def public_examples(public: Panel, method: DiT) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Returns *public* series as the network learns from them, and the autocovariances, without noise."""
    schema, season, sizes = public.schema, season_of(public.schema), np.zeros(0)
    if scaled_channels(schema):
        sizes = scales_of(schema, scale_votes(public).weighted_sum(np.ones(public.num_series), 1.0).astype(np.float64))
    patch = method.recipe.network.patch_for(schema.num_steps)
    columns = NormalScores(schema, public_marginals(public), patch, sizes)
    examples = columns.examples(public.values, public.static, classes_of(public), public.context)
    totals = products(examples["x"], examples["known"], season).sum(axis=0)
    return examples, autocovariance_of(totals, columns.variances, examples["x"].shape[1], season)


def public_marginals(public: Panel) -> tuple[Marginal, ...]:
    """Returns the distribution of each channel and static column of *public* series, without noise."""
    schema = public.schema
    singles = single_values(schema, public.static, None)
    numbers = [*np.moveaxis(public.values, 2, 0), *singles.T[:, :, None]]
    grids = [grid_of(column, 0.0) for column in (*schema.channels, *single_columns(schema, with_context=False))]
    votes = (vote_counts(own, np.ones(len(own)), grid) for own, grid in zip(numbers, grids, strict=True))
    return tuple(marginal_from(counts, grid, 0.0) for counts, grid in zip(votes, grids, strict=True))


def measured_reference(
    model: MaskedDiT, denoising: Denoising, examples: Mapping[str, np.ndarray], seed: int
) -> np.ndarray:
    """Returns (C₀, Γ₀, B₀, A₀): what 95 % of conditions and 99 % of scales, shifts and gates stay below."""
    seen: dict[str, list[Tensor]] = {"condition": [], "scale": [], "shift": [], "gate": []}

    def record(module: nn.Module, inputs: tuple[Tensor, ...], outputs: list[Tensor]) -> None:
        assert isinstance(module, Modulation)
        seen["condition"].append(inputs[0].norm(dim=1))
        for role, output in zip(module.roles, outputs, strict=True):
            seen[role].append((output - float(role == "scale")).abs().flatten())

    hooks = [part.register_forward_hook(record) for part in model.modules() if isinstance(part, Modulation)]
    with torch.no_grad():
        denoising.loss(model, _some(examples, np.random.default_rng(seed)), torch.Generator().manual_seed(seed))
    for hook in hooks:
        hook.remove()
    shares = {"condition": 0.95, "scale": 0.99, "shift": 0.99, "gate": 0.99}
    return np.array([max(1e-3, np.quantile(torch.cat(seen[role]).numpy(), share)) for role, share in shares.items()])


def _error(model: MaskedDiT, denoising: Denoising, examples: Mapping[str, np.ndarray]) -> float:
    """Returns the loss on public series that were kept out; 1 is what a network knows that knows the marginals only."""
    with torch.no_grad():
        some = _some(examples, np.random.default_rng(1))
        return float(denoising.loss(model, some, torch.Generator().manual_seed(1)).mean())


def _some(examples: Mapping[str, np.ndarray], rng: np.random.Generator, number: int = _MEASURED) -> dict[str, Tensor]:
    rows = rng.integers(0, len(examples["x"]), number)
    return {name: torch.from_numpy(np.array(array[rows])) for name, array in examples.items()}
