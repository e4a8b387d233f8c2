"""Private training: the only code that sees gradients of single units."""

from understudy.training.loop import Checkpoints, Optimisation, Task, adam, check_task, train
from understudy.training.plan import DPSGDConfig, DrawUnits, DrawWindows, MechanismPlan, Performance
from understudy.training.progress import progress_bar
from understudy.training.step import PrivateGradient
from understudy.training.validate_module import validate_module
from understudy.training.windows import UnitWindows

__all__ = [
    "Checkpoints",
    "DPSGDConfig",
    "DrawUnits",
    "DrawWindows",
    "MechanismPlan",
    "Optimisation",
    "Performance",
    "PrivateGradient",
    "Task",
    "UnitWindows",
    "adam",
    "check_task",
    "progress_bar",
    "train",
    "validate_module",
]
