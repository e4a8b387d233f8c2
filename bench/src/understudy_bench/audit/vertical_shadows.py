"""Shadows of vertical runs: trained in stacks, measured on what they release and on the features that parties send.

Seeds differ from shadow to shadow, as in VFLGAN-TS: what is asked is what the data leave in a release, and not what a
public seed gives away.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.auditing.attacks import Vectors, vectors
from understudy.auditing.shadows import FEATURES, Features, Job, Shadows, measured
from understudy.privacy.budget import Guarantee
from understudy.statistics.encoding import Encoding, linear_scales
from understudy.synthesizers.base import SampleRequest
from understudy.synthesizers.vflgan_ts.method import PARTY, VFLGANTS
from understudy.training.networks import to_arrays
from understudy_bench.audit import stack
from understudy_bench.audit.stack import Trained

AT_ONCE = 16
_NOBODY_PROTECTED = Guarantee(math.inf, 1e-6)
_ASIF = ("naive", "correlation")  # features of features, as in Table 10 of VFLGAN-TS


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class VerticalShadows(Shadows):
    """What is trained how often.

    Attributes:
        noise_multiplier: Of noise on first layers, as VFLGAN-TS has it; None for the mode `plain`.
        transcript: Whether features that parties send are measured too (ASIF).
    """

    method: VFLGANTS
    guarantee: Guarantee = _NOBODY_PROTECTED
    noise_multiplier: float | None = None
    transcript: bool = False
    at_once: int = AT_ONCE

    def make(self, jobs: Sequence[Job]) -> list[dict[str, Features]]:
        """Trains a stack and measures each of its shadows."""
        everybody = np.arange(self.panel.num_series)
        others = np.flatnonzero(self.panel.unit != self.target)
        wanted = [
            stack.Job(seed=2 * number + (arm == "present"), units=everybody if arm == "present" else others)
            for arm, number in jobs
        ]
        trained = stack.train_stack(self.method, self.panel, wanted, self.noise_multiplier)
        return [self._measured(one, job.seed) for one, job in zip(trained, wanted, strict=True)]

    def one_release(self, seed: int) -> Vectors:
        """Returns synthetic series of a run over all rows, to choose a target by."""
        job = stack.Job(seed=seed, units=np.arange(self.panel.num_series))
        (trained,) = stack.train_stack(self.method, self.panel, [job], self.noise_multiplier)
        return self._drawn(trained, np.random.default_rng([seed, 1]))

    def _measured(self, trained: Trained, seed: int) -> dict[str, Features]:
        target = vectors(self.panel.take_units([self.target]))
        found = measured(self._drawn(trained, np.random.default_rng([seed, 1])), target)
        for place, features in enumerate(trained.features if self.transcript else ()):
            rows = features.astype(np.float32)
            found |= {f"F{place + 1} {name}": FEATURES[name](rows, target) for name in _ASIF}
        return {name: np.ascontiguousarray(feature, np.float32) for name, feature in found.items()}

    def _drawn(self, trained: Trained, rng: np.random.Generator) -> Vectors:
        """Synthetic series of one shadow, as whoever receives its release draws them."""
        schema, number = self.panel.schema, self.num_samples
        encoding = Encoding.of(schema, (), linear_scales(schema, None))
        arrays = {
            name: array
            for place, module in enumerate(trained.generators)
            for name, array in to_arrays(module, f"{PARTY}{place}.").items()
        }
        series, _ = self.method._working_rows(arrays, encoding, np.zeros(number, dtype=np.int64), rng)
        lengths = np.full(number, schema.num_steps)
        request = SampleRequest(num_series=number, rng=rng)
        return vectors(request.panel(schema, encoding.values(series), lengths, np.zeros((number, 0))))
