"""Defects of training in several hands: blocks clipped too late or too little, noise missing, real rows read unpaid."""

from tests.mutants.mutant import Mutant

FOLDER = "tests/unit/synthesizers/vflgan_ts"
SOUND, METHOD, EXCHANGE = (f"{FOLDER}/test_{name}.py" for name in ("sound", "method", "exchange"))
HOLDERS = "tests/unit/synthesizers/spectral/test_recipe.py"
BLOCKS = "tests/unit/training/test_plan.py"

MUTANTS = (
    Mutant(
        name="every owner clips to the whole norm",
        why="a unit of M parties and an aggregator moves the sum by √(M+1) times what was paid for",
        file="training/plan.py",
        before="share = 1 / (influence * math.sqrt(num_blocks))",
        after="share = 1 / influence",
        tests=(f"{SOUND}::test_one_row_moves_all_blocks_together_by_at_most_the_clipping_norm", BLOCKS),
    ),
    Mutant(
        name="an event clipped as one row",
        why="an event changes several windows and is clipped as if it were one",
        file="training/plan.py",
        before="share = 1 / (influence * math.sqrt(num_blocks))",
        after="share = 1 / math.sqrt(num_blocks)",
        tests=(BLOCKS,),
    ),
    Mutant(
        name="noise of a block as small as its clip",
        why="each owner noises for its own share, and together they have √(M+1) times too little",
        file="training/plan.py",
        before="noise_multiplier = self.event.noise_multiplier / share",
        after="noise_multiplier = self.event.noise_multiplier",
        tests=(f"{SOUND}::test_noise_goes_on_every_parameter_that_has_seen_real_rows", BLOCKS),
    ),
    Mutant(
        name="extractor left out of the block",
        why="the network that turns rows into features takes raw gradients, as nobody noises it",
        file="synthesizers/vflgan_ts/updates.py",
        before="PrivateGradient(nn.ModuleList(module for module, _ in groups), block",
        after="PrivateGradient(nn.ModuleList(module for module, _ in groups[:1]), block",
        tests=(f"{SOUND}::test_everything_that_depends_on_real_rows_is_among_the_noised_parameters",),
    ),
    Mutant(
        name="aggregator's discriminator without noise",
        why="the shared discriminator is trained on raw gradients, as in the paper",
        file="synthesizers/vflgan_ts/modes.py",
        before='            yield windows.batch(drawn)["row"]\n\n    return Rule(update, update, batches)\n',
        after='            yield windows.batch(drawn)["row"]\n\n    return Rule(update, PlainUpdate, batches)\n',
        tests=(f"{METHOD}::test_sound_noises_every_owner_of_a_whole_run",),
    ),
    Mutant(
        name="real rows in the loss that is not noised",
        why="what is added after the noise reads real rows",
        file="synthesizers/vflgan_ts/published.py",
        before="        self.update(self._losses, *shown)\n        return given",
        after=(
            "        both = {name: torch.cat([rows[name] for rows in shown]) for name in shown[0]}\n"
            "        self.update(self._losses, shown[0], both)\n        return given"
        ),
        tests=(f"{SOUND}::test_one_row_moves_all_blocks_together_by_at_most_the_clipping_norm",),
    ),
    Mutant(
        name="real rows added once more behind the noise",
        why="what is clipped and noised is followed by the same gradient as it is",
        file="synthesizers/vflgan_ts/updates.py",
        before="losses(fake).mean()",
        after="losses(fake).mean() + losses(real).mean()",
        tests=(f"{SOUND}::test_one_row_moves_all_blocks_together_by_at_most_the_clipping_norm",),
    ),
    Mutant(
        name="slopes averaged over the batch",
        why="what comes back for a row depends on the other rows drawn with it",
        file="synthesizers/vflgan_ts/published.py",
        before='features = rows["features"].clone()',
        after='features = (rows["features"] - rows["features"].mean(0)).clone()',
        tests=(f"{SOUND}::test_a_row_changes_no_other_rows_gradient_at_the_aggregator",),
    ),
    Mutant(
        name="an empty draw goes unnoised",
        why="that nobody was drawn shows in an update without noise",
        file="synthesizers/vflgan_ts/updates.py",
        before="        self._gradient.finish()\n        self._gradient.add_public",
        after="            self._gradient.finish()\n        self._gradient.add_public",
        tests=(f"{SOUND}::test_an_empty_batch_is_noised_like_any_other",),
    ),
    Mutant(
        name="checkpoint chosen by real rows",
        why="an exact statistic of private rows chooses what is released",
        file="synthesizers/vflgan_ts/method.py",
        before="        nearest = self.mode in NOT_PRIVATE",
        after="        nearest = True",
        tests=(f"{METHOD}::test_real_rows_choose_no_checkpoint_where_a_guarantee_is_claimed",),
    ),
    Mutant(
        name="first-layer noise called private",
        why="the paper's theorem is taken for true, and the certificate promises its epsilon",
        file="synthesizers/vflgan_ts/modes.py",
        before='    "paper": "DPVFLGAN-TS as published, with noise on first layers only: Theorem 4.3 does not hold",\n',
        after="",
        tests=(f"{METHOD}::test_the_certificate_of_each_mode_says_what_it_is",),
    ),
    Mutant(
        name="amplification claimed against a party",
        why="a party knows which rows were drawn; sampling hides nothing from it",
        file="synthesizers/vflgan_ts/modes.py",
        before="    most = event.iterations\n    if event.sampling_rate < 1:\n",
        after="    most = 1\n    if event.sampling_rate > 1:\n",
        tests=(f"{METHOD}::test_the_certificate_prints_what_a_party_could_learn",),
    ),
    Mutant(
        name="local trains on the rows themselves",
        why="noisy rows are made and not used",
        file="synthesizers/vflgan_ts/method.py",
        before="            rows = dict(zip(rows, noisy, strict=True))\n",
        after="            assert noisy\n",
        tests=(f"{METHOD}::test_local_training_sees_noisy_rows_only",),
    ),
    Mutant(
        name="events sampled and amplified",
        why="an event changes windows and does not take them away; the price of sampling is for those that go",
        file="synthesizers/vflgan_ts/method.py",
        before='sampling_rate=1.0 if schema.unit.kind == "event" else rate,',
        after="sampling_rate=rate,",
        tests=(f"{METHOD}::test_an_event_gets_no_amplification",),
    ),
    Mutant(
        name="dropout where a guarantee is claimed",
        why="with one row more the masks of all later rows are other ones, and the sum moves by more than one gradient",
        file="synthesizers/vflgan_ts/protocol.py",
        before='return DROPOUT if self.mode in ("plain", "paper") else 0.0',
        after="return DROPOUT",
        tests=(f"{FOLDER}/test_randomness.py::test_nothing_is_dropped_where_a_guarantee_is_claimed",),
    ),
    Mutant(
        name="a party's counts noised for one column",
        why="a unit votes in every column that the party holds, and the border clips all its votes to one",
        file="statistics/queries.py",
        before="        bound = float(np.sqrt((weighs * length**2).sum()))\n",
        after="        bound = 1.0\n",
        tests=(
            "tests/unit/synthesizers/test_clipping.py"
            "::test_the_border_clips_hardly_anything_of_ordinary_units[spectral]",
        ),
    ),
    Mutant(
        name="an aggregator that need not be trusted",
        why="the certificate is silent about who saw every row",
        file="synthesizers/spectral/recipe.py",
        before="    number = len(parties_of(schema))\n    if number < 2:\n",
        after="    number = len(parties_of(schema))\n    if number < 3:\n",
        tests=(f"{HOLDERS}::test_the_certificate_says_who_is_trusted_with_what",),
    ),
    Mutant(
        name="frames taken in any order",
        why="a replayed frame trains on rows that were not drawn",
        file="synthesizers/vflgan_ts/protocol.py",
        before="if (self.iteration, self.stage) != (iteration, stage):",
        after="if self.stage != stage:",
        tests=(EXCHANGE, "tests/unit/synthesizers/vflgan_ts/test_protocol.py"),
    ),
    Mutant(
        name="a row drawn twice",
        why="whoever is named twice in a draw moves the sum by twice the clip norm",
        file="synthesizers/vflgan_ts/published.py",
        before="if not inside or len(set(named)) != len(named):",
        after="if not inside:",
        tests=(f"{EXCHANGE}::test_a_batch_that_counts_a_row_twice_or_names_none_is_refused",),
    ),
    Mutant(
        name="a party's word taken for its rows",
        why="parties that were not aligned train on rows of different people",
        file="synthesizers/vflgan_ts/protocol.py",
        before="    if len(sizes) != 1:\n",
        after="    if not sizes:\n",
        tests=(f"{EXCHANGE}::test_parties_with_different_numbers_of_rows_are_refused",),
    ),
    Mutant(
        name="local rows claimed to hide who takes part",
        why="rows of mode `local` can be counted, so that one unit less is seen by everybody",
        file="privacy/events.py",
        before='return "values" if counted else "add-or-remove"',
        after='return "add-or-remove"',
        tests=(f"{METHOD}::test_the_certificate_of_each_mode_says_what_it_is",),
    ),
    Mutant(
        name="events in rows that can be counted",
        why="one event less empties a series, and its noisy row is gone for everybody to see",
        file="synthesizers/vflgan_ts/method.py",
        before='if schema.unit.kind == "event":\n            raise InputError(\n                "mode: \'local\'',
        after='if schema.unit.kind == "nothing":\n            raise InputError(\n                "mode: \'local\'',
        tests=(f"{METHOD}::test_local_refuses_events_whose_rows_would_come_and_go",),
    ),
)
