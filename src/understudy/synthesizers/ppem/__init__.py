"""Privacy-preserving energy models: hide a sensitive marginal, keep everything else (paper 002)."""

from understudy.synthesizers.ppem.method import Ppem

__all__ = ["Ppem"]
