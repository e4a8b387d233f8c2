"""The default way: a `spectral` release, and on it one noisy sum that says how shapes follow context.

Levels and the strongest frequencies of every factor come from that sum, for the context that the caller brings; sizes
of movements, other frequencies, gaps and static columns are `spectral`'s.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from understudy.data import Panel
from understudy.privacy.events import Gaussian
from understudy.privacy.grant import Grant
from understudy.privacy.mechanisms import Bounded
from understudy.synthesizers.base import PrivateSeries
from understudy.synthesizers.frame.facts import classes_of
from understudy.synthesizers.pub2priv.basis import Basis
from understudy.synthesizers.pub2priv.conditions import Conditions
from understudy.synthesizers.pub2priv.coordinates import Coordinates
from understudy.synthesizers.pub2priv.holds import hold_cells
from understudy.synthesizers.pub2priv.moments import Layout, Moments, fit_moments
from understudy.synthesizers.pub2priv.shapes import Shapes

MOMENTS = "moments"  # label under which the sum is charged
_CHUNK_NUMBERS = 2_000_000


@dataclass(frozen=True, eq=False)
class Sketched:
    """What is summed, and the way back from it."""

    conditions: Conditions
    coordinates: Coordinates

    @cached_property
    def shapes(self) -> Shapes:
        """Which numbers of a series are its shape."""
        return Shapes(self.coordinates)

    def features(self, context: np.ndarray | None, num_series: int) -> np.ndarray:
        """Returns what of a context may explain a shape [series, feature]."""
        return self.conditions.features(context, num_series, self.shapes.frequencies)

    def basis(self, public: np.ndarray | None) -> Basis:
        """Returns how features are mapped: as public windows [window, step, context] suggest, or as they are."""
        if public is not None and self.conditions.own:
            return Basis.of_public(self.features(public, len(public)))
        number = self.conditions.num_features(len(self.shapes.frequencies))
        return Basis.plain(number, self.conditions.feature_reach)

    def layout(self, basis: Basis) -> Layout:
        """Returns what one series adds to the sum."""
        return Layout(
            num_shape=self.shapes.size,
            num_context=basis.size,
            shape_reach=self.shapes.reach,
            context_reach=basis.reach,
            context_known=basis.known,
        )

    def buy(self, private: PrivateSeries, grant: Grant, public: np.ndarray | None) -> dict[str, np.ndarray]:
        """Returns the released regression of shapes on context, and the public map of context.

        Privacy: one Gaussian release of a sum over units; what a unit adds is no longer than the layout's bound,
        however many series it has, because its series share the weight one (times the influence, for events).
        """
        basis = self.basis(public)
        layout = self.layout(basis)
        bound = layout.bound * private.influence
        noisy = grant.gaussian(
            MOMENTS, Bounded(self.total(private.panel, private.weights, classes_of(private), basis), bound)
        )
        event = grant.plan.event(MOMENTS)
        assert isinstance(event, Gaussian)
        noise = event.noise_multiplier * bound
        fitted = fit_moments(noisy, noise, private.population, layout, basis.products, self.shapes.parts)
        return {**fitted.to_arrays(), **basis.to_arrays()}

    def total(self, panel: Panel, weights: np.ndarray, classes: np.ndarray, basis: Basis) -> np.ndarray:
        """Returns the sum over series.

        Privacy: private if the panel is; each series adds a vector no longer than the layout's bound, times its weight.
        """
        layout = self.layout(basis)
        total = np.zeros(layout.size)
        size = max(1, _CHUNK_NUMBERS // max(1, panel.num_steps * panel.schema.num_channels))
        for first in range(0, panel.num_series, size):
            rows = slice(first, min(first + size, panel.num_series))
            context = None if panel.context is None else panel.context[rows]
            mapped = basis.of(self.features(context, rows.stop - rows.start))
            shapes, cells = self.shapes.of(panel, classes, rows), hold_cells(panel, rows)
            total += layout.total(shapes, mapped, cells, weights[rows])
        return total

    def scores(
        self,
        arrays: Mapping[str, np.ndarray],
        context: np.ndarray | None,
        classes: np.ndarray,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns (scores [series, step, channel], scores of static columns) of series for the contexts given."""
        mapped = Basis.from_arrays(arrays).of(self.features(context, len(classes)))
        shapes = Moments.from_arrays(arrays).draw(mapped, rng)
        drawn = self.coordinates.drawn(classes, rng)
        scores, singles = self.coordinates.scores(self.shapes.placed(shapes, drawn), classes)
        return self.shapes.turned(shapes, scores), singles
