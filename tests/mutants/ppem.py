"""Defects of PPEM: generators that see real attributes, a secret in the release."""

from tests.mutants.mutant import Mutant

METHOD = "tests/unit/synthesizers/ppem/test_method.py"
HOT_DECK = "tests/unit/synthesizers/ppem/test_hot_deck.py"
EFFECT_SIZE = "tests/unit/synthesizers/ppem/test_effect_size.py"
CANARY = "tests/statistical/test_canary_ppem.py"
THRESHOLD = "tests/unit/privacy/test_selections.py"
ENERGIES = "tests/unit/synthesizers/ppem/test_networks.py"
FOLDER = "synthesizers/ppem"

MUTANTS = (
    Mutant(
        name="check on units that were learned from",
        why="the promise is about units that the generator never saw",
        file=f"{FOLDER}/method.py",
        before="(private, None) if self.effect is None else _split(private, HELD_OUT)",
        after="(private, None) if self.effect is None else (private, private)",
        tests=(f"{METHOD}::test_held_out_units_are_seen_by_the_check_alone",),
    ),
    Mutant(
        name="squared norm in a check",
        why="a square grows with the number of units, so one unit moves it further than its bound",
        file=f"{FOLDER}/effect_size.py",
        before="size.norm(private.weights @ apart) - allowed * float(private.weights.sum()) - chance",
        after="size.norm(private.weights @ apart) ** 2 - allowed * float(private.weights.sum()) - chance",
        tests=(f"{EFFECT_SIZE}::test_one_unit_moves_the_figure_by_at_most_its_bound",),
    ),
    Mutant(
        name="threshold without noise of its own",
        why="answers about several figures cost more than was charged",
        file="privacy/selections.py",
        before="self._threshold = int(noise.discrete_laplace(2 * _STEPS / epsilon, 1)[0])",
        after="self._threshold = 0",
        tests=(f"{THRESHOLD}::test_noise_has_the_published_scales",),
    ),
    Mutant(
        name="questions after a yes",
        why="every yes reveals as much as the first, and only one is paid for",
        file="privacy/selections.py",
        before="self._left = 0 if above else self._left",
        after="self._left = self._left",
        tests=(f"{THRESHOLD}::test_nothing_is_answered_after_a_yes_or_beyond_what_was_paid_for",),
    ),
    Mutant(
        name="cancelled uses of a layer pass unclipped",
        why="rounding makes a long gradient look like none",
        file="training/clipping/per_unit_gradients.py",
        before="((grams[0] * grams[1]).sum((1, 2)).clamp_min(0).sqrt() + rounding)",
        after="((grams[0] * grams[1]).sum((1, 2)) - (lengths[0] * lengths[1]).square().sum(1)).clamp_min(0).sqrt()",
        tests=(
            f"{ENERGIES}::test_uses_of_a_layer_that_cancel_are_not_clipped_less_than_they_weigh",
            f"{ENERGIES}::test_per_unit_gradients_of_a_lipschitz_penalty_are_those_of_one_backward_per_unit",
        ),
    ),
    Mutant(
        name="obfuscation called private",
        why="a release that protects nobody would be certified",
        file=f"{FOLDER}/method.py",
        before="entries = [PlanEntry(CHECK, PureDP(_NON_PRIVATE_CHECK))] if self.effect is not None else []\n",
        after="""\
entries = [PlanEntry(CHECK, PureDP(_NON_PRIVATE_CHECK))] if self.effect is not None else []
            return SpendingPlan((*entries, PlanEntry(TRAINING, PureDP(1.0))), guarantee)
""",
        tests=(f"{METHOD}::test_the_mode_that_protects_no_unit_says_so_and_needs_an_infinite_budget",),
    ),
    Mutant(
        name="pool of donors kept in the release",
        why="whoever receives the release has the distribution that is to be hidden",
        file=f"{FOLDER}/method.py",
        before="return {**hot_deck.imputed(values, pools, partition), **found}",
        after='return {**hot_deck.imputed(values, pools, partition), **found, "pool": pools[0][1].values}',
        tests=(f"{HOT_DECK}::test_a_release_holds_finished_series_and_nothing_of_the_pool",),
    ),
    Mutant(
        name="donors keep their own x′",
        why="the real distribution is released under the name of another",
        file=f"{FOLDER}/hot_deck.py",
        before="            static[:, attribute.place] = np.where(wanted <= known, wanted, np.nan)",
        after="            static[:, attribute.place] = static[:, attribute.place]",
        tests=(f"{HOT_DECK}::test_values_that_nobody_has_are_released_as_wanted_and_reported",),
    ),
    Mutant(
        name="donors bought for the check's money as well",
        why="the check and the donors together cost more than was promised",
        file=f"{FOLDER}/method.py",
        before="left = Guarantee((1 - _CHECK_SHARE * len(checks)) * guarantee.epsilon, guarantee.delta)",
        after="left = guarantee",
        tests=(f"{HOT_DECK}::test_the_plan_is_that_of_spectral_beside_the_check",),
    ),
    Mutant(
        name="kept-out units among the donors",
        why="the promise is about units that nothing was learned from",
        file=f"{FOLDER}/method.py",
        before="hot_deck.released_pools(learned, grant",
        after="hot_deck.released_pools(private, grant",
        tests=(f"{HOT_DECK}::test_held_out_units_are_not_in_the_pool",),
    ),
    Mutant(
        name="real people among the donors",
        why="what is released as synthetic is somebody's own",
        file=f"{FOLDER}/hot_deck.py",
        before="spectral.sample(arrays, schema, request) for request",
        after="""\
__import__("dataclasses").replace(
            drawn := spectral.sample(arrays, schema, request),
            static=np.concatenate([private.panel.static, drawn.static])[: request.num_series],
        )
        for request""",
        tests=(f"{CANARY}::test_a_release_follows_from_noisy_answers_alone",),
    ),
    Mutant(
        name="the bound of the first set for all",
        why="a set of many categories moves further than the threshold's noise covers",
        file=f"{FOLDER}/effect_size.py",
        before="bound = max(bound_of(size, asked, len(released)) for size in sizes)",
        after="bound = bound_of(sizes[0], asked, len(released))",
        tests=(EFFECT_SIZE,),
    ),
    Mutant(
        name="generators trained on real attributes",
        why="as published: a generator is trained on real x′ outside of all noise",
        file=f"{FOLDER}/method.py",
        before="pools = [(panel, partition.rows(panel)) for panel in panels]",
        after="pools = [(panel, partition.rows(learned.without_context().panel)) for panel in panels]",
        tests=(f"{CANARY}::test_a_release_follows_from_noisy_answers_alone",),
    ),
)
