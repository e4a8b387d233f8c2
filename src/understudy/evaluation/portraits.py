"""What a panel looks like, in numbers that can be drawn: small whatever the panel's size, and plain JSON.

A portrait of synthetic series is as public as they are, if its frame (bins, shown steps, shown channels) is theirs too.
A portrait of real series, or in a frame that real series helped to make, is internal.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.data import Channel, Panel
from understudy.data.channels import num_codes
from understudy.data.timegrid import Time, local_times, parse_frequency
from understudy.evaluation.measures import around_mean, autocorrelations, ratio, spectra
from understudy.evaluation.panels import Comparison

MAX_CHANNELS = 8
MAX_STATIC = 6
MAX_CATEGORIES = 24
MAX_SERIES = 4_000
MAX_STEPS = 168
MAX_LAGS = 60
MAX_FREQUENCIES = 84
NUM_BINS = 40
NUM_SAMPLES = 4
MAX_POINTS = 400  # series of each panel in an embedding
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_NUM_BLOCKS = 12
_TAILS = (0.002, 0.998)  # histograms span the values between these shares; the outer bins take the rest


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What portraits share so that they can be laid over each other; as public as the panels it was made of."""

    channels: tuple[Channel, ...]
    steps: np.ndarray  # steps at which bands and single series are shown
    edges: dict[str, np.ndarray]  # borders of the histogram's bins by column

    @classmethod
    def of(cls, *panels: Panel) -> "Frame":
        """Returns a frame that suits all of these panels."""
        schema = panels[0].schema
        shown, static = schema.channels[:MAX_CHANNELS], schema.static[:MAX_STATIC]
        edges = {c.name: _edges(c, [panel.values[:, :, place] for panel in panels]) for place, c in enumerate(shown)}
        edges |= {c.name: _edges(c, [panel.static[:, place] for panel in panels]) for place, c in enumerate(static)}
        steps = np.unique(np.linspace(0, schema.num_steps - 1, MAX_STEPS).round().astype(int))
        return cls(channels=shown, steps=steps, edges=edges)


def portrait(panel: Panel, frame: Frame, *, seed: int = 0) -> dict[str, Any]:
    """Returns bands, single series, histograms, autocorrelations, spectra and correlations as plain values.

    Privacy: shows single series and exact statistics of `panel`. Internal unless the panel is synthetic.
    """
    rows = np.arange(panel.num_series)
    if panel.num_series > MAX_SERIES:
        rows = np.sort(np.random.default_rng(seed).choice(panel.num_series, MAX_SERIES, replace=False))
    values, static = panel.values[rows], panel.static[rows]
    inside = np.arange(panel.num_steps) < panel.lengths[rows, None]
    columns = {}
    for place, channel in enumerate(frame.channels):
        own = values[:, :, place].astype(np.float64)
        columns[channel.name] = (_category if num_codes(channel) else _numeric)(channel, own, frame)
        columns[channel.name]["missing"] = _plain(np.isnan(own[inside]).mean() if inside.any() else 0.0)
    return {
        "num_series": panel.num_series,
        "steps": frame.steps.tolist(),
        "times": _times(panel.schema.time, frame.steps),
        "zone": panel.schema.time.zone,
        "step_seconds": parse_frequency(panel.schema.time.frequency).microseconds / 1e6 or None,
        "channels": columns,
        "static": {c.name: _static(c, static[:, k], frame) for k, c in enumerate(panel.schema.static[:MAX_STATIC])},
        "correlation": _correlation(values, frame.channels),
        "notes": _notes(panel, len(rows)),
    }


def _times(time: Time, steps: np.ndarray) -> list[str] | None:
    """Returns the local times of shown steps; None where every series has its own, or steps are only numbered."""
    if time.align != "calendar" or time.counts_steps or not len(steps):
        return None
    moments = local_times(time, int(steps[-1]) + 1)[steps].view("datetime64[us]")
    return [str(moment) for moment in moments.astype("datetime64[s]")]


def _static(column: Channel, values: np.ndarray, frame: Frame) -> dict[str, Any]:
    return _shares(column, values) if num_codes(column) else {"histogram": _histogram(values, frame.edges[column.name])}


def extremes(values: np.ndarray) -> dict[str, float]:
    """Returns the mean, minimum, 1 %, 99 % and maximum of what was observed; nothing where nothing was."""
    seen = values[~np.isnan(values)].astype(np.float64)
    if not len(seen):
        return {}
    ends = zip(("minimum", "1 %", "99 %", "maximum"), np.quantile(seen, (0, 0.01, 0.99, 1)), strict=True)
    return {"mean": float(seen.mean()), **{name: float(value) for name, value in ends}}


def embedding(comparison: Comparison, *, seed: int = 0) -> dict[str, Any]:
    """Returns real and synthetic series as points of one plane: principal components and t-SNE of both together.

    Privacy: one point is one series. Internal.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    rng = np.random.default_rng(seed)
    sides = [comparison.unit(panel) for panel in (comparison.real, comparison.candidate)]
    clouds = [unit.reshape(len(unit), -1)[rng.permutation(len(unit))[:MAX_POINTS]] for unit in sides]
    together, border = np.concatenate(clouds), len(clouds[0])
    components = min(30, *together.shape)
    reduced = PCA(n_components=components, random_state=seed)
    with np.errstate(invalid="ignore"):  # shares of no variance, where all points coincide
        flat = reduced.fit_transform(together)
    if flat.shape[1] < 2:
        flat = np.column_stack([flat, np.zeros(len(flat))])
    perplexity = min(30.0, (len(flat) - 1) / 3)
    nearby = flat
    if np.ptp(flat[:, 0]) > 0:  # t-SNE crashes where all points coincide
        nearby = TSNE(perplexity=perplexity, init="pca", random_state=seed, n_jobs=1).fit_transform(flat)
    planes = {"pca": flat[:, :2], "tsne": nearby[:, :2]}
    split = {name: np.split(points, [border]) for name, points in planes.items()}
    return {
        **{name: dict(zip(("real", "synthetic"), map(_plain, both), strict=True)) for name, both in split.items()},
        "explained": _plain(reduced.explained_variance_ratio_[:2]),
        "notes": [
            f"{border} real and {len(flat) - border} synthetic series, drawn at random; t-SNE with perplexity "
            f"{perplexity:.0f} on the first {components} principal components."
        ],
    }


def _numeric(channel: Channel, values: np.ndarray, frame: Frame) -> dict[str, Any]:
    bands = [_quantiles(values[:, step]) for step in frame.steps]
    return {
        "bands": {f"{q:g}": list(band) for q, band in zip(QUANTILES, zip(*bands, strict=True), strict=True)},
        "quantiles": _quantiles(values),
        **{name: _plain(value) for name, value in extremes(values).items()},
        "samples": [_plain(values[row, frame.steps]) for row in _typical(values)],
        "histogram": _histogram(values, frame.edges[channel.name]),
        "autocorrelation": _memory(values),
        "spectrum": _spectrum(values),
    }


def _category(channel: Channel, codes: np.ndarray, frame: Frame) -> dict[str, Any]:
    """Shares of the categories, and how often the category changes from one step to the next."""
    change = np.diff(codes, axis=1)
    seen = change[~np.isnan(change)]
    return {**_shares(channel, codes), "changes": _plain((seen != 0).mean()) if len(seen) else None}


def _shares(channel: Channel, codes: np.ndarray) -> dict[str, Any]:
    number = num_codes(channel) or 0
    names = [str(name) for name in getattr(channel, "categories", ("no", "yes"))]
    seen = codes[~np.isnan(codes)].astype(int)
    shares = np.bincount(seen, minlength=number) / max(1, len(seen))
    if number > MAX_CATEGORIES:
        names = [*names[: MAX_CATEGORIES - 1], f"the other {number - MAX_CATEGORIES + 1}"]
        shares = np.append(shares[: MAX_CATEGORIES - 1], shares[MAX_CATEGORIES - 1 :].sum())
    return {"categories": names, "shares": _plain(shares)}


def _edges(channel: Channel, pools: list[np.ndarray]) -> np.ndarray:
    """Returns bins over what the values span but for their tails, or over the bounds where there are none."""
    seen = [pool[~np.isnan(pool)] for pool in pools]
    ends = [np.quantile(values, _TAILS) for values in seen if len(values)] or [channel.bounds]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    if not high > low:
        low, high = channel.bounds
    return np.linspace(low, high, NUM_BINS + 1)


def _histogram(values: np.ndarray, edges: np.ndarray) -> dict[str, Any]:
    seen = values[~np.isnan(values)]
    counts = np.histogram(np.clip(seen, edges[0], edges[-1]), edges)[0]
    return {"edges": _plain(edges), "shares": _plain(counts / max(1, len(seen)))}


def _quantiles(values: np.ndarray) -> list[float | None]:
    seen = values[~np.isnan(values)]
    return _plain(np.quantile(seen, QUANTILES)) if len(seen) else [None] * len(QUANTILES)


def _memory(values: np.ndarray) -> list[float | None]:
    """Returns the mean autocorrelation of the series at each lag."""
    lags = min(MAX_LAGS, values.shape[1] - 1)
    if lags < 1 or not len(values):
        return []
    found = autocorrelations(values[:, :, None], lags)[:, :, 0]
    return _plain(np.nan_to_num(ratio(np.nansum(found, axis=0), (~np.isnan(found)).sum(axis=0))))


def _spectrum(values: np.ndarray) -> dict[str, Any]:
    """Returns the mean share of a series' variance at each frequency; gaps count as the series' own mean."""
    if values.shape[1] < 4 or not len(values):
        return {"frequencies": [], "power": []}
    power = spectra(around_mean(values[:, :, None])[0])[:, :, 0].mean(axis=0)
    lines = {"frequencies": np.fft.rfftfreq(values.shape[1])[1:], "power": power}
    groups = min(len(power), MAX_FREQUENCIES)
    return {name: _plain([part.mean() for part in np.array_split(line, groups)]) for name, line in lines.items()}


def _correlation(values: np.ndarray, channels: tuple[Channel, ...]) -> dict[str, Any]:
    """Returns correlations between channels; between stretches of steps where there is one channel only."""
    numeric = [place for place, channel in enumerate(channels) if num_codes(channel) is None]
    if not numeric:
        return {"of": "channels", "names": [], "matrix": []}
    if len(numeric) > 1:
        names = [channels[place].name for place in numeric]
        return {"of": "channels", "names": names, "matrix": _matrix(values[:, :, numeric].reshape(-1, len(numeric)))}
    groups = np.array_split(np.arange(values.shape[1]), min(values.shape[1], _NUM_BLOCKS))
    own = values[:, :, numeric[0]]
    means = [ratio(np.nansum(own[:, group], axis=1), (~np.isnan(own[:, group])).sum(axis=1)) for group in groups]
    return {"of": "steps", "names": [f"{group[0] + 1}" for group in groups], "matrix": _matrix(np.column_stack(means))}


def _matrix(rows: np.ndarray) -> list[list[float | None]]:
    whole = rows[~np.isnan(rows).any(axis=1)].astype(np.float64)
    if len(whole) < 3:
        return [[None] * rows.shape[1]] * rows.shape[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return _plain(np.atleast_2d(np.corrcoef(whole, rowvar=False)))


def _typical(values: np.ndarray) -> np.ndarray:
    """Returns series at even ranks of their mean, so that readers do not see only the prettiest."""
    seen = np.flatnonzero((~np.isnan(values)).any(axis=1))
    if not len(seen):
        return seen
    ranks = (np.arange(NUM_SAMPLES) + 0.5) / NUM_SAMPLES
    order = seen[np.argsort(np.nanmean(values[seen], axis=1), kind="stable")]
    return order[np.unique((ranks * len(order)).astype(int))]


def _notes(panel: Panel, shown: int) -> list[str]:
    notes = []
    if shown < panel.num_series:
        notes.append(f"{shown} of {panel.num_series} series, drawn at random.")
    for group, most in (("channels", MAX_CHANNELS), ("static", MAX_STATIC)):
        number = len(getattr(panel.schema, group))
        if number > most:
            notes.append(f"The first {most} of {number} {group} columns are shown.")
    return notes


def _plain(values: Any) -> Any:
    """Returns numbers as plain lists of four digits, enough to draw; None where there is no number."""
    if np.ndim(values):
        return [_plain(value) for value in values]
    return None if values is None or not np.isfinite(values) else float(f"{values:.4g}")
