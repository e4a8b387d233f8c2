"""Privacy-preserving energy models (PPEM): replace a sensitive marginal, keep everything else given it."""

from understudy.synthesizers.ppem.method import PPEM

__all__ = ["PPEM"]
