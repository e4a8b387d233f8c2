"""What the PPEM benchmarks measure: how far x′ is, and whether everything else given x′ is as it was."""

from dataclasses import dataclass, replace

import numpy as np
import torch

from understudy.data import Panel
from understudy.evaluate.comparison import Comparison
from understudy.evaluate.kernels import gram, quadratic_test, stein_gram, two_sample_test
from understudy.evaluate.metric import Effort, Undefined
from understudy.evaluate.ppem.models import METRICS
from understudy.synthesizers.base import PrivateSeries
from understudy.synthesizers.ppem.attributes import Partition
from understudy.synthesizers.ppem.contest import Contest, Energies, made
from understudy.synthesizers.ppem.effects import effects_of
from understudy.synthesizers.ppem.learning import Rows
from understudy.synthesizers.ppem.recipe import Recipe
from understudy.synthesizers.ppem.training import train_plainly

_TESTED = 1000  # rows of each side of a two-sample test, as in paper 002
_GROUPS = 8  # neighbourhoods of x′ within which the rest is compared
_FEWEST = 25  # rows of each side that a neighbourhood needs


@dataclass(frozen=True, eq=False, kw_only=True)
class Measures:
    """One dataset's measuring; `partition` works in declared bounds, the same for every candidate."""

    train: Panel
    rest: Panel
    partition: Partition
    max_rows: int
    seed: int = 0

    def rows(self, panel: Panel) -> Rows:
        """Returns a panel as (x′, x*)."""
        number = panel.num_series
        return Rows.of(PrivateSeries(panel, np.ones(number), 1, number), self.partition)

    def figures(self, candidate: Panel, against: Panel | None = None) -> dict[str, float]:
        """Returns all figures of a candidate, against kept-out real rows unless others are given."""
        some, real = _some(candidate, self.max_rows, self.seed), against or self.rest
        return {**self.apart(some, real), **self.conditional(some), **self.tasks(some, real)}

    def apart(self, candidate: Panel, against: Panel) -> dict[str, float]:
        """Returns effect sizes on x′ and the two-sample test."""
        real, other = (self.rows(_some(panel, _TESTED, self.seed)).sensitive for panel in (against, candidate))
        sets = (self.partition.attributes,)
        found = {
            metric: effects_of(metric, sets, real, self.seed)[0].between(real, other)
            for metric in ("mmd", "wasserstein")
        }
        test = two_sample_test(gram(np.concatenate([real, other])), len(real), np.random.default_rng(self.seed))
        return {"effect_mmd": found["mmd"], "effect_wasserstein": found["wasserstein"], "p_mmd": test.p_value}

    def conditional(self, candidate: Panel) -> dict[str, float]:
        """Returns how far x* given x′ is: mean distance of means within neighbourhoods of x′, in deviations.

        Neighbourhoods are those of the real x′, and all count alike, however often the candidate visits them.
        """
        from sklearn.cluster import KMeans

        real, other = self.rows(_some(self.train, 20_000, self.seed)), self.rows(candidate)
        groups = KMeans(_GROUPS, n_init=2, random_state=0).fit(real.sensitive)
        places = groups.labels_, groups.predict(other.sensitive)
        spread = real.rest.std(axis=0)
        moving = spread > 1e-6
        gaps = []
        for group in range(_GROUPS):
            sides = [rows.rest[place == group][:, moving] for rows, place in zip((real, other), places, strict=True)]
            if min(map(len, sides)) >= _FEWEST:
                gaps.append(np.abs(sides[0].mean(axis=0) - sides[1].mean(axis=0)) / spread[moving])
        return {"conditional_gap": float(np.mean(gaps)) if gaps else float("nan"), "neighbourhoods": float(len(gaps))}

    def tasks(self, candidate: Panel, against: Panel) -> dict[str, float]:
        """Returns AUROC, MSE and R² of models trained on the candidate and tested on other, real rows."""
        effort = Effort(name="bench", repeats=1, iteration_cap=200, replicates=2, splits=1, max_series=self.max_rows)
        real = _some(self.train, self.max_rows, self.seed)
        comparison = Comparison(real=real, candidate=candidate, reference=against, unseen=against)
        found = {}
        for metric in METRICS:
            try:
                found[metric.name.removeprefix("ppem.")] = metric.measure(comparison, effort, self.seed).value
            except Undefined:
                continue
        return found

    def marginals(self, candidate: Panel, num_points: int = 60) -> dict[str, list[list[float]]]:
        """Returns distributions of a few columns of x′ and of x*, for pictures: real and candidate quantiles."""
        sides = [self.rows(_some(panel, 4000, self.seed)) for panel in (self.rest, candidate)]
        ranks = np.linspace(0.01, 0.99, num_points)
        shown = {f"x′ {n}": [side.sensitive[:, n] for side in sides] for n in range(min(3, len(sides[0].sensitive[0])))}
        shown |= {f"x* {n}": [side.rest[:, n] for side in sides] for n in range(min(3, sides[0].rest.shape[1]))}
        return {name: [np.quantile(values, ranks).tolist() for values in pair] for name, pair in shown.items()}

    def energy_test(self, recipe: Recipe, penalty: float) -> dict[str, float]:
        """Trains a marginal energy on real x′ and tests whether its density made them (Table 1's p_KSD)."""
        rows = self.rows(_some(self.train, self.max_rows, self.seed))
        recipe = replace(recipe, penalty=penalty)
        torch.manual_seed(self.seed)
        contest = Contest(
            energies=Energies(self.partition, recipe, marginal=True, conditional=False),
            generators=made(self.partition, recipe, self.seed, marginal=True),
            references=torch.from_numpy(rows.sensitive),
            codes=(),
            recipe=recipe,
            seed=self.seed,
            penalised=True,
        )
        train_plainly(contest, {"sensitive": rows.sensitive, "rest": rows.rest}, lambda share: None)
        energy = contest.energies.marginal
        assert energy is not None

        def score(points: np.ndarray) -> np.ndarray:
            with torch.no_grad():
                return -energy.slope(torch.from_numpy(points.astype(np.float32))).numpy()

        matrix = stein_gram(rows.sensitive[:_TESTED].astype(np.float64), score)
        test = quadratic_test(matrix, np.random.default_rng(self.seed))
        return {"ksd": test.statistic, "p_ksd": test.p_value}


def _some(panel: Panel, number: int, seed: int) -> Panel:
    if panel.num_units <= number:
        return panel
    return panel.take_units(np.sort(np.random.default_rng(seed).permutation(panel.num_units)[:number]))
