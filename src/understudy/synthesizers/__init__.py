"""Methods: one file or folder each, behind one interface."""

from understudy.synthesizers.base import Draw, PrivateSeries, Progress, Synthesizer
from understudy.synthesizers.registry import METHODS
from understudy.synthesizers.release import Release

__all__ = ["METHODS", "Draw", "PrivateSeries", "Progress", "Release", "Synthesizer"]
