"""Private training: the only code that sees gradients of single units."""

from understudy.training.batches import UnitWindows
from understudy.training.loop import Checkpoints, Optimisation, Report, Task, adam, check_task, train
from understudy.training.plan import DPSGDConfig
from understudy.training.private_gradient import PrivateGradient
from understudy.training.validation import validate_module

__all__ = [
    "Checkpoints",
    "DPSGDConfig",
    "Optimisation",
    "PrivateGradient",
    "Report",
    "Task",
    "UnitWindows",
    "adam",
    "check_task",
    "train",
    "validate_module",
]
