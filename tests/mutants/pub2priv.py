"""Defects of Pub2Priv: gradients that weigh too much, private figures on the way to the network, a θ_T that learns."""

from tests.mutants.mutant import Mutant

REGRESSION = "tests/unit/synthesizers/pub2priv/test_regression.py"
CORRELATION = "tests/unit/synthesizers/pub2priv/test_correlation.py"
METHOD = "tests/unit/synthesizers/pub2priv/test_method.py"
FOLDER = "synthesizers/pub2priv"

MUTANTS = (
    Mutant(
        name="no contexts at all are not expected",
        why="a fit that ends badly where nobody is in the table tells nobody from somebody",
        file=f"{FOLDER}/knowledge.py",
        before="        if context.size > 0:\n",
        after="        if context.size is not None:\n",
        tests=(f"{METHOD}::test_nobody_looks_like_somebody_where_series_have_contexts",),
    ),
    Mutant(
        name="windows that an event changes counted once",
        why="an event replaces windows, which moves the sum twice as far as taking them away",
        file=f"{FOLDER}/published.py",
        before="max_windows=2 * schema.unit.max_series if",
        after="max_windows=schema.unit.max_series if",
        tests=(f"{METHOD}::test_an_event_is_priced_for_every_window_it_may_change_twice",),
    ),
    Mutant(
        name="amplification for replaced windows",
        why="the price of a subsampled mixture holds for windows that come or go, not for windows that change",
        file=f"{FOLDER}/published.py",
        before='if size is not None and schema.unit.kind != "event":',
        after="if size is not None:",
        tests=(f"{METHOD}::test_an_event_is_priced_for_every_window_it_may_change_twice",),
    ),
    Mutant(
        name="gradients priced without what was bought before",
        why="the distributions and the gradients together cost more than was allowed",
        file="training/plan.py",
        before="config.calibrated(guarantee, others=[entry.event for entry in releases])",
        after="config.calibrated(guarantee)",
        tests=(f"{METHOD}::test_the_plan_costs_the_guarantee_and_never_more",),
    ),
    Mutant(
        name="batch divided by the private number",
        why="what the noisy sum is divided by tells how many units there are",
        file=f"{FOLDER}/published.py",
        before="charged_config(charged, private.population, recipe.clipping_norm)",
        after="charged_config(charged, private.panel.num_units, recipe.clipping_norm)",
        tests=(f"{METHOD}::test_what_a_sum_is_divided_by_does_not_follow_the_private_number",),
    ),
    Mutant(
        name="private series shown before private training",
        why="a start from private series is learned without noise",
        file=f"{FOLDER}/published.py",
        before="        charged = grant.plan.event(TRAINING)\n",
        after="""\
        charged = grant.plan.event(TRAINING)
        shown = self.examples(private.panel, self.encoding(released))
        batch = {name: torch.from_numpy(np.array(array)) for name, array in shown.items()}
        loss = denoising_loss(schedule(recipe.diffusion_steps))(model, batch, torch.Generator())
        loss.mean().backward()
        torch.optim.SGD(model.parameters(), lr=0.1).step()
""",
        tests=(f"{METHOD}::test_private_series_reach_the_network_through_private_training_only",),
    ),
    Mutant(
        name="series scaled by their own deviation",
        why="one unit moves the scale of everybody's series, and so everybody's gradient",
        file=f"{FOLDER}/published.py",
        before='"x": encoding.series(panel, slice(None)),',
        after='"x": encoding.series(panel, slice(None)) / encoding.series(panel, slice(None)).std(axis=0),',
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
    Mutant(
        name="vote left out of the bound of the products",
        why="a unit moves the sum further than its noise was made for",
        file=f"{FOLDER}/estimators.py",
        before="return float(np.hypot(self._products_bound, self.vote_weight))",
        after="return float(self._products_bound)",
        tests=(f"{REGRESSION}::test_what_crosses_the_border_is_bounded_as_the_layout_says",),
    ),
    Mutant(
        name="columns of context that are followed counted once",
        why="a series adds a product for each column, and all of them may be one",
        file=f"{FOLDER}/estimators.py",
        before="np.hypot(products_bound(context), vote_weight(context))",
        after="np.hypot(np.sqrt(context.schema.num_channels), vote_weight(context))",
        tests=(f"{CORRELATION}::test_several_columns_that_are_one_are_bounded_as_several",),
    ),
    Mutant(
        name="what is followed divided by the private number",
        why="what the noisy sum is divided by tells how many units there are",
        file=f"{FOLDER}/estimators.py",
        before="products, votes = np.split(noisy / private.population, [-NUM_RUN_CELLS])",
        after="products, votes = np.split(noisy / private.panel.num_units, [-NUM_RUN_CELLS])",
        tests=(f"{CORRELATION}::test_what_is_divided_by_is_public_and_one_unit_changes_no_other_units_part",),
    ),
    Mutant(
        name="what is followed left out of the bound beside the regression",
        why="the sum has a part that its noise was not made for",
        file=f"{FOLDER}/estimators.py",
        before="float(np.hypot(self._moments_bound, self.correlation_weight * self.correlations_bound))",
        after="float(self._moments_bound)",
        tests=(f"{REGRESSION}::test_what_crosses_the_border_is_bounded_as_the_layout_says",),
    ),
    Mutant(
        name="private contexts taken for public windows",
        why="means and products of private contexts are released without noise",
        file=f"{FOLDER}/method.py",
        before="public = public_windows(self.public_context, schema)",
        after="public = private.panel.context",
        tests=(f"{REGRESSION}::test_what_context_looks_like_is_told_by_public_windows_only",),
    ),
    Mutant(
        name="products priced as if nothing else was bought",
        why="the spectral release and the products together cost more than was allowed",
        file=f"{FOLDER}/method.py",
        before="rest = noise_multipliers(guarantee, {model: 1 - share})[model]",
        after="rest = noise_multipliers(guarantee, {model: 1.0})[model]",
        tests=(f"{METHOD}::test_the_plan_costs_the_guarantee_and_never_more",),
    ),
    Mutant(
        name="contexts through the network in one batch",
        why="how many rows are multiplied decides how each is rounded, and rounding at rest is scaled to length one",
        file=f"{FOLDER}/knowledge.py",
        before="parts = [self.transformer(torch.tensor(one[None], dtype=torch.float32)) - at_rest for one in context]",
        after="parts = [self.transformer(torch.from_numpy(context).float()) - at_rest]",
        tests=("tests/unit/synthesizers/pub2priv/test_context.py",),
    ),
)
