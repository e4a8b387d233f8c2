"""Per-unit gradient clipping."""

from understudy.training.clipping.engine import Losses, PerUnitClipper

__all__ = ["Losses", "PerUnitClipper"]
