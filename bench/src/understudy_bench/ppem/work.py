"""One dataset of the PPEM benchmarks: fit, sample and measure, over one seed or several."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from understudy.data import Panel
from understudy.errors import ReleaseError
from understudy.privacy.budget import Guarantee, default_delta
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.statistics.facts import facts_of
from understudy.synthesizers.base import SampleRequest, Synthesizer
from understudy.synthesizers.ppem import PPEM
from understudy.synthesizers.ppem.attributes import Partition
from understudy.synthesizers.ppem.recipe import Recipe
from understudy.synthesizers.sampling import panel_of
from understudy_bench.ppem.baselines import BASELINES
from understudy_bench.ppem.measures import Measures
from understudy_bench.result import Row, Stopwatch, row, spread

FEW_SEEDS = range(3)  # of rows with noise, and of networks of other papers, that are judged


@dataclass(frozen=True)
class Scale:
    """How much work a benchmark does.

    Attributes:
        iterations: Updates of the energies.
        rows: Synthetic rows that are drawn, at most.
        homes: That are simulated.
        seeds: Of rows that are judged against each other.
    """

    iterations: int
    rows: int
    homes: int
    seeds: int = 5


@dataclass(frozen=True)
class Work:
    """One dataset's measuring."""

    train: Panel
    rest: Panel
    sensitive: tuple[str, ...]
    scale: Scale
    regressed: str | None = None
    paper: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # figures by row

    @property
    def measures(self) -> Measures:
        """How candidates are measured, in declared bounds."""
        partition = Partition.of(self.train.schema.without_context(), self.sensitive)
        return Measures(
            train=self.train, rest=self.rest, partition=partition, max_rows=self.num_rows, regressed=self.regressed
        )

    @property
    def num_rows(self) -> int:
        """Synthetic rows that are drawn: about as many as were learned from, as in the PPEM paper."""
        return max(4000, min(self.scale.rows, self.train.num_units))

    def ppem(self, **options: Any) -> PPEM:
        """The method on this dataset's secret."""
        return PPEM(sensitive=self.sensitive, **options)

    def fitted(
        self,
        label: str,
        method: Synthesizer,
        epsilon: float = math.inf,
        tested_penalty: float | None = None,
        seeds: Sequence[int] = (0,),
    ) -> Row:
        """Fits and samples once for every seed, and measures; figures are spread over seeds.

        Without DP noise there is nothing secret about coins: they come from the seed as well, so that rows with and
        without the penalty differ by the penalty alone.
        """
        watch, measures = Stopwatch(), self.measures
        delta = default_delta(self.train.schema.population.size or 1)
        found, drawn, given = [], [], []
        for seed in seeds:
            own = replace(method, seed=seed) if isinstance(method, PPEM) else method
            ledger = Ledger.in_memory(Guarantee(epsilon, delta), population=self.train.schema.population.size)
            try:
                release = own.fit(self.train, ledger, noise=None if epsilon < math.inf else NoiseSource.seeded(seed))
            except ReleaseError as refusal:
                return row(label, {}, epsilon=epsilon, delta=delta, seconds=watch.seconds, status=f"nothing: {refusal}")
            drawn.append(release.sample(self.num_rows, rng=np.random.default_rng(seed)))
            found.append(measures.figures(drawn[-1]))
            if isinstance(own, PPEM) and own.mode == "lmdp":
                given.append(measures.given(own, release))
        metrics = {**_over_seeds(found), "held_out_gap": measures.held_out_gap(drawn)}
        if given:
            metrics["given_gap"] = measures.held_out_gap(given)
        if tested_penalty is not None:
            metrics |= measures.energy_test(Recipe(iterations=self.scale.iterations), tested_penalty)
        return row(
            label,
            metrics,
            epsilon=release.certificate.epsilon,
            delta=delta,
            unit=self.train.schema.unit.kind,
            paper=dict(self.paper.get(f"{label} {epsilon:g}" if epsilon < math.inf else label, {})),
            seconds=watch.seconds,
            status=release.certificate.status,
            obfuscation=list(release.certificate.marginal_obfuscation),
            findings=list(own.findings(release.schema, release.arrays)) if isinstance(own, PPEM) else [],
            shown=measures.shown(drawn[0]),
            seeds=len(seeds),
        )

    def baseline(self, kind: str) -> Row:
        """Trains one of the paper's baselines on (x′, x*) and measures."""
        watch, measures = Stopwatch(), self.measures
        real = measures.rows(self.train)
        cut = real.sensitive.shape[1]
        both, drawn = np.concatenate([real.sensitive, real.rest], axis=1), []
        for seed in FEW_SEEDS:
            made = BASELINES[kind](both, self.scale.iterations, seed)[: self.num_rows]
            drawn.append(self._panel(measures.partition, made[:, :cut], made[:, cut:]))
        figures = _over_seeds([measures.figures(one) for one in drawn])
        return row(
            kind,
            {**figures, "held_out_gap": measures.held_out_gap(drawn)},
            paper=dict(self.paper.get(kind, {})),
            unit=self.train.schema.unit.kind,
            seconds=watch.seconds,
            status="not private: no noise",
            shown=measures.shown(drawn[0]),
            seeds=len(drawn),
        )

    def holdout(self) -> Row:
        """Kept-out real rows in the place of synthetic ones, against those that were learned from."""
        watch = Stopwatch()
        figures = {
            **self.measures.figures(self.rest, against=self.train),
            "held_out_gap": self.measures.held_out_gap([self.train]),
        }
        return row("holdout", figures, unit=self.train.schema.unit.kind, seconds=watch.seconds)

    def _panel(self, partition: Partition, sensitive: np.ndarray, rest: np.ndarray) -> Panel:
        schema = partition.schema
        single = len(partition.encoding.static_columns)
        nothing = facts_of([], np.ones(1), np.zeros(single), np.zeros((0, 1)), np.zeros(0))
        series, static, classes = partition.joined(partition.decoded(sensitive), rest)
        request = SampleRequest(num_series=len(rest), rng=np.random.default_rng(0))
        return panel_of(schema, request, partition.encoding, nothing, classes, (series, static))


def _over_seeds(found: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Returns figures as they are, or as mean, lowest and highest where there are several fits."""
    several = {key: [one[key] for one in found if key in one] for key in found[0]}
    return {key: spread(values) if len(found) > 1 else values[0] for key, values in several.items()}
