"""From a release to synthetic series, one for each context that the caller brings. Nothing here saw private data."""

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from understudy.data import Panel, Schema
from understudy.data.panel import broadcast_context
from understudy.errors import InputError
from understudy.statistics import copula
from understudy.statistics.columns import static_values
from understudy.statistics.facts import Facts
from understudy.synthesizers.base import SampleRequest
from understudy.synthesizers.pub2priv import knowledge
from understudy.synthesizers.pub2priv.denoising import load_weights, sample, schedule
from understudy.synthesizers.pub2priv.followed import Followed
from understudy.synthesizers.pub2priv.holds import hold
from understudy.synthesizers.pub2priv.projected import Projected
from understudy.synthesizers.pub2priv.published import Published
from understudy.synthesizers.pub2priv.sketched import Sketched

if TYPE_CHECKING:
    from understudy.synthesizers.pub2priv.method import Pub2Priv

NETWORK = "network."  # prefix of the released parameters
_PACK = "pack"


def carried(method: "Pub2Priv") -> dict[str, np.ndarray]:
    """Returns the pack if it is not the package's own, so that the release works without its file."""
    if method.knowledge != "pack" or method.pack == knowledge.GENERAL:
        return {}
    return {_PACK: np.frombuffer(knowledge.load_pack(method.pack).to_bytes(), dtype=np.uint8).copy()}


def draw(method: "Pub2Priv", arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
    """Returns a series for each context that the caller brings."""
    core = method.core(schema, arrays, arrays[_PACK].tobytes() if _PACK in arrays else None)
    if request.context is None and method.needs_context(schema):
        raise InputError(
            "context: public context to follow is expected, because every series of the fit met another stretch of it, "
            "and which is private. Bring one for all series, or one for each."
        )
    core.conditions.tell_beyond(request.context, request.fit_context)
    if isinstance(core, Published):
        return _published(method, core, arrays, request)
    return _on_spectral(method, core, arrays, schema, request)


def _on_spectral(
    method: "Pub2Priv",
    core: Projected | Sketched | Followed,
    arrays: dict[str, np.ndarray],
    schema: Schema,
    request: SampleRequest,
) -> Panel:
    """Draws as `spectral` does, and moves series to where what was learned says they lie given the context.

    Where all series of the fit shared a context, that is the one they were measured along; another one is responded
    to afterwards, as `spectral` does.
    """
    model, rng, number = core.coordinates.model, request.rng, request.num_series
    classes = copula.sample_kinds(model, schema, number, request.label, rng)
    shared = None if core.conditions.without_context else request.fit_context
    context = request.context
    if shared is not None:
        context = broadcast_context(shared, number)
    if isinstance(core, Sketched | Followed):
        scores, singles = core.scores(arrays, context, classes, rng)
    else:
        x = _diffused(method, core, arrays, core.levels(context, number), rng)
        scores, singles = core.scores(x, context, classes, rng)
    if shared is not None and request.context is not None:
        scores = copula.respond(scores, schema, shared, request.context)
    lengths, missing = copula.sample_absence(model, schema, scores, rng)
    ranks, marginals = copula.ranks_of(model, scores), model.marginals
    values = np.stack([marginals[c].values_of(ranks[:, :, c]) for c in range(schema.num_channels)], axis=2)
    if isinstance(core, Sketched | Followed):
        values = hold(values, core.holds(arrays), schema, rng)
    single, shares = marginals[schema.num_channels :], model.single_missing
    static = static_values(schema, classes, ndtr(singles), single, shares, rng)
    return request.panel(schema, np.where(missing, np.nan, values), lengths, static)


def _published(method: "Pub2Priv", core: Published, arrays: dict[str, np.ndarray], request: SampleRequest) -> Panel:
    """Draws whole series; static columns know nothing of them but the class."""
    encoding, facts, rng = core.encoding, Facts.from_arrays(arrays), request.rng
    schema, number = encoding.schema, request.num_series
    classes = np.full(number, request.label if request.label is not None else 0)
    if request.label is None:
        classes = rng.choice(len(facts.label_share), size=number, p=facts.label_share / facts.label_share.sum())
    series = _diffused(method, core, arrays, core.per_step(request.context, classes), rng)
    lengths = facts.sample_lengths(schema, number, rng)
    values = encoding.values(series)
    values[facts.sample_missing(schema, encoding.ranked(series), lengths, rng)] = np.nan
    single = facts.marginals[schema.num_channels :]
    ranks = rng.random((number, len(single)))
    static = static_values(schema, classes, ranks, single, facts.static_missing, rng)
    return request.panel(schema, values, lengths, static)


def _diffused(
    method: "Pub2Priv",
    core: Projected | Published,
    arrays: dict[str, np.ndarray],
    condition: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    network = load_weights(method.empty_network(core), arrays, NETWORK)
    seed = int(rng.integers(2**62))
    return sample(network, schedule(method.diffusion_steps), condition, core.shape, method.sampling_steps, seed)
