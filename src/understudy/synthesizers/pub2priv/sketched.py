"""The default way: a `spectral` release, and on it one noisy sum that says how shapes follow context.

Where a few numbers of that sum, how closely series follow their context, explain more than the whole regression, they
alone are used: a regression has to be found among hundreds of numbers, each with its noise.

Levels and the strongest frequencies of every factor come from that sum, for the context that the caller brings; sizes
of movements, other frequencies, gaps and static columns are `spectral`'s.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from understudy.data import Panel
from understudy.privacy.border import Statistic
from understudy.privacy.contributions import Contributions, Rows, SideBySide
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.columns import classes_of
from understudy.synthesizers.pub2priv.basis import Basis
from understudy.synthesizers.pub2priv.conditions import Conditions
from understudy.synthesizers.pub2priv.coordinates import Coordinates
from understudy.synthesizers.pub2priv.followed import PRODUCTS, Followed, explained, heard
from understudy.synthesizers.pub2priv.holds import hold_cells
from understudy.synthesizers.pub2priv.moments import Layout, Moments, fit_moments
from understudy.synthesizers.pub2priv.shapes import Shapes

MOMENTS = "moments"  # label under which the sum is charged
FOLLOWED_SHARE = 1 / 3  # of the products by which context is followed, beside all others
_ENOUGH = 0.4  # of what a regression explains that following has to, by a bound that is low


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
        """Returns the released regression of shapes on context, and the public map of context."""
        basis = self.basis(public)
        layout = self.layout(basis)
        statistic = Statistic(
            label=MOMENTS,
            shape=(layout.size + int(np.prod(self.followed.shape)),),
            bound=self.bound(layout),
            contributions=lambda panel: self.contributions(panel, basis),
        )
        noisy = grant.release(statistic, private)
        noise, count = grant.deviation(MOMENTS, statistic.bound * private.reach), private.population
        fitted = fit_moments(noisy[: layout.size], noise, count, layout, basis.products, self.shapes.parts)
        weight = self.weight(layout) * count
        products = heard(noisy[layout.size :].reshape(self.followed.shape) / weight, noise / weight)
        simpler = (
            explained(products, noise / weight) > _ENOUGH * fitted.explained / self.coordinates.schema.num_channels
        )
        return {**fitted.to_arrays(), **basis.to_arrays(), PRODUCTS: products * simpler}

    @cached_property
    def followed(self) -> Followed:
        """What is asked beside, in far fewer numbers: how closely series follow their context."""
        return Followed(self.conditions, self.coordinates)

    def weight(self, layout: Layout) -> float:
        """Returns the weight of the products by which context is followed."""
        return FOLLOWED_SHARE * layout.bound / max(self.followed.reach, 1.0)

    def bound(self, layout: Layout) -> float:
        """Returns the most that one series adds to the whole sum."""
        return float(np.hypot(layout.bound, self.weight(layout) * self.followed.reach))

    def contributions(self, panel: Panel, basis: Basis) -> Contributions:
        """Returns what series add; private if the panel is."""
        layout, every = self.layout(basis), slice(None)
        mapped = basis.of(self.features(panel.context, panel.num_series))
        shapes, cells = self.shapes.of(panel, classes_of(panel), every), hold_cells(panel, every)
        followed = Rows(self.weight(layout) * self.followed.products(panel))
        return SideBySide([*layout.contributions(shapes, mapped, cells), followed])

    def scores(
        self,
        arrays: Mapping[str, np.ndarray],
        context: np.ndarray | None,
        classes: np.ndarray,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns (scores [series, step, channel], scores of static columns) of series for the contexts given."""
        if PRODUCTS in arrays and arrays[PRODUCTS].any():  # releases of before have none
            return self.followed.scores(arrays, context, classes, rng)
        mapped = Basis.from_arrays(arrays).of(self.features(context, len(classes)))
        shapes = Moments.from_arrays(arrays).draw(mapped, rng)
        drawn = self.coordinates.drawn(classes, rng)
        scores, singles = self.coordinates.scores(self.shapes.placed(shapes, drawn), classes)
        return self.shapes.turned(shapes, scores), singles

    def holds(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        """Returns the released shares of holds."""
        return Moments.from_arrays(arrays).holds
