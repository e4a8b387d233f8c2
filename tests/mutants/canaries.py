"""Defects of a tenth, which only exact or statistical tests notice; and defects of the audits themselves."""

from tests.mutants.mutant import BENCH, Mutant

STATISTICAL = "tests/statistical"
RELEASED = f"{STATISTICAL}/test_canary_mechanisms.py"
FITTED = f"{STATISTICAL}/test_canary_fits.py::test_no_canary_moves_an_answer_by_more_noise_than_was_charged"
TRAINED = f"{STATISTICAL}/test_canary_training.py"
SAMPLING = "tests/unit/training/test_plan.py"
SCORES = "tests/unit/auditing/test_scores.py"
RESULT = "tests/unit/auditing/test_result.py"
MU = "tests/unit/auditing/test_shift.py"

MUTANTS = (
    Mutant(
        name="a tenth of the noise missing at the border",
        why="every release of a sum costs a ninth more than was charged",
        file="privacy/grant.py",
        before="            deviation *= WIDENING\n",
        after="            deviation *= 0.9 * WIDENING\n",
        tests=(f"{RELEASED}::test_ten_percent_of_the_noise_is_not_missing", FITTED),
    ),
    Mutant(
        name="a bound too narrow by a tenth",
        why="a unit moves the statistics of a fit further than their noise is scaled to",
        file="privacy/border.py",
        before="    factors = weights * clip_factors(mean_lengths, statistic.bound)[own]\n",
        after="    factors = weights * clip_factors(mean_lengths, statistic.bound / 0.9)[own]\n",
        tests=("tests/unit/privacy/test_contributions.py", FITTED),
    ),
    Mutant(
        name="batches a tenth too small",
        why="units are not drawn at the rate that was priced",
        file="training/plan.py",
        before="yield noise.poisson_selection(self.sampling_rate, num_units)",
        after="yield noise.poisson_selection(0.9 * self.sampling_rate, num_units)",
        tests=(SAMPLING,),
    ),
    Mutant(
        name="batches a tenth too large",
        why="units take part more often than was priced",
        file="training/plan.py",
        before="yield noise.poisson_selection(self.sampling_rate, num_units)",
        after="yield noise.poisson_selection(min(1.0, 1.1 * self.sampling_rate), num_units)",
        tests=(SAMPLING,),
    ),
    Mutant(
        name="coins a tenth too rare",
        why="units are not drawn at the rate that was priced",
        file="privacy/noise.py",
        before="return np.flatnonzero(self.bernoulli(rate, num_units))",
        after="return np.flatnonzero(self.bernoulli(0.9 * rate, num_units))",
        tests=(SAMPLING, f"{STATISTICAL}/test_noise_distribution.py::test_units_are_drawn_at_the_declared_rate"),
    ),
    Mutant(
        name="a tenth of the noise missing in training",
        why="every iteration costs more than was charged",
        file="training/plan.py",
        before="return self.event.noise_multiplier * self.clipping_norm",
        after="return 0.9 * self.event.noise_multiplier * self.clipping_norm",
        tests=(f"{STATISTICAL}/test_training_noise.py::test_every_single_parameter_has_the_stated_noise",),
    ),
    Mutant(
        name="a clip too wide by a tenth",
        why="a unit moves the sum further than its noise is scaled to",
        file="training/clipping/engine.py",
        before="mul_(clipping_norm * (1 - NORM_MARGIN))",
        after="mul_(1.1 * clipping_norm * (1 - NORM_MARGIN))",
        tests=("tests/unit/training/clipping/test_engine.py::test_float32_rounding_stays_within_the_clip_margin",),
    ),
    Mutant(
        name="aggregator without noise",
        why="noise on the first layer alone; all that follows it, the part that parties share included, has none",
        file="training/private_gradient.py",
        before="self._reserve.add_to(self._sums.total)",
        after="self._reserve.add_to(self._sums.total[: self._clipper.parameters[0].numel()])",
        tests=(f"{TRAINED}::test_an_iteration_hides_every_canary_in_every_crowd",),
    ),
    Mutant(
        name="attacks that are not paid for",
        why="the best of many attacks on nothing looks like a leak",
        file="auditing/scores.py",
        before="alpha = (1 - confidence) / len(family)\n",
        after="alpha = 1 - confidence\n",
        tests=(f"{SCORES}::test_a_family_costs_confidence_and_lowers_the_ceiling",),
    ),
    Mutant(
        name="scenes that are not paid for",
        why="a true claim is contradicted more often than was stated",
        file="audit/shift.py",
        before="each = 1 - (1 - confidence) / len(family)",
        after="each = confidence",
        tests=(f"{MU}::test_the_best_scene_of_a_family_speaks_and_all_of_them_are_paid_for",),
        package=BENCH,
    ),
    Mutant(
        name="a test chosen on the runs it is counted on",
        why="an audit finds leaks in noise",
        file="auditing/scores.py",
        before="    first, rest = _split(scores)\n    sign,",
        after="    first, rest = scores, _split(scores)[1]\n    sign,",
        tests=(f"{SCORES}::test_the_runs_that_count_do_not_choose",),
    ),
    Mutant(
        name="attacks read one way only",
        why="an attack that is right the wrong way round counts as a failure",
        file="auditing/scores.py",
        before="for sign in (1.0, -1.0):",
        after="for sign in (1.0,):",
        tests=(f"{SCORES}::test_an_attack_that_is_right_the_wrong_way_round_is_as_good",),
    ),
    Mutant(
        name="certificates compared at one epsilon",
        why="a contradiction elsewhere on the curve goes unnoticed",
        file="auditing/scores.py",
        before="for at in self.evidence.epsilons())",
        after="for at in (self.epsilon,))",
        tests=(f"{RESULT}::test_a_gaussian_is_refuted_by_exactly_those_who_do_better_than_its_best_test",),
    ),
)
