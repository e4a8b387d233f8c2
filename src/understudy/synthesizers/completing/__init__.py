"""Fills gaps of somebody's series and continues them, with a release that can (`Synthesizer.complete`).

Whose series they are decides what the result is. For anybody else's series it is post-processing of the release, and
costs nothing; for the series that the release was learned from it is internal, covered by no guarantee. Either way the
result holds what was observed and is as private as that.
"""

from understudy.synthesizers.completing.forecasting import Forecast, forecast
from understudy.synthesizers.completing.imputing import Completed, fillings, impute

__all__ = ["Completed", "Forecast", "fillings", "forecast", "impute"]
