"""Defects of coins that have to be secret, and of defaults that have to be public."""

from tests.mutants.mutant import BENCH, Mutant

COINS = "tests/statistical/test_secret_coins.py"
TWINS = "tests/twins/test_commands.py::test_one_person_more_or_less_changes_nothing_but_numbers_of"

MUTANTS = (
    Mutant(
        name="windows of diffusion networks chosen by a known seed",
        why="with one unit more everybody else shows other windows, and an observer who knows the seed sees it",
        file="training/loop.py",
        before="UnitWindows(examples, unit, np.random.default_rng(), config.max_windows)",
        after="UnitWindows(examples, unit, np.random.default_rng(0), config.max_windows)",
        tests=(f"{COINS}::test_which_windows_of_a_unit_are_shown_is_secret[dit]",),
    ),
    Mutant(
        name="windows of dp-gan chosen by its public seed",
        why="with one unit more everybody else shows other windows, and an observer who knows the seed sees it",
        package=BENCH,
        file="baselines/dp_gan.py",
        before="UnitWindows(layout.rows(private), unit, np.random.default_rng(), config.max_windows)",
        after="UnitWindows(layout.rows(private), unit, np.random.default_rng(self.seed), config.max_windows)",
        tests=("bench/tests/baselines/test_secret_coins.py::test_which_windows_of_a_unit_are_shown_is_secret",),
    ),
    Mutant(
        name="windows of vflgan-ts chosen by a known seed",
        why="with one unit more everybody else shows other windows, and an observer who knows the seed sees it",
        file="synthesizers/vflgan_ts/modes.py",
        before='UnitWindows({"row": rows}, owner, np.random.default_rng())',
        after='UnitWindows({"row": rows}, owner, np.random.default_rng(0))',
        tests=(f"{COINS}::test_which_windows_of_a_unit_are_shown_is_secret[vflgan-ts]",),
    ),
    Mutant(
        name="coins of a loss counted from nought",
        why="times and noises of everybody are known, and shift with one unit more",
        file="training/loop.py",
        before="self._generator.manual_seed(secrets.randbits(63))  # of which",
        after="self._generator.manual_seed(self._iteration)  # of which",
        tests=(f"{COINS}::test_generators_start_elsewhere_in_every_iteration_of_every_run",),
    ),
    Mutant(
        name="coins of a loss drawn once in a run",
        why="32 bits decide about all iterations",
        file="training/loop.py",
        before=(
            "        self._generator.manual_seed(secrets.randbits(63))  # of which torch takes 32 bits; "
            "new in every iteration\n"
        ),
        after="",
        tests=(f"{COINS}::test_generators_start_elsewhere_in_every_iteration_of_every_run",),
    ),
    Mutant(
        name="held-out units of ppem chosen by a known seed",
        why="the held-out units are known",
        file="synthesizers/ppem/method.py",
        before="private.panel.split(share, np.random.default_rng())",
        after="private.panel.split(share, np.random.default_rng(0))",
        tests=(f"{COINS}::test_series_that_ppem_holds_out_are_chosen_by_secret_coins",),
    ),
    Mutant(
        name="kept-out units chosen by a known seed",
        why="the kept-out units are known",
        file="api/synthesis.py",
        before="self.kept_out, np.random.default_rng(seed))",
        after="self.kept_out, np.random.default_rng(seed or 0))",
        tests=(f"{COINS}::test_who_is_kept_out_is_drawn_anew_in_every_run",),
    ),
    Mutant(
        name="as many series as the table holds",
        why="the number of released series is the number of people",
        file="api/synthesis.py",
        before="            del table  # samples need the room\n",
        after='            self.options["num_series"] = self.options.get("num_series") or table.num_units\n',
        tests=(f"{TWINS}[synth spectral]",),
    ),
    Mutant(
        name="progress in steps of the table",
        why="how often the bar moves tells how many people there are",
        file="api/synthesis.py",
        before="            del table  # samples need the room\n",
        after='            for place in range(table.num_units):\n                progress("learned", 0.6)\n',
        tests=(f"{TWINS}[synth spectral]",),
    ),
)
