"""The spectral method, in a folder of its own: one file per step."""

from understudy.synthesizers.spectral.method import Spectral

__all__ = ["Spectral"]
