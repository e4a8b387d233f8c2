"""Defects of Pub2Priv: gradients that weigh too much, private figures on the way to the network, a θ_T that learns."""

from tests.mutants.mutant import Mutant

METHOD = "tests/unit/synthesizers/pub2priv/test_method.py"
FOLDER = "synthesizers/pub2priv"

MUTANTS = (
    Mutant(
        name="windows that an event changes counted once",
        why="an event replaces windows, which moves the sum twice as far as taking them away",
        file=f"{FOLDER}/method.py",
        before="return DrawWindows(2 * schema.unit.max_series)",
        after="return DrawWindows(schema.unit.max_series)",
        tests=(f"{METHOD}::test_an_event_is_priced_for_every_window_it_may_change_twice",),
    ),
    Mutant(
        name="amplification for replaced windows",
        why="the price of a subsampled mixture holds for windows that come or go, not for windows that change",
        file=f"{FOLDER}/method.py",
        before='if size is None or schema.unit.kind == "event":',
        after="if size is None:",
        tests=(f"{METHOD}::test_an_event_is_priced_for_every_window_it_may_change_twice",),
    ),
    Mutant(
        name="gradients priced without what was bought before",
        why="the spectral release and the gradients together cost more than was allowed",
        file=f"{FOLDER}/method.py",
        before="config = self._config(schema).calibrated(guarantee, others=[entry.event for entry in bought])",
        after="config = self._config(schema).calibrated(guarantee)",
        tests=(f"{METHOD}::test_the_plan_costs_the_guarantee_and_never_more",),
    ),
    Mutant(
        name="batch divided by the private number",
        why="what the noisy sum is divided by tells how many units there are",
        file=f"{FOLDER}/method.py",
        before="config = _charged(grant.plan.event(TRAINING), private.population, self.clip, self._draw(schema))",
        after="config = _charged(grant.plan.event(TRAINING), private.panel.num_units, self.clip, self._draw(schema))",
        tests=(f"{METHOD}::test_what_a_sum_is_divided_by_does_not_follow_the_private_number",),
    ),
    Mutant(
        name="private series shown before private training",
        why="a start from private series is learned without noise",
        file=f"{FOLDER}/method.py",
        before="        model = self._publicly_trained(core, schema)\n",
        after="""\
        model = self._publicly_trained(core, schema)
        shown = core.examples(private.panel, classes_of(private))
        train_publicly(model, self._loss(core), shown, iterations=5, learning_rate=0.1, seed=0)
""",
        tests=(f"{METHOD}::test_private_series_reach_the_network_through_private_training_only",),
    ),
    Mutant(
        name="measurements scaled by their own deviation",
        why="one unit moves the scale of everybody's measurements, and so everybody's gradient",
        file=f"{FOLDER}/projected.py",
        before="""return {"x": np.where(known, x, 0), "known": known""",
        after="""return {"x": np.where(known, x / (1e-9 + x.std(axis=0)), 0), "known": known""",
        tests=(f"{METHOD}::test_one_more_unit_changes_no_other_units_rows",),
    ),
    Mutant(
        name="knowledge transformer left to learn",
        why="parameters that nobody clips or noises receive private gradients",
        file=f"{FOLDER}/knowledge.py",
        before="transformer.requires_grad_(False).train(False)",
        after="transformer.train(False)",
        tests=(f"{METHOD}::test_the_knowledge_transformer_receives_no_gradient",),
    ),
    Mutant(
        name="gaps count as known",
        why="values that nobody observed are learned from, and where the gaps lie is learned with them",
        file=f"{FOLDER}/published.py",
        before='"known": np.repeat(~np.isnan(panel.values), widths, axis=2)',
        after='"known": np.repeat(np.ones_like(panel.values, dtype=bool), widths, axis=2)',
        tests=(f"{METHOD}::test_gaps_are_masked_in_the_loss",),
    ),
)
