"""Defects in what a plan is said to cost, and in what a certificate says about it."""

from tests.mutants.mutant import Mutant

ACCOUNTANTS = "tests/unit/privacy/test_accountants.py"
BUDGET = "tests/unit/privacy/test_budget.py"
CERTIFICATE = "tests/unit/privacy/test_certificate.py"
EXTRA = "tests/unit/privacy/test_mutant_accounting.py"

CALIBRATE = "tests/unit/privacy/test_calibrate.py"

MUTANTS = (
    Mutant(
        name="a root on the wrong side kept",
        why="the noise is a hair less than the guarantee needs",
        file="privacy/calibrate.py",
        before="while excess(noise) > 0:  # a root",
        after="while excess(noise) > 1e-3:  # a root",
        tests=(f"{CALIBRATE}::test_no_noise_is_a_hair_too_little",),
    ),
    Mutant(
        name="largest delta ten times too large",
        why="at 1/population a mechanism may publish somebody and comply",
        file="privacy/budget.py",
        before="if delta > (1 + 1e-9) / (10.0 * population):",
        after="if delta > (1 + 1e-9) / population:",
        tests=(BUDGET,),
    ),
    Mutant(
        name="default delta ten times too large",
        why="the chance of failure is one in ten and not one in a hundred",
        file="privacy/budget.py",
        before="return 1.0 / (100.0 * population)",
        after="return 1.0 / (10.0 * population)",
        tests=(BUDGET,),
    ),
    Mutant(
        name="schema's delta ten times too large",
        why="the delta that follows from the population is ten times what the rule says",
        file="data/schema.py",
        before="return 1.0 / (100.0 * self.protected_units)",
        after="return 1.0 / (10.0 * self.protected_units)",
        tests=("tests/unit/data/test_schema.py",),
    ),
    Mutant(
        name="delta counts people where events are protected",
        why="delta is allowed per person although it may fail for each of many events",
        file="data/schema.py",
        before='if size is None or self.unit.kind != "event":',
        after="if size is None or True:",
        tests=("tests/unit/data/test_schema.py", EXTRA),
    ),
    Mutant(
        name="one Gaussian priced for many",
        why="61 releases cost as much as one",
        file="privacy/accountants.py",
        before="math.sqrt(event.count) / event.noise_multiplier for event in gaussians",
        after="1 / event.noise_multiplier for event in gaussians",
        tests=(ACCOUNTANTS,),
    ),
    Mutant(
        name="replace-one computed as add-or-remove",
        why="the stricter figure is as good as the other, and wrong",
        file="privacy/accountants.py",
        before="return Gaussian(event.noise_multiplier / 2, event.count)",
        after="return Gaussian(event.noise_multiplier, event.count)",
        tests=(ACCOUNTANTS,),
    ),
    Mutant(
        name="replace-one shown as add-or-remove",
        why="a certificate repeats the weaker relation under the stricter name",
        file="privacy/certificate.py",
        before="accountants.replace_one_epsilon(plan.events,",
        after="accountants.epsilon(plan.events,",
        tests=(CERTIFICATE,),
    ),
    Mutant(
        name="windows priced as units",
        why="a unit with many windows is protected like one with a single window",
        file="training/plan.py",
        before="return MixtureOfGaussians(sampler.rate, noise_multiplier, draw.max_windows, sampler.iterations)",
        after="return MixtureOfGaussians(sampler.rate, noise_multiplier, 1, sampler.iterations)",
        tests=("tests/unit/training/test_plan.py",),
    ),
    Mutant(
        name="every release gets the whole budget",
        why="several releases together cost more than was promised",
        file="privacy/calibrate.py",
        before="round_up(1 / (mu * math.sqrt(share / total)))",
        after="round_up(1 / mu)",
        tests=("tests/unit/privacy/test_calibrate.py",),
    ),
    Mutant(
        name="seeded noise not marked",
        why="a certificate calls noise private that its maker can subtract",
        file="privacy/claim.py",
        before="if not secure:",
        after="if not secure and epsilon > MAX_PRIVATE_EPSILON:",
        tests=(CERTIFICATE,),
    ),
    Mutant(
        name="overlapping windows called persons",
        why="a certificate says private although nobody is protected",
        file="privacy/claim.py",
        before="if not protects_a_person:",
        after="if not protects_a_person and reproduction is not None:",
        tests=(CERTIFICATE,),
    ),
    Mutant(
        name="epsilon of a hundred called private",
        why="a certificate says private about a bound that bounds nothing",
        file="privacy/claim.py",
        before="if not epsilon <= MAX_PRIVATE_EPSILON:",
        after="if epsilon == math.inf:",
        tests=(CERTIFICATE, EXTRA),
    ),
)
