"""The size of each channel's movement, for windows of one long series: too few to know a whole distribution by.

Declared bounds are often far wider than the values, and a distribution of which little more than noise is known bends
straight lines. Here every window votes, for each channel, for the half-octave that its standard deviation lies in. The
winner is known from few votes, and channels are then scaled, not bent.
"""

import numpy as np

from understudy.data import Panel, Schema
from understudy.data.channels import num_codes
from understudy.privacy.border import Statistic
from understudy.privacy.contributions import Cells
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries

LABEL, SHARE = "scale", 0.2  # of mu²
MARGINALS = 0.1  # share of distributions beside it: they tell a centre, and values that are drawn with nothing shown
_CELLS = 24  # half-octaves below the declared width
_NEAR = np.array([0.5, 1.0, 0.5])  # votes for a neighbouring cell count half
_EXPECTED, _SURE = 8.0, 4.0  # mean and deviation of the cell, where nothing is known: a sixteenth of the width


def scaled_channels(schema: Schema) -> list[int]:
    """Returns the places of channels that are scaled: of events those that are numbers, otherwise none."""
    if schema.unit.kind != "event":
        return []
    return [place for place, channel in enumerate(schema.channels) if num_codes(channel) is None]


def votes(panel: Panel) -> Cells:
    """Returns a vote of each series for the cell of each channel's deviation; none where it stands still."""
    values, places = panel.values, scaled_channels(panel.schema)
    known = ~np.isnan(values[:, :, places])
    own, number = np.nan_to_num(values[:, :, places].astype(np.float64)), np.maximum(known.sum(axis=1), 1)
    mean = own.sum(axis=1) / number
    deviation = np.sqrt((np.where(known, own - mean[:, None], 0.0) ** 2).sum(axis=1) / number)
    cell = np.floor(-2 * np.log2(np.maximum(deviation / _widths(panel.schema), 2.0**-_CELLS))).astype(np.int64)
    return Cells.one_each(np.where((cell >= 0) & (cell < _CELLS), cell, -1), _CELLS)


def scales_of(schema: Schema, totals: np.ndarray, noise: float = 0.0) -> np.ndarray:
    """Returns the size of each scaled channel's movement: the middle of the half-octave with the most votes.

    Votes have noise of a standard deviation; where it is large, a cell needs the more of them the odder it is.
    """
    smooth = np.stack([np.convolve(own, _NEAR, mode="same") for own in totals.reshape(-1, _CELLS)])
    odd = ((np.arange(_CELLS) - _EXPECTED) / _SURE) ** 2 / 2
    return np.asarray(_widths(schema) * 2.0 ** (-((smooth - noise * odd).argmax(axis=1) + 0.5) / 2))


def _widths(schema: Schema) -> np.ndarray:
    low, high = np.array([schema.channels[place].bounds for place in scaled_channels(schema)]).T
    return np.asarray(np.maximum(high - low, 1e-12))


def buy(private: PrivateSeries, grant: Grant) -> np.ndarray:
    """Returns the sizes, bought; none where no channel is scaled. A window votes once for each scaled channel."""
    number = len(scaled_channels(private.schema))
    if not number:
        return np.zeros(0)
    bound = float(np.sqrt(number))
    noisy = grant.release(Statistic(label=LABEL, shape=(number * _CELLS,), bound=bound, contributions=votes), private)
    return scales_of(private.schema, noisy, grant.deviation(LABEL, bound * private.reach))
