"""Checks on the sine sets of the VFLGAN-TS paper (Eq. 22, App. D): channels A·sin(2πft) of one amplitude per series.

The sets are known by their schema's name, `sine-2` or `sine-6`, and their number of channels.
"""

import numpy as np

from understudy.evaluation.measures import Aspect, RankedPools, mean_figure
from understudy.evaluation.metric import Effort, Measured, Metric, Undefined
from understudy.evaluation.panels import Comparison
from understudy_bench.metrics.distances import bootstrap_mean
from understudy_bench.metrics.vertical.distances import summed

FREQUENCIES = {  # periods per step
    "sine-2": (0.01, 0.005),
    "sine-6": (0.01, 0.005, 0.0075, 0.0125, 0.015, 0.0175),
}
_REFINEMENTS = 20
_CHUNK = 512  # rows fitted at a time


def amplitudes(values: np.ndarray) -> np.ndarray:
    """Returns the amplitude [series, channel] of the sine that fits each series best (Eq. 27).

    Least squares over amplitude, phase, offset and frequency, by Gauss–Newton from the peak of the spectrum. A piece
    of a wave of any size fits a series that is no sine, so none has more than it spans: twice what a sine has that
    shows a whole period, as the sets do.

    Args:
        values: [series, step, channel], without gaps.
    """
    num_series, num_steps, num_channels = values.shape
    flat = np.asarray(values, dtype=np.float64).transpose(0, 2, 1).reshape(-1, num_steps)
    pieces = [_amplitudes(flat[start : start + _CHUNK]) for start in range(0, len(flat), _CHUNK)]
    return np.concatenate(pieces).reshape(num_series, num_channels)


def _amplitudes(flat: np.ndarray) -> np.ndarray:
    """Returns one amplitude for each row [row, step]."""
    num_steps = flat.shape[1]
    power = np.abs(np.fft.rfft(flat - flat.mean(axis=1, keepdims=True), axis=1))
    ends = 0.25 / num_steps, 0.5 - 0.25 / num_steps  # at 0.5 all sines of a phase are zero at every step
    frequency = np.clip((power[:, 1:].argmax(axis=1) + 1) / num_steps, *ends)
    best, least = np.zeros(len(flat)), np.full(len(flat), np.inf)
    for _ in range(_REFINEMENTS):
        fitted, step, left = _fit(flat, frequency)
        better = left < least
        best[better], least[better] = fitted[better], left[better]
        step = np.clip(step, -0.25 / num_steps, 0.25 / num_steps)
        if np.abs(step).max(initial=0.0) < 1e-6 / num_steps:
            break
        frequency = np.clip(frequency + step, *ends)
    return np.minimum(best, np.ptp(flat, axis=1))


def _fit(flat: np.ndarray, frequency: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns (amplitude, step of the frequency towards a better fit, squared error left) for each row."""
    clock = np.arange(flat.shape[1])
    angle = 2 * np.pi * frequency[:, None] * clock
    linear = np.stack([np.sin(angle), np.cos(angle), np.ones_like(angle)], axis=1)
    weights = _least_squares(linear, flat)
    residual = flat - np.matmul(weights[:, None], linear)[:, 0]
    along = 2 * np.pi * clock * (weights[:, :1] * linear[:, 1] - weights[:, 1:2] * linear[:, 0])  # ∂ fit / ∂ frequency
    step = _least_squares(np.concatenate([linear, along[:, None]], axis=1), residual)[:, 3]
    return np.hypot(weights[:, 0], weights[:, 1]), step, (residual**2).sum(axis=1)


def _least_squares(design: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Returns the weights [row, term] of terms [row, term, step] that come nearest to the target [row, step]."""
    size = np.linalg.norm(design, axis=2) + 1e-12
    scaled = design / size[:, :, None]
    products = np.matmul(scaled, scaled.transpose(0, 2, 1)) + 1e-10 * np.eye(design.shape[1])
    return np.linalg.solve(products, np.matmul(scaled, target[:, :, None]))[:, :, 0] / size


def sine_errors(values: np.ndarray, frequencies: tuple[float, ...]) -> np.ndarray:
    """Returns the mean absolute distance of each series [series, channel] from a·sin(2πft), a being its amplitude."""
    clock = np.arange(values.shape[1])[:, None]
    ideal = amplitudes(values)[:, None] * np.sin(2 * np.pi * np.asarray(frequencies) * clock)
    return np.abs(values - ideal).mean(axis=1)


def unequal_amplitudes(values: np.ndarray) -> np.ndarray:
    """Returns for each series how far its amplitudes are from equal: 1 − least/greatest; 0 where all agree."""
    found = amplitudes(values)
    greatest = found.max(axis=1)
    return 1 - np.where(greatest > 0, found.min(axis=1) / np.where(greatest > 0, greatest, 1), 1.0)


def _frequencies(comparison: Comparison) -> tuple[float, ...]:
    schema = comparison.real.schema
    found = FREQUENCIES.get(schema.name, ())
    if not found or len(found) != len(comparison.numeric_names) or schema.num_channels != len(found):
        raise Undefined("only the sine sets of VFLGAN-TS allow it: a schema named sine-2 or sine-6, as many channels.")
    if comparison.real.num_steps * min(found) < 1:
        raise Undefined(f"series must cover a period; it needs at least {round(1 / min(found))} steps.")
    return found


def _filled(comparison: Comparison) -> tuple[np.ndarray, np.ndarray]:
    """Returns real and candidate values in their own units, gaps closed."""
    places = comparison.scale.numeric
    low, width = comparison.scale.low[places], comparison.scale.width[places]
    real, candidate = (comparison.numeric_unit(p) * width + low for p in (comparison.real, comparison.candidate))
    return real, candidate


def _amplitude_distance(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    _frequencies(comparison)
    pools = RankedPools.of(*(amplitudes(values)[:, None] for values in _filled(comparison)))
    aspect = Aspect(comparison.numeric_names, pools.wasserstein)
    mean = mean_figure([aspect], comparison, effort, seed, otherwise="nothing was observed.")
    return summed(mean, len(comparison.numeric_names))  # Eq. 28


def _sine_error(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    errors = sine_errors(_filled(comparison)[1], _frequencies(comparison))  # Eq. 29, as a mean
    parts = dict(zip(comparison.numeric_names, errors.mean(axis=0).tolist(), strict=True))
    return _mean(errors.mean(axis=1), effort, seed, parts)


def _amplitude_ratio(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    _frequencies(comparison)
    return _mean(unequal_amplitudes(_filled(comparison)[1]), effort, seed, {})


def _mean(each: np.ndarray, effort: Effort, seed: int, parts: dict[str, float]) -> Measured:
    return Measured(value=float(each.mean()), replicates=bootstrap_mean(each, effort.replicates, seed), parts=parts)


METRICS = (
    Metric(
        name="vertical.sine_amplitude",
        title="Sine sets: distance of amplitude distributions, summed over channels",
        direction="lower",
        range=(0.0, float("inf")),
        reference="VFLGAN-TS, Eq. 27 and 28",
        measure=_amplitude_distance,
    ),
    Metric(
        name="vertical.sine_error",
        title="Sine sets: distance of series from a sine of their amplitude",
        direction="lower",
        range=(0.0, float("inf")),
        reference="VFLGAN-TS, Eq. 29; a mean, as in its Table 1",
        measure=_sine_error,
    ),
    Metric(
        name="vertical.sine_ratio",
        title="Sine sets: how far a series' amplitudes are from equal, 1 − least/greatest",
        direction="lower",
        range=(0.0, 1.0),
        reference="VFLGAN-TS, Fig. 3: the ratio of amplitudes should be 1",
        measure=_amplitude_ratio,
    ),
)
