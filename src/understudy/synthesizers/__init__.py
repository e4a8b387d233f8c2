"""Methods: one file or folder each, behind one interface."""

from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.base import Progress, SampleRequest, Synthesizer
from understudy.synthesizers.registry import METHODS
from understudy.synthesizers.release import Release

__all__ = ["METHODS", "PrivateSeries", "Progress", "Release", "SampleRequest", "Synthesizer"]
