"""Writes down what a grant answered while a method learned: noisy answers, which are public by then.

A witness stands where the ledger was. With `told`, the method is told the answers of an earlier run in place of its
own: later statistics depend on earlier answers, and neighbours have to be compared under the same ones.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from understudy.privacy.border import Private, Statistic
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger

Answers = Mapping[str, NDArray[np.float64]]


class Witness:
    """A ledger that listens; all it does itself is to write answers down.

    Privacy: it never sees more than the noisy answers leave on their way back to the method. Under a noise source
    of constant zero these are the statistics themselves: only for made-up data.
    """

    def __init__(self, ledger: Ledger, told: Answers | None = None) -> None:
        self._ledger, self._told = ledger, told
        self._turns: Counter[str] = Counter()
        self.answers: dict[str, NDArray[np.float64]] = {}

    @property
    def as_ledger(self) -> Ledger:
        """The witness, for code that expects a ledger; it has all that a ledger has."""
        return cast(Ledger, self)

    def charge(self, *args: Any, **kwargs: Any) -> Grant:
        """Charges the ledger and returns a grant that is listened to."""
        return cast(Grant, _Heard(self._ledger.charge(*args, **kwargs), self))

    def hear(self, label: str, answer: NDArray[Any]) -> NDArray[Any]:
        """Notes an answer, under its label and its turn, and returns what the method is told."""
        self._turns[label] += 1
        name = label if self._turns[label] == 1 else f"{label} {self._turns[label]}"
        self.answers[name] = np.asarray(answer, dtype=np.float64)
        return answer if self._told is None else self._told[name].astype(answer.dtype)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)


class _Heard:
    """A grant whose vectors are noted."""

    def __init__(self, grant: Grant, witness: Witness) -> None:
        self._grant, self._witness = grant, witness

    def release(self, statistic: Statistic, private: Private) -> NDArray[np.float64]:
        return self._witness.hear(statistic.label, self._grant.release(statistic, private))

    def distances(self, statistic: Statistic, private: Private, expected: Any) -> NDArray[np.float64]:
        return self._witness.hear(statistic.label, self._grant.distances(statistic, private, expected))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grant, name)
