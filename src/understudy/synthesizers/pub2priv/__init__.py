"""`pub2priv`: private series from public context."""

from understudy.synthesizers.pub2priv.method import Pub2Priv

__all__ = ["Pub2Priv"]
