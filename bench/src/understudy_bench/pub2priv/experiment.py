"""What the Pub2Priv benchmarks share: one experiment, its five figures, the controls and the judgement beside them.

Figures are those of Pub2Priv, Table 1: distances of the distributions of changes (`ks_r`) and autocorrelations
(`ks_ar`), the gap in correlation with the context (`corr_meta`), how well a network tells series from real ones
(`discriminative`), and the squared error of a network that learned from them to forecast real ones: all channels, as
printed (`forecast`, trained until it converges), or one from the others (`predictive`, TimeGAN's); for both, each
series lies between its own least and greatest value. Two diagnostics: `nearer_to_real` is the paper's identifiability,
and `ks_corr` the distance of the distributions of correlations with the context, lowered neither by ignorance nor
collapse.

Nothing is judged on series that were learned from. Conditions are the caller's: those of real series put aside. Other
real series of the same conditions are the control: no method can follow the context more closely than those do, unless
it gives all series of one context the same movements. That is said as *collapse*.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.stats import ks_2samp

from understudy.data import Panel
from understudy.data.channels import num_codes
from understudy.evaluation.measures import confidence_interval
from understudy.evaluation.metric import Effort, Measured, Metric
from understudy.evaluation.panels import Comparison
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.statistics.series import to_frequencies
from understudy.synthesizers import Release, Synthesizer
from understudy.synthesizers.pub2priv import Pub2Priv
from understudy.synthesizers.pub2priv.context import Context
from understudy.synthesizers.pub2priv.recipe import PAPER, Recipe
from understudy_bench.metrics.pub2priv import METRICS as _SUITE
from understudy_bench.metrics.pub2priv.context import correlations
from understudy_bench.result import Row, Stopwatch, row, spread

DELTA = 1e-5  # as in the paper
_CANDIDATES, _COMPARED = 4, 24  # series drawn per context, and frequencies of context that are compared
NO_NOISE = 1e5  # stands for infinity: less noise than a hundredth of a unit's largest weight in a batch
EPSILONS = (0.25, 0.5, 1.0, 2.0, 5.0, NO_NOISE)  # Fig. 3 and 5
_METRICS: dict[str, Metric] = {metric.name: metric for metric in _SUITE}
_NAMES = {
    "ks_r": "pub2priv.ks_returns",
    "ks_ar": "pub2priv.ks_autocorrelation",
    "corr_meta": "pub2priv.corr_meta",
    "discriminative": "pub2priv.discriminative",
    "predictive": "pub2priv.predictive",
    "forecast": "pub2priv.forecast",
    "nearer_to_real": "pub2priv.identifiability",
}
TRAINED = ("discriminative", "predictive", "forecast")
PUBLISHED, WITHOUT_THETA = "pub2priv, published network", "pub2priv, published network w/o theta_T"


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much work a benchmark does.

    Attributes:
        published: Recipe of the published diffusion.
        judge: Of the metrics.
        seeds: Fits at epsilons of `repeated`; elsewhere one.
        sampled: Synthetic series that are judged.
        epsilons: The curve.
        repeated: Epsilons that are compared with others.
    """

    published: Recipe
    judge: Effort
    seeds: int
    sampled: int
    epsilons: tuple[float, ...] = EPSILONS
    repeated: tuple[float, ...] = (1.0,)

    def fits(self, epsilon: float) -> int:
        """Returns how often a method is fitted at an epsilon."""
        return self.seeds if epsilon in self.repeated else 1


_SMALL = Recipe(
    model="diffusion", width=64, layers=2, heads=2, diffusion_steps=100, sampling_steps=25, iterations=300, batch=8,
    learning_rate=1e-3, ema=0.9,
)  # fmt: skip
_FIRST = Effort(name="quick", repeats=1, iteration_cap=150, replicates=50, splits=1, max_series=400)
_LAST = Effort(name="target", repeats=1, iteration_cap=2_000, replicates=200, splits=1, max_series=1_260)
_ALL = Effort(name="full", repeats=10, iteration_cap=None, replicates=200, splits=1, max_series=1_260)
SCALES = {
    "quick": Scale(
        published=_SMALL,
        judge=_FIRST,
        seeds=3,
        sampled=400,
        repeated=(0.25, 1.0, 5.0),
    ),
    "target": Scale(published=PAPER, judge=_LAST, seeds=3, sampled=1_260),
    "full": Scale(published=PAPER, judge=_ALL, seeds=10, sampled=1_260),
}


def methods(scale: Scale) -> dict[str, Pub2Priv]:
    """Returns the default and its ablation without context (Pub2Priv, section 6.6); it uses no theta_T."""
    whole = Pub2Priv()
    return {
        "pub2priv": whole,
        "pub2priv w/o c": replace(whole, knowledge="none"),
    }


def published(scale: Scale) -> dict[str, Pub2Priv]:
    """Returns the published diffusion of whole series, and its ablation without theta_T."""
    whole = Pub2Priv(recipe=scale.published)
    return {PUBLISHED: whole, WITHOUT_THETA: replace(whole, knowledge="direct")}


@dataclass(frozen=True)
class WithContext:
    """A rival that is told the metadata, as in the paper: columns of context are learned as further channels.

    Series are then drawn with contexts of their own, several times as many as are asked for, and each context that is
    asked for takes the one whose own is nearest, no series twice. All of that is post-processing.
    """

    method: Synthesizer

    def fit(self, panel: Panel, ledger: Ledger, guarantee: Guarantee) -> Release:
        """Fits the rival to series and context together."""
        schema = panel.schema
        wide = replace(schema.without_context(), channels=(*schema.channels, *schema.context))
        assert panel.context is not None
        values = np.concatenate([panel.values, panel.context], axis=2).astype(np.float32)
        joint = replace(panel, schema=wide, values=values, context=None)
        return self.method.fit(joint, ledger, guarantee=guarantee)

    @staticmethod
    def sample(release: Release, like: Panel, rng: np.random.Generator) -> Panel:
        """Returns one series for each context of a panel."""
        assert like.context is not None
        channels, reader = like.schema.num_channels, Context(like.schema, ignored=False)
        drawn = release.sample(_CANDIDATES * like.num_series, rng=rng)
        own, asked = (
            np.nan_to_num(to_frequencies(reader.windows(context))[:, 1 : 1 + _COMPARED]).reshape(len(context), -1)
            for context in (drawn.values[:, :, channels:], like.context)
        )
        chosen = linear_sum_assignment(cdist(asked, own))[1]
        values = drawn.values[chosen, :, :channels]
        return replace(like.with_values(values), lengths=drawn.lengths[chosen], private=False)


@dataclass(frozen=True, eq=False, kw_only=True)
class Experiment:
    """Series to learn from, real ones to be compared with, and other real ones of the same conditions.

    Attributes:
        real: Put aside; their contexts are the conditions that samples are asked for.
        second: Other real series, where possible of exactly those contexts: the control, and what `predictive` is
            trained on when it is trained on real series.
        market: Public windows of context [window, step, context], which `pub2priv` may look at; None without any.
        paper: Figures of the paper's Table 1 by method.
    """

    private: Panel
    real: Panel
    second: Panel
    judge: Effort
    market: np.ndarray | None = None
    delta: float = DELTA
    paper: Mapping[str, Mapping[str, float]] | None = None

    @property
    def unit(self) -> str:
        """Kind of the privacy unit."""
        return self.private.schema.unit.kind

    def fitted(self, method: Synthesizer | WithContext, epsilon: float, seed: int) -> tuple[Panel, float]:
        """Fits once with secure noise; returns series sampled for the conditions and the certified epsilon."""
        guarantee = Guarantee(epsilon, self.delta)
        if isinstance(method, WithContext):
            release = method.fit(self.private, Ledger.in_memory(guarantee), guarantee)
            return method.sample(release, self.real, np.random.default_rng(seed)), release.certificate.epsilon
        with TemporaryDirectory() as folder:
            if isinstance(method, Pub2Priv):
                method = replace(method, seed=seed, public_context=self._public_context(method, Path(folder)))
            release = method.fit(self.private, Ledger.in_memory(guarantee), guarantee=guarantee)
        sampled = release.sample(self.real.num_series, rng=np.random.default_rng(seed), context=self.real.context)
        return sampled, release.certificate.epsilon

    def _public_context(self, method: Pub2Priv, folder: Path) -> str | None:
        """Returns the file of public windows, for a method that looks at context."""
        if self.market is None or method.knowledge == "none":
            return None
        np.save(folder / "context.npy", self.market)
        return str(folder / "context.npy")

    def metrics(self, candidate: Panel, seed: int = 0, trained: tuple[str, ...] = TRAINED) -> dict[str, float]:
        """Returns the figures of a candidate; reads real series, so they are internal."""
        return {name: measured.value for name, measured in self.measured(candidate, seed, trained).items()}

    def measured(self, candidate: Panel, seed: int = 0, trained: tuple[str, ...] = TRAINED) -> dict[str, Measured]:
        """Returns the figures with their replicates."""
        plain, relative = (
            Comparison(real=parts[0], candidate=parts[1], reference=parts[2], unseen=parts[2])
            for parts in (
                (self.real, candidate, self.second),
                [between_extremes(panel) for panel in (self.real, candidate, self.second)],
            )
        )
        names = [name for name in _NAMES if name in trained or name not in TRAINED]
        figures = {
            name: _METRICS[_NAMES[name]].measure(
                relative if name in ("predictive", "forecast") else plain, self.judge, seed
            )
            for name in names
        }
        return {**figures, "ks_corr": Measured(value=correlation_distance(self.real, candidate))}

    def row(
        self,
        name: str,
        method: Synthesizer | WithContext,
        epsilon: float,
        seeds: int = 1,
        trained: tuple[str, ...] = TRAINED,
    ) -> Row:
        """Returns the row of one method at one epsilon; its figures are spread over fits."""
        watch, found, certified = Stopwatch(), [], []
        for seed in range(seeds):
            sampled, spent = self.fitted(method, epsilon, seed)
            certified.append(spent)
            found.append(self.metrics(sampled, seed, trained))
        return row(
            name,
            {figure: spread([one[figure] for one in found]) for figure in found[0]},
            epsilon=epsilon,
            delta=self.delta,
            unit=self.unit,
            paper=self._published(name) if epsilon == 1.0 else {},
            seconds=watch.seconds,
            seeds=seeds,
            epsilon_certified=max(certified),
        )

    def _published(self, name: str) -> dict[str, float]:
        own = name.removesuffix(", told context").replace(", published network", "")
        return dict((self.paper or {}).get(own, {}))

    def control(self, name: str, panel: Panel) -> Row:
        """Returns the row of series that were not learned from the private ones, with intervals of their figures."""
        watch, figures = Stopwatch(), {}
        for figure, measured in self.measured(panel).items():
            low, high = confidence_interval(measured, (-np.inf, np.inf)) or (measured.value, measured.value)
            figures[figure] = {"mean": measured.value, "low": low, "high": high}
        return row(name, figures, unit=self.unit, seconds=watch.seconds)


def between_extremes(panel: Panel) -> Panel:
    """Returns the series with each numeric channel between its own least and greatest value, as [0, 1]."""
    values = np.array(panel.values)
    for place, channel in enumerate(panel.schema.channels):
        if num_codes(channel) is None:
            own = values[:, :, place]
            low = np.nanmin(np.where(np.isnan(own).all(1, keepdims=True), 0, own), axis=1, keepdims=True)
            high = np.nanmax(np.where(np.isnan(own).all(1, keepdims=True), 0, own), axis=1, keepdims=True)
            values[:, :, place] = (own - low) / np.where(high > low, high - low, 1)
    return panel.with_values(values)


def correlation_distance(real: Panel, candidate: Panel) -> float:
    """Returns the distance of the distributions of correlations with the context; mean over channels and contexts."""
    assert real.context is not None
    assert candidate.context is not None
    ours, theirs = correlations(real.values, real.context), correlations(candidate.values, candidate.context)
    pairs = np.ndindex(*ours.shape[1:])
    return float(np.mean([ks_2samp(ours[:, row, column], theirs[:, row, column]).statistic for row, column in pairs]))
