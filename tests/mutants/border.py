"""Defects where private statistics become public: the noise source, the grant, clipping."""

from tests.mutants.mutant import Mutant

GRANT = "tests/unit/privacy/test_grant.py"
MECHANISMS = "tests/unit/privacy/test_mechanisms.py"
NOISE = "tests/unit/privacy/test_noise.py"
DRAWS = "tests/statistical/test_noise_distribution.py"
BITS = "tests/statistical/test_low_order_bits.py"
EXTRA = "tests/unit/privacy/test_mutant_border.py"
TAILS = "tests/statistical/test_noise_tails.py"

MUTANTS = (
    Mutant(
        name="missing noise",
        why="statistics are published as they are",
        file="privacy/grant.py",
        before="self.noise.discrete_gaussian(scale / step, bounded.value.shape)",
        after="np.zeros(bounded.value.shape, dtype=np.int64)",
        tests=(GRANT,),
    ),
    Mutant(
        name="half noise",
        why="twice the epsilon that was charged",
        file="privacy/grant.py",
        before="scale = event.noise_multiplier * bounded.l2_bound * WIDENING",
        after="scale = event.noise_multiplier / 2 * bounded.l2_bound * WIDENING",
        tests=(GRANT,),
    ),
    Mutant(
        name="variance for deviation",
        why="the square root of the noise that was charged",
        file="privacy/grant.py",
        before="scale = event.noise_multiplier * bounded.l2_bound * WIDENING",
        after="scale = (event.noise_multiplier * bounded.l2_bound) ** 0.5 * WIDENING",
        tests=(GRANT,),
    ),
    Mutant(
        name="sensitivity ignored",
        why="noise for a bound of one, whatever the statistic's own bound",
        file="privacy/grant.py",
        before="scale = event.noise_multiplier * bounded.l2_bound * WIDENING",
        after="scale = event.noise_multiplier * WIDENING",
        tests=(GRANT,),
    ),
    Mutant(
        name="one scalar of noise for a statistic",
        why="differences between coordinates are published without noise",
        file="privacy/grant.py",
        before="self.noise.discrete_gaussian(scale / step, bounded.value.shape)",
        after="self.noise.discrete_gaussian(scale / step, 1)",
        tests=(EXTRA,),
    ),
    Mutant(
        name="missing integer noise",
        why="votes are published as they are",
        file="privacy/grant.py",
        before="return bounded.value + self.noise.discrete_gaussian(",
        after="return bounded.value + 0 * self.noise.discrete_gaussian(",
        tests=(GRANT,),
    ),
    Mutant(
        name="half noise on a count",
        why="a bought population costs twice what was charged",
        file="privacy/grant.py",
        before="self.noise.discrete_laplace(bounded.l2_bound / event.epsilon, 1)",
        after="self.noise.discrete_laplace(bounded.l2_bound / (2 * event.epsilon), 1)",
        tests=(EXTRA,),
    ),
    Mutant(
        name="exponential mechanism twice as sharp",
        why="a quantile costs twice what was charged",
        file="privacy/grant.py",
        before="event.epsilon * scores / (2 * max(q, 1 - q))",
        after="event.epsilon * scores / max(q, 1 - q)",
        tests=("tests/statistical/test_mechanism_guarantees.py",),
    ),
    Mutant(
        name="categories without a threshold",
        why="a category that one unit holds is published by name",
        file="privacy/domains.py",
        before="counts[key] + int(extra) > threshold",
        after="counts[key] + int(extra) > 0",
        tests=(EXTRA,),
    ),
    Mutant(
        name="categories in order of arrival",
        why="the order of the published list tells the order of private rows",
        file="privacy/domains.py",
        before="keys = sorted(counts)",
        after="keys = list(counts)",
        tests=(EXTRA,),
    ),
    Mutant(
        name="bounds read and not bought",
        why="the smallest private value is published as a bound",
        file="privacy/preprocessing.py",
        before='low = grant.quantile(self.label, one_per_unit(panel, self.channel, "min"), points, 1 - self.coverage)',
        after='low = float(np.nanmin(one_per_unit(panel, self.channel, "min")))',
        tests=(EXTRA,),
    ),
    Mutant(
        name="access that is not counted",
        why="one charge pays for any number of releases",
        file="privacy/grant.py",
        before="        self._execute(label)\n        noise = self.noise",
        after="        noise = self.noise",
        tests=(GRANT,),
    ),
    Mutant(
        name="executions not written down",
        why="a run that is resumed, or held by two grants, executes again what it executed",
        file="privacy/grant.py",
        before="            self._record(label, number)\n            self._executed[label] = before + number\n",
        after="            self._executed[label] = before + number\n",
        tests=(GRANT,),
    ),
    Mutant(
        name="tries of a selection without a limit",
        why="a candidate may look at the data more often than its base plan says",
        file="privacy/grant.py",
        before="if before + number > self.plan.executions(label):",
        after="if number > self.plan.executions(label):",
        tests=("tests/unit/privacy/test_selection.py",),
    ),
    Mutant(
        name="a statistic shown",
        why="a traceback or a log line prints the private sum",
        file="privacy/mechanisms.py",
        before='return f"Bounded(<private>, l2_bound={self.l2_bound:g})"',
        after='return f"Bounded({self.value}, l2_bound={self.l2_bound:g})"',
        tests=(MECHANISMS,),
    ),
    Mutant(
        name="a statistic saved",
        why="private sums end up in pickles",
        file="privacy/mechanisms.py",
        before='raise TypeError("A Bounded statistic is private and can\'t be saved.")',
        after="return (Bounded, (np.array(self.value), self.l2_bound))",
        tests=(MECHANISMS,),
    ),
    Mutant(
        name="rows not clipped",
        why="one extreme unit moves a sum without limit",
        file="privacy/mechanisms.py",
        before="too_long = norms > limit",
        after="too_long = norms > np.inf",
        tests=(MECHANISMS,),
    ),
    Mutant(
        name="the same key in every process",
        why="anybody can reproduce the noise and subtract it",
        file="privacy/noise.py",
        before="key, counter = os.urandom(16), os.urandom(16)",
        after="key, counter = bytes(16), bytes(16)",
        tests=(NOISE,),
    ),
    Mutant(
        name="noise shared after a fork",
        why="two releases with equal noise: their difference has none",
        file="privacy/noise.py",
        before="os.register_at_fork(after_in_child=_rekey_after_fork)",
        after="_ = _rekey_after_fork",
        tests=(NOISE,),
    ),
    Mutant(
        name="seeded noise called secure",
        why="a certificate says private about noise that can be subtracted",
        file="privacy/noise.py",
        before="return self._seed is None",
        after="return self._constant is None",
        tests=(NOISE,),
    ),
    Mutant(
        name="normals handed out in equal pairs",
        why="half of the coordinates carry the noise of the other half",
        file="privacy/noise.py",
        before="for side in (x, y):",
        after="for side in (x, x):",
        tests=(f"{DRAWS}::test_draws_are_independent_of_each_other", EXTRA),
    ),
    Mutant(
        name="noise too small by ten percent",
        why="every guarantee is ten percent weaker than stated",
        file="privacy/noise.py",
        before="factor *= -2.0",
        after="factor *= -1.62",
        tests=(f"{DRAWS}::test_normals_have_the_scale_asked_for",),
    ),
    Mutant(
        name="batches of fixed size",
        why="amplification by Poisson sampling is claimed and not done",
        file="privacy/noise.py",
        before="return np.flatnonzero(self.bernoulli(rate, num_units))",
        after="return np.sort(np.argsort(self.uniform(num_units))[: round(rate * num_units)])",
        tests=(f"{DRAWS}::test_batch_sizes_vary_like_independent_coins",),
    ),
    Mutant(
        name="batch indices reused",
        why="the same units take part in every iteration, and subsampling amplifies nothing",
        file="privacy/sampling.py",
        before="""\
        for _ in range(done, self.iterations):
            yield noise.poisson_selection(self.rate, num_units)""",
        after="""\
        drawn = noise.poisson_selection(self.rate, num_units)
        for _ in range(done, self.iterations):
            yield drawn""",
        tests=("tests/statistical/test_training_sampling.py",),
    ),
    Mutant(
        name="batches dealt from a shuffled deck",
        why="every unit takes part exactly once per round, which Poisson accounting does not cover",
        file="privacy/sampling.py",
        before="            yield noise.poisson_selection(self.rate, num_units)",
        after="""\
            deck = np.argsort(noise.uniform(num_units)) if _ % round(1 / self.rate) == 0 else deck
            yield np.sort(np.array_split(deck, round(1 / self.rate))[_ % round(1 / self.rate)])""",
        tests=("tests/statistical/test_training_sampling.py",),
    ),
    Mutant(
        name="normals cut off at five deviations",
        why="an observer who sees more than that knows that a unit is there",
        file="privacy/noise.py",
        before="        flat *= scale\n",
        after="        np.clip(flat, -5.0, 5.0, out=flat)\n        flat *= scale\n",
        tests=(f"{TAILS}::test_normals_reach_beyond_five_standard_deviations_as_often_as_they_should",),
    ),
    Mutant(
        name="normals cut off at six deviations",
        why="no number of draws that a test can wait for shows it",
        file="privacy/noise.py",
        before="factor = np.log(radius)",
        after="factor = np.log(np.maximum(radius, 2.0**-26))",
        tests=(f"{TAILS}::test_the_farthest_normals_follow_their_law",),
    ),
    Mutant(
        name="a key of 32 bits",
        why="an attacker who tries four billion keys can subtract the noise",
        file="privacy/noise.py",
        before="key, counter = os.urandom(16), os.urandom(16)",
        after="key, counter = 4 * os.urandom(4), os.urandom(16)",
        tests=(f"{TAILS}::test_a_key_takes_256_bits_from_the_operating_system_and_every_one_counts",),
    ),
    Mutant(
        name="a counter that always begins at nothing",
        why="the keystream has half of the entropy that it is said to have",
        file="privacy/noise.py",
        before="key, counter = os.urandom(16), os.urandom(16)",
        after="key, counter = os.urandom(16), bytes(16)",
        tests=(f"{TAILS}::test_a_key_takes_256_bits_from_the_operating_system_and_every_one_counts",),
    ),
    Mutant(
        name="a seed cut to 32 bits",
        why="test sources that should differ agree",
        file="privacy/noise.py",
        before="understudy test noise {self._seed}",
        after="understudy test noise {self._seed % 2**32}",
        tests=(f"{TAILS}::test_the_seed_of_a_test_source_counts_in_full",),
    ),
    Mutant(
        name="one block of keystream for a long draw",
        why="coins and uniforms of later units are those of the first",
        file="privacy/noise.py",
        before=(
            "            for start in range(0, count, 2 * _PAIRS):\n"
            "                stop = min(count, start + 2 * _PAIRS)\n"
            "                np.right_shift(self._keystream(stop - start), np.uint64(11), out=out[start:stop])"
        ),
        after=(
            "            words = self._keystream(min(count, 2 * _PAIRS))\n"
            "            for start in range(0, count, 2 * _PAIRS):\n"
            "                stop = min(count, start + 2 * _PAIRS)\n"
            "                np.right_shift(words[: stop - start], np.uint64(11), out=out[start:stop])"
        ),
        tests=(f"{TAILS}::test_nothing_repeats_over_long_draws",),
    ),
    Mutant(
        name="coins compared with 20 bits",
        why="a small sampling rate is another one than was charged",
        file="privacy/noise.py",
        before="threshold = np.uint64(math.floor(probability * 2.0**53))",
        after="threshold = np.uint64(math.floor(probability * 2.0**20) << 33)",
        tests=(f"{TAILS}::test_a_coin_is_compared_with_all_53_bits",),
    ),
    Mutant(
        name="tabulated integers cut off at three deviations",
        why="seeded noise, on which tests rely, has no tail",
        file="privacy/discrete.py",
        before="reach = int(10 * scale) + 10",
        after="reach = int(3 * scale)",
        tests=(f"{TAILS}::test_discrete_gaussians_have_their_tails",),
    ),
    Mutant(
        name="noise added below the lattice",
        why="low-order bits of the statistic are published and tell neighbours apart",
        file="privacy/grant.py",
        before="return from_lattice(to_lattice(bounded.value, step) + noise, step)",
        after="return np.asarray(bounded.value + from_lattice(noise, step))",
        tests=(BITS,),
    ),
    Mutant(
        name="lattice too coarse",
        why="rounding moves neighbours apart by more than the noise was widened for",
        file="privacy/lattice.py",
        before="_ROUNDING = 2.0**-11",
        after="_ROUNDING = 2.0**-8",
        tests=(BITS,),
    ),
    Mutant(
        name="noise scaled to the plain bound",
        why="nobody pays for what rounding adds to the bound",
        file="privacy/lattice.py",
        before="WIDENING = 1 + 2.0**-10",
        after="WIDENING = 1 + 0 * 2.0**-10",
        tests=(GRANT,),
    ),
)
