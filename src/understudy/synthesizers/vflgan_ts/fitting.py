"""A whole run in one process: parties and aggregator are made and led through Algorithm 1."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from understudy.synthesizers.vflgan_ts.aggregator import Aggregator
from understudy.synthesizers.vflgan_ts.agreement import Agreement
from understudy.synthesizers.vflgan_ts.modes import Rule
from understudy.synthesizers.vflgan_ts.party import Party, Rows
from understudy.synthesizers.vflgan_ts.protocol import Frame, converse
from understudy.synthesizers.vflgan_ts.recipe import LATENT

Named = Sequence[tuple[str, Rows]]  # parties and what they hold
_WATCHED_ROWS = 1024  # of each side, for the distance that chooses a checkpoint
_CHECKPOINTS = 20  # in a run


def run(
    agreement: Agreement,
    parties: Named,
    rule: Rule,
    class_share: np.ndarray,
    *,
    nearest_checkpoint: bool = False,
    progress: Callable[[float], None] = lambda share: None,
    watch: Callable[[str, Frame], None] | None = None,
) -> tuple[nn.Module, ...]:
    """Returns every party's trained generators.

    Args:
        nearest_checkpoint: Keep the generators of the least AWD instead of the last; reads real rows without noise.
        watch: Is shown every frame, for counting.

    Privacy: what the rule's updates promise; generators themselves see synthetic rows and gradients of networks only.
    """
    made = {name: Party(name, rows, agreement, rule.party) for name, rows in parties}
    aggregator = Aggregator(tuple(made), agreement, rule.aggregator, rule.draws, class_share)
    best = _Nearest(list(made.values()), [rows for _, rows in parties], agreement) if nearest_checkpoint else None
    every = max(1, agreement.recipe.iterations // _CHECKPOINTS)

    def before_iteration(iteration: int) -> None:
        if iteration % every == 1 or every == 1:
            progress(iteration / agreement.recipe.iterations)
            if best is not None:
                best.look()

    sides = {name: party.side(lambda iteration: None) for name, party in made.items()}
    converse(sides, aggregator.side(before_iteration), watch)
    if best is not None:
        best.look()
        best.restore()
    return tuple(party.generators for party in made.values())


class _Nearest:
    """Remembers the generators whose series came nearest to the real ones (AWD, Eq. 23).

    Privacy: none; an exact statistic of private rows chooses. For `plain` and `paper` only.
    """

    def __init__(self, parties: list[Party], rows: list[Rows], agreement: Agreement) -> None:
        self._parties, self._agreement = parties, agreement
        self._real = [torch.sort(part.series[:_WATCHED_ROWS], dim=0).values for part in rows]
        self._least, self._kept = float("inf"), [party.generator_update.flat.values.clone() for party in parties]

    def look(self) -> None:
        """Keeps the generators if they are nearer than any before."""
        generator = torch.Generator().manual_seed(self._agreement.seed)
        latent = torch.randn(len(self._real[0]), LATENT, generator=generator)
        classes = torch.arange(len(latent)) % max(1, self._agreement.num_classes)
        latent = torch.cat([latent, torch.eye(self._agreement.num_classes)[classes]], 1) if classes.any() else latent
        distance = sum(
            float((torch.sort(generate(party.generators, latent), dim=0).values - real).abs().mean())
            for party, real in zip(self._parties, self._real, strict=True)
        )
        if distance < self._least:
            self._least = distance
            self._kept = [party.generator_update.flat.values.clone() for party in self._parties]

    def restore(self) -> None:
        """Puts the nearest generators back."""
        for party, values in zip(self._parties, self._kept, strict=True):
            party.generator_update.flat.values.copy_(values)


@torch.no_grad()
def generate(generators: nn.Module, latent: Tensor) -> Tensor:
    """Returns attributes [row, attribute, step] of all rows of a latent, in chunks."""
    return torch.cat([generators(part) for part in latent.split(4096)])
