"""Per-unit gradient clipping: every unit's gradient over all parameters, clipped to one norm and added up."""

from understudy.training.clipping.engine import Losses, PerUnitClipper, RecordGradients

__all__ = ["Losses", "PerUnitClipper", "RecordGradients"]
