"""`aim`: counts of the pairs of columns that matter most, and the distribution that agrees with them.

Idea. Make a table of few levels from the series, count every column with noise, find with noise which pairs of
columns are furthest from what the columns alone would say, count those, and draw from the distribution that fits
(AIM).

Private data is touched by Gaussian releases of counts and of L1 errors. Cost: seconds. Choose it for tables of few
columns; series make many, and `spectral` needs no levels.
Not to be confused with AIM as published. Its graphs may have cycles, for which inference needs the library `mbi` and
with it JAX; here dependence is a tree, as in MST (McKenna, Miklau & Sheldon), which is fitted exactly. And its rounds
depend on noisy answers, while a plan is charged whole before data is read; a tree needs one round.

References: McKenna et al., arXiv:2201.12677 (AIM); McKenna, Miklau & Sheldon, arXiv:2108.04978 (MST); Pub2Priv,
appendix E (series as tables).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from understudy.data import Panel, Schema
from understudy.privacy.budget import Guarantee
from understudy.privacy.grant import Grant
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.base import Progress, SampleRequest, Synthesizer
from understudy_bench.baselines import counting
from understudy_bench.baselines.counting import CHOICES, COLUMNS, PAIRS, Counting, CutName
from understudy_bench.baselines.tree import Tree, joint_of, spanning_tree

_SHARES = {COLUMNS: 0.2, CHOICES: 0.15, PAIRS: 0.65}  # of mu², of what is left for counting


@dataclass(frozen=True, kw_only=True)
class Aim(Synthesizer):
    """AIM over trees.

    Attributes:
        cut: How series become columns: "frequencies", or "segments" as in appendix E of the Pub2Priv paper.
        coefficients: Slow frequencies that are kept of each channel, beside those of a day.
        seed: Of a draw by which scores are ranked.
    """

    name: ClassVar[str] = "aim"
    cut: CutName = "frequencies"
    coefficients: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        counting.check_cut(self.cut, self.coefficients)

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """Counts of columns, errors of pairs, counts of chosen pairs."""
        alone = len(counting.domain_of(schema, self.cut, self.coefficients)) < 2
        return counting.plan(schema, guarantee, self.cut, {COLUMNS: 1.0} if alone else _SHARES)

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Counts, chooses, counts again.

        Privacy: unit and neighbours as the schema says; all looks are `Counting`'s.
        """
        counted = Counting.begin(private, grant, self.cut, self.coefficients)
        progress("columns", 0.4)
        singles, edges, joints = counted.singles, np.zeros((0, 2), dtype=np.int64), []
        if counted.pairs:
            edges = self._choose(counted)
            progress("choices", 0.7)
            noisy, noise = counted.release_pairs([(first, second) for first, second in edges])
            ends = zip(noisy, edges, strict=True)
            joints = [joint_of(own, singles[first], singles[second], noise) for own, (first, second) in ends]
        tree = Tree.of(singles, edges, joints)
        progress("pairs", 1.0)
        own = {"singles": tree.singles, "edges": tree.edges, "joints": tree.joints}
        return {**counted.arrays(tree.draw, self.seed), **own}

    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        """Draws levels along the tree, then series within the levels."""
        tree = Tree(arrays["singles"], arrays["edges"], arrays["joints"])
        codes = tree.draw(request.num_series, request.rng, request.label)
        table = counting.released_table(arrays, schema, self.cut, self.coefficients)
        return counting.panel_of(arrays, table, codes, schema, request)

    def _choose(self, counted: Counting) -> np.ndarray:
        """Returns the tree whose pairs are furthest from independence, beyond what noise on their cells would cost."""
        singles, domain = counted.singles, counted.table.domain
        errors = counted.release_errors(lambda first, second: np.outer(singles[first], singles[second]))
        noise = counted.queries.noise(PAIRS, float(np.sqrt(len(domain) - 1)))
        cells = np.array([domain[first] * domain[second] for first, second in counted.pairs])
        merits = errors - np.sqrt(2 / np.pi) * noise * cells  # arXiv:2201.12677, Algorithm 4: quality score
        return spanning_tree(counted.pairs, merits, len(domain))
