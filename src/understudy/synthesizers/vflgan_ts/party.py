"""One party's side of Algorithm 1: its rows, its attribute generators and discriminators, its feature extractor."""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor, nn

from understudy.errors import InputError
from understudy.nn.attribute_gan import (
    AttributeDiscriminators,
    AttributeGenerators,
    ClassGenerators,
    FeatureExtractor,
    kept_by_dropout,
)
from understudy.synthesizers.vflgan_ts.agreement import Agreement, Stage, seeded
from understudy.synthesizers.vflgan_ts.objectives import Objective, gradient_penalty
from understudy.synthesizers.vflgan_ts.recipe import HIDDEN, LATENT, Recipe
from understudy.synthesizers.vflgan_ts.updates import MakeUpdate, PlainUpdate
from understudy.training.conversation import END, Frame, PartySide

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


@dataclass(frozen=True, eq=False, repr=False)
class _Shown:
    """Rows as discriminators and extractor see them; `kept` is what dropout leaves of the features."""

    series: Tensor
    label: Tensor
    kept: Tensor | None

    def __getitem__(self, some: slice) -> "_Shown":
        return _Shown(self.series[some], self.label[some], None if self.kept is None else self.kept[some])

    def followed_by(self, other: "_Shown") -> "_Shown":
        kept = None if self.kept is None or other.kept is None else torch.cat([self.kept, other.kept])
        return _Shown(torch.cat([self.series, other.series]), torch.cat([self.label, other.label]), kept)


@dataclass(frozen=True, eq=False, repr=False)
class _Looks:
    """Features to send, and (logits, features) of some real rows and of the synthetic ones for the losses."""

    sent: Mapping[str, Tensor]
    real: Callable[[slice], tuple[Tensor, Tensor]]
    fake: Callable[[], tuple[Tensor, Tensor]]


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
        with seeded(agreement.seed, name):
            self.generators = generators_for(recipe, agreement.num_latent, num_attributes, num_steps)
            stacked = (1, num_attributes * num_steps) if recipe.wasserstein else (num_attributes, num_steps)
            self.discriminators = AttributeDiscriminators(*stacked, recipe.widths, recipe.dropout)
            self.extractor = FeatureExtractor(
                num_attributes * num_steps + self._num_classes, self._agreement.recipe.features
            )
            self._generator = agreement.randomness()
        rate = recipe.learning_rate
        self.update = make_update(((self.discriminators, rate), (self.extractor, rate / 2)), recipe.betas)
        self.generator_update = PlainUpdate(((self.generators, rate),), recipe.betas)

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
        with torch.no_grad():
            made = self.generators(latent)  # line 6
        real = self._shown(self._rows.series[rows], self._rows.label[rows])
        fake = self._shown(made, self._label_of(latent))
        looks = self._together(real, fake) if self.update.together else self._apart(real, fake)  # lines 8 and 9
        answer = yield Frame(now.iteration, now.name, looks.sent)
        given = self._heard(answer, then, {"real": len(rows), "fake": len(latent)})

        def private(some: slice) -> Tensor:  # Eq. 9 on real rows, and through the shared discriminator Eq. 10
            logits, features = looks.real(some)
            return self._objective.real(logits).sum(1) + (features * given["real"][some]).sum(1)

        def public() -> Tensor:  # Eq. 9 and 10 on synthetic rows
            logits, features = looks.fake()
            loss = self._objective.fake(logits).sum(1).mean() + (features * given["fake"]).sum()
            if self._agreement.recipe.wasserstein:
                loss = loss + gradient_penalty(lambda x: self._judged(x).sum(1), real.series, made, self._generator)
            return loss

        self.update(private, len(rows), public)
        return given

    def _generate(self, given: Given, now: Stage, then: Stage) -> Step:
        """Lines 23 to 33: makes attributes that pass both discriminators. Real rows are not looked at."""
        latent = given["latent"]
        with _frozen(self.discriminators, self.extractor):
            made = self.generators(latent)  # line 25
            features = self._features(self._shown(made, self._label_of(latent)))  # line 27
            answer = yield Frame(now.iteration, now.name, {"fake": features.detach()})
            given = self._heard(answer, then, {"fake": len(latent)})

            def public() -> Tensor:  # Eq. 11
                alone = self._objective.generated(self._judged(made)).sum(1).mean()
                return alone + self._agreement.recipe.coupling * (features * given["fake"]).sum()

            self.generator_update(_nothing, 0, public)
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
        named = rows.tolist()
        inside = rows.dtype == torch.int64 and all(0 <= row < len(self._rows.series) for row in named)
        if not inside or len(set(named)) != len(named):
            raise InputError("'aggregator': a draw of different rows is expected, got others. The run is stopped.")
        return rows

    def _judged(self, series: Tensor) -> Tensor:
        stacked = series.flatten(1).unsqueeze(1) if self._agreement.recipe.wasserstein else series
        return self.discriminators(stacked, self._generator)

    def _features(self, shown: "_Shown") -> Tensor:
        inputs = shown.series.flatten(1)
        return self.extractor(torch.cat([inputs, shown.label], 1) if self._num_classes else inputs, shown.kept)

    def _shown(self, series: Tensor, label: Tensor) -> "_Shown":
        recipe = self._agreement.recipe
        kept = kept_by_dropout((len(series), recipe.features), recipe.dropout, self._generator)
        return _Shown(series, label, kept)

    def _apart(self, real: "_Shown", fake: "_Shown") -> "_Looks":
        """Looks at real rows by themselves, when and as many at a time as asked for."""
        features = self._features(fake)
        with torch.no_grad():
            sent = {"real": self._features(real), "fake": features.detach()}
        return _Looks(
            sent,
            lambda some: (self._judged(real.series[some]), self._features(real[some])),
            lambda: (self._judged(fake.series), features),
        )

    def _together(self, real: "_Shown", fake: "_Shown") -> "_Looks":
        """Looks at all rows at once: half the calls, for updates that keep nothing apart."""
        both, number = real.followed_by(fake), len(real.series)
        sizes = (number, len(fake.series))
        logits, features = self._judged(both.series).split(sizes), self._features(both).split(sizes)
        sent = {"real": features[0].detach(), "fake": features[1].detach()}
        # Whoever keeps nothing apart asks for all real rows at once.
        return _Looks(sent, lambda some: (logits[0], features[0]), lambda: (logits[1], features[1]))

    def _label_of(self, latent: Tensor) -> Tensor:
        """Classes that synthetic rows are asked to have; the last columns of the latent say so."""
        return latent[:, latent.shape[1] - self._num_classes :]


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


def _nothing(some: slice) -> Tensor:
    raise AssertionError("Generators see no real rows.")


@contextmanager
def _frozen(*modules: nn.Module) -> Iterator[None]:
    """Leaves gradients of some networks' parameters out."""
    parameters = [parameter for module in modules for parameter in module.parameters()]
    for parameter in parameters:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)
