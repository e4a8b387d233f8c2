"""What the PPEM benchmarks measure: how far x′ is, and whether everything else given x′ is as it was."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.spatial import cKDTree

from understudy.data import Panel
from understudy.evaluation.metric import Effort, Undefined
from understudy.evaluation.panels import Comparison
from understudy.synthesizers.base import Release, SampleRequest
from understudy.synthesizers.ppem import PPEM
from understudy.synthesizers.ppem.attributes import Partition, Rows
from understudy.synthesizers.ppem.effect_size import effect_sizes_of
from understudy.synthesizers.ppem.method import TARGET
from understudy.synthesizers.ppem.published import MARGINAL, AdversarialTraining, generators_of
from understudy.synthesizers.ppem.recipe import Recipe
from understudy_bench.metrics.kernels import gram, quadratic_test, stein_gram, two_sample_test
from understudy_bench.metrics.ppem.models import METRICS, determination, squared_error
from understudy_bench.ppem import shown as ppem_shown

if TYPE_CHECKING:
    from sklearn.cluster import KMeans

_TESTED = 1000  # rows of each side of a two-sample test, as in the PPEM paper
_GROUPS = 8  # neighbourhoods of x′ within which the rest is compared
_FEWEST = 25  # rows of each side that a neighbourhood needs
_ALIKE = 0.25  # deviations within which two x′ count as the same
_CHANCE = 0.1  # deviations by which rows with the same x′ are told apart
_HELD_OUT_ROWS = "x′ of kept-out rows"  # in the place of a release's own marginal
_REPLICATES = 200  # of the bootstrap over kept-out units


@dataclass(frozen=True, eq=False, kw_only=True)
class Measures:
    """One dataset's measuring; `partition` works in declared bounds, the same for every candidate.

    Attributes:
        regressed: The channel that linear regression predicts, as in the PPEM paper; every channel by turns if None.
    """

    train: Panel
    rest: Panel
    partition: Partition
    max_rows: int
    regressed: str | None = None
    seed: int = 0

    def rows(self, panel: Panel) -> Rows:
        """Returns a panel as (x′, x*)."""
        return self.partition.rows(panel)

    def figures(self, candidate: Panel, against: Panel | None = None) -> dict[str, float]:
        """Returns all figures of a candidate, against kept-out real rows unless others are given."""
        some, real = _some(candidate, self.max_rows, self.seed), against or self.rest
        return {**self.apart(some, real), **self.conditional(some), **self.tasks(some, real)}

    def apart(self, candidate: Panel, against: Panel) -> dict[str, float]:
        """Returns effect sizes on x′ and the two-sample test."""
        real, other = (self.rows(_some(panel, _TESTED, self.seed)).sensitive for panel in (against, candidate))
        (size,) = effect_sizes_of((self.partition.attributes,))
        test = two_sample_test(gram(np.concatenate([real, other])), len(real), np.random.default_rng(self.seed))
        return {"effect_wasserstein": size.between(real, other), "p_mmd": test.p_value}

    def conditional(self, candidate: Panel) -> dict[str, float]:
        """Returns how far x* given x′ is from rows that were learned from, and in how many neighbourhoods."""
        gaps = self._gaps(candidate, _some(self.train, 20_000, self.seed), replicates=0)
        return {"conditional_gap": float(np.mean(gaps)) if len(gaps) else float("nan"), "neighbourhoods": len(gaps)}

    def held_out_gap(self, candidates: Sequence[Panel]) -> dict[str, float] | None:
        """Returns how far x* given x′ is from kept-out rows, with an interval; None where too few were kept out.

        The interval (95 %) covers what other kept-out units would have shown, by a bootstrap moved to the measured
        distance because resampling adds distance of its own, and all candidates, which differ by their seeds.
        """
        found = []
        for candidate in candidates:
            gaps = self._gaps(_some(candidate, self.max_rows, self.seed), self.rest, _REPLICATES)
            if not len(gaps):
                return None
            measured, *resampled = gaps.mean(axis=0)
            found.append((measured, *(measured + np.quantile(resampled - np.mean(resampled), [0.025, 0.975]))))
        means, lows, highs = np.array(found).T
        return {"mean": float(means.mean()), "low": float(lows.min()), "high": float(highs.max())}

    def given(self, method: PPEM, release: Release) -> Panel:
        """Returns what a release makes of the x′ of kept-out rows, in the place of its own.

        Models whose x′ differ are asked about different places, and places differ in how hard they are. This asks all
        of them about the same ones.
        """
        asked = replace(method, target=_HELD_OUT_ROWS, effect=None, attempts=1)
        arrays = {name: array for name, array in release.arrays.items() if not name.startswith("generator.marginal")}
        arrays[TARGET] = self.rows(self.rest).values
        request = SampleRequest(num_series=self.max_rows, rng=np.random.default_rng(self.seed))
        return asked.sample(arrays, release.schema, request)

    def _gaps(self, candidate: Panel, against: Panel, replicates: int) -> np.ndarray:
        """Returns mean distances of means [neighbourhood, 1 + replicate] within neighbourhoods of x′, in deviations.

        Neighbourhoods are those of the real x′, and all count alike. Within one, every real row is compared with a row
        of the candidate that has the same x′, so that a candidate whose x′ lie elsewhere is not blamed for that. A
        replicate draws the real rows anew.
        """
        real, other = self.rows(against), self.rows(candidate)
        partner, alike = _partners(real.sensitive, other.sensitive)
        places = self._neighbourhoods.predict(real.sensitive)
        number, spread = len(real.rest), real.rest.std(axis=0)
        moving = spread > 1e-6
        drawn = np.random.default_rng(self.seed).multinomial(number, np.full(number, 1 / number), replicates)
        counts = np.concatenate([np.ones((1, number)), drawn]).astype(np.float32)
        gaps = []
        for group in range(_GROUPS):
            own = alike & (places == group)
            if len(np.unique(partner[own])) >= _FEWEST:
                weights = counts[:, own] / counts[:, own].sum(axis=1, keepdims=True)
                apart = weights @ (real.rest[own] - other.rest[partner[own]])[:, moving]
                gaps.append((np.abs(apart) / spread[moving]).mean(axis=1))
        return np.array(gaps)

    @property
    def _neighbourhoods(self) -> "KMeans":
        from sklearn.cluster import KMeans

        real = self.rows(_some(self.train, 20_000, self.seed)).sensitive
        return KMeans(_GROUPS, n_init=2, random_state=0).fit(real)

    def tasks(self, candidate: Panel, against: Panel) -> dict[str, float]:
        """Returns AUROC, MSE and R² of models trained on the candidate and tested on other, real rows."""
        effort = Effort(name="bench", repeats=1, iteration_cap=200, replicates=2, splits=1, max_series=self.max_rows)
        real = _some(self.train, self.max_rows, self.seed)
        comparison = Comparison(real=real, candidate=candidate, reference=against, unseen=against)
        found = {}
        for metric in METRICS:
            if self.regressed is not None and "regression" in metric.name:
                continue
            try:
                found[metric.name.removeprefix("ppem.")] = metric.measure(comparison, effort, self.seed).value
            except Undefined:
                continue
        return {**found, **self._regression(candidate, against)}

    def _regression(self, candidate: Panel, against: Panel) -> dict[str, float]:
        """Returns MSE, in deviations of what was learned from, and R² of the channel that is to be predicted."""
        from sklearn.linear_model import LinearRegression

        if self.regressed is None:
            return {}
        place = [channel.name for channel in self.train.schema.channels].index(self.regressed)
        sides = [np.concatenate([panel.values[:, 0, :], panel.static], axis=1) for panel in (candidate, against)]
        (learned, target), (tested, truth) = ((np.delete(side, place, 1), side[:, place]) for side in sides)
        predicted = LinearRegression().fit(learned, target).predict(tested)
        spread = float(self.train.values[:, 0, place].std())
        return {
            "regression_mse": squared_error(truth / spread, predicted / spread),
            "regression_r2": determination(truth, predicted),
        }

    def shown(self, candidate: Panel) -> dict[str, Any]:
        """Returns what pictures show of a candidate, beside kept-out rows."""
        real, drawn = (self.rows(_some(panel, 4000, self.seed)) for panel in (self.rest, candidate))
        groups = self._neighbourhoods
        places = groups.predict(real.sensitive), groups.predict(drawn.sensitive)
        return {
            "marginals": ppem_shown.marginals(self.partition, real, drawn),
            "densities": ppem_shown.densities(self.partition, real, drawn),
            "conditionals": ppem_shown.conditionals(self.partition, real, drawn, places, _FEWEST),
        }

    def energy_test(self, recipe: Recipe, penalty: float) -> dict[str, float]:
        """Trains a marginal energy on real x′ and tests whether its density made them (Table 1's p_KSD)."""
        rows = self.rows(_some(self.train, self.max_rows, self.seed))
        recipe = replace(recipe, penalty=penalty)
        generators = generators_of((MARGINAL,), self.partition, recipe, self.seed)
        training = AdversarialTraining(generators, self.partition, rows, recipe, self.seed)
        training.run(lambda share: None)
        energy = training.energies[MARGINAL]

        def score(points: np.ndarray) -> np.ndarray:
            with torch.no_grad():
                return -energy.slope(torch.from_numpy(points.astype(np.float32))).numpy()

        matrix = stein_gram(rows.sensitive[:_TESTED].astype(np.float64), score)
        test = quadratic_test(matrix, np.random.default_rng(self.seed))
        return {"ksd": test.statistic, "p_ksd": test.p_value}


def _partners(real: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns a row of `other` for every real x′ [row, number], and whether its x′ is the same; chance among equals."""
    rng, spread = np.random.default_rng(0), np.maximum(real.std(axis=0), 1e-6)
    sides = [np.column_stack([rows / spread, rng.uniform(0, _CHANCE, len(rows))]) for rows in (real, other)]
    apart, partner = cKDTree(sides[1]).query(sides[0])
    return partner, apart <= _ALIKE


def _some(panel: Panel, number: int, seed: int) -> Panel:
    if panel.num_units <= number:
        return panel
    return panel.take_units(np.sort(np.random.default_rng(seed).permutation(panel.num_units)[:number]))
