"""Small private tasks for tests of the training room."""

import numpy as np
import torch
from torch import Tensor, nn

from understudy.privacy.budget import Guarantee
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.training import DPSGDConfig, Task, UnitWindows

TARGET = torch.tensor([[1.0, -2.0, 0.5]])


def plan_of(**changes: object) -> DPSGDConfig:
    settings: dict = {
        "sampling_rate": 0.2,
        "iterations": 30,
        "expected_batch": 20.0,
        "noise_multiplier": 4.0,  # large enough for a quick accountant
        **changes,
    }
    return DPSGDConfig(**settings)


def grant_for(plan: DPSGDConfig, noise: NoiseSource | None = None) -> Grant:
    guarantee = Guarantee(1e4, 1e-6)
    spending = SpendingPlan((PlanEntry("training", plan.event),), guarantee)
    return Ledger.in_memory(guarantee).charge(spending, label="test", noise=noise or NoiseSource.seeded(1))


def regression_arrays(num_units: int, seed: int = 0) -> dict[str, np.ndarray]:
    """x and y = x · target + small noise, one window per unit."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num_units, 3)).astype(np.float32)
    y = x @ TARGET.numpy().T + 0.1 * rng.normal(size=(num_units, 1)).astype(np.float32)
    return {"x": x, "y": y.astype(np.float32)}


def windows_of(
    arrays: dict[str, np.ndarray], unit: np.ndarray | None = None, max_windows: int | None = None
) -> UnitWindows:
    rows = len(next(iter(arrays.values())))
    owners = np.arange(rows) if unit is None else unit
    return UnitWindows(arrays, owners, np.random.default_rng(0), max_windows)


def squared_error(model: nn.Module, batch: dict[str, Tensor], generator: torch.Generator) -> Tensor:
    return (model(batch["x"]) - batch["y"]).square()


def regression_task(num_units: int = 100, **changes: object) -> Task:
    torch.manual_seed(0)
    fields: dict = {
        "model": nn.Linear(3, 1),
        "loss": squared_error,
        "windows": windows_of(regression_arrays(num_units)),
        **changes,
    }
    return Task(**fields)
