"""What the PETS benchmarks share: one experiment's data, its measuring, and the controls beside every result.

Figures: context Fréchet distance by an encoder trained on real series put aside (`c_fid`) and by the encoder that
voted (`c_fid_voting`, as the paper does, which favours the method); error of a perceptron that forecasts the last
quarter of real series and learned from synthetic ones; mean distance to the nearest other series (`diversity`); and
how many members of the first population have descendants (`ancestors`).
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from understudy.data import Panel
from understudy.evaluation.metric import QUICK, Effort
from understudy.evaluation.panels import Scale
from understudy.nn.nearest import nearest
from understudy.privacy.budget import Guarantee, default_delta
from understudy.privacy.ledger import Ledger
from understudy.statistics.encoding import Encoding, linear_scales
from understudy.synthesizers import Release, Synthesizer
from understudy.synthesizers.packs import GENERAL, load_pack
from understudy.synthesizers.pets import PETS
from understudy.synthesizers.pets.modules import fitted
from understudy_bench.metrics.pets.embedding import Judge, frechet_distance, judge
from understudy_bench.metrics.pets.forecast import WATCHED, forecast_errors
from understudy_bench.result import Row, Stopwatch, row, spread

EPSILONS = (0.7, 1.0, 5.0, 32.0)
SEEDS = 3
METRICS = ("c_fid", "c_fid_voting", "forecast_rmse", "forecast_mae", "diversity", "ancestors")


@dataclass(frozen=True, eq=False, kw_only=True)
class Experiment:
    """Private series to learn from, real ones to compare with, real ones to train the judge on, and public ones.

    Attributes:
        delta: As in the paper, or None for 1/(100 · population).
        sampled: Synthetic series that are judged.
    """

    private: Panel
    reference: Panel
    unseen: Panel
    public: Panel | None = None
    delta: float | None = None
    reproduction: str | None = None
    sampled: int = 2000
    effort: Effort = QUICK

    @cached_property
    def judge(self) -> Judge:
        """The encoder that compares; the same for every row."""
        return judge(self.unseen, self.effort.iteration_cap)

    @cached_property
    def unit(self) -> str:
        """Kind of the privacy unit."""
        return self.private.schema.unit.kind

    def guarantee(self, epsilon: float) -> Guarantee:
        """Epsilon with the experiment's delta."""
        return Guarantee(epsilon, self.delta or default_delta(self.private.schema.protected_units or 1))

    def metrics(self, synthetic: Panel, seed: int = 0) -> dict[str, float]:
        """Returns every figure but the ancestors; reads real series, so they are internal."""
        real, candidate = self.judge.embed(self.reference), self.judge.embed(synthetic)
        mae, rmse = self._forecast(synthetic, seed)
        return {
            "c_fid": frechet_distance(real, candidate),
            "c_fid_voting": frechet_distance(self._reference_as_voted, self._as_voted(synthetic)),
            "forecast_rmse": rmse,
            "forecast_mae": mae,
            "diversity": float(np.sqrt(nearest(candidate, candidate, 2)[1][:, 1]).mean()),
        }

    def fitted(self, method: Synthesizer, epsilon: float, seed: int) -> dict[str, float]:
        """Fits once with secure noise and returns the figures of its samples."""
        release = self._release(method, epsilon, seed)
        figures = self.metrics(release.sample(self.sampled, rng=np.random.default_rng(seed)), seed)
        ancestors = release.arrays.get("ancestors")
        return figures if ancestors is None else {**figures, "ancestors": float(ancestors[-1])}

    def sampled_from(self, method: Synthesizer, epsilon: float, *, seed: int, number: int) -> Panel:
        """Fits once with secure noise and returns a few synthetic series."""
        return self._release(method, epsilon, seed).sample(number, rng=np.random.default_rng(seed))

    def row(self, name: str, method: Synthesizer, epsilon: float, seeds: int = SEEDS) -> Row:
        """Returns the row of one method at one epsilon, over several seeds."""
        watch = Stopwatch()
        found = [self.fitted(method, epsilon, seed) for seed in range(seeds)]
        private = method.spending_plan(self.private.schema, self.guarantee(epsilon)).entries
        outlook = method.outlook(self.private.schema, self.guarantee(epsilon))
        return row(
            name,
            {figure: spread([one[figure] for one in found]) for figure in METRICS if figure in found[0]},
            epsilon=epsilon if private else 0.0,
            delta=self.guarantee(epsilon).delta,
            unit=self.unit,
            seconds=watch.seconds,
            seeds=seeds,
            outlook=outlook[0] if outlook else None,
        )

    def control(self, name: str, panel: Panel) -> Row:
        """Returns the row of series that were not learned from the private ones."""
        watch = Stopwatch()
        figures = {figure: spread([value]) for figure, value in self.metrics(panel).items()}
        return row(name, figures, unit=self.unit, seconds=watch.seconds)

    def _release(self, method: Synthesizer, epsilon: float, seed: int) -> Release:
        guarantee = self.guarantee(epsilon)
        ledger = Ledger.in_memory(guarantee, reproduction=self.reproduction)
        method = replace(method, seed=seed) if isinstance(method, PETS) else method
        return method.fit(self.private, ledger, guarantee=guarantee)

    def _forecast(self, synthetic: Panel, seed: int) -> tuple[float, float]:
        """Returns (MAE, RMSE) in deviations of the real channels."""
        scale = self.judge.scale
        real, drawn = (_numbers(scale, panel) for panel in (self.reference, synthetic))
        mean, deviation = real.mean(axis=(0, 1)), real.std(axis=(0, 1))
        standard = (drawn - mean) / np.where(deviation > 0, deviation, 1)
        test = (real - mean) / np.where(deviation > 0, deviation, 1)
        cut = max(1, int(WATCHED * len(standard)))
        order = np.random.default_rng(seed).permutation(len(standard))
        most = self.effort.iteration_cap
        return forecast_errors(standard[order[cut:]], standard[order[:cut]], test, seed=seed, most_iterations=most)

    @cached_property
    def _reference_as_voted(self) -> np.ndarray:
        return self._as_voted(self.reference)

    def _as_voted(self, panel: Panel) -> np.ndarray:
        schema = panel.schema
        encoding = Encoding.of(schema, (), linear_scales(schema, self.reference))
        modules = fitted(load_pack(GENERAL, "pets"), schema.num_steps, encoding.num_channels)
        return modules.similarity(encoding.series(panel, slice(None)))


def split_units(panel: Panel, parts: Sequence[int]) -> list[Panel]:
    """Returns so many units for each part, in order."""
    ends = np.cumsum([0, *parts])
    return [panel.take_units(np.arange(begin, end)) for begin, end in itertools.pairwise(ends)]


def public_file(values: np.ndarray, folder: Path) -> str:
    """Writes public series where `PETS` can read them."""
    path = folder / "public.npy"
    np.save(path, values)
    return str(path)


def _numbers(scale: Scale, panel: Panel) -> np.ndarray:
    return np.asarray(scale.unit(panel)[:, :, : len(scale.numeric)], dtype=np.float64)
