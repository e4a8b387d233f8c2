"""What the shared releases let an outsider see besides their numbers."""

from dataclasses import replace

import numpy as np

from understudy.data import simulate_intensive_care
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.queries import MARGINALS, Queries


def test_how_many_cells_a_column_has_does_not_follow_how_often_it_was_measured() -> None:
    """Shapes are public; what was found of gaps is a noisy private figure. 20,000 units: noise would add cells."""
    series = PrivateSeries.of(replace(simulate_intensive_care(300), private=True), 20_000)
    sizes = []
    for rate in (1.0, 0.3):
        guarantee = Guarantee(1.0, 1e-6)
        plan = SpendingPlan((PlanEntry(MARGINALS, Gaussian(6.0)),), guarantee)
        grant = Ledger.in_memory(guarantee).charge(plan, label="run", noise=NoiseSource.seeded(1))
        queries = Queries(series, grant)
        observed = np.full((3, len(queries.columns)), rate)
        observed[2] = 1.0
        marginals, _ = queries.count_columns(MARGINALS, range(len(queries.columns)), observed)
        sizes.append([marginal.grid.num_cells for marginal in marginals])
    assert sizes[0] == sizes[1]
