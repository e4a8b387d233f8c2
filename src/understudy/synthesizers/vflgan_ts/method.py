"""`vflgan-ts`: a GAN whose parts belong to several organisations, each of which holds some columns of the same units.

Idea. Every attribute has its own generator and discriminator at the party that holds it; all generators are fed by one
shared latent, and a shared discriminator at an aggregator, which sees features from every party, makes the attributes
belong together. `published` is Algorithm 1 of the paper, whose noise protects nobody.

What is private. Discriminators and extractors of every party and the shared discriminator see real rows. In the mode
`sound` each of these M + 1 owners clips a row's gradient to C/√(M+1) and noises all of its parameters: one
Poisson-subsampled Gaussian per iteration. Gradients of synthetic rows are added after the noise.

Cost: minutes. Choose it where organisations can't bring their columns together and trust one aggregator not to keep
what it sees; `spectral` in the aggregator's hands is better. Not to be confused with training in which "raw data never
leaves": features are sent, and they can be inverted.

References: VFLGAN-TS (doi:10.1145/3776587); Seyfi et al. 2022 (CosciGAN); Abadi et al., arXiv:1607.00133 (DP-SGD).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from understudy.data import Panel, Schema
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee, at_most
from understudy.privacy.events import Gaussian, NonPrivate
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry, SpendingPlan, noise_multipliers
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics import facts as bought
from understudy.statistics.encoding import Encoding
from understudy.statistics.facts import Facts
from understudy.synthesizers.base import Progress, SampleRequest, Synthesizer
from understudy.synthesizers.options import recipe_of, require_no_guarantee, require_one_of
from understudy.synthesizers.sampling import NODES, calibrated, num_pooled, panel_of, sample_classes, score_nodes
from understudy.synthesizers.vflgan_ts import modes, network
from understudy.synthesizers.vflgan_ts.modes import NOISY_ROWS, NOT_PRIVATE, Rule
from understudy.synthesizers.vflgan_ts.partition import encoding_of, joined, num_classes, num_values, partition, rows_of
from understudy.synthesizers.vflgan_ts.protocol import RunConfig, converse
from understudy.synthesizers.vflgan_ts.published import Aggregator, Party, Rows, generate
from understudy.synthesizers.vflgan_ts.recipe import DEFAULT, LATENT, MODES, PAPER, SCALES, Mode, Recipe, Scale
from understudy.training.loop import foretold
from understudy.training.networks import load_arrays, to_arrays
from understudy.training.plan import TRAINING, DPSGDConfig, training_plan

PARTY = "party"  # arrays of a party's generators begin with it and the party's place
_WAVES = "waves"  # array of a release: how many coefficients its generators make, 0 where they make steps
_RATE_OF_UNKNOWN = 0.02  # sampling rate where the population is still to be counted
_FACTS_UNNOISED = 1e-3  # noise multiplier of what is bought in modes that protect nobody
_POOL = 4096  # synthetic rows by which scores are calibrated
_COMPARED_ROWS, _CHECKPOINTS = 1024, 20  # of each side, and in a run, for the distance that chooses a checkpoint


@dataclass(frozen=True, kw_only=True)
class VFLGANTS(Synthesizer):
    """VFLGAN-TS for columns held by several parties (`party` of a column); one party where no column names any.

    Attributes:
        mode: "sound", "local", or one of those that the certificate calls not private ("plain", "paper").
        scale: Working scale: "bought" distributions, or declared "bounds".
        recipe: Size and training of the networks.
        seed: Seed of everything but privacy noise and batches; in the mode "sound" of initial weights and sampling.
    """

    name: ClassVar[str] = "vflgan-ts"
    needs: ClassVar[str] = "the extra neural; columns of two parties or more"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": DEFAULT, "paper": PAPER}
    rehearsed: ClassVar[str] = "recipe.iterations"
    mode: Mode = "sound"
    scale: Scale = "bought"
    recipe: Recipe = field(default_factory=Recipe)
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "recipe", recipe_of(self.recipe, Recipe))
        require_one_of(self, mode=MODES, scale=SCALES)

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """What is bought beside, then all iterations as one event, or one noisy copy of the rows (`local`)."""
        partition(schema)
        shares = bought.shares_of(schema, marginals=self.scale == "bought")
        if self.mode in NOT_PRIVATE:
            require_no_guarantee(guarantee, self.mode, NOT_PRIVATE[self.mode])
            facts = tuple(PlanEntry(label, Gaussian(_FACTS_UNNOISED)) for label in shares)
            return SpendingPlan((*facts, PlanEntry(TRAINING, NonPrivate(NOT_PRIVATE[self.mode]))), guarantee)
        if self.mode == "sound":
            return training_plan(self._config(schema), shares, guarantee)
        if schema.unit.kind == "event":
            raise InputError(
                "mode: 'local' can't protect events: one event less may empty a series, whose noisy row would be "
                "missing, which reveals it. Use 'sound', or protect entities."
            )
        shares[NOISY_ROWS] = 1 - sum(shares.values())
        entries = tuple(
            PlanEntry(label, Gaussian(multiplier, relation="values" if label == NOISY_ROWS else "add-or-remove"))
            for label, multiplier in noise_multipliers(guarantee, shares).items()
        )
        return SpendingPlan(entries, guarantee)

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Buys the facts, trains, and returns every party's generators.

        Privacy: unit as the schema says, neighbours as the certificate does. Real rows are looked at by `facts.buy` and
        by the updates of the mode's rule, which `docs/claims/vflgan-ts.md` bounds; generators see synthetic rows only.
        """
        schema, panel, facts = private.schema, private.panel, bought.buy(private, grant)
        encoding, waves = encoding_of(schema, facts), self.run_config(schema).frequencies
        rows = {own.party: rows_of(own, panel, encoding, waves) for own in partition(schema)}
        if self.mode == "sound":
            unit = np.arange(panel.num_series) if schema.unit.kind == "event" else panel.unit
            rule = modes.sound_rule(grant, self.recipe, len(rows), private.population, private.influence, unit)
            grant.begin_block(TRAINING, self.recipe.iterations)  # all are counted before the first one runs
        else:
            rule = modes.unprotected_rule(self.mode, grant, self.recipe, private.population, self.seed)
        if self.mode == "local":
            noisy = modes.noisy_rows([*rows.values()], grant, private)
            rows = dict(zip(rows, noisy, strict=True))
        parties, distances = self._trained(schema, rows, rule, facts.label_share, progress)
        generators = {name: to_arrays(party.generators, "") for name, party in parties.items()}
        return self.released_arrays(schema, facts, generators) | distances

    def _trained(
        self, schema: Schema, rows: Mapping[str, Rows], rule: Rule, class_share: np.ndarray, progress: Progress
    ) -> tuple[dict[str, Party], dict[str, np.ndarray]]:
        """Returns the parties after a whole run in one process, and what else is released of the run.

        Privacy: what the rule's updates promise. Where no guarantee is claimed, the nearest checkpoint is kept, and the
        distances of all are released (Fig. 2, 4, 6).
        """
        config = self.run_config(schema)
        parties = {name: Party(name, own, config, rule.party) for name, own in rows.items()}
        aggregator = Aggregator(tuple(parties), config, rule.aggregator, rule.batches, class_share)
        nearest = self.mode in NOT_PRIVATE  # an exact statistic of real rows chooses; no guarantee covers that
        best = _Nearest(parties, rows, config) if nearest else None
        every = max(1, self.recipe.iterations // _CHECKPOINTS)

        def before_iteration(iteration: int) -> None:
            if iteration % every == 1 or every == 1:
                progress("training", iteration / self.recipe.iterations)
                if best is not None:
                    best.compare()

        sides = {name: party.side(lambda iteration: None) for name, party in parties.items()}
        converse(sides, aggregator.side(before_iteration))
        if best is not None:
            best.compare()
            best.restore()
        for party in parties.values():
            party.settle()
        return parties, {} if best is None else {"awd": np.array(best.distances)}

    def released_arrays(
        self, schema: Schema, facts: Facts, generators: Mapping[str, Mapping[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """Returns what a release holds, from all parties' generators by name; reads nothing private."""
        arrays = facts.to_arrays()
        for place, columns in enumerate(partition(schema)):
            own = generators[columns.party].items()
            arrays |= {f"{PARTY}{place}.{name}": np.asarray(array) for name, array in own}
        arrays["nodes"] = np.zeros((0, NODES))
        arrays[_WAVES] = np.array([self.run_config(schema).frequencies or 0])
        if facts.marginals:  # quantiles by which scores are calibrated
            rng, share = np.random.default_rng(self.seed), facts.label_share
            classes = rng.choice(len(share), size=num_pooled(schema, _POOL), p=share / share.sum())
            arrays["nodes"] = score_nodes(self._working_rows(arrays, encoding_of(schema, facts), classes, rng)[0])
        return arrays

    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        """Every party's attributes from one shared latent, joined."""
        facts = Facts.from_arrays(arrays)
        encoding, classes = encoding_of(schema, facts), sample_classes(facts, request)
        series, static = self._working_rows(arrays, encoding, classes, request.rng)
        series = calibrated(series, arrays["nodes"], encoding)
        return panel_of(schema, request, encoding, facts, classes, (series, static))

    def _working_rows(
        self, arrays: Mapping[str, np.ndarray], encoding: Encoding, classes: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns (series, static columns) in working scale: every party generates its own from one latent."""
        schema = encoding.schema
        config, columns = self.run_config(schema), partition(schema)
        waves = int(arrays[_WAVES][0]) if _WAVES in arrays else 0
        noise = rng.standard_normal((len(classes), LATENT))
        hot = np.eye(config.num_classes)[classes] if config.num_classes else np.zeros((len(classes), 0))
        latent = torch.from_numpy(np.concatenate([noise, hot], 1).astype(np.float32))
        parts = []
        for place, own in enumerate(columns):
            module = network.AttributeGenerators(own.num_attributes, config.num_latent, waves or schema.num_steps)
            load_arrays(module, arrays, f"{PARTY}{place}.")
            parts.append(generate(module, latent).numpy())
        return joined(columns, tuple(parts), encoding, waves=waves > 0)

    def outlook(self, schema: Schema, guarantee: Guarantee) -> tuple[str, ...]:
        """Says what noise does to gradients, what a party could learn, or what `local` costs."""
        if self.mode in NOT_PRIVATE:
            return (f"Not private: {NOT_PRIVATE[self.mode]}.",)
        learned = self.learned_schema(schema)
        plan = self.plan(learned, guarantee)
        if self.mode == "sound":
            return (self._foretold(learned, plan)[1], self.trust(learned, plan)[-1])
        event, values = plan.event(NOISY_ROWS), num_values(learned) - num_classes(learned)
        assert isinstance(event, Gaussian)
        size = event.noise_multiplier * math.sqrt(values * learned.unit.max_series)
        return (f"Every value of every row gets noise {size:.3g} times as large as a typical value, before training.",)

    def gradient_noise(self, schema: Schema, guarantee: Guarantee) -> float | None:
        """That of all owners together in the mode `sound`."""
        if self.mode != "sound":
            return None
        learned = self.learned_schema(schema)
        return self._foretold(learned, self.plan(learned, guarantee))[0]

    def _foretold(self, schema: Schema, plan: SpendingPlan) -> tuple[float, str]:
        """Returns the noise on gradients of all networks that see real rows, of all owners together."""
        recipe, sizes = self.recipe, [own.num_attributes for own in partition(schema)]
        steps = self.run_config(schema).frequencies or schema.num_steps

        def critics() -> nn.Module:
            own = [network.AttributeDiscriminators(number, steps, recipe.widths) for number in sizes]
            extractors = [network.FeatureExtractor(number * steps, recipe.features) for number in sizes]
            shared = network.SharedDiscriminator(recipe.features * len(sizes), recipe.shared_widths)
            return nn.ModuleList([shared, *own, *extractors])

        drawn = modes.training_event(plan).sampling_rate * (schema.population.size or 1)
        return foretold(plan, drawn, critics)

    def trust(self, schema: Schema, plan: SpendingPlan) -> tuple[str, ...]:
        """Who is trusted in this mode, and what a party could learn."""
        if self.mode != "sound":
            return modes.TRUST[self.mode]
        return (
            *modes.TRUST[self.mode],
            "Against a party that keeps nothing, but knows which rows were drawn: "
            f"epsilon = {at_most(modes.against_a_party(plan), 4)} at the same delta.",
        )

    def run_config(self, schema: Schema) -> RunConfig:
        """Returns what all sides of a run agree on."""
        return RunConfig(schema, self.recipe, self.mode, self.seed)

    def _config(self, schema: Schema) -> DPSGDConfig:
        """How units are sampled. Events change windows and do not remove them, which sampling does not amplify."""
        size, recipe = schema.population.size, self.recipe
        rate = _RATE_OF_UNKNOWN if size is None else min(1.0, recipe.batch / size)
        return DPSGDConfig(
            sampling_rate=1.0 if schema.unit.kind == "event" else rate,
            iterations=recipe.iterations,
            expected_batch=recipe.batch,
            clipping_norm=recipe.clipping_norm,
        )


class _Nearest:
    """Keeps the generators whose series came nearest to the real ones (AWD, Eq. 23), as the paper chooses them.

    Privacy: none; an exact statistic of private rows chooses. For `plain` and `paper` only.
    """

    def __init__(self, parties: Mapping[str, Party], rows: Mapping[str, Rows], config: RunConfig) -> None:
        self._generators = [party.generators for party in parties.values()]
        self._values = [party.generator_update.flat.values for party in parties.values()]
        self._real = [torch.sort(own.series[:_COMPARED_ROWS], dim=0).values for own in rows.values()]
        noise = torch.randn(len(self._real[0]), LATENT, generator=torch.Generator().manual_seed(config.seed))
        classes = torch.arange(len(noise)) % max(1, config.num_classes)
        self._latent = torch.cat([noise, torch.eye(config.num_classes)[classes]], 1) if config.num_classes else noise
        self._kept = [values.clone() for values in self._values]
        self.distances: list[float] = []  # of one checkpoint after another

    def compare(self) -> None:
        """Keeps the generators if they are nearer than any before."""
        made = (torch.sort(generate(own, self._latent), dim=0).values for own in self._generators)
        distance = sum(float((one - real).abs().mean()) for one, real in zip(made, self._real, strict=True))
        if distance < min(self.distances, default=math.inf):
            self._kept = [values.clone() for values in self._values]
        self.distances.append(distance)

    def restore(self) -> None:
        """Puts the nearest generators back."""
        for values, kept in zip(self._values, self._kept, strict=True):
            values.copy_(kept)
