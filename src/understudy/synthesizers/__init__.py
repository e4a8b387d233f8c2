"""Methods: one file or folder each, behind one interface."""

from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.base import Draw, Progress, Synthesizer
from understudy.synthesizers.registry import METHODS
from understudy.synthesizers.release import Release

__all__ = ["METHODS", "Draw", "PrivateSeries", "Progress", "Release", "Synthesizer"]
