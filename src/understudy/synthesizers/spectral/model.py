"""What `spectral` releases: plain arrays, each a function of noisy statistics and of nothing else."""

from dataclasses import dataclass, fields

import numpy as np

from understudy.synthesizers.spectral.dependence import Covariance
from understudy.synthesizers.spectral.gaps import COUNT_EDGES, LENGTH_EDGES, Gaps
from understudy.synthesizers.spectral.kind import Kind
from understudy.synthesizers.spectral.levels import LEVEL_EDGES, VOLATILITY_EDGES, Distribution
from understudy.synthesizers.spectral.marginals import Grid, Marginal
from understudy.synthesizers.spectral.profile import Profile
from understudy.synthesizers.spectral.spectrum import Strengths


@dataclass(frozen=True, kw_only=True)
class Model:
    """Everything sampling needs. A *kind* is a class of series: a label, divided further by level where it pays.

    Attributes:
        cells: Cells of all columns end to end (left ends, right ends); channels first, then static columns.
        cumulative: Distribution functions of all columns end to end.
        column_cells: Number of cells of each column.
        rotation: Matrix [channel, factor] from scores to factors; what follows is about factors.
        kind_share: Share of each kind.
        mean, spread: Profiles [kind, step, channel].
        strength: Relative strengths [kind, frequency, channel] of the frequencies above 0.
        levels, volatilities: Distribution functions [kind, channel, cell + 1].
        coupled, free: Covariances of each kind.
        order: Blocks of coordinates in the order of the covariances.
        score_nodes: Quantiles [channel, node] of synthetic scores, which map to ranks.
        single_missing: Share of series in which each single column is missing.
        gaps: Gap model [channel, cell] of the channels that may be missing.
        length_shares: Distribution of lengths; empty when all series have one length.
    """

    cells: np.ndarray
    cumulative: np.ndarray
    column_cells: np.ndarray
    rotation: np.ndarray
    kind_share: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    strength: np.ndarray
    levels: np.ndarray
    volatilities: np.ndarray
    coupled: np.ndarray
    free: np.ndarray
    order: np.ndarray
    score_nodes: np.ndarray
    single_missing: np.ndarray
    gaps: np.ndarray
    length_shares: np.ndarray

    @classmethod
    def of(
        cls, marginals: list[Marginal], kinds: list[Kind], covariances: list[Covariance], **rest: np.ndarray
    ) -> "Model":
        """Returns the model of fitted parts; `rest` are the fields that are arrays already."""
        left, right = (np.concatenate([getattr(m.grid, end) for m in marginals]) for end in ("left", "right"))
        return cls(
            cells=np.stack([left, right]),
            cumulative=np.concatenate([marginal.cumulative for marginal in marginals]),
            column_cells=np.array([marginal.grid.num_cells for marginal in marginals], dtype=np.int64),
            mean=np.stack([kind.profile.mean for kind in kinds]),
            spread=np.stack([kind.profile.spread for kind in kinds]),
            strength=np.stack([kind.strengths.relative for kind in kinds]),
            levels=np.stack([kind.levels.cumulative for kind in kinds]),
            volatilities=np.stack([kind.volatilities.cumulative for kind in kinds]),
            coupled=np.stack([covariance.coupled for covariance in covariances]),
            free=np.stack([covariance.free for covariance in covariances]),
            **rest,
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Returns the arrays by name, ready to be stored."""
        return {field.name: np.ascontiguousarray(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Model":
        """Returns the model that `to_arrays` stored."""
        return cls(**{field.name: arrays[field.name] for field in fields(cls)})

    @property
    def marginals(self) -> list[Marginal]:
        """Distribution of each column."""
        ends = np.cumsum(self.column_cells)
        starts = ends - self.column_cells
        return [
            Marginal(
                Grid(self.cells[0, start:end], self.cells[1, start:end]),
                self.cumulative[start + column : end + column + 1],
            )
            for column, (start, end) in enumerate(zip(starts, ends, strict=True))
        ]

    def kind(self, kind: int) -> Kind:
        """The road between coefficients and coordinates for one kind."""
        return Kind(
            Profile(self.mean[kind], self.spread[kind]),
            Strengths(self.strength[kind]),
            Distribution(self.levels[kind], LEVEL_EDGES),
            Distribution(self.volatilities[kind], VOLATILITY_EDGES),
        )

    def covariance(self, kind: int) -> Covariance:
        """Covariances of one kind."""
        return Covariance(self.coupled[kind], self.free[kind])

    def gap_model(self, place: int) -> Gaps:
        """Gap model of the `place`-th channel that may be missing."""
        counts, lengths, ranks = np.split(self.gaps[place], np.cumsum([len(COUNT_EDGES), len(LENGTH_EDGES)]))
        return Gaps(counts, lengths, ranks)
