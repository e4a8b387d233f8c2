"""One party's side of Algorithm 1: its rows, its attribute generators and discriminators, its feature extractor."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor, nn

from understudy.errors import InputError
from understudy.synthesizers.vflgan_ts.agreement import Agreement, Stage, seeded
from understudy.synthesizers.vflgan_ts.backpropagation import Cells, Passed, Perceptron
from understudy.synthesizers.vflgan_ts.network import (
    AttributeDiscriminators,
    AttributeGenerators,
    ClassGenerators,
    FeatureExtractor,
    masks,
)
from understudy.synthesizers.vflgan_ts.objectives import Objective, gradient_penalty
from understudy.synthesizers.vflgan_ts.protocol import END, Frame, PartySide
from understudy.synthesizers.vflgan_ts.recipe import HIDDEN, LATENT, Recipe
from understudy.synthesizers.vflgan_ts.updates import MakeUpdate, PlainUpdate

Given = Mapping[str, Tensor]
Step = Generator[Frame, Frame, Given]


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """A party's aligned rows.

    Privacy: private; how many there are is too.

    Attributes:
        series: [row, attribute, step].
        label: One-hot classes [row, class] if this party holds the label; [row, 0] if not.
    """

    series: Tensor
    label: Tensor


class Party:
    """What one organisation computes. It shows features of drawn rows and nothing else of them.

    Privacy: in `sound` mode its parameters are noisy after every update, so whatever is made from its generators is
    covered by the run's charge; the features it sends are not, and go to a trusted aggregator.
    """

    def __init__(self, name: str, rows: Rows, agreement: Agreement, make_update: MakeUpdate) -> None:
        self.name, self._rows, self._agreement, recipe = name, rows, agreement, agreement.recipe
        self._objective = Objective.of(recipe)
        _, num_attributes, num_steps = rows.series.shape
        self._num_classes = rows.label.shape[1]
        self._widths = (recipe.features, *recipe.widths)  # of what dropout applies to
        with seeded(agreement.seed, name):
            self.generators = generators_for(recipe, agreement.num_latent, num_attributes, num_steps)
            stacked = (1, num_attributes * num_steps) if recipe.wasserstein else (num_attributes, num_steps)
            self.discriminators = AttributeDiscriminators(*stacked, recipe.widths)
            self.extractor = FeatureExtractor(num_attributes * num_steps + self._num_classes, recipe.features)
            self._generator = agreement.randomness()
        rate = recipe.learning_rate
        self.update = make_update(((self.discriminators, rate), (self.extractor, rate / 2)), recipe.betas)
        self.generator_update = PlainUpdate(((self.generators, rate),), recipe.betas)
        cells = next(part for part in self.generators.modules() if isinstance(part, AttributeGenerators))
        self._make = Cells(cells.gates, cells.output, self.generator_update.flat.views)
        self._judge, self._extract = (
            Perceptron(network, self.update.flat.views) for network in (self.discriminators, self.extractor)
        )

    @property
    def coins(self) -> torch.Generator:
        """Where dropout comes from; in `sound` nobody may keep its state."""
        return self._generator

    def side(self, before_iteration: Callable[[int], None], done: int = 0, last: int | None = None) -> PartySide:
        """Takes part in Algorithm 1.

        Args:
            before_iteration: Called with the number of each iteration before any of its rows is read, for counting.
            done: Iterations finished earlier, when a run resumes.
            last: The iteration to end with; None for that of the recipe.
        """
        answer = yield Frame(0, "greeting", self._agreement.greeting(len(self._rows.series)))
        stages = self._agreement.stages(done, last)
        given = self._heard(answer, stages[0], {})
        for now, then in pairwise(stages):
            if now.opens_iteration:
                before_iteration(now.iteration)
            step = self._discriminate if now.name == "discriminate" else self._generate
            given = yield from step(given, now, then)

    def _discriminate(self, given: Given, now: Stage, then: Stage) -> Step:
        """Lines 3 to 22: tells real from synthetic, attribute by attribute, and helps the aggregator to."""
        rows, latent = self._checked(given["rows"]), given["latent"]
        real, number = Rows(self._rows.series[rows], self._rows.label[rows]), len(rows)
        fake = self._made(self._make(latent).output, latent)  # line 6
        groups = ((real,), (fake,)) if self.update.apart else ((real, fake),)
        passed = [self._passed(*group) for group in groups]  # lines 8 and 9
        logits, features = (torch.cat([each.output for each in network], -2) for network in zip(*passed, strict=True))
        answer = yield Frame(now.iteration, now.name, {"real": features[:number], "fake": features[number:]})
        given = self._heard(answer, then, {"real": number, "fake": len(latent)})

        def penalty() -> None:
            gradient_penalty(self._critic, real.series, fake.series, self._generator).backward()

        weight, sizes = self.update.weight(number), [len(extracted.output) for _, extracted in passed]
        alone = self._objective.slopes(logits, number, weight).split(sizes, -2)  # Eq. 9
        together = torch.cat([given["real"] * weight, given["fake"]]).split(sizes)  # Eq. 10
        slopes = [
            (judged.back(own), extracted.back(shared))
            for (judged, extracted), own, shared in zip(passed, alone, together, strict=True)
        ]
        private = slopes[0] if self.update.apart else ()
        self.update(private, slopes[-1], penalty if self._agreement.recipe.wasserstein else None)
        return given

    def _generate(self, given: Given, now: Stage, then: Stage) -> Step:
        """Lines 23 to 33: makes attributes that pass both discriminators. Real rows are not looked at."""
        latent = given["latent"]
        made = self._make(latent)  # line 25
        judged, extracted = self._passed(self._made(made.output, latent))  # line 27
        answer = yield Frame(now.iteration, now.name, {"fake": extracted.output})
        given = self._heard(answer, then, {"fake": len(latent)})
        alone = judged.back(self._objective.generated.slope(judged.output) / len(latent)).along_input()
        together = extracted.back(self._agreement.recipe.coupling * given["fake"]).along_input()
        series = together[:, : together.shape[1] - self._num_classes].view(len(latent), *made.output.shape[::2])
        self.generator_update((), (), lambda: made.learn(series.transpose(0, 1) + alone))  # Eq. 11
        return given

    def _heard(self, answer: Frame, then: Stage, slopes: Mapping[str, int]) -> Given:
        """Returns the tensors of an answer: slopes of the features just sent, and what the next stage needs."""
        shapes: dict[str, tuple[int | None, ...]] = {
            name: (number, self._agreement.recipe.features) for name, number in slopes.items()
        }
        if then.name != END:
            shapes["latent"] = (self._agreement.recipe.batch, self._agreement.num_latent)
        if then.name == "discriminate":
            shapes["rows"] = (None,)
        return answer.expect(then.iteration, then.name, shapes, sender="aggregator")

    def _checked(self, rows: Tensor) -> Tensor:
        """Refuses a draw that names a row twice, which would count twice, or one that is not there."""
        named, number = rows.tolist(), len(self._rows.series)
        inside = rows.dtype == torch.int64 and all(0 <= row < number for row in named)
        if not inside or len(set(named)) != len(named):
            raise InputError("'aggregator': a draw of different rows is expected, got others. The run is stopped.")
        return rows

    def _passed(self, *rows: Rows) -> tuple[Passed, Passed]:
        """Sends rows, one behind the other, through discriminators and extractor, with coins for dropout."""
        recipe = self._agreement.recipe
        series = torch.cat([some.series for some in rows])
        inputs = series.flatten(1)
        stacked = inputs.unsqueeze(0) if recipe.wasserstein else series.transpose(0, 1)
        if self._num_classes:
            inputs = torch.cat([inputs, torch.cat([some.label for some in rows])], 1)
        of_features, *hidden = masks(len(series), self._widths, recipe.dropout, self._generator)
        return self._judge(stacked, hidden), self._extract(inputs, [of_features])

    def _critic(self, series: Tensor) -> Tensor:
        """How real a party's series look, for slopes of slopes (VFLGAN)."""
        recipe = self._agreement.recipe
        kept = masks(len(series), recipe.widths, recipe.dropout, self._generator)
        return self.discriminators(series.flatten(1).unsqueeze(1), kept).sum(1)

    def _made(self, output: Tensor, latent: Tensor) -> Rows:
        """Synthetic rows; the last columns of the latent say which classes they are asked to have."""
        series = output.transpose(0, 1).reshape(len(latent), *self._rows.series.shape[1:])
        return Rows(series, latent[:, latent.shape[1] - self._num_classes :])


def generators_for(recipe: Recipe, num_latent: int, num_attributes: int, num_steps: int) -> nn.Module:
    """Returns a party's generators [row, latent] → [row, attribute, step]: one per attribute, in VFLGAN one for all.

    Where every class has a model of its own there are as many of these as classes.
    """
    if recipe.labels == "apart" and num_latent > LATENT:
        alone = replace(recipe, labels="conditional")
        classes = range(num_latent - LATENT)
        return ClassGenerators([generators_for(alone, LATENT, num_attributes, num_steps) for _ in classes])
    if not recipe.wasserstein:
        return AttributeGenerators(num_attributes, num_latent, num_steps, HIDDEN)
    whole = AttributeGenerators(1, num_latent, num_attributes * num_steps, HIDDEN)
    return nn.Sequential(whole, nn.Unflatten(2, (num_attributes, num_steps)), nn.Flatten(1, 2))
