"""`dit`: one private diffusion transformer that generates, imputes and forecasts."""

from understudy.synthesizers.dit.method import Dit

__all__ = ["Dit"]
