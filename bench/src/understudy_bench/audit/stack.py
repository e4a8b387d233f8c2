"""Many shadows of a vertical run trained as one: every product of small matrices becomes a batched one.

A shadow of `vflgan-ts` is small, and its time goes into calls. Here S shadows, each with its own initial weights, rows,
latents and Adam, take every call together; they never meet. One pass through all networks replaces the frames that
parties and aggregator exchange, which gives the same gradients (`test_a_stacked_shadow_is_the_shadow_itself`).

Privacy: for shadows of the modes that protect nobody, on data that is at hand. Nothing is charged, nothing released.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, softplus

from understudy.auditing.transcript import rows_by_party
from understudy.data import Panel
from understudy.errors import InputError
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.vflgan_ts.method import VFLGANTS
from understudy.synthesizers.vflgan_ts.modes import fixed_batches
from understudy.synthesizers.vflgan_ts.network import kept_by_dropout
from understudy.synthesizers.vflgan_ts.protocol import RunConfig
from understudy.synthesizers.vflgan_ts.published import Aggregator, Party, Rows
from understudy.synthesizers.vflgan_ts.recipe import BETAS, DROPOUT
from understudy.synthesizers.vflgan_ts.updates import PlainUpdate
from understudy.training.private_gradient import NormalReserve, gradient_step

_SLOPE = 0.2


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Job:
    """One shadow: the seed it starts from and the rows it learns from."""

    seed: int
    units: np.ndarray


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Trained:
    """What one shadow has become: every party's generators, and what extractors make of the rows it learned from."""

    generators: tuple[nn.Module, ...]
    features: tuple[np.ndarray, ...]  # [row, feature] of each party, without dropout


def check_stackable(method: VFLGANTS, panel: Panel) -> None:
    """Refuses what a stack does not compute."""
    if method.mode not in ("plain", "paper") or method.scale != "bounds":
        raise InputError("A stack of shadows needs the mode 'plain' or 'paper' and scale = 'bounds'.")
    if panel.schema.label_column is not None:
        raise InputError("A stack of shadows needs a schema without a label.")


def train_stack(
    method: VFLGANTS, panel: Panel, jobs: Sequence[Job], noise_multiplier: float | None = None
) -> list[Trained]:
    """Trains all jobs together and keeps the last iterate.

    Args:
        noise_multiplier: Of the first layers' noise, as VFLGAN-TS has it; None for the mode `plain`.
    """
    check_stackable(method, panel)
    rows = rows_by_party(panel)
    made = [_Made.of(method, panel, rows, job) for job in jobs]
    stack = _Stack(method, rows, made, noise_multiplier)
    for _ in range(method.recipe.iterations):
        stack.iterate()
    return stack.apart(jobs)


@dataclass(frozen=True, eq=False)
class _Made:
    """The networks, draws and latents of one shadow, as a run of its own would make them."""

    parties: list[Party]
    aggregator: Aggregator
    draws: Iterator[np.ndarray]

    @classmethod
    def of(cls, method: VFLGANTS, panel: Panel, rows: list[tuple[str, Rows]], job: Job) -> "_Made":
        config = RunConfig(panel.schema, method.recipe, method.mode, job.seed)
        parties = [Party(name, own, config, PlainUpdate) for name, own in rows]
        draws = fixed_batches(method.recipe.batch, job.seed)
        aggregator = Aggregator(tuple(name for name, _ in rows), config, PlainUpdate, draws, np.ones(1))
        return cls(parties, aggregator, (job.units[drawn.numpy()] for drawn in draws(len(job.units))))


class _Layers:
    """Layers of equal networks: weights [shadow · stacked, in, out], one batched product each.

    Weights stand the other way round than in `nn.Linear`, so that their gradients come out in the order of memory: the
    fused Adam reads them so, whatever their strides say.
    """

    def __init__(self, modules: Sequence[nn.Module], names: Sequence[str], num_stacked: int = 1) -> None:
        self.num_stacked, self._names = num_stacked, names
        states = [dict(module.named_parameters()) for module in modules]
        self.parameters: dict[str, nn.Parameter] = {}
        for name in names:
            weight, bias = (
                torch.stack([state[f"{name}.{kind}"].data for state in states]) for kind in ("weight", "bias")
            )
            size = weight.shape[-2:]
            self.parameters[f"{name}.weight"] = nn.Parameter(weight.reshape(-1, *size).mT.contiguous())
            self.parameters[f"{name}.bias"] = nn.Parameter(bias.reshape(-1, size[0]).clone())

    def __call__(self, name: str, inputs: Tensor) -> Tensor:
        weight, bias = self.parameters[f"{name}.weight"], self.parameters[f"{name}.bias"]
        return torch.baddbmm(bias.unsqueeze(1), inputs, weight)

    def put_back(self, module: nn.Module, place: int) -> None:
        """Writes the parameters of one shadow into a network of its own."""
        own = dict(module.named_parameters())
        for name, parameter in self.parameters.items():
            size = parameter.shape[0] * own[name].numel() // parameter.numel()
            some = parameter.data[place * size : (place + 1) * size]
            own[name].data.copy_((some.mT if some.ndim == 3 else some).reshape(own[name].shape))


class _PartyStack:
    """One party's networks in all shadows. Series are [shadow · attribute, row, step]."""

    def __init__(self, parties: Sequence[Party], rows: Rows) -> None:
        self.rows, self.num_shadows = rows, len(parties)
        _, self.num_attributes, self.num_steps = rows.series.shape
        generators = [party.generators for party in parties]
        self.gates = _Layers(generators, ("gates",))
        self.output = _Layers(generators, ("output",), self.num_attributes)
        depth = len(parties[0].discriminators.layers)
        self.depth = [f"layers.{place}" for place in range(depth)]
        self.judges = _Layers([party.discriminators for party in parties], (*self.depth, "head"), self.num_attributes)
        self.extractor = _Layers([party.extractor for party in parties], ("layer",))

    def generate(self, latent: Tensor) -> Tensor:
        """Every attribute of every shadow from the shadow's latent [shadow, row, latent]."""
        enter, leave, cell = self.gates("gates", latent).chunk(3, dim=2)
        hidden = torch.sigmoid(leave) * torch.tanh(torch.sigmoid(enter) * torch.tanh(cell))
        shadows, rows, _ = hidden.shape
        apart = hidden.view(shadows, rows, self.num_attributes, -1).transpose(1, 2)
        return self.output("output", apart.reshape(shadows * self.num_attributes, rows, -1))

    def real(self, drawn: Tensor) -> Tensor:
        """Real series of the rows drawn [shadow, row]."""
        series = self.rows.series[drawn.flatten()].view(*drawn.shape, self.num_attributes, self.num_steps)
        return series.transpose(1, 2).reshape(-1, drawn.shape[1], self.num_steps)

    def judged(self, series: Tensor, dropout: float, generator: torch.Generator) -> Tensor:
        """Logits [shadow, row, attribute]."""
        shadows, rows = self.num_shadows, series.shape[1]
        for name in self.depth:
            series = leaky_relu(self.judges(name, series), _SLOPE)
            kept = kept_by_dropout((shadows, 1, rows, series.shape[2]), dropout, generator)
            if kept is not None:
                series = (series.view(shadows, -1, *series.shape[1:]) * kept).flatten(0, 1)
        return self.judges("head", series).view(shadows, self.num_attributes, rows).transpose(1, 2)

    def features(self, series: Tensor, dropout: float, generator: torch.Generator) -> Tensor:
        """What the party would send [shadow, row, feature]."""
        rows = series.shape[1]
        inputs = series.view(self.num_shadows, self.num_attributes, rows, -1).transpose(1, 2).flatten(2)
        features = leaky_relu(self.extractor("layer", inputs), _SLOPE)
        kept = kept_by_dropout(tuple(features.shape), dropout, generator)
        return features if kept is None else features * kept


class _Stack:
    """Algorithm 1 of VFLGAN-TS for all shadows at once."""

    def __init__(
        self, method: VFLGANTS, rows: list[tuple[str, Rows]], made: list[_Made], noise_multiplier: float | None
    ) -> None:
        self._recipe, self._made, self._noise_multiplier = method.recipe, made, noise_multiplier
        self._noise, self._reserves = NoiseSource.secure(), dict[float, NormalReserve]()
        self._generator = torch.Generator().manual_seed(torch.seed() % 2**63)
        self.parties = [_PartyStack([one.parties[place] for one in made], own) for place, (_, own) in enumerate(rows)]
        shared = [one.aggregator.discriminator for one in made]
        self._depth = [f"layers.{place}" for place in range(len(shared[0].layers))]
        self._shared = _Layers(shared, (*self._depth, "head"))
        rate, betas = method.recipe.learning_rate, BETAS
        judges = [p for party in self.parties for p in party.judges.parameters.values()]
        slow = [
            p
            for layers in (*(party.extractor for party in self.parties), self._shared)
            for p in layers.parameters.values()
        ]
        self._made_by = [
            p for party in self.parties for layers in (party.gates, party.output) for p in layers.parameters.values()
        ]
        self._tells = torch.optim.Adam(
            [{"params": judges, "lr": rate}, {"params": slow, "lr": rate / 2}], betas=betas, fused=True
        )
        self._makes = torch.optim.Adam(self._made_by, lr=rate, betas=betas, fused=True)

    def iterate(self) -> None:
        """One update of all discriminators, one of all generators."""
        self._discriminate()
        self._generate()

    def _discriminate(self) -> None:
        latent = self._latents()
        drawn = torch.from_numpy(np.stack([next(one.draws) for one in self._made]))
        number, loss, shown = drawn.shape[1], torch.zeros(()), []
        for party in self.parties:
            with torch.no_grad():
                made = party.generate(latent)
            both = torch.cat([party.real(drawn), made], 1)
            loss = loss + self._loss(party.judged(both, DROPOUT, self._generator), number).sum()
            shown.append(party.features(both, DROPOUT, self._generator))
        loss = loss + self._loss(self._judged(torch.cat(shown, 2)), number).sum()
        self._tells.zero_grad()
        loss.backward()
        if self._noise_multiplier is not None:
            self._noise_first_layers(self._noise_multiplier)
        self._tells.step()

    def _generate(self) -> None:
        latent, loss, shown = self._latents(), torch.zeros(()), []
        for party in self.parties:
            made = party.generate(latent)
            judged = party.judged(made, DROPOUT, self._generator)
            loss = loss + softplus(-judged).mean(1).sum()  # Eq. 11
            shown.append(party.features(made, DROPOUT, self._generator))
        together = self._judged(torch.cat(shown, 2))
        loss = loss + self._recipe.coupling * softplus(-together).mean(1).sum()
        for parameter, gradient in zip(self._made_by, torch.autograd.grad(loss, self._made_by), strict=True):
            parameter.grad = gradient.contiguous()
        self._makes.step()

    def _loss(self, logits: Tensor, number: int) -> Tensor:
        """Eq. 9 and 10: means over the rows, real ones first."""
        real, fake = logits[:, :number], logits[:, number:]
        return softplus(-real).mean(1) + softplus(fake).mean(1)

    def _judged(self, features: Tensor) -> Tensor:
        for name in self._depth:
            features = leaky_relu(self._shared(name, features), _SLOPE)
            kept = kept_by_dropout(tuple(features.shape), DROPOUT, self._generator)
            features = features if kept is None else features * kept
        return self._shared("head", features)

    def _noise_first_layers(self, noise_multiplier: float) -> None:
        """Clips and noises the first layer of every discriminator and extractor by itself (Eq. 16 and 17)."""
        clipping_norm = 1 / self._recipe.batch
        firsts = [(party.judges, party.depth[0]) for party in self.parties]
        firsts += [(party.extractor, "layer") for party in self.parties]
        for layers, name in firsts:
            gradients = [_gradient(layers.parameters[f"{name}.{kind}"]).flatten(1) for kind in ("weight", "bias")]
            norm = torch.cat(gradients, 1).norm(dim=1, keepdim=True)
            for gradient in gradients:
                gradient /= (norm / clipping_norm).clamp(min=1)
                step = gradient_step(clipping_norm, gradient.numel())
                if step not in self._reserves:
                    self._reserves[step] = NormalReserve(self._noise, noise_multiplier * 2 * clipping_norm, step)
                self._reserves[step].add_to(gradient.view(-1))

    def _latents(self) -> Tensor:
        return torch.stack([one.aggregator.latent() for one in self._made])

    @torch.no_grad()
    def apart(self, jobs: Sequence[Job]) -> list[Trained]:
        """Returns the shadows one by one."""
        trained = []
        for place, (one, job) in enumerate(zip(self._made, jobs, strict=True)):
            for own, stack in zip(one.parties, self.parties, strict=True):
                stack.gates.put_back(own.generators, place)
                stack.output.put_back(own.generators, place)
                stack.extractor.put_back(own.extractor, place)
            features = tuple(
                own.extractor(stack.rows.series[job.units].flatten(1), None).numpy()
                for own, stack in zip(one.parties, self.parties, strict=True)
            )
            trained.append(Trained(generators=tuple(own.generators for own in one.parties), features=features))
        return trained


def _gradient(parameter: nn.Parameter) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad
