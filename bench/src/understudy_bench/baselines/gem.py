"""`gem`: a network that makes a mixture of product distributions, fitted to the pairs of columns it gets most wrong.

Idea. A generator turns fixed noise into rows of independent columns; their mean is a distribution over the table
whose marginals have slopes. Round by round, the pairs furthest from it are counted with noise and the generator is
fitted to all that was counted so far (GEM).

Private data is touched as by `aim`: Gaussian releases of counts and of L1 errors. Cost: seconds to a minute. Choose
it to compare with. Not to be confused with GEM as published, which picks by an exponential mechanism, one at a time;
here a round releases all errors and takes several.

References: Liu, Vietri & Wu, arXiv:2106.07153 (GEM).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from understudy.data import Panel, Schema
from understudy.privacy.budget import Guarantee
from understudy.privacy.grant import Grant
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.base import Progress, SampleRequest, Synthesizer
from understudy.synthesizers.options import require_above_zero
from understudy_bench.baselines import counting
from understudy_bench.baselines.counting import CHOICES, COLUMNS, PAIRS, Counting, CutName, Pair
from understudy_bench.baselines.repeating import repeated
from understudy_bench.baselines.tree import drawn_levels

_SHARES = {COLUMNS: 0.2, CHOICES: 0.2, PAIRS: 0.6}
_LATENT = 16


@dataclass(frozen=True, kw_only=True)
class Gem(Synthesizer):
    """GEM.

    Attributes:
        cut: How series become columns, as for `aim`.
        coefficients: Slow frequencies that are kept of each channel, beside those of a day.
        rounds: How often errors are looked at; less often if all pairs are counted before.
        chosen: Pairs that are counted in each round.
        rows: Product distributions in the mixture.
        updates: Of the generator after each round.
        width: Of hidden layers.
        rate: Learning rate.
        seed: Of everything but privacy noise.
    """

    name: ClassVar[str] = "gem"
    rehearsed: ClassVar[str] = "updates"
    cut: CutName = "frequencies"
    coefficients: int = 4
    rounds: int = 3
    chosen: int = 6
    rows: int = 256
    updates: int = 300
    width: int = 128
    rate: float = 3e-3
    seed: int = 0

    def __post_init__(self) -> None:
        counting.check_cut(self.cut, self.coefficients)
        require_above_zero(self, "rounds", "chosen", "rows", "updates", "width", "rate")

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """Counts of columns, then errors and counts of pairs in every round."""
        rounds = self._num_rounds(len(counting.domain_of(schema, self.cut, self.coefficients)))
        plan = counting.plan(schema, guarantee, self.cut, _SHARES if rounds else {COLUMNS: 1.0})
        return SpendingPlan(repeated(plan.entries, rounds, CHOICES, PAIRS), guarantee)

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Counts columns, then chooses, counts and fits in turn.

        Privacy: unit and neighbours as the schema says; all looks are `Counting`'s.
        """
        counted = Counting.begin(private, grant, self.cut, self.coefficients)
        mixture = Mixture(self, counted.table.domain)
        wanted: dict[Pair, np.ndarray] = {}
        mixture.fit(counted.singles, wanted)
        rounds = self._num_rounds(len(counted.table.domain))
        for round_ in range(rounds):
            errors = counted.release_errors(mixture.expected())
            left = [(-error, pair) for error, pair in zip(errors, counted.pairs, strict=True) if pair not in wanted]
            pairs = [pair for _, pair in sorted(left)[: self.chosen]]
            wanted |= zip(pairs, counted.release_pairs(pairs)[0], strict=True)
            mixture.fit(counted.singles, wanted)
            progress("rounds", (round_ + 1) / rounds)
        released = mixture.rows().detach().numpy()
        return {**counted.arrays(lambda number, rng: draw_codes(released, number, rng), self.seed), "rows": released}

    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        """Draws a product distribution for each series, then its levels."""
        codes = draw_codes(arrays["rows"], request.num_series, request.rng, request.label)
        table = counting.released_table(arrays, schema, self.cut, self.coefficients)
        return counting.panel_of(arrays, table, codes, schema, request)

    def _num_rounds(self, num_columns: int) -> int:
        return min(self.rounds, math.ceil(math.comb(num_columns, 2) / self.chosen))


class Mixture:
    """A mixture of product distributions over the levels of a table, made by a network from fixed noise."""

    def __init__(self, method: Gem, domain: tuple[int, ...]) -> None:
        self._method, most = method, counting.most_levels(domain)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(method.seed)
            self._latent = torch.randn(method.rows, _LATENT)
            self._network = nn.Sequential(
                nn.Linear(_LATENT, method.width),
                nn.ReLU(),
                nn.Linear(method.width, method.width),
                nn.ReLU(),
                nn.Linear(method.width, len(domain) * most),
                nn.Unflatten(1, (len(domain), most)),
            )
        self._absent = torch.arange(most) >= torch.tensor(domain)[:, None]
        self._optimiser = torch.optim.Adam(self._network.parameters(), lr=method.rate)

    def rows(self) -> Tensor:
        """Returns the chances [row, column, level] of every level."""
        logits: Tensor = self._network(self._latent)
        return torch.softmax(logits.masked_fill(self._absent, -torch.inf), dim=2)

    def expected(self) -> counting.Expected:
        """Returns what the mixture says about pairs."""
        held, domain = self.rows().detach().numpy(), (~self._absent).sum(1).tolist()

        def shares(first: int, second: int) -> np.ndarray:
            left, right = held[:, first, : domain[first]], held[:, second, : domain[second]]
            return np.asarray(left.T @ right / len(held))

        return shares

    def fit(self, singles: tuple[np.ndarray, ...], wanted: dict[Pair, np.ndarray]) -> None:
        """Brings the mixture closer to released columns and pairs, in squares."""
        most = self._absent.shape[1]
        columns = torch.from_numpy(np.stack([np.pad(own, (0, most - len(own))) for own in singles])).float()
        tables = {pair: torch.from_numpy(noisy).float() for pair, noisy in wanted.items()}
        for _ in range(self._method.updates):
            held = self.rows()
            loss = (held.mean(0) - columns).square().sum()
            for (first, second), noisy in tables.items():
                left, right = held[:, first, : len(noisy)], held[:, second, : noisy.shape[1]]
                loss = loss + (left.T @ right / len(held) - noisy).square().sum()
            self._optimiser.zero_grad()
            loss.backward()
            self._optimiser.step()


def draw_codes(released: np.ndarray, number: int, rng: np.random.Generator, first: int | None = None) -> np.ndarray:
    """Returns levels [series, column]; `first` fixes those of the first column and prefers rows that are like it."""
    weights = np.ones(len(released)) if first is None else released[:, 0, first].astype(np.float64) + 1e-9
    chosen = released[rng.choice(len(released), size=number, p=weights / weights.sum())]
    codes = np.stack([drawn_levels(chosen[:, column], rng) for column in range(chosen.shape[1])], axis=1)
    codes[:, 0] = codes[:, 0] if first is None else first
    return codes
