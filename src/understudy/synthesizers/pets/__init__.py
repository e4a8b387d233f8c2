"""Private evolution of time series (PETS): public modules propose, noisy private votes select."""

from understudy.synthesizers.pets.method import PETS

__all__ = ["PETS"]
