"""Defects of the diffusion transformer: events priced too low, gaps that leak, sums that weigh too much."""

from tests.mutants.mutant import Mutant

FOLDER = "tests/unit/synthesizers/dit"
DENOISING, EVENTS, METHOD, INTERPOLATION = (
    f"{FOLDER}/test_{name}.py" for name in ("denoising", "events", "method", "interpolation")
)
COMPLETING = "tests/unit/synthesizers/test_completing.py"
STATISTICS = f"{METHOD}::test_one_unit_moves_each_statistic_by_at_most_its_bound"

MUTANTS = (
    Mutant(
        name="windows with an empty step kept",
        why="an event changes windows instead of taking them away, twice as far as is paid for",
        file="data/windows.py",
        before="observed.all(axis=1) if every_step",
        after="observed.any(axis=1) if every_step",
        tests=(EVENTS,),
    ),
    Mutant(
        name="overlap of windows left out of the price",
        why="an event touches five windows and is priced for those side by side",
        file="synthesizers/base.py",
        before="return steps, steps if self.window_stride is None else self.window_stride",
        after="return steps, steps",
        tests=(EVENTS,),
    ),
    Mutant(
        name="an event priced as one window",
        why="the mixture of Gaussians is computed for a single window",
        file="synthesizers/dit/method.py",
        before="max_windows=self.influence(schema) if",
        after="max_windows=1 if",
        tests=(f"{EVENTS}::test_the_plan_prices_the_windows_that_one_event_can_touch",),
    ),
    Mutant(
        name="the private number decides the batch",
        why="sums are divided by a share of the series that are there",
        file="synthesizers/dit/method.py",
        before="charged_config(grant.plan.event(TRAINING), private.population,",
        after="charged_config(grant.plan.event(TRAINING), private.panel.num_units,",
        tests=(f"{METHOD}::test_the_noisy_sum_is_divided_by_the_declared_batch",),
    ),
    Mutant(
        name="missing entries scored",
        why="what stands for a missing value is learned as if it had been observed",
        file="synthesizers/dit/denoising.py",
        before="scored, shown = (hidden & known).to(x.dtype),",
        after="scored, shown = hidden.to(x.dtype),",
        tests=(DENOISING,),
    ),
    Mutant(
        name="hidden entries shown",
        why="the network copies what it is to fill and has learned nothing",
        file="synthesizers/dit/denoising.py",
        before="(known & ~hidden).to(x.dtype)\n",
        after="known.to(x.dtype)\n",
        tests=(DENOISING,),
    ),
    Mutant(
        name="hidden values read as the day before",
        why="what is to be filled is looked up",
        file="synthesizers/dit/interpolation.py",
        before="(values * shown)[:, :-season], shown[:, :-season]",
        after="values[:, :-season], torch.ones_like(shown)[:, :-season]",
        tests=(f"{INTERPOLATION}::test_hidden_values_are_not_read",),
    ),
    Mutant(
        name="observed values replaced when imputing",
        why="a user's own figures come back changed, as if they had been observed so",
        file="synthesizers/completing.py",
        before="    filled = np.where(gaps, _obeying(middle, panel.schema, panel.context), panel.values)\n",
        after="    filled = _obeying(drawn[0], panel.schema, panel.context) * np.float32(1.0000001)\n",
        tests=(COMPLETING,),
    ),
)
