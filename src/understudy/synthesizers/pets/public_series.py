"""Public series in working scale, ready to train on. Nothing here may be given private data."""

import numpy as np

from understudy.data import Panel
from understudy.errors import InputError
from understudy.statistics.encoding import WORKING_BOUND, Encoding, linear_scales
from understudy.statistics.series import filled


def scaled_panel(panel: Panel) -> np.ndarray:
    """Returns the series of a public panel: gaps bridged, codes as one-hot groups, channels standardised as a whole."""
    if panel.private:
        raise InputError("A public panel is expected: modules are never trained on the series that they will protect.")
    encoding = Encoding.of(panel.schema, (), linear_scales(panel.schema, panel))
    return encoding.series(panel, slice(None))


def scaled_array(array: np.ndarray) -> np.ndarray:
    """Returns an array [series, step, channel] or [series, step], NaN where missing, with channels standardised."""
    if array.ndim not in (2, 3) or array.dtype.kind not in "fiu" or 0 in array.shape:
        raise InputError("Public array: numbers [series, step, channel] or [series, step] are expected.")
    values = (array if array.ndim == 3 else array[:, :, None]).astype(np.float64)
    if np.isinf(values).any() or np.isnan(values).all(axis=(0, 1)).any():
        raise InputError("Public array: finite numbers are expected, NaN where missing, and no channel that is empty.")
    width = np.nanstd(values, axis=(0, 1))
    scaled = (values - np.nanmean(values, axis=(0, 1))) / np.where(width > 0, width, 1.0)
    lengths = np.full(len(values), values.shape[1])
    return filled(scaled.clip(-WORKING_BOUND, WORKING_BOUND), lengths).astype(np.float32)


def windows_of(series: np.ndarray, num_steps: int) -> np.ndarray:
    """Returns windows [window, step, channel] that begin every quarter of their length, those of a series together."""
    if num_steps > series.shape[1]:
        raise InputError(f"window_steps: at most the {series.shape[1]} steps of the public series are expected.")
    stride = max(num_steps // 4, 1)
    windows = np.lib.stride_tricks.sliding_window_view(series, num_steps, axis=1)[:, ::stride]
    return np.ascontiguousarray(windows.swapaxes(2, 3)).reshape(-1, num_steps, series.shape[2])


def one_channel_each(series: np.ndarray) -> np.ndarray:
    """Returns every channel as a series of its own, [series · channel, step, 1]."""
    return np.ascontiguousarray(series.transpose(0, 2, 1)).reshape(-1, series.shape[1], 1)
