"""Logistic and linear regression that learn from the candidate and are tested on real series."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from understudy.data.channels import num_codes
from understudy.evaluation.measures import drawn_units, largest
from understudy.evaluation.metric import Effort, Measured, Metric, Undefined
from understudy.evaluation.panels import Comparison
from understudy_bench.metrics.ppem.rows import MAX_ROWS, Rows, static_features

_MIN_POSITIVES = 10
_RIDGE = 1e-6
_TESTED = "Tested on real series that neither side learned from; the interval draws these again."


@dataclass(frozen=True, eq=False, kw_only=True)
class _Judged:
    """One target's truth and prediction on real rows, with the series of each row."""

    name: str
    truth: np.ndarray
    predicted: np.ndarray
    series: np.ndarray


def area_under_curve(truth: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Returns the chance that a positive row is ranked above a negative one; 0.5 where one kind is missing."""
    from sklearn.metrics import roc_auc_score

    weights = np.ones(len(truth)) if weights is None else weights
    if not (weights[truth > 0].sum() > 0 and weights[truth <= 0].sum() > 0):
        return 0.5
    return float(roc_auc_score(truth, predicted, sample_weight=weights))


def squared_error(truth: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Returns the mean squared error."""
    return float(np.average((truth - predicted) ** 2, weights=weights))


def determination(truth: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Returns R² = 1 − squared error over variance; NaN where the truth does not vary."""
    variance = squared_error(truth, np.full_like(truth, np.average(truth, weights=weights)), weights)
    return 1 - squared_error(truth, predicted, weights) / variance if variance > 0 else float("nan")


def _measure(
    judged: list[_Judged],
    figure: Callable[..., float],
    comparison: Comparison,
    effort: Effort,
    seed: int,
    otherwise: str,
) -> Measured:
    figures = np.array([figure(one.truth, one.predicted) for one in judged])
    if not np.isfinite(figures).any():
        raise Undefined(otherwise)
    weights = drawn_units(comparison.reference.unit, effort.replicates, seed)
    replicates = [  # a target of which no series was drawn counts with all of them
        np.nanmean([figure(one.truth, one.predicted, drawn[one.series] + 1e-9) for one in judged]) for drawn in weights
    ]
    return Measured(
        value=float(np.nanmean(figures)),
        replicates=np.array(replicates),
        parts=largest([one.name for one in judged], figures),
        notes=(f"{_TESTED} Steps of channels: at most {MAX_ROWS} rows of each side.",),
    )


def _auroc(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    judged = [*_labels(comparison), *_category_channels(comparison, seed)]
    otherwise = (
        f"no label, category or yes/no channel has other columns beside it and {_MIN_POSITIVES} cases of two kinds."
    )
    return _measure(judged, area_under_curve, comparison, effort, seed, otherwise)


def _labels(comparison: Comparison) -> Iterator[_Judged]:
    """Yields one class of the label after the other, predicted from whole series and the other static columns."""
    column, panels = comparison.real.schema.label_column, (comparison.candidate, comparison.reference)
    labels = [panel.label for panel in panels]
    if column is None or labels[0] is None or labels[1] is None:
        return
    place = [static.name for static in comparison.real.schema.static].index(column.name)
    tables = []
    for panel, unit in zip(
        panels, (comparison.unit(comparison.candidate), comparison.unit(comparison.reference)), strict=True
    ):
        static, owner = static_features(comparison, panel)
        tables.append(np.concatenate([unit.reshape(len(unit), -1), static[:, owner != place]], axis=1))
    series = np.arange(len(labels[1]))
    for code, category in enumerate(column.categories):
        kinds = labels[0] == code, labels[1] == code
        yield from _classified(f"{column.name} is {category}", tables[0], kinds[0], tables[1], kinds[1], series)


def _category_channels(comparison: Comparison, seed: int) -> Iterator[_Judged]:
    """Yields one category after the other of each channel, predicted from the other columns at the same step."""
    channels = comparison.real.schema.channels
    places = [place for place, channel in enumerate(channels) if num_codes(channel) is not None]
    if not places:
        return
    rows = [Rows.of(comparison, panel, seed) for panel in (comparison.candidate, comparison.reference)]
    for place in places:
        (learned, kinds, _), (tested, truth, series) = (side.task(place) for side in rows)
        codes = range(1, 2) if kinds.shape[1] == 2 else range(kinds.shape[1])
        for code in codes:
            name = f"{channels[place].name} is {getattr(channels[place], 'categories', ('no', 'yes'))[code]}"
            yield from _classified(name, learned, kinds[:, code] > 0.5, tested, truth[:, code] > 0.5, series)


def _classified(
    name: str, learned: np.ndarray, kind: np.ndarray, tested: np.ndarray, truth: np.ndarray, series: np.ndarray
) -> Iterator[_Judged]:
    """Yields the verdict of logistic regression; nothing where real rows have too few of a kind."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if min(truth.sum(), (~truth).sum()) < _MIN_POSITIVES or not learned.shape[1]:
        return
    if len(np.unique(kind)) < 2:  # nothing to learn: every row ranks alike
        predicted = np.zeros(len(truth))
    else:
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=100, tol=1e-3))
        predicted = model.fit(learned, kind).decision_function(tested)
    yield _Judged(name=name, truth=truth, predicted=predicted, series=series)


def _regressions(comparison: Comparison, seed: int) -> list[_Judged]:
    """Returns each channel of numbers predicted from the other columns at the same step, in standard deviations."""
    judged, schema = [], comparison.real.schema
    rows = [Rows.of(comparison, panel, seed) for panel in (comparison.candidate, comparison.reference, comparison.real)]
    for place in comparison.scale.numeric:
        (learned, target, _), (tested, truth, series), (_, real, _) = (side.task(place) for side in rows)
        spread = float(real.std()) if len(real) else 0.0
        if not (learned.shape[1] and len(learned) > 1 and len(tested) > 1 and spread > 1e-9):
            continue
        predicted = _linear(learned, target[:, 0], tested)
        judged.append(
            _Judged(
                name=schema.channels[place].name,
                truth=truth[:, 0] / spread,
                predicted=predicted / spread,
                series=series,
            )
        )
    return judged


def _linear(learned: np.ndarray, target: np.ndarray, tested: np.ndarray) -> np.ndarray:
    """Returns least squares with an intercept; a ridge of 1e-6 keeps one-hot columns from being singular."""
    middle, height = learned.mean(axis=0), target.mean()
    centred = learned - middle
    products = centred.T @ centred
    products += _RIDGE * max(float(np.trace(products)) / len(products), 1e-12) * np.eye(len(products))
    return np.asarray((tested - middle) @ np.linalg.solve(products, centred.T @ (target - height)) + height)


def _regression(figure: Callable[..., float]) -> Callable[[Comparison, Effort, int], Measured]:
    def measure(comparison: Comparison, effort: Effort, seed: int) -> Measured:
        otherwise = "no channel of numbers that moves has other columns beside it; see general.forecast_skill."
        return _measure(_regressions(comparison, seed), figure, comparison, effort, seed, otherwise)

    return measure


_TASK = "PPEM, section 5: trained on synthetic, tested on real"
METRICS = (
    Metric(
        name="ppem.auroc",
        title="Labels and categories predicted by logistic regression learned from the candidate",
        direction="higher",
        range=(0.0, 1.0),
        reference=f"{_TASK}; mean area under the ROC curve",
        measure=_auroc,
    ),
    Metric(
        name="ppem.regression_mse",
        title="Channels predicted from the others by linear regression: squared error",
        direction="lower",
        range=(0.0, float("inf")),
        reference=f"{_TASK}; mean squared error of standardised channels",
        measure=_regression(squared_error),
    ),
    Metric(
        name="ppem.regression_r2",
        title="Channels predicted from the others by linear regression: share explained",
        direction="higher",
        range=(float("-inf"), 1.0),
        reference=f"{_TASK}; R²",
        measure=_regression(determination),
    ),
)
