"""What every method has to keep, as plain functions: each takes a synthesizer and raises AssertionError.

Authors of a method can run them on it, with or without pytest:

    >>> from understudy.synthesizers.independent import Independent
    >>> check_synthesizer(Independent())

A release is loaded back by its method's name, so a new method has to be in the registry first:
`METHODS["mine"] = Mine`.
The panels are invented and ledgers live in memory; nothing outside a temporary folder is written.
"""

from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.contract.checks import CHECKS

__all__ = ["CHECKS", "check_synthesizer"]


def check_synthesizer(synthesizer: Synthesizer) -> None:
    """Runs every check in turn; the first that fails raises."""
    for check in CHECKS:
        check(synthesizer)
