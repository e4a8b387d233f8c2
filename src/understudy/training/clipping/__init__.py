"""Per-unit gradient clipping."""

from understudy.training.clipping.engine import Leave, Losses, PerUnitClipper

__all__ = ["Leave", "Losses", "PerUnitClipper"]
