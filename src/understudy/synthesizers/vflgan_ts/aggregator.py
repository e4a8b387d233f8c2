"""The aggregator's side of Algorithm 1: the draws, the latents all parties share, and the shared discriminator."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from understudy.synthesizers.vflgan_ts.agreement import Agreement, Stage, seeded
from understudy.synthesizers.vflgan_ts.backpropagation import Masks, Passed, Perceptron
from understudy.synthesizers.vflgan_ts.network import SharedDiscriminator, masks
from understudy.synthesizers.vflgan_ts.objectives import Objective, gradient_penalty
from understudy.synthesizers.vflgan_ts.protocol import END, AggregatorSide, Frame, Frames
from understudy.synthesizers.vflgan_ts.recipe import LATENT
from understudy.synthesizers.vflgan_ts.updates import MakeUpdate

Draws = Callable[[int], Iterator[Tensor]]  # of the number of aligned rows: places of the rows drawn, round after round
Answers = dict[str, dict[str, Tensor]]  # by party


class Aggregator:
    """What the server computes.

    Privacy: it sees the features of every drawn row, which can be inverted, and sends each party gradients that
    depend on the others' rows. It is trusted. In `sound` mode its own parameters are clipped and noised like those of
    a party.
    """

    def __init__(
        self,
        parties: tuple[str, ...],
        agreement: Agreement,
        make_update: MakeUpdate,
        draws: Draws,
        class_share: np.ndarray,
    ) -> None:
        self._parties, self._agreement, self._draws = parties, agreement, draws
        self._class_share = torch.as_tensor(class_share, dtype=torch.float64)
        recipe = agreement.recipe
        self._objective = Objective.of(recipe)
        with seeded(agreement.seed, "aggregator"):
            self.discriminator = SharedDiscriminator(len(parties) * recipe.features, recipe.shared_widths)
            self._generator = agreement.randomness()
        self.update = make_update(((self.discriminator, recipe.learning_rate / 2),), recipe.betas)
        self._judge = Perceptron(self.discriminator, self.update.flat.views)
        self.losses: list[float] = []  # of the shared discriminator on synthetic rows: public in every mode

    @property
    def coins(self) -> torch.Generator:
        """Where latents and dropout come from, as for a party."""
        return self._generator

    def side(self, before_iteration: Callable[[int], None], done: int = 0, last: int | None = None) -> AggregatorSide:
        """Leads Algorithm 1; arguments as for a party."""
        frames = yield {}
        draws = self._draws(self._agreement.check(frames))
        answers: Answers = {name: {} for name in self._parties}
        for stage in self._agreement.stages(done, last):
            if stage.opens_iteration:
                before_iteration(stage.iteration)
            task = {} if stage.name == END else {"latent": self._latent()}  # lines 4 and 23
            if stage.name == "discriminate":
                task["rows"] = next(draws)  # line 3
            frames = yield {party: Frame(stage.iteration, stage.name, answers[party] | task) for party in self._parties}
            if stage.name == "discriminate":
                answers = self._discriminate(stage, frames, len(task["rows"]))
            elif stage.name == "generate":
                answers = self._generate(stage, frames)

    def _discriminate(self, stage: Stage, frames: Frames, num_rows: int) -> Answers:
        """Lines 12 and 17: updates the shared discriminator, returns the slope of its loss along every feature."""
        batch = self._agreement.recipe.batch
        shapes = {"real": (num_rows, self._agreement.recipe.features), "fake": (batch, self._agreement.recipe.features)}
        heard = {name: frames[name].expect(stage.iteration, stage.name, shapes, sender=name) for name in self._parties}
        real, fake = (torch.cat([heard[party][name] for party in self._parties], 1) for name in shapes)
        passed = [self._passed(rows) for rows in ((real, fake) if self.update.apart else (torch.cat([real, fake]),))]
        logits = torch.cat([each.output for each in passed])
        self.losses.append(self._objective.fake(logits[num_rows:]).mean().item())

        def penalty() -> None:
            gradient_penalty(self._critic, real, fake, self._generator).backward()

        weight, sizes = self.update.weight(num_rows), [len(each.output) for each in passed]
        own = self._objective.slopes(logits, num_rows, weight).split(sizes)  # Eq. 10
        slopes = [each.back(slope) for each, slope in zip(passed, own, strict=True)]
        along = torch.cat([each.along_input() for each in slopes])
        self.update(slopes[:-1], slopes[-1:], penalty if self._agreement.recipe.wasserstein else None)
        return self._by_party({"real": along[:num_rows] / weight, "fake": along[num_rows:]})

    def _generate(self, stage: Stage, frames: Frames) -> Answers:
        """Line 30: returns how features have to change for the shared discriminator to take them for real."""
        shapes = {"fake": (self._agreement.recipe.batch, self._agreement.recipe.features)}
        heard = [
            frames[name].expect(stage.iteration, stage.name, shapes, sender=name)["fake"] for name in self._parties
        ]
        passed = self._passed(torch.cat(heard, 1))
        slopes = self._objective.generated.slope(passed.output) / len(passed.output)  # Eq. 11
        return self._by_party({"fake": passed.back(slopes).along_input()})

    def _passed(self, features: Tensor) -> Passed:
        return self._judge(features, self._masks(len(features)))

    def _critic(self, features: Tensor) -> Tensor:
        """The same for slopes of slopes (VFLGAN)."""
        return self.discriminator(features, self._masks(len(features)))

    def _masks(self, num_rows: int) -> Masks:
        recipe = self._agreement.recipe
        return masks(num_rows, recipe.shared_widths, recipe.dropout, self._generator)

    def _by_party(self, slopes: Mapping[str, Tensor]) -> Answers:
        parts = {name: whole.split(self._agreement.recipe.features, dim=1) for name, whole in slopes.items()}
        return {party: {name: parts[name][place] for name in parts} for place, party in enumerate(self._parties)}

    def _latent(self) -> Tensor:
        """Returns the same noise, and the same classes, for all parties."""
        batch = self._agreement.recipe.batch
        noise = torch.randn(batch, LATENT, generator=self._generator)
        if not self._agreement.num_classes:
            return noise
        classes = torch.multinomial(self._class_share, batch, replacement=True, generator=self._generator)
        return torch.cat([noise, torch.eye(self._agreement.num_classes)[classes]], 1)
