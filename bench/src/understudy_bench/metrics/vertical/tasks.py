"""Downstream tasks on all four sides: train on real or on synthetic series, test on real or on synthetic ones."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import torch
from sklearn.metrics import f1_score
from torch import Tensor, nn
from torch.nn import functional

from understudy.data import Panel
from understudy.evaluation.metric import Effort, Measure, Measured, Metric, Undefined
from understudy.evaluation.panels import Comparison, Scale
from understudy_bench.metrics.forecasting import BATCH, HIDDEN, PUBLISHED_EPOCHS, last_step_error, train_forecaster
from understudy_bench.metrics.naive import naive_errors, naive_parts
from understudy_bench.metrics.networks import (
    Checkpoint,
    Schedule,
    deal,
    perceptron,
    seeded,
    seeds,
    tensor,
    train_epochs,
)

SHARES = (0.64, 0.16, 0.2)  # train, watch, test
FEWEST_LABELLED = 20
SIDES = ("TRTR", "TSTS", "TRTS", "TSTR")


def total_performance_difference(performance: dict[str, float]) -> float:
    """TPD (Eq. 24) with absolute values: the paper's tables only add up so."""
    return sum(abs(performance[side] - performance["TRTR"]) for side in SIDES[1:])  # Eq. 24


@dataclass(frozen=True, eq=False)
class Side:
    """A network trained on one set of series, and the series of that set which it has not seen."""

    model: nn.Module
    test: Tensor
    label: np.ndarray | None = None


def sides(real: Side, candidate: Side, perform: Callable[[nn.Module, Side], float]) -> dict[str, float]:
    """Returns the performance of both networks on both sets: train and test on (R)eal or (S)ynthetic series."""
    return {
        "TRTR": perform(real.model, real),
        "TSTS": perform(candidate.model, candidate),
        "TRTS": perform(real.model, candidate),
        "TSTR": perform(candidate.model, real),
    }


def forecast_task(checkpoint: Checkpoint = "best") -> Measure:
    """Returns the measure of forecasting the last step with an LSTM; `worst_val` repeats the published figures."""

    def measure(comparison: Comparison, effort: Effort, seed: int) -> Measured:
        if not comparison.numeric_names:
            raise Undefined("no channel holds numbers; it needs a continuous or an integer one.")
        if comparison.real.num_steps < 2:
            raise Undefined("series are too short; it needs at least 2 steps.")
        found = []
        for each in seeds(seed, effort.repeats):
            real, candidate = (
                _forecaster(panel, comparison.real, effort.iteration_cap, checkpoint, each)
                for panel in (comparison.real, comparison.candidate)
            )
            found.append(sides(real, candidate, lambda model, side: last_step_error(model, side.test)))
        naive = naive_errors(comparison.numeric_unit(comparison.real), None, known=comparison.real.num_steps - 1)
        note = "Mean absolute error in real ranges; 64 % of units train, 16 % choose the epoch, 20 % test."
        return _measured(found, naive_parts(naive), note)

    return measure


@lru_cache(maxsize=8)  # the real side of one seed serves several candidates
def _forecaster(panel: Panel, real: Panel, cap: int | None, checkpoint: Checkpoint, seed: int) -> Side:
    values = Comparison(real=real, candidate=panel, reference=panel, unseen=panel).numeric_unit(panel)
    train, watched, test = (tensor(values[rows]) for rows in deal(panel.unit, SHARES, np.random.default_rng(seed)))
    schedule = _schedule(len(train), cap, checkpoint)
    with seeded(seed):
        return Side(train_forecaster(train, watched, schedule, hidden=HIDDEN), test)


def nearest_task(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    """TPD of the nearest neighbour's label."""
    return _classified(comparison, effort, seed, _nearest)


def classification_task(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    """TPD of a perceptron that tells the label."""
    return _classified(comparison, effort, seed, _perceptron)


def _classified(comparison: Comparison, effort: Effort, seed: int, train: "Train") -> Measured:
    panels, column = (comparison.real, comparison.candidate), comparison.real.schema.label_column
    if column is None:
        raise Undefined("the schema declares no label; name a static column as `label`.")
    labels = [_labels(panel) for panel in panels]
    if min(map(len, labels)) < FEWEST_LABELLED or len(np.unique(labels[0])) < 2:
        raise Undefined(f"it needs {FEWEST_LABELLED} labelled series on each side, and two classes of real ones.")
    accuracy, f1 = [], []
    for each in seeds(seed, effort.repeats):
        real, candidate = (_classifier(panel, comparison.real, effort.iteration_cap, each, train) for panel in panels)
        accuracy.append(sides(real, candidate, _accuracy))
        f1.append(sides(real, candidate, partial(_f1, binary=len(column.categories) == 2)))
    scores = _measured(f1, {}, "")
    note = (
        "Accuracy; 64 % of units train, 16 % choose the epoch, 20 % test, dealt within each class. Values are "
        "standardised by those that train."
    )
    return _measured(accuracy, {f"F1 {name}": part for name, part in scores.parts.items()}, note)


@lru_cache(maxsize=8)
def _classifier(panel: Panel, real: Panel, cap: int | None, seed: int, train: "Train") -> Side:
    label, column = panel.label, panel.schema.label_column
    assert label is not None
    assert column is not None
    known = label >= 0
    values, label = Scale.of(real).unit(panel)[known], label[known]
    rows = deal(panel.unit[known], SHARES, np.random.default_rng(seed), strata=label)
    (series, watched, test), (truth, seen, hidden) = [tensor(values[part]) for part in rows], [label[p] for p in rows]
    with seeded(seed):
        scaled = _Standardised(series)
        model = train(scaled(series), truth, len(column.categories), cap, (scaled(watched), seen))
    return Side(nn.Sequential(scaled, model), test, hidden)


class _Standardised(nn.Module):
    """Every value by the mean and the deviation that it has among series that train."""

    def __init__(self, series: Tensor) -> None:
        super().__init__()
        self._mean, self._deviation = series.mean(0), series.std(0).clamp(min=1e-6)

    def forward(self, series: Tensor) -> Tensor:
        return (series - self._mean) / self._deviation


def _perceptron(
    series: Tensor, truth: np.ndarray, num_classes: int, cap: int | None, watched: tuple[Tensor, np.ndarray]
) -> nn.Module:
    """Returns one hidden layer, of the epoch that was best on watched series."""
    model, target = perceptron((series[0].numel(), HIDDEN, num_classes)), torch.as_tensor(truth)
    train_epochs(
        model,
        torch.optim.Adam(model.parameters(), lr=1e-3, fused=True),
        lambda batch: functional.cross_entropy(model(series[batch]), target[batch]),
        lambda: -_accuracy(model, Side(model, *watched)),
        len(series),
        _schedule(len(series), cap, "best"),
    )
    return model


class _Nearest(nn.Module):
    """Votes for the class of the nearest series."""

    def __init__(self, series: Tensor, classes: Tensor) -> None:
        super().__init__()
        self._series, self._classes = series.flatten(1), classes

    def forward(self, series: Tensor) -> Tensor:
        return self._classes[torch.cdist(series.flatten(1), self._series).argmin(1)]


def _nearest(
    series: Tensor, truth: np.ndarray, num_classes: int, cap: int | None, watched: tuple[Tensor, np.ndarray]
) -> nn.Module:
    return _Nearest(series, functional.one_hot(torch.as_tensor(truth, dtype=torch.int64), num_classes))


Train = Callable[[Tensor, np.ndarray, int, int | None, tuple[Tensor, np.ndarray]], nn.Module]


def _schedule(num_series: int, cap: int | None, checkpoint: Checkpoint) -> Schedule:
    schedule = Schedule(epochs=PUBLISHED_EPOCHS, batch=BATCH, checkpoint=checkpoint)
    return schedule.within(cap, num_series)


@torch.no_grad()
def _predicted(model: nn.Module, side: Side) -> np.ndarray:
    return model(side.test).argmax(dim=1).numpy()


def _accuracy(model: nn.Module, side: Side) -> float:
    return float((_predicted(model, side) == side.label).mean())


def _f1(model: nn.Module, side: Side, *, binary: bool) -> float:
    average = "binary" if binary else "macro"
    return float(f1_score(side.label, _predicted(model, side), average=average, zero_division=0.0))


def _labels(panel: Panel) -> np.ndarray:
    return np.empty(0) if panel.label is None else panel.label[panel.label >= 0]


def _measured(found: list[dict[str, float]], more: dict[str, float], note: str) -> Measured:
    """Returns the mean difference over trainings; the parts hold all four performances."""
    differences = np.array([total_performance_difference(performance) for performance in found])
    means = {side: float(np.mean([performance[side] for performance in found])) for side in SIDES}
    return Measured(
        value=float(differences.mean()),
        replicates=differences,
        kind="repeats",
        parts={**means, "TPD of mean performances": total_performance_difference(means), **more},
        notes=(note,),
    )


METRICS = (
    Metric(
        name="vertical.forecast_tpd",
        title="Forecasting the last step: difference between training and testing on real and on these",
        direction="lower",
        range=(0.0, float("inf")),
        reference="VFLGAN-TS, Eq. 24 with absolute values; LSTM of the released code, best epoch kept",
        measure=forecast_task(),
        trained=True,
    ),
    Metric(
        name="vertical.classify_tpd",
        title="Classifying the label: difference between training and testing on real and on these",
        direction="lower",
        range=(0.0, 3.0),
        reference="VFLGAN-TS, Eq. 24 with absolute values; perceptron of the released code",
        measure=classification_task,
        trained=True,
    ),
)
