"""One dataset of the vertical benchmarks: fit, sample, measure, and keep what pictures are drawn from."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from understudy.data import Panel
from understudy.evaluation.metric import Effort, Measure
from understudy.evaluation.panels import Comparison
from understudy.evaluation.portraits import embedding
from understudy.privacy.budget import Guarantee, default_delta
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.vflgan_ts.method import VFLGANTS
from understudy_bench.metrics.vertical.sine import FREQUENCIES, amplitudes
from understudy_bench.metrics.vertical.tasks import SIDES
from understudy_bench.result import Row, Stopwatch, row

Cell = dict[str, Any]  # a row, and the numbers of its picture
_SHOWN = 400  # series in a picture
_DIGITS = 4


@dataclass(frozen=True, eq=False, kw_only=True)
class Trial:
    """One dataset's measuring.

    Attributes:
        train: What is learned from.
        rest: Other real series, which nothing was learned from.
        num_rows: Synthetic and real series that metrics look at.
        iteration_cap: Most updates of a network that judges.
        facts: Further columns of every row.
    """

    name: str
    train: Panel
    rest: Panel
    measures: Mapping[str, Measure]
    num_rows: int
    iteration_cap: int | None
    facts: Mapping[str, Any]

    def fitted(
        self,
        label: str,
        method: Synthesizer,
        epsilon: float,
        paper: dict[str, float] | None = None,
        *,
        seed: int = 0,
        shown: bool = False,
    ) -> Cell:
        """Fits once, samples, and measures; `shown` keeps the numbers of a picture."""
        method = replace(method, seed=seed) if isinstance(method, VFLGANTS) else method
        watch, delta = Stopwatch(), default_delta(self.train.num_units)
        ledger = Ledger.in_memory(Guarantee(epsilon, delta), population=self.train.schema.population.size)
        release = method.fit(self.train, ledger)
        fitting = watch.seconds
        sampled = release.sample(self._real.num_units, rng=np.random.default_rng(seed))
        line = row(
            label,
            {**self._metrics(sampled, seed), "fit_s": fitting},
            epsilon=release.certificate.epsilon,
            delta=delta,
            unit=self.train.schema.unit.kind,
            paper=paper,
            seconds=watch.seconds,
            status=release.certificate.status,
            seed=seed,
            **self.facts,
        )
        if not shown:
            return {"row": line, "picture": None}
        distances = release.arrays.get("awd", np.zeros(0)).round(_DIGITS).tolist()
        return {"row": line, "picture": {**self._picture(sampled), **({"awd": distances} if distances else {})}}

    def holdout(self) -> Cell:
        """Other real series in the place of synthetic ones."""
        watch = Stopwatch()
        other = self.rest.take_units(np.arange(min(self.num_rows, self.rest.num_units)))
        figures = self._metrics(other)
        line: Row = row("holdout", figures, unit=self.train.schema.unit.kind, seconds=watch.seconds, **self.facts)
        return {"row": line, "picture": self._picture(other)}

    def _metrics(self, candidate: Panel, seed: int = 0) -> dict[str, float]:
        effort = Effort(
            name="bench", repeats=1, iteration_cap=self.iteration_cap, replicates=2, splits=1, max_series=self.num_rows
        )
        comparison = self._compared(candidate)
        figures: dict[str, float] = {}
        for name, measure in self.measures.items():
            found = measure(comparison, effort, seed)
            figures[name] = found.value
            if "TSTR" in found.parts:
                performance = {side: found.parts[side] for side in SIDES}
                figures |= {f"{name}_{side.lower()}": value for side, value in performance.items()}
                figures[f"{name}_ratio"] = performance["TSTR"] / performance["TRTR"]
        return figures

    def _picture(self, candidate: Panel) -> dict[str, Any]:
        """Amplitudes of two attributes of a sine set (Fig. 3), or both sides as clouds (Fig. 5 and 7)."""
        if self.train.schema.name in FREQUENCIES:
            found = amplitudes(candidate.values[:_SHOWN, :, [0, -1]])
            return {"amplitudes": np.round(found, _DIGITS).tolist()}
        return {"clouds": embedding(self._compared(candidate))}

    @cached_property  # one object, by which networks trained on it are known again
    def _real(self) -> Panel:
        """Real series that metrics look at; as many synthetic ones, because an epoch of more has more updates."""
        return self.train.take_units(np.arange(min(self.num_rows, self.train.num_units)))

    def _compared(self, candidate: Panel) -> Comparison:
        return Comparison(real=self._real, candidate=candidate, reference=self.rest, unseen=self.rest)
