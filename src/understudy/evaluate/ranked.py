"""Two sets of series as pools of values, sorted once: distances of distributions, also of series drawn again."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False, kw_only=True)
class RankedPools:
    """Values of real and candidate series, column by column. A weight says how often a series counts.

    Where only the real series have values in a column the distance is 1; where they have none it is NaN.

    Attributes:
        owner: [column, rank] place of the series a value belongs to in the flat array of all columns' weights.
        widths: [column, rank - 1] distance from each value to the next larger one; 0 to and between gaps.
        present: [column, series] how many values a series has.
    """

    owner: np.ndarray
    widths: np.ndarray
    present: np.ndarray
    num_real: int

    @classmethod
    def of(cls, real: np.ndarray, candidate: np.ndarray) -> "RankedPools":
        """Pools values [series, value, column]; NaN is a gap."""
        together = np.concatenate([real, candidate]).transpose(2, 0, 1)
        num_columns, num_series, num_values = together.shape
        flat = together.reshape(num_columns, -1)
        order = np.argsort(flat, axis=1)
        ranked = np.take_along_axis(flat, order, axis=1)
        owner = np.where(np.isnan(ranked), num_series, order // max(num_values, 1))
        return cls(
            owner=owner + np.arange(num_columns)[:, None] * (num_series + 1),
            widths=np.nan_to_num(np.diff(ranked, axis=1).astype(np.float64)),
            present=(~np.isnan(together)).sum(axis=2).astype(np.float64),
            num_real=len(real),
        )

    @property
    def once(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights that count every series once."""
        return np.ones(self.num_real), np.ones(self.present.shape[1] - self.num_real)

    def kolmogorov(self, real: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        """Returns the greatest difference of the distribution functions, for each column."""
        differences = self._differences(real, candidate)
        return self._known(np.minimum((differences * (self.widths > 0)).max(axis=1, initial=0.0), 1.0), real, candidate)

    def wasserstein(self, real: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        """Returns the area between the distribution functions, for each column."""
        areas = np.einsum("cr,cr->c", self._differences(real, candidate), self.widths)
        return self._known(areas, real, candidate)

    def _differences(self, real: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        """Returns |F − F̃| [column, rank - 1] to the right of every value but the last."""
        totals = [np.maximum(total, 1e-300)[:, None] for total in self._totals(real, candidate)]
        nobody = np.zeros_like(totals[0])  # the weight of gaps
        signed = np.concatenate([real / totals[0], -candidate / totals[1], nobody], axis=1)
        return np.abs(np.cumsum(signed.ravel()[self.owner], axis=1)[:, :-1])

    def _totals(self, real: np.ndarray, candidate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.present[:, : self.num_real] @ real, self.present[:, self.num_real :] @ candidate

    def _known(self, distances: np.ndarray, real: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        num_real, num_candidate = self._totals(real, candidate)
        return np.where(num_real == 0, np.nan, np.where(num_candidate == 0, 1.0, distances))
