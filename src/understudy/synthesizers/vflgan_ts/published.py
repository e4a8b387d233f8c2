"""VFLGAN-TS as published: Algorithm 1 in two columns, the noise of DPVFLGAN-TS, and the epsilon it claims.

Xun, Zhao, Li, Gope and Sikdar, *VFLGAN-TS: Vertical Federated Learning-based Generative Adversarial Networks for
Publication of Vertically Partitioned Time-series Data*, ACM TOPS 29(1), 2025, doi:10.1145/3776587. Lines are those of
Algorithm 1. Where the text and the code released with it differ, the code is followed: generators minimise −log D
instead of log(1 − D) of Eq. 11, and networks have dropout.

`Party` and `Aggregator` compute losses; how a loss becomes an update is handed in. Here is the update of DPVFLGAN-TS
(`FirstLayerUpdate`), which protects no unit; those that are sound are in `updates`.

Notation: G_ij generator and D_ij discriminator of attribute j at party i, FE_i its feature extractor, D_S the shared
discriminator, f features of real rows, f̃ of synthetic ones, z latent, C clipping norm, σ noise multiplier. Networks
return logits, so −log D is softplus(−logit) and −log(1 − D) is softplus(logit). A *slope* of a row is that of D_S's
loss of the row along its features: all that a party has to know to descend along it.
"""

import math
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp
from torch import Tensor, nn
from torch.nn.functional import softplus

from understudy.errors import InputError
from understudy.nn.layers import StackedLinear
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.vflgan_ts.network import (
    AttributeDiscriminators,
    AttributeGenerators,
    FeatureExtractor,
    SharedDiscriminator,
    with_dropout,
)
from understudy.synthesizers.vflgan_ts.protocol import (
    AggregatorSide,
    Frame,
    Frames,
    PartySide,
    RunConfig,
    Stage,
    common_rows,
    seeded,
)
from understudy.synthesizers.vflgan_ts.recipe import LATENT
from understudy.synthesizers.vflgan_ts.updates import Groups, MakeUpdate, PlainUpdate, Shown, Update
from understudy.training.private_gradient import NormalReserve, gradient_step

Batches = Callable[[int], Iterator[Tensor]]  # of the number of aligned rows: places of the sampled rows, round by round
Given = Mapping[str, Tensor]
Answers = dict[str, dict[str, Tensor]]  # by party
CLAIMED_EPSILON = 10.0  # what the published accounting is to claim: Tables 4 and 9
_ORDERS = range(2, 257)
_AVERAGED = 0.98  # decay of the average of generators in the mode `sound`
_MECHANISMS = 2  # Theorem 4.3 counts an attribute's discriminator and its party's extractor


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """A party's aligned rows; private, and how many there are is too."""

    series: Tensor  # [row, attribute, step]
    label: Tensor  # one-hot classes [row, class] if this party holds the label; [row, 0] if not


class Owner:
    """Who owns networks that are trained: a party, or the aggregator. What stands here is what a checkpoint holds."""

    name: str
    updates: Mapping[str, Update]  # of its networks
    randomness: torch.Generator  # of latents and dropout; no checkpoint of `sound` may keep its state
    losses: list[float]  # of the shared discriminator on synthetic rows: public in every mode
    average: Tensor  # over updates, of a party's generators


class Party(Owner):
    """What one organisation computes. It shows features of sampled rows and nothing else of them.

    Privacy: in `sound` its parameters are noisy after every update, so that what its generators make is covered by the
    run's charge; the features it sends are not, and go to a trusted aggregator.
    """

    def __init__(self, name: str, rows: Rows, config: RunConfig, make_update: MakeUpdate) -> None:
        self.name, self._rows, self._config, recipe = name, rows, config, config.recipe
        _, num_attributes, num_steps = rows.series.shape
        self._num_classes = rows.label.shape[1]
        with seeded(config.seed, name):
            self.generators = AttributeGenerators(num_attributes, config.num_latent, num_steps)
            self.discriminators = AttributeDiscriminators(num_attributes, num_steps, recipe.widths)
            self.extractor = FeatureExtractor(num_attributes * num_steps + self._num_classes, recipe.features)
            self.randomness = config.randomness()
        rate = recipe.learning_rate
        self.update = make_update(((self.discriminators, rate), (self.extractor, rate / 2)))
        self.generator_update = PlainUpdate(((self.generators, rate),))
        self.updates = {"judges": self.update, "generators": self.generator_update}
        self.average, self.losses = self.generator_update.flat.values.clone(), []

    def side(self, before_iteration: Callable[[int], None], done: int = 0, last: int | None = None) -> PartySide:
        """Takes part in Algorithm 1; `before_iteration` counts each iteration before any of its rows is read."""
        answer = yield Frame(0, "greeting", {"num_rows": torch.tensor([len(self._rows.series)])})
        stages = self._config.stages(done, last)
        given = self._received(answer, stages[0], {})
        for now, then in pairwise(stages):
            if now.name == "discriminate":
                before_iteration(now.iteration)
                given = yield from self._discriminate(given, now, then)
            else:
                given = yield from self._generate(given, now, then)

    def _discriminate(self, given: Given, now: Stage, then: Stage) -> Generator[Frame, Frame, Given]:
        """Lines 3 to 22: tells real from synthetic, attribute by attribute, and helps the aggregator to."""
        drawn, latent = self._checked(given["rows"]), given["latent"]
        with torch.no_grad():
            fake = self._made(self.generators(latent), latent)  # line 6
            shown = self._shown(Rows(self._rows.series[drawn], self._rows.label[drawn]), fake)
            real, made = (self._features(rows) for rows in shown)  # lines 8 and 9
        answer = yield Frame(now.iteration, now.name, {"real": real, "fake": made})
        given = self._received(answer, then, {"real": len(drawn), "fake": len(latent)})
        for rows, name, sign in zip(shown, ("real", "fake"), (1.0, -1.0), strict=True):
            rows |= {"slope": given[name], "sign": torch.full((len(rows["series"]), 1), sign)}
        self.update(self._losses, *shown)
        return given

    def _losses(self, rows: Shown) -> Tensor:
        """Returns what each row adds to the losses of its D_ij (Eq. 9, 13) and, by its slope, of FE_i (Eq. 10, 15)."""
        alone = softplus(-rows["sign"] * self._logits(rows)).sum(1)
        return alone + (self._features(rows) * rows["slope"]).sum(1)

    def _generate(self, given: Given, now: Stage, then: Stage) -> Generator[Frame, Frame, Given]:
        """Lines 23 to 33: makes attributes that pass both discriminators. Real rows are not looked at."""
        latent = given["latent"]
        (fake,) = self._shown(self._made(self.generators(latent), latent))  # line 25
        features = self._features(fake)  # line 27
        answer = yield Frame(now.iteration, now.name, {"fake": features.detach()})
        given = self._received(answer, then, {"fake": len(latent)})
        together = (features * given["fake"]).sum(1)
        losses = softplus(-self._logits(fake)).sum(1) + self._config.recipe.coupling * together
        self.generator_update.descend(losses.mean())  # Eq. 11, 14
        weight = max(1 - _AVERAGED, min(1.0, self._config.critic_steps / now.iteration))
        self.average.lerp_(self.generator_update.flat.values, weight)
        return given

    def settle(self) -> None:
        """Puts the average of the generators in their place where noise makes the last ones no better than others."""
        if self._config.mode == "sound":
            self.generator_update.flat.values.copy_(self.average)

    def _received(self, answer: Frame, then: Stage, slopes: Mapping[str, int]) -> Given:
        """Returns the tensors of an answer: slopes of the rows just sent, and what the next stage needs."""
        config, shapes = self._config, dict[str, tuple[int | None, ...]]()
        shapes |= {name: (number, config.recipe.features) for name, number in slopes.items()}
        if then.name != "end":
            shapes["latent"] = (config.recipe.batch, config.num_latent)
        if then.name == "discriminate":
            shapes["rows"] = (None,)
        return answer.expect(then.iteration, then.name, shapes, sender="aggregator")

    def _checked(self, rows: Tensor) -> Tensor:
        """Refuses a batch that names a row twice, which would count twice, or one that is not there."""
        named, number = rows.tolist(), len(self._rows.series)
        inside = rows.dtype == torch.int64 and all(0 <= row < number for row in named)
        if not inside or len(set(named)) != len(named):
            raise InputError("'aggregator': a batch of different rows is expected, got others. The run is stopped.")
        return rows

    def _shown(self, *groups: Rows) -> list[dict[str, Tensor]]:
        """Returns groups of rows as the networks take them, with what dropout leaves of each row."""
        shown = [{"series": own.series, "inputs": torch.cat([own.series.flatten(1), own.label], 1)} for own in groups]
        widths = {"kept features": self._config.recipe.features, "kept": sum(self._config.recipe.widths)}
        return with_dropout(shown, widths, self._config.dropout, self.randomness)

    def _features(self, rows: Shown) -> Tensor:
        return self.extractor(rows["inputs"], rows.get("kept features"))

    def _logits(self, rows: Shown) -> Tensor:
        return self.discriminators(rows["series"], rows.get("kept"))

    def _made(self, series: Tensor, latent: Tensor) -> Rows:
        """Returns synthetic rows; the last columns of the latent say which classes they are asked to have."""
        return Rows(series, latent[:, latent.shape[1] - self._num_classes :])


class Aggregator(Owner):
    """What the aggregator computes: batches, the latents all parties share, and the shared discriminator.

    Privacy: it is trusted. It sees the features of every sampled row, which can be inverted, and sends each party
    gradients that depend on the others' rows. In `sound` its own parameters are clipped and noised like a party's.
    """

    def __init__(
        self,
        parties: tuple[str, ...],
        config: RunConfig,
        make_update: MakeUpdate,
        batches: Batches,
        class_share: np.ndarray,
    ) -> None:
        self._parties, self._config, self._batches, recipe = parties, config, batches, config.recipe
        self._class_share = torch.as_tensor(class_share, dtype=torch.float64)
        with seeded(config.seed, "aggregator"):
            self.discriminator = SharedDiscriminator(len(parties) * recipe.features, recipe.shared_widths)
            self.randomness = config.randomness()
        self.update = make_update(((self.discriminator, recipe.learning_rate / 2),))
        self.name, self.updates = "aggregator", {"shared": self.update}
        self.average, self.losses = torch.zeros(0), []

    def side(self, before_iteration: Callable[[int], None], done: int = 0, last: int | None = None) -> AggregatorSide:
        """Leads Algorithm 1; arguments as for a party."""
        yield from self.lead((yield {}), before_iteration, done, last)

    def lead(
        self, frames: Frames, before_iteration: Callable[[int], None], done: int = 0, last: int | None = None
    ) -> Generator[Frames, Frames, Frames]:
        """Leads Algorithm 1 from the greetings on, and returns the frames that come after its end."""
        batches = self._batches(common_rows(frames))
        answers: Answers = {name: {} for name in self._parties}
        for stage in self._config.stages(done, last):
            if stage.name == "discriminate":
                before_iteration(stage.iteration)
            task = {} if stage.name == "end" else {"latent": self.latent()}  # lines 4 and 23
            if stage.name == "discriminate":
                task["rows"] = next(batches)  # line 3
            frames = yield {party: Frame(stage.iteration, stage.name, answers[party] | task) for party in self._parties}
            if stage.name == "discriminate":
                answers = self._discriminate(stage, frames, len(task["rows"]))
            elif stage.name == "generate":
                answers = self._generate(stage, frames)
        return frames

    def latent(self) -> Tensor:
        """Returns the same noise, and the same classes, for all parties."""
        batch = self._config.recipe.batch
        noise = torch.randn(batch, LATENT, generator=self.randomness)
        if not self._config.num_classes:
            return noise
        classes = torch.multinomial(self._class_share, batch, replacement=True, generator=self.randomness)
        return torch.cat([noise, torch.eye(self._config.num_classes)[classes]], 1)

    def _discriminate(self, stage: Stage, frames: Frames, num_rows: int) -> Answers:
        """Lines 12 and 17: updates the shared discriminator, returns the slopes of real and synthetic rows."""
        sizes = {"real": num_rows, "fake": self._config.recipe.batch}
        shown = self._shown(self._features(stage, frames, sizes), (1.0, -1.0))
        (real, _), (fake, loss) = (self._slopes(rows) for rows in shown)
        self.losses.append(loss)
        self.update(self._losses, *shown)  # Eq. 10, 12
        return self._by_party({"real": real, "fake": fake})

    def _generate(self, stage: Stage, frames: Frames) -> Answers:
        """Line 30: returns how features have to change for the shared discriminator to take them for real (Eq. 11)."""
        (fake,) = self._shown(self._features(stage, frames, {"fake": self._config.recipe.batch}), (1.0,))
        return self._by_party({"fake": self._slopes(fake)[0]})

    def _losses(self, rows: Shown) -> Tensor:
        """Returns −log D_S of rows that are to be taken for real, and −log(1 − D_S) of the others."""
        return softplus(-rows["sign"] * self.discriminator(rows["features"], rows.get("kept")))

    def _slopes(self, rows: Shown) -> tuple[Tensor, float]:
        """Returns the slope of each row's own loss along its features, and the mean loss."""
        features = rows["features"].clone().requires_grad_()
        losses = self._losses({**rows, "features": features})
        return torch.autograd.grad(losses.sum(), features)[0], losses.mean().item()

    def _features(self, stage: Stage, frames: Frames, rows: Mapping[str, int]) -> list[Tensor]:
        """Returns features of all parties side by side, by the names and numbers of rows expected."""
        shapes = {name: (number, self._config.recipe.features) for name, number in rows.items()}
        sent = [frames[name].expect(stage.iteration, stage.name, shapes, sender=name) for name in self._parties]
        return [torch.cat([own[name] for own in sent], 1) for name in shapes]

    def _shown(self, groups: list[Tensor], signs: tuple[float, ...]) -> list[dict[str, Tensor]]:
        shown = [
            {"features": features, "sign": torch.full((len(features),), sign)}
            for features, sign in zip(groups, signs, strict=True)
        ]
        widths = {"kept": sum(self._config.recipe.shared_widths)}
        return with_dropout(shown, widths, self._config.dropout, self.randomness)

    def _by_party(self, slopes: Given) -> Answers:
        parts = {name: whole.split(self._config.recipe.features, dim=1) for name, whole in slopes.items()}
        return {party: {name: parts[name][place] for name in parts} for place, party in enumerate(self._parties)}


@torch.no_grad()
def generate(generators: nn.Module, latent: Tensor) -> Tensor:
    """Returns attributes [row, attribute, step] of all rows of a latent, in chunks."""
    return torch.cat([generators(part) for part in latent.split(4096)])


class FirstLayerUpdate(PlainUpdate):
    """Noise on the first layer of every network and nowhere else (lines 15 to 21).

    Privacy: none. Theorem 4.3 calls what follows the first layer post-processing, but later layers are trained on raw
    gradients of the same rows.
    """

    def __init__(self, groups: Groups, clipping_norm: float, noise_multiplier: float, noise: NoiseSource) -> None:
        super().__init__(groups)
        linears = (
            [own for own in module.modules() if isinstance(own, StackedLinear | nn.Linear)] for module, _ in groups
        )
        self._first = [layers[0] for layers in linears]
        largest = max(parameter.numel() for layer in self._first for parameter in layer.parameters())
        step = gradient_step(clipping_norm, largest)
        self._clipping_norm = clipping_norm
        self._reserve = NormalReserve(noise, noise_multiplier * 2 * clipping_norm, step)

    def change_gradient(self) -> None:
        """Clips and noises the gradient of the whole batch, real and synthetic rows together."""
        for layer in self._first:
            # Each attribute of stacked ones is a network of its own.
            networks = layer.weight.shape[0] if isinstance(layer, StackedLinear) else 1
            gradients = [self.flat.views[id(parameter)].view(networks, -1) for parameter in layer.parameters()]
            norm = torch.cat(gradients, 1).norm(dim=1, keepdim=True)
            for gradient in gradients:
                gradient /= (norm / self._clipping_norm).clamp(min=1)  # Eq. 16
                self._reserve.add_to(gradient.view(-1))  # Eq. 17


def claimed_epsilon(
    noise_multiplier: float, rate: float, iterations: int, delta: float, mechanisms: int = _MECHANISMS
) -> float:
    """Returns the epsilon that the paper's formulas give for noise of σ · 2C, if Theorem 4.3 held. It does not.

    Proposition 3 (Wang, Balle and Kasiviswanathan, arXiv:1808.00087, Theorem 9) for batches of a fixed size without
    replacement, composed over iterations (Prop. 1) and converted at the best order (Eq. 3).
    """
    slope = mechanisms / (2 * noise_multiplier**2)
    costs = (iterations * _subsampled(k, rate, slope) + math.log(1 / delta) / (k - 1) for k in _ORDERS)
    return float(min(costs))


def claimed_noise(epsilon: float, rate: float, iterations: int, delta: float, mechanisms: int = _MECHANISMS) -> float:
    """Returns the noise multiplier at which the paper would claim `epsilon`."""

    def excess(log_noise: float) -> float:
        return math.log(claimed_epsilon(math.exp(log_noise), rate, iterations, delta, mechanisms) / epsilon)

    return math.exp(brentq(excess, math.log(0.05), math.log(1e5), xtol=1e-6))


def _subsampled(order: int, rate: float, slope: float) -> float:
    """Rényi divergence at a whole order, if one execution on a batch has slope · order (Prop. 3; min{2, ∞} is 2)."""
    j = np.arange(2, order + 1)
    log_choose = gammaln(order + 1) - gammaln(j + 1) - gammaln(order - j + 1)
    terms = j * math.log(rate) + log_choose + (j - 1) * slope * j + math.log(2)
    second = 2 * slope  # the divergence at order 2
    log_less = math.log(4) + second + math.log(-math.expm1(-second))  # 4(e^ε(2) − 1)
    terms[0] = 2 * math.log(rate) + log_choose[0] + min(log_less, second + math.log(2))
    return float(logsumexp([0.0, *terms]) / (order - 1))
