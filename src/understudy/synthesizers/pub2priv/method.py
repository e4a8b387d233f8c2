"""`pub2priv`: private series from public context.

Idea. Public signals (weather, prices, an index) explain part of what private series do. The default learns how series
follow their context from one noisy sum, next to a `spectral` release: a regression of shapes on context, or only their
correlations where units are few. The preset "paper" is the diffusion of Pub2Priv (`published`). Samples are made for
public contexts that the caller brings, never for those of the training series.

Private data is touched by the releases of `spectral` and one more sum of bounded vectors (`estimators`); or, with the
diffusion, by distributions of the columns and clipped sums of gradients over units.

Cost: seconds with the default; the published network takes a second or more per iteration.
Choose it when series follow a public signal and every series, or window, meets another stretch of it. Where all series
share one stretch, use `spectral`.
Not to be confused with conditions taken from training rows, as in the paper's experiments: these reveal who is in the
data.

References: Pub2Priv (Transactions on Machine Learning Research); Tashiro et al., arXiv:2107.03502 (CSDI); Abadi et al.,
arXiv:1607.00133 (DP-SGD).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from understudy.data import Panel, Schema
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.canonical import file_sha256
from understudy.privacy.events import Gaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry, SpendingPlan, noise_multipliers, round_up
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.base import Progress, SampleRequest, Synthesizer
from understudy.synthesizers.options import recipe_of, require_one_of
from understudy.synthesizers.packs import GENERAL, Pack, load_pack
from understudy.synthesizers.pub2priv.context import Context, public_windows
from understudy.synthesizers.pub2priv.estimators import (
    CORRELATION,
    PREFIX,
    REGRESSION,
    ContextCorrelation,
    ContextRegression,
    is_drowned,
)
from understudy.synthesizers.pub2priv.recipe import DEFAULT, PAPER, Recipe
from understudy.synthesizers.registry import METHODS

if TYPE_CHECKING:
    from understudy.synthesizers.pub2priv.published import PublishedDiffusion

_ESTIMATORS = {REGRESSION: ContextRegression, CORRELATION: ContextCorrelation}
_PACK = "pack"


@dataclass(frozen=True, kw_only=True)
class Pub2Priv(Synthesizer):
    """Private series from public context.

    Attributes:
        recipe: Numbers of the model; the preset "paper" is the published diffusion.
        knowledge: Condition of the diffusion: "pack" for θ_T, "direct" for context as it is. "none" ignores context,
            which the default otherwise takes as it is.
        pack: "general" for the θ_T that comes with the package, or the file of a pack (diffusion).
        public_context: File of public context over many steps, columns in the order of the schema's: its windows show
            which features of context differ, which is released otherwise.
        seed: Seed for weight initialisation.
    """

    name: ClassVar[str] = "pub2priv"
    needs: ClassVar[str] = "public context; the extra neural for its diffusion"
    rehearsed: ClassVar[str] = "recipe.iterations"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}, "paper": {"recipe": PAPER}}
    recipe: Recipe = DEFAULT
    knowledge: Literal["pack", "direct", "none"] = "pack"
    pack: str = GENERAL
    public_context: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "recipe", recipe_of(self.recipe, Recipe))
        require_one_of(self, knowledge=("pack", "direct", "none"))

    @property
    def _diffuses(self) -> bool:
        return self.recipe.model == "diffusion"

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """A `spectral` release and one sum; or distributions of the columns and DP-SGD with all that is left."""
        if not schema.context and self.knowledge != "none":
            raise InputError(
                "knowledge: this schema declares no context, and pub2priv learns how series follow one. Declare "
                "[[context]], use another method, or set knowledge='none' for the ablation without."
            )
        self.context(schema).check_at_rest(public_windows(self.public_context, schema), "public_context")
        if self._diffuses:
            return self.diffusion(schema).plan(guarantee)
        return SpendingPlan(estimator_entries(self.recipe.model, self.context(schema), guarantee), guarantee)

    def check_context(self, schema: Schema, context: np.ndarray) -> None:
        """Refuses a public context that is at rest."""
        self.context(schema).check_at_rest(context)

    def needs_context(self, schema: Schema) -> bool:
        """Where series of the fit had contexts of their own, which are private, none of them can be a default."""
        return schema.own_contexts and self.knowledge != "none"

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Releases what the plan says and returns it.

        Privacy: `spectral`, the estimators and `PublishedDiffusion.learn` look at private series through the grant.
        """
        schema = private.panel.schema
        if self._diffuses:
            own = self.knowledge == "pack" and self.pack != GENERAL  # without its file the release works too
            carried = {_PACK: load_pack(self.pack, self.name).carried()} if own else {}
            return {**self.diffusion(schema).learn(private, grant, progress), **carried}
        base = _spectral().learn(private.without_context(), grant, progress)
        released = {f"{PREFIX}{name}": array for name, array in base.items()}
        estimator = _ESTIMATORS[grant.plan.entries[-1].label](self.context(schema), released)
        public = public_windows(self.public_context, schema)
        return {**released, **estimator.release(private, grant, public)}

    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        """Returns a series for each context that the caller brings."""
        if request.context is None and self.needs_context(schema):
            raise InputError(
                "context: public context to follow is expected, because each training series has its own context, "
                "which is private. Pass context: one for all series, or one per series."
            )
        context = self.context(schema)
        context.warn_beyond(request.context, request.fit_context)
        if self._diffuses:
            pack = arrays[_PACK].tobytes() if _PACK in arrays else None
            return self.diffusion(schema, pack).panel(arrays, request)
        kind = next(kind for label, kind in _ESTIMATORS.items() if f"{label}.runs" in arrays)
        return kind(context, arrays).panel(request)

    def outlook(self, schema: Schema, guarantee: Guarantee) -> tuple[str, ...]:
        """Returns the noise relative to what can be learned, and whether context teaches anything."""
        learned = self.learned_schema(schema)
        series = self.num_contributions(schema, schema.population.size or 1) / self.influence(schema)
        context = self.context(learned)
        also: tuple[str, ...] = ()
        if self.knowledge != "none" and not learned.own_contexts:
            also = (
                "All series share one context, so its effect can't be told from that of the calendar. Cut windows "
                "(window_steps) to learn how series follow it.",
            )
        if self._diffuses:
            return (self.diffusion(learned).foretold(guarantee)[1], *also)
        last = estimator_entries(self.recipe.model, context, guarantee)[-1]
        kind = _ESTIMATORS[last.label]
        assert isinstance(last.event, Gaussian)
        error = last.event.noise_multiplier * kind.largest_bound(context) / series
        little = ", so little will be learned from context." if error > 0.25 else "."
        return (
            f"The standard deviation of the noise on {kind.learned} is {error:.2g}, where 0.5 is much{little}",
            *also,
        )

    def gradient_noise(self, schema: Schema, guarantee: Guarantee) -> float | None:
        """The ratio of the diffusion; None for the estimators."""
        return self.diffusion(self.learned_schema(schema)).foretold(guarantee)[0] if self._diffuses else None

    def own_inputs(self) -> Mapping[str, str]:
        """The pack of θ_T and the public context."""
        inputs = {}
        if self._diffuses and self.knowledge == "pack":
            inputs["pub2priv pack"] = load_pack(self.pack, self.name).sha256
        if self.public_context is not None:
            inputs["pub2priv public context"] = file_sha256(self.public_context)
        return inputs

    def context(self, schema: Schema) -> Context:
        """Returns how context is read."""
        return Context(schema, self.knowledge == "none")

    def diffusion(self, schema: Schema, pack: bytes | None = None) -> "PublishedDiffusion":
        """Returns the published model; `pack` is the one that a release carries."""
        from understudy.synthesizers.pub2priv.knowledge import Knowledge
        from understudy.synthesizers.pub2priv.published import PublishedDiffusion

        theta = None
        if self.knowledge == "pack":
            own = load_pack(self.pack, self.name) if pack is None else Pack.from_bytes(pack, self.name)
            theta = Knowledge.of(own)
        return PublishedDiffusion(self.context(schema), theta, self.recipe, self.seed)


def _spectral() -> Synthesizer:
    """Returns the method whose release the estimators build on."""
    return METHODS.create("spectral", max_splits=0)


def estimator_entries(model: str, context: Context, guarantee: Guarantee) -> tuple[PlanEntry, ...]:
    """Returns the releases of `spectral` and of the estimator; "auto" chooses one by public facts."""
    if model == "auto":
        model = CORRELATION if is_drowned(context, guarantee) else REGRESSION
    whole, share = _spectral().plan(context.schema.without_context(), guarantee), _ESTIMATORS[model].spectral_share
    base = tuple(
        PlanEntry(entry.label, Gaussian(round_up(entry.event.noise_multiplier * share**-0.5)))  # its share of mu²
        for entry in whole.entries
        if isinstance(entry.event, Gaussian)
    )
    rest = noise_multipliers(guarantee, {model: 1 - share})[model]
    return (*base, PlanEntry(model, Gaussian(rest)))
