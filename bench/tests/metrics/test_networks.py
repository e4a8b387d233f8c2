"""Training small judges: the right epoch is kept, units stay together, no generator is disturbed."""

import numpy as np
import pytest
import torch
from torch import nn
from understudy_bench.metrics.forecasting import forecast_error
from understudy_bench.metrics.networks import Schedule, deal, seeded, seeds, train_epochs


def _kept(losses: list[float], **facts) -> tuple[int, int]:
    """Returns (epoch whose weights were kept, epochs run) where the watched loss follows a script."""
    model, run = nn.Linear(1, 1), []

    def watch() -> float:
        run.append(len(run))
        with torch.no_grad():
            model.weight.fill_(float(len(run) - 1))
        return losses[len(run) - 1]

    optimiser = torch.optim.SGD(model.parameters(), lr=0.0)
    schedule = Schedule(epochs=len(losses), batch=4, **facts)
    train_epochs(model, optimiser, lambda rows: model(torch.zeros(len(rows), 1)).sum(), watch, 8, schedule)
    return int(model.weight.item()), len(run)


def test_the_best_epoch_is_kept() -> None:
    assert _kept([3.0, 1.0, 2.0, 5.0]) == (1, 4)


def test_worst_val_keeps_the_epoch_of_the_greatest_loss() -> None:
    assert _kept([3.0, 1.0, 2.0, 5.0], checkpoint="worst_val") == (3, 4)


def test_patience_stops_after_so_many_epochs_without_improvement() -> None:
    assert _kept([3.0, 1.0, 2.0, 5.0, 0.5], patience=2) == (1, 4)
    assert _kept([3.0, 1.0, 2.0, 5.0, 0.5], patience=3) == (4, 5)


def test_a_loss_that_is_not_finite_keeps_the_first_epoch() -> None:
    assert _kept([float("nan"), float("nan")]) == (0, 2)


def test_a_schedule_is_cut_to_whole_epochs_and_never_to_none() -> None:
    published = Schedule(epochs=100, batch=64)
    assert published.within(None, 640).epochs == 100
    assert published.within(500, 640).epochs == 50
    assert published.within(500, 65).epochs == 100
    assert published.within(3, 6_400).epochs == 1


def test_the_series_of_a_unit_stay_together_and_shares_are_kept() -> None:
    unit = np.repeat(np.arange(50), 3)
    parts = deal(unit, (0.64, 0.16, 0.2), np.random.default_rng(0))
    assert [len(rows) for rows in parts] == [96, 24, 30]
    assert sorted(np.concatenate(parts)) == list(range(150))
    assert not set(unit[parts[0]]) & set(unit[parts[2]])


def test_every_class_is_dealt_in_the_same_shares() -> None:
    strata = np.repeat([0, 1], [80, 20])
    parts = deal(np.arange(100), (0.8, 0.2), np.random.default_rng(0), strata)
    assert [int((strata[rows] == 1).sum()) for rows in parts] == [16, 4]


def test_training_leaves_generator_and_threads_as_they_were() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    threads = torch.get_num_threads()
    torch.manual_seed(3)
    with seeded(1):
        torch.rand(7)
        assert torch.get_num_threads() == 1
    assert torch.rand(1) == expected
    assert torch.get_num_threads() == threads


def test_more_repeats_keep_the_first_seeds() -> None:
    assert seeds(4, 3)[:1] == seeds(4, 1)
    assert len(set(seeds(4, 10))) == 10


def test_the_authors_checkpoint_gives_a_worse_forecaster() -> None:
    rng = np.random.default_rng(0)
    phase = rng.uniform(0, 2 * np.pi, (300, 1, 1))
    waves = 0.5 + 0.4 * np.sin(phase + 0.9 * np.arange(12)[None, :, None])
    best, worst = (
        forecast_error(waves[:200], waves[200:], epochs=60, seed=0, checkpoint=kept) for kept in ("best", "worst_val")
    )
    assert best < 0.5 * worst
    assert best == pytest.approx(forecast_error(waves[:200], waves[200:], epochs=60, seed=0))
