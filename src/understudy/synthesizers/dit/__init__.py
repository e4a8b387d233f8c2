"""`dit`: one private diffusion transformer that generates, imputes and forecasts."""

from understudy.synthesizers.dit.method import DiT

__all__ = ["DiT"]
