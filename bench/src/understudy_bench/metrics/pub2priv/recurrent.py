"""Recurrent networks as judges: can they tell series apart, do they learn to predict and to classify from them?

The networks are those of TimeGAN (Yoon et al. 2019), which Pub2Priv uses; in [0, 1] scaled by the real series.
"""

from typing import Literal

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torch.nn import functional

from understudy.evaluation.metric import Effort, Measured, Metric, Undefined
from understudy.evaluation.panels import Comparison
from understudy_bench.metrics.naive import naive_errors
from understudy_bench.metrics.networks import (
    Recurrent,
    Schedule,
    deal,
    seeded,
    seeds,
    tensor,
    train_epochs,
    train_iterations,
)

BATCH = 128
DISCRIMINATIVE_ITERATIONS, PREDICTIVE_ITERATIONS, CLASSIFIER_ITERATIONS = 2_000, 5_000, 2_000
FORECAST_EPOCHS, PATIENCE = 400, 10
FEWEST_HIDDEN, CLASSIFIER_HIDDEN = 8, 32  # TimeGAN's half of the channels can't learn where there are few
FORECAST_HIDDEN = 32
Pair = tuple[np.ndarray, np.ndarray]


def _capped(published: int, effort: Effort) -> int:
    """Returns the number of optimiser updates to do where a paper did `published`."""
    return min(published, effort.iteration_cap or published)


def discriminative_score(train: Pair, test: Pair, *, iterations: int, seed: int, hidden: int | None = None) -> float:
    """Returns |accuracy − 0.5| of a network that tells real from synthetic series; 0 where it can't.

    Args:
        train, test: (real, synthetic) series [series, step, feature], as many of one as of the other.
        hidden: Width of the recurrent layer; None takes half of the features, at least 8.
    """
    with seeded(seed) as rng:
        real, synthetic = (tensor(part) for part in train)
        model = Recurrent("gru", inputs=real.shape[2], hidden=hidden or _hidden(real), outputs=1)

        def loss() -> Tensor:
            batches = [series[_drawn(len(series), rng)] for series in (real, synthetic)]
            truth = torch.cat([torch.ones(len(batches[0])), torch.zeros(len(batches[1]))])
            return functional.binary_cross_entropy_with_logits(model(torch.cat(batches))[:, 0], truth)

        train_iterations(model, loss, iterations)
        with torch.no_grad():
            right = [(model(tensor(part))[:, 0] > 0) == kind for part, kind in zip(test, (True, False), strict=True)]
        return abs(float(torch.cat(right).float().mean()) - 0.5)


def predictive_error(
    train: np.ndarray,
    test: np.ndarray,
    *,
    target: int,
    iterations: int,
    seed: int,
    hidden: int | None = None,
    mode: Literal["mse", "mae"] = "mse",
) -> float:
    """Returns the error of predicting one feature's next step from the other features, at every step.

    Args:
        train, test: Series [series, step, feature] in [0, 1]; a single feature is predicted from itself.
        mode: `mse` as in the Pub2Priv paper, `mae` as in TimeGAN; both as loss and as error.
    """
    others = [place for place in range(train.shape[2]) if place != target] or [target]
    error = {"mse": functional.mse_loss, "mae": functional.l1_loss}[mode]
    with seeded(seed) as rng:
        series, real = tensor(train), tensor(test)
        model = Recurrent("gru", inputs=len(others), hidden=hidden or _hidden(series), outputs=1, every_step=True)

        def loss(some: Tensor) -> Tensor:
            return error(torch.sigmoid(model(some[:, :-1, others])[:, :, 0]), some[:, 1:, target])

        train_iterations(model, lambda: loss(series[_drawn(len(series), rng)]), iterations)
        with torch.no_grad():
            return float(loss(real))


def forecast_error(train: np.ndarray, test: np.ndarray, *, epochs: int, seed: int, hidden: int | None = None) -> float:
    """Returns the mean squared error of forecasting all features of the next step from all steps before it.

    Pub2Priv, App. F, TSTR (predictive). It is trained until it converges: a fifth of `train` is put aside, and training
    stops after `PATIENCE` epochs that do not improve on it.

    Args:
        train, test: Series [series, step, feature] in [0, 1]; windows that slide over them end at every step.
    """
    with seeded(seed):
        series, real = tensor(train)[torch.randperm(len(train))], tensor(test)
        watched, kept = series[: max(1, len(series) // 5)], series[len(series) // 5 :]
        features = series.shape[2]
        model = Recurrent("gru", inputs=features, hidden=hidden or FORECAST_HIDDEN, outputs=features, every_step=True)
        optimiser = torch.optim.Adam(model.parameters(), lr=3e-3, fused=True)

        def loss(some: Tensor) -> Tensor:
            return functional.mse_loss(torch.sigmoid(model(some[:, :-1])), some[:, 1:])

        schedule = Schedule(epochs=epochs, batch=min(BATCH, max(16, len(kept) // 8)), patience=PATIENCE)
        train_epochs(model, optimiser, lambda rows: loss(kept[rows]), lambda: loss(watched).item(), len(kept), schedule)
        with torch.no_grad():
            return float(loss(real))


def classifier_probabilities(
    train: np.ndarray, label: np.ndarray, test: np.ndarray, *, num_classes: int, iterations: int, seed: int
) -> np.ndarray:
    """Returns the probabilities [series, class] that a network trained on labelled series gives to other ones."""
    with seeded(seed) as rng:
        series, truth = tensor(train), torch.as_tensor(label)
        model = Recurrent("gru", inputs=series.shape[2], hidden=CLASSIFIER_HIDDEN, outputs=num_classes)

        def loss() -> Tensor:
            rows = _drawn(len(series), rng)
            return functional.cross_entropy(model(series[rows]), truth[rows])

        train_iterations(model, loss, iterations)
        with torch.no_grad():
            return torch.softmax(model(tensor(test)), dim=1).numpy()


def _hidden(series: Tensor) -> int:
    return max(series.shape[2] // 2, FEWEST_HIDDEN)


def _drawn(num_series: int, rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(num_series)[:BATCH]


def _discriminative(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    scores = []
    for each in seeds(seed, effort.repeats):
        rng = np.random.default_rng(each)
        real, candidate = (deal(p.unit, (0.8, 0.2), rng) for p in (comparison.real, comparison.candidate))
        train, test = (_as_many(comparison, *rows, rng) for rows in zip(real, candidate, strict=True))
        iterations = _capped(DISCRIMINATIVE_ITERATIONS, effort)
        scores.append(discriminative_score(train, test, iterations=iterations, seed=each))
    note = "The larger set was cut at random to the size of the smaller one; 80 % of units train, 20 % test."
    return Measured(value=float(np.mean(scores)), replicates=np.array(scores), kind="repeats", notes=(note,))


def _as_many(comparison: Comparison, real: np.ndarray, candidate: np.ndarray, rng: np.random.Generator) -> Pair:
    size = min(len(real), len(candidate))
    rows = [rng.permutation(part)[:size] for part in (real, candidate)]
    return comparison.unit(comparison.real)[rows[0]], comparison.unit(comparison.candidate)[rows[1]]


def _predictive(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    if not comparison.numeric_names:
        raise Undefined("no channel holds numbers; it needs a continuous or an integer one.")
    if comparison.real.num_steps < 2:
        raise Undefined("series are too short; it needs at least 2 steps.")
    target = comparison.feature_channels.index(comparison.scale.numeric[-1])
    iterations = _capped(PREDICTIVE_ITERATIONS, effort)
    errors = [
        predictive_error(
            comparison.unit(comparison.candidate),
            comparison.unit(comparison.real),
            target=target,
            iterations=iterations,
            seed=each,
        )
        for each in seeds(seed, effort.repeats)
    ]
    naive = naive_errors(comparison.unit(comparison.real)[:, :, [target]], None)
    return Measured(
        value=float(np.mean(errors)),
        replicates=np.array(errors),
        kind="repeats",
        parts={f"{name} MSE": error.mse for name, error in naive.items()},
        notes=(f"Predicts {comparison.numeric_names[-1]} one step ahead; trained on the candidate, tested on real.",),
    )


def _forecast(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    if comparison.real.num_steps < 2:
        raise Undefined("series are too short; it needs at least 2 steps.")
    candidate, real = comparison.unit(comparison.candidate), comparison.unit(comparison.real)
    cap = effort.iteration_cap or FORECAST_EPOCHS
    epochs = min(cap, FORECAST_EPOCHS)  # those that converge need no cap, and a trial has one
    errors = [forecast_error(candidate, real, epochs=epochs, seed=each) for each in seeds(seed, effort.repeats)]
    note = "All channels of the next step from all channels before; trained until it converges."
    return Measured(value=float(np.mean(errors)), replicates=np.array(errors), kind="repeats", notes=(note,))


def _classification(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    column, reference = comparison.real.schema.label_column, comparison.reference
    if column is None or reference.label is None or comparison.candidate.label is None:
        raise Undefined("the schema declares no label; name a static column as `label`.")
    known = comparison.candidate.label >= 0
    test, truth = comparison.unit(comparison.reference)[reference.label >= 0], reference.label[reference.label >= 0]
    if not known.any() or len(np.unique(truth)) < 2:
        raise Undefined("labels do not differ; it needs labelled series of at least two classes.")
    found = [
        classifier_probabilities(
            comparison.unit(comparison.candidate)[known],
            comparison.candidate.label[known],
            test,
            num_classes=len(column.categories),
            iterations=_capped(CLASSIFIER_ITERATIONS, effort),
            seed=each,
        )
        for each in seeds(seed, effort.repeats)
    ]
    accuracies = [float((probabilities.argmax(axis=1) == truth).mean()) for probabilities in found]
    parts = {"always the commonest label": float(np.bincount(truth).max() / len(truth))}
    if len(np.unique(truth)) == len(column.categories):
        parts["AUROC"] = float(np.mean([_auroc(truth, probabilities) for probabilities in found]))
    return Measured(
        value=float(np.mean(accuracies)),
        replicates=np.array(accuracies),
        kind="repeats",
        parts=parts,
        notes=("Trained on the candidate's labelled series, tested on real series that nothing was learned from.",),
    )


def _auroc(truth: np.ndarray, probabilities: np.ndarray) -> float:
    if probabilities.shape[1] == 2:
        return float(roc_auc_score(truth, probabilities[:, 1]))
    return float(roc_auc_score(truth, probabilities, multi_class="ovr"))


METRICS = (
    Metric(
        name="pub2priv.discriminative",
        title="How well a recurrent network tells series from real ones",
        direction="lower",
        range=(0.0, 0.5),
        reference="Pub2Priv, section 6.3.1: |accuracy − 0.5|; TimeGAN's network",
        measure=_discriminative,
        trained=True,
    ),
    Metric(
        name="pub2priv.predictive",
        title="Trained on these, tested on real: squared error of the next step",
        direction="lower",
        range=(0.0, float("inf")),
        reference="TimeGAN's predictive score (the last channel from the others) with a squared loss",
        measure=_predictive,
        trained=True,
    ),
    Metric(
        name="pub2priv.forecast",
        title="Trained on these, tested on real: squared error of all channels of the next step",
        direction="lower",
        range=(0.0, float("inf")),
        reference="Pub2Priv, App. F, TSTR (predictive), as printed",
        measure=_forecast,
        trained=True,
    ),
    Metric(
        name="pub2priv.classification",
        title="Trained on these, tested on real: accuracy of the label",
        direction="higher",
        range=(0.0, 1.0),
        reference="Pub2Priv, App. F, TSTR (discriminative) with labels",
        measure=_classification,
        trained=True,
    ),
)
