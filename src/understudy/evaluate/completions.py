"""Steps of other real series, hidden on purpose and filled by a release that can: what the conditional suite reads."""

from dataclasses import replace

import numpy as np

from understudy.data.masks import MASKS
from understudy.evaluate.comparison import Completion
from understudy.evaluate.panels import Panels
from understudy.synthesizers import Release
from understudy.synthesizers.completing import fillings

KINDS = ("random", "block", "stride")  # where all is hidden, there is nothing to fill from
MAX_SERIES, NUM_DRAWS = 100, 19


def with_completions(panels: Panels, release: Release | None, *, seed: int = 0) -> Panels:
    """Returns the panels with fillings of other real series; as they were if there is no release that can impute.

    Privacy: internal. The series that are filled were not learned from, and their truth stays beside the fillings.
    """
    if release is None or not release.synthesizer.completes:
        return panels
    rng = np.random.default_rng([seed, 17])
    chosen = np.sort(rng.permutation(panels.other.num_units)[:MAX_SERIES])
    series = panels.other.take_units(chosen)
    made = []
    for kind in KINDS:
        steps = MASKS[kind](series.num_series, series.num_steps, rng)
        drawn = fillings(release, series, steps[:, :, None] & series.observed, num_draws=NUM_DRAWS, rng=rng)
        made.append(Completion(kind=kind, truth=series.values, hidden=steps, draws=drawn))
    return replace(panels, completions=tuple(made))
