"""Defects of methods and of what leaves the building."""

from tests.mutants.mutant import Mutant

LEARNING = "tests/unit/synthesizers/spectral/test_learning.py"
PRIOR = "tests/unit/synthesizers/spectral/test_prior.py"
EVENTS = f"{LEARNING}::test_other_readings_in_an_event_move_each_statistic_by_at_most_its_bound"
RELEASE = "tests/unit/synthesizers/test_release.py"
METHODS = "tests/contract/test_methods.py::test_the_method_keeps_the_contract"
EXTRA = "tests/unit/synthesizers/test_mutant_fit.py"
PANEL = "tests/unit/data/test_panel.py"


def contract(check: str) -> str:
    """Node id of one check on `spectral`."""
    return f"{METHODS}[spectral-{check}]"


ONE_MORE = contract("one_unit_more_changes_nothing_but_numbers")
SHAPES = contract("no_array_is_as_long_as_the_panel")

MUTANTS = (
    Mutant(
        name="charge after access",
        why="private series are looked at under a ledger that refuses",
        file="synthesizers/base.py",
        before="        grant = ledger.charge(plan, label=self.name, noise=noise or NoiseSource.secure())\n",
        after="""\
        self.private_series(table, schema.population.size or 1).num_units
        grant = ledger.charge(plan, label=self.name, noise=noise or NoiseSource.secure())
""",
        tests=(EXTRA,),
    ),
    Mutant(
        name="plan from the private table",
        why="what is charged depends on private data",
        file="synthesizers/base.py",
        before="        plan = self.spending_plan(schema, guarantee)\n",
        after="""\
        guarantee = Guarantee(guarantee.epsilon * (1 - 1 / (2 + panel.num_units)), guarantee.delta)
        plan = self.spending_plan(schema, guarantee)
""",
        tests=(ONE_MORE,),
    ),
    Mutant(
        name="stability factor ignored",
        why="an event touches several windows and is priced for one",
        file="synthesizers/base.py",
        before="touched = windows.stability(schema, *self._window(schema))",
        after="touched = 1",
        tests=(EVENTS,),
    ),
    Mutant(
        name="factor two of an event dropped",
        why="an event changes windows from one vector to another, twice as far as taking them away",
        file="synthesizers/base.py",
        before="return touched if self.whole_windows else 2 * touched",
        after="return touched",
        tests=(EVENTS,),
    ),
    Mutant(
        name="population tied to the private count",
        why="public sizes follow the private number of units",
        file="synthesizers/base.py",
        before="        private = self.private_series(table, population.size or 1, workers)\n",
        after="        private = self.private_series(table, table.read().num_units, workers)\n",
        tests=(EXTRA,),
    ),
    Mutant(
        name="grid tied to the private count",
        why="the number of cells follows the private number of units",
        file="statistics/queries.py",
        before="public = self.noise(label, float(np.sqrt(len(columns)))) / self.private.population",
        after="public = self.noise(label, float(np.sqrt(len(columns)))) / max(1, self.private.num_units)",
        tests=(EXTRA,),
    ),
    Mutant(
        name="grid tied to how often a column was measured",
        why="shapes follow a noisy private figure",
        file="statistics/queries.py",
        before="own = public * _length(many & (public > _LITTLE))",
        after="own = loud * _length(many & (loud > _LITTLE))",
        tests=("tests/unit/statistics/test_queries.py",),
    ),
    Mutant(
        name="cells of levels tied to the private count",
        why="how many cells levels are counted in follows the private number of units",
        file="synthesizers/spectral/learning.py",
        before="edges = fitting.edges_for(noise / self.private.population)",
        after="edges = fitting.edges_for(noise / (3_000 * max(1, self.private.num_units)))",
        tests=("tests/unit/synthesizers/spectral/test_few_units.py",),
    ),
    Mutant(
        name="gains counted from another series",
        why="what a unit gains hangs on the unit before it, so one unit moves the vectors of two",
        file="statistics/rules.py",
        before="np.diff(whole, axis=1, prepend=whole[:, :1])",
        after="np.diff(whole, axis=0, prepend=whole[:1])",
        tests=("tests/unit/statistics/test_rules.py",),
    ),
    Mutant(
        name="shares of gaps taken of the private count",
        why="the model of gaps follows the private number of units beside what was answered",
        file="statistics/queries.py",
        before="running = np.full(steps, float(self.private.population))",
        after="running = np.full(steps, float(max(1, self.private.num_units)))",
        tests=("tests/unit/synthesizers/spectral/test_few_units.py",),
    ),
    Mutant(
        name="private series as a prior",
        why="statistics of private series pass without noise",
        file="privacy/border.py",
        before="    if panel.private:\n",
        after="    if False:\n",
        tests=(PRIOR,),
    ),
    Mutant(
        name="prior scaled to the private count",
        why="answers are drawn towards a figure that follows the private number of units",
        file="statistics/queries.py",
        before="public_mean(statistic, self.prior) * self.private.population",
        after="public_mean(statistic, self.prior) * self.private.num_units",
        tests=(PRIOR,),
    ),
    Mutant(
        name="a release that nobody noised as a prior",
        why="what it tells passes into a release that is certified private",
        file="synthesizers/spectral/prior.py",
        before="    if not release.certificate.is_private:\n",
        after="    if False:\n",
        tests=(PRIOR,),
    ),
    Mutant(
        name="an earlier release that the certificate conceals",
        why="a reader takes one epsilon for the whole of what two releases tell",
        file="synthesizers/spectral/method.py",
        before="earlier = self.prior is not None and prior.is_release(self.prior)",
        after="earlier = False",
        tests=(PRIOR,),
    ),
    Mutant(
        name="weights of moments tied to the private count",
        why="which moments have weight, and so what a release holds, follows the private number of units",
        file="synthesizers/spectral/learning.py",
        before='noise = self.queries.noise("profile", 1.0) / self.private.population',
        after='noise = self.queries.noise("profile", 1.0) / (100 * max(1, self.private.num_units))',
        tests=("tests/unit/synthesizers/spectral/test_few_units.py",),
    ),
    Mutant(
        name="count taken and not bought",
        why="the exact number of units is published as the population",
        file="synthesizers/base.py",
        before="counted = grant.count(_COUNT, private)",
        after="counted = private.num_units",
        tests=(contract("a_population_can_be_bought"),),
    ),
    Mutant(
        name="private count in a shape",
        why="the length of a released array is the number of private series",
        file="synthesizers/base.py",
        before="PUBLIC_CONTEXT: shared_context(private)}",
        after='PUBLIC_CONTEXT: shared_context(private), "weights": private.weights}',
        tests=(SHAPES,),
    ),
    Mutant(
        name="private count in a log line",
        why="whoever reads the log knows how many series there are",
        file="synthesizers/base.py",
        before="        private = self.private_series(table, population.size or 1, workers)\n",
        after="""\
        private = self.private_series(table, population.size or 1, workers)
        __import__("logging").getLogger("understudy").warning("learning from %d units", private.num_units)
""",
        tests=(ONE_MORE,),
    ),
    Mutant(
        name="private count in the progress",
        why="the progress bar says how many series there are",
        file="synthesizers/spectral/learning.py",
        before='self.progress("marginals", 0.2)',
        after='self.progress(f"marginals of {self.private.num_units} units", 0.2)',
        tests=(ONE_MORE,),
    ),
    Mutant(
        name="contexts of the fit kept",
        why="one row per private series stands in the release",
        file="synthesizers/base.py",
        before="if private.shared_context is None else np.array(private.shared_context)",
        after="if private.shared_context is None else np.array(private.panel.context)",
        tests=(SHAPES,),
    ),
    Mutant(
        name="the panel held by the release",
        why="a release in memory leads back to the private series",
        file="synthesizers/base.py",
        before="        released = replace(private.schema, population=population)\n",
        after="""\
        released = replace(private.schema, population=population)
        object.__setattr__(released, "source", panel)
""",
        tests=(contract("the_release_holds_no_reference_to_the_panel"),),
    ),
    Mutant(
        name="pickle in a release",
        why="whoever opens the release runs code of whoever made it",
        file="synthesizers/release.py",
        before="        (folder / MODEL_FILE).write_bytes(dump_tensors(contiguous))\n",
        after="""\
        (folder / MODEL_FILE).write_bytes(dump_tensors(contiguous))
        (folder / "model.pkl").write_bytes(__import__("pickle").dumps(contiguous))
""",
        tests=(RELEASE,),
    ),
    Mutant(
        name="a release that was altered",
        why="a file that the certificate does not cover is read as if it did",
        file="synthesizers/release.py",
        before="if found.get(name) != certificate.files.get(name) or name not in found:",
        after="if name not in found:",
        tests=(RELEASE, EXTRA),
    ),
    Mutant(
        name="context only where somebody is left",
        why="zeros in place of the public context say that one reading less emptied the table",
        file="data/panel.py",
        before="    told = panel.shared_context\n",
        after="    told = None\n",
        tests=(
            PANEL,
            f"{METHODS}[dit-an_event_that_leaves_no_whole_series_does_not_show]",
        ),
    ),
    Mutant(
        name="somebody's own context kept",
        why="the private dates of the first unit stand in the release",
        file="data/panel.py",
        before="    if panel.context is None or panel.schema.own_contexts:\n        return None\n    if len",
        after="    if panel.context is None:\n        return None\n    if len",
        tests=(PANEL, EXTRA, "tests/unit/synthesizers/pets/test_two_places.py"),
    ),
)
