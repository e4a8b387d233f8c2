"""Which units take part in training: independent coins, every iteration, and none of it skipped.

Each test has a false-alarm rate of 1e-9 and must fail on a sampler that is wrong in the way it looks for.
"""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from tests.unit.training.toy import grant_for, plan_of
from understudy.privacy.noise import NoiseSource
from understudy.training import Optimisation, Task, UnitWindows, train

FALSE_ALARM = 1e-9
UNITS, RATE, ITERATIONS = 20, 0.1, 4000


class Recorder:
    """Runs the real loop and writes down who was in which iteration and how the model moved."""

    def __init__(self) -> None:
        self.included = np.zeros((ITERATIONS, UNITS), dtype=bool)
        self.moves: list[np.ndarray] = []
        self._iteration, self._started = 0, False
        self._model = nn.Linear(1, 1)
        self._before = np.zeros(2)

    def loss(self, model: nn.Module, batch: dict[str, Tensor], generator: torch.Generator) -> Tensor:
        if self._started:
            self.included[self._iteration, batch["who"].numpy()] = True
        return 0 * model(batch["x"])

    def after(self, done: int) -> None:
        now = torch.cat([parameter.detach().reshape(-1) for parameter in self._model.parameters()]).numpy().copy()
        self.moves.append(now - self._before)
        self._before, self._iteration = now, done

    def run(self) -> "Recorder":
        arrays = {"x": np.ones((UNITS, 1), np.float32), "who": np.arange(UNITS)}
        windows = UnitWindows(arrays, np.arange(UNITS), np.random.default_rng(0))
        plan = plan_of(sampling_rate=RATE, iterations=ITERATIONS, expected_batch=1.0)
        grant = grant_for(plan, NoiseSource.secure())
        task = Task(model=self._model, loss=self.loss, windows=windows, after_iteration=self.after)

        def make(parameters: object) -> torch.optim.Optimizer:
            self._started = True  # the trial on made-up inputs is over
            return torch.optim.SGD(parameters, lr=1.0)

        self._before = torch.cat([p.detach().reshape(-1) for p in self._model.parameters()]).numpy().copy()
        train(task, plan, grant, optimisation=Optimisation(make=make))
        return self


@pytest.fixture(scope="module")
def recorded() -> Recorder:
    return Recorder().run()


def size_p_value(included: np.ndarray) -> float:
    """χ² of batch sizes against Binomial(units, rate), rare sizes pooled."""
    sizes = included.sum(1)
    top = 6
    expected = stats.binom.pmf(np.arange(top), UNITS, RATE) * len(sizes)
    expected = np.append(expected, len(sizes) - expected.sum())
    observed = np.bincount(np.minimum(sizes, top), minlength=top + 1)
    return float(stats.chisquare(observed, expected).pvalue)


def pair_p_value(included: np.ndarray, lag: int = 0) -> float:
    """χ² of all pairwise correlations of inclusions, within an iteration or between neighbouring ones."""
    scores = (included - RATE) / np.sqrt(RATE * (1 - RATE))
    first, second = scores[: len(scores) - lag], scores[lag:]
    correlations = first.T @ second / np.sqrt(len(first))
    picked = correlations[np.triu_indices(UNITS, 1)] if lag == 0 else correlations.ravel()
    return float(stats.chi2.sf((picked**2).sum(), picked.size))


def rate_p_value(included: np.ndarray) -> float:
    counts = included.sum(0)
    statistic = ((counts - RATE * len(included)) ** 2 / (RATE * (1 - RATE) * len(included))).sum()
    return float(stats.chi2.sf(statistic, UNITS))


def fixed_size(rng: np.random.Generator) -> np.ndarray:
    included = np.zeros((ITERATIONS, UNITS), dtype=bool)
    for row in included:
        row[rng.choice(UNITS, round(RATE * UNITS), replace=False)] = True
    return included


def in_couples(rng: np.random.Generator) -> np.ndarray:
    return np.repeat(rng.random((ITERATIONS, UNITS // 2)) < RATE, 2, axis=1)


def shuffled_epochs(rng: np.random.Generator) -> np.ndarray:
    per_epoch = round(1 / RATE)
    turns = [rng.permutation(np.arange(UNITS) % per_epoch) for _ in range(ITERATIONS // per_epoch)]
    return np.concatenate([turn == np.arange(per_epoch)[:, None] for turn in turns])


def ten_percent_more(rng: np.random.Generator) -> np.ndarray:
    return rng.random((ITERATIONS, UNITS)) < 1.1 * RATE


TESTS: dict[str, Callable[[np.ndarray], float]] = {
    "sizes": size_p_value,
    "pairs": pair_p_value,
    "neighbouring iterations": lambda included: pair_p_value(included, lag=1),
    "rates": rate_p_value,
}


@pytest.mark.parametrize("name", TESTS)
def test_units_are_drawn_by_independent_coins(name: str, recorded: Recorder) -> None:
    assert TESTS[name](recorded.included) > FALSE_ALARM


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("sizes", fixed_size),
        ("sizes", ten_percent_more),
        ("pairs", in_couples),
        ("neighbouring iterations", shuffled_epochs),
    ],
)
def test_another_sampler_would_be_caught(name: str, wrong: Callable[[np.random.Generator], np.ndarray]) -> None:
    assert TESTS[name](wrong(np.random.default_rng(0))) < FALSE_ALARM


def test_empty_iterations_happen_are_counted_and_are_noised(recorded: Recorder) -> None:
    empty = ~recorded.included.any(1)
    expected = (1 - RATE) ** UNITS * ITERATIONS
    assert stats.binomtest(int(empty.sum()), ITERATIONS, (1 - RATE) ** UNITS).pvalue > FALSE_ALARM, expected
    assert len(recorded.moves) == ITERATIONS
    moves = np.array(recorded.moves)[empty]
    assert (moves != 0).all()
    assert stats.kstest(moves.ravel(), stats.norm(scale=4.0).cdf).pvalue > FALSE_ALARM
