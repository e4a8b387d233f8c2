"""Defects of the baselines: counts at the price of one, units that weigh more, shards that share, slopes unclipped."""

from functools import partial

from tests.mutants.mutant import BENCH
from tests.mutants.mutant import Mutant as AnyMutant

FOLDER = "baselines"
TESTS = "bench/tests/baselines"
Mutant = partial(AnyMutant, package=BENCH)
RELEASED = f"{TESTS}/test_reach.py::test_what_is_released_follows_from_the_noisy_answers_alone"
REACH = f"{TESTS}/test_reach.py::test_one_unit_moves_every_answer_by_at_most_what_was_charged"

MUTANTS = (
    Mutant(
        name="roughness as a share of the roughest series",
        why="the largest private value scales everybody's level",
        file=f"{FOLDER}/cuts.py",
        before="        rest = np.sqrt(np.delete(np.square(found), self.places, axis=1).sum(axis=1))",
        after="        rest = np.sqrt(np.delete(np.square(found), self.places, axis=1).sum(axis=1))\n"
        "        rest = rest / rest.max()",
        tests=(f"{TESTS}/test_cuts.py::test_levels_of_a_series_do_not_depend_on_other_series",),
    ),
    Mutant(
        name="rounds at the noise of one",
        why="several rounds are made and one is paid for",
        file=f"{FOLDER}/repeating.py",
        before="round_up(entry.event.noise_multiplier * math.sqrt(count))",
        after="round_up(entry.event.noise_multiplier)",
        tests=(f"{TESTS}/test_reach.py::test_a_plan_spends_what_it_is_given_and_no_more",),
    ),
    Mutant(
        name="breeding begins with private rows",
        why="entries that no count asked to change are somebody's",
        file=f"{FOLDER}/private_gsd.py",
        before="        if counted.pairs:\n            wanted",
        after="        table[: len(counted.codes)] = counted.codes[: len(table)]\n"
        "        if counted.pairs:\n            wanted",
        tests=(f"{RELEASED}[private-gsd]",),
    ),
    Mutant(
        name="loss of a batch inside each unit's loss",
        why="one series changes everybody's gradient, and clipping bounds nothing",
        file=f"{FOLDER}/dp_gan.py",
        before='- scored(model, batch["row"], batch["class"])',
        after='- scored(model, batch["row"], batch["class"]).mean()',
        tests=(f"{TESTS}/test_networks.py::test_another_series_changes_no_loss_but_its_own",),
    ),
    Mutant(
        name="windows of an event priced as one",
        why="an event takes several windows away and pays for one",
        file=f"{FOLDER}/dp_gan.py",
        before="max_windows=self.influence(schema) if",
        after="max_windows=1 if",
        tests=(f"{TESTS}/test_networks.py::test_an_event_is_priced_by_the_windows_that_it_takes_away",),
    ),
    Mutant(
        name="shards dealt by place",
        why="somebody who joins moves everybody after them to another shard",
        file=f"{FOLDER}/shards.py",
        before='int.from_bytes(content[:8], "little") % number',
        after="int(first) % number",
        tests=(f"{TESTS}/test_shards.py::test_removing_a_unit_leaves_all_shards_but_one_bit_by_bit",),
    ),
    Mutant(
        name="an event in one shard",
        why="an event moves its owner from one teacher to another, and two votes change",
        file=f"{FOLDER}/shards.py",
        before='return 2 if schema.unit.kind == "event" else 1',
        after="return 1",
        tests=(f"{TESTS}/test_shards.py::test_an_event_makes_its_owner_leave_one_shard_for_another_at_most",),
    ),
    Mutant(
        name="all teachers on one partition",
        why="as in a public code: a unit changes all votes, and the noise covers one",
        file=f"{FOLDER}/pate_gan.py",
        before="[real[own] for own in shards(private, self.teachers)]",
        after="[real for own in shards(private, self.teachers)]",
        tests=(f"{TESTS}/test_shards.py::test_a_series_is_seen_by_one_teacher",),
    ),
    Mutant(
        name="all critics on one partition",
        why="a unit changes all slopes, and the noise covers one critic's",
        file=f"{FOLDER}/gs_wgan.py",
        before="self, layout.rows(private), shards(private, self.critics)",
        after="self, layout.rows(private), [np.arange(private.panel.num_series)] * self.critics",
        tests=(f"{TESTS}/test_shards.py::test_a_series_is_seen_by_one_critic",),
    ),
    Mutant(
        name="votes of an event at the price of an entity's",
        why="an event moves its owner from one teacher to another, and only one of them was priced",
        file=f"{FOLDER}/pate_gan.py",
        before="2 * touched(private.schema)",
        after="2",
        tests=(f"{TESTS}/test_shards.py::test_an_event_is_priced_by_the_shards_it_reaches",),
    ),
    Mutant(
        name="slopes of an event at the price of an entity's",
        why="an event moves its owner from one critic to another, and only one of them was priced",
        file=f"{FOLDER}/gs_wgan.py",
        before="reach, bound = 2 * touched(private.schema), ",
        after="reach, bound = 2, ",
        tests=(f"{TESTS}/test_shards.py::test_an_event_is_priced_by_the_shards_it_reaches",),
    ),
    Mutant(
        name="slopes as if a unit added one",
        why="a unit turns slopes round, which moves them twice as far as adding them",
        file=f"{FOLDER}/gs_wgan.py",
        before="reach, bound = 2 * touched(private.schema), ",
        after="reach, bound = touched(private.schema), ",
        tests=(f"{TESTS}/test_reach.py::test_a_shard_that_turns_every_slope_moves_them_by_what_was_charged",),
    ),
    Mutant(
        name="ADS-GAN within a finite budget",
        why="distance from real series would be certified as privacy",
        file=f"{FOLDER}/ads_gan.py",
        before="    require_no_guarantee(guarantee, ",
        after='    str.format("", ',
        tests=(f"{TESTS}/test_ads_gan.py::test_a_finite_budget_is_refused_before_anything_is_charged",),
    ),
)
