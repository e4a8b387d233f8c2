"""The synthetic series that evolve. Everything here is public: it knows private data by noisy histograms alone."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int64


@dataclass(frozen=True, eq=False, kw_only=True)
class Population:
    """Candidates in working scale.

    Attributes:
        series: Their channels.
        static: Their static columns but the label; no columns where the schema has none.
        group: The class each one stands for; private series vote inside their own class.
        ancestor: Which member of the first population each one descends from.
    """

    series: Float32[np.ndarray, "member step channel"]
    static: Float32[np.ndarray, "member static"]
    group: Int64[np.ndarray, " member"]
    ancestor: Int64[np.ndarray, " member"]

    @classmethod
    def first(cls, series: np.ndarray, static: np.ndarray, group: np.ndarray) -> "Population":
        """Returns a population whose members are their own ancestors."""
        return cls(
            series=series.astype(np.float32),
            static=static.astype(np.float32),
            group=group.astype(np.int64),
            ancestor=np.arange(len(series), dtype=np.int64),
        )

    def take(self, rows: np.ndarray) -> "Population":
        """Returns the chosen members, as often as they were chosen."""
        return Population(
            series=self.series[rows], static=self.static[rows], group=self.group[rows], ancestor=self.ancestor[rows]
        )

    @property
    def size(self) -> int:
        """Number of members, a public constant."""
        return len(self.series)

    @property
    def num_ancestors(self) -> int:
        """How many members of the first population have descendants; few mean that chance has thinned it out."""
        return len(np.unique(self.ancestor))
