"""What a run costs, and what is refused."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from understudy.data import Continuous, Population
from understudy.errors import BudgetExceeded, InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.certificate import recompute
from understudy.privacy.events import to_json
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.contract.expectations import BUDGET, ONE_RUN, expect, expect_raises, new_ledger
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema
from understudy.synthesizers.release import Release


def check_fit_spends_what_the_certificate_says(synthesizer: Synthesizer) -> None:
    """Planned, charged, executed and certified are one and the same, and no more than was allowed."""
    panel, ledger = make_panel(rich_schema()), new_ledger(max_runs=2)
    release = synthesizer.fit(panel, ledger, guarantee=ONE_RUN)
    plan, certificate = synthesizer.spending_plan(panel.schema, ONE_RUN), release.certificate
    spent = BUDGET.epsilon - ledger.remaining().epsilon if plan.entries else 0.0
    expect(certificate.events == tuple(to_json(event) for event in plan.events), "The plan was not certified.")
    expect(
        certificate.executed == {e.label: plan.executions(e.label) for e in plan.entries},
        "Not executed as charged.",
    )
    expect(certificate.epsilon <= ONE_RUN.epsilon, "More was certified than allowed.")
    expect(np.isclose(spent, certificate.epsilon, rtol=1e-9, atol=1e-12), "Charged is not what is certified.")
    expect(np.isclose(recompute(certificate), certificate.epsilon, rtol=1e-6), "The events cost something else.")


def check_a_spent_ledger_refuses_and_is_left_as_it_was(synthesizer: Synthesizer) -> None:
    """Without budget there is no look at the data: BudgetExceeded, and the ledger's head has not moved."""
    panel, ledger = make_panel(plain_schema()), new_ledger(max_runs=1)
    synthesizer.fit(panel, ledger, guarantee=BUDGET)
    head = ledger.head()
    if not synthesizer.spending_plan(panel.schema, ONE_RUN).entries:
        synthesizer.fit(panel, ledger, guarantee=ONE_RUN)  # costs nothing, so there is nothing to refuse
        return
    expect_raises(BudgetExceeded, lambda: synthesizer.fit(panel, ledger, guarantee=ONE_RUN))
    expect(ledger.head() == head, "A refused run was written down.")


def check_all_that_is_left_of_a_spent_ledger_is_refused_too(synthesizer: Synthesizer) -> None:
    """A run that names no guarantee takes what is left; of nothing, that is BudgetExceeded."""
    panel, ledger = make_panel(plain_schema()), new_ledger(max_runs=1)
    synthesizer.fit(panel, ledger)
    head = ledger.head()
    if synthesizer.spending_plan(panel.schema, ONE_RUN).entries:
        expect_raises(BudgetExceeded, lambda: synthesizer.fit(panel, ledger))
        expect(ledger.head() == head, "A refused run was written down.")


def check_bad_public_facts_are_refused_before_spending(synthesizer: Synthesizer) -> None:
    """What can be known to be wrong without the data costs nothing."""
    panel, draft = make_panel(plain_schema()), make_panel(plain_schema())
    object.__setattr__(draft, "schema", plain_schema(channels=(Continuous("load", 0.0, None),)))
    too_long = replace(synthesizer, window_steps=panel.num_steps + 1)
    attempts: tuple[Callable[[Ledger], Release], ...] = (
        partial(synthesizer.fit, draft, guarantee=ONE_RUN),
        partial(synthesizer.fit, panel, guarantee=Guarantee(1.0, 1e-3)),
        partial(too_long.fit, panel, guarantee=ONE_RUN),
    )
    for attempt in attempts:
        ledger = Ledger.in_memory(Guarantee(2.0, 1e-3))
        expect_raises(InputError, partial(attempt, ledger))
        expect(not ledger.entries(), "A run that could have been refused was charged.")


def check_reproducible_noise_is_never_called_private(synthesizer: Synthesizer) -> None:
    """Whoever knows the seed can subtract the noise, and the certificate says so first."""
    panel = make_panel(plain_schema())
    for noise in (NoiseSource.seeded(3), NoiseSource.constant(0)):
        certificate = synthesizer.fit(panel, new_ledger(), noise=noise).certificate
        expect(certificate.status.startswith("not private"), "Reproducible noise was called private.")
    expect(synthesizer.fit(panel, new_ledger()).certificate.is_private, "Secure noise was not called private.")


def check_a_population_can_be_bought(synthesizer: Synthesizer) -> None:
    """The count is part of the plan, comes back noisy, and the whole run stays within the guarantee."""
    schema = plain_schema(population=Population(count_epsilon=0.25))
    release = synthesizer.fit(make_panel(schema), new_ledger(), guarantee=BUDGET)
    expect(release.certificate.epsilon <= BUDGET.epsilon, "The count was not paid from the guarantee.")
    if release.certificate.events:
        expect(release.certificate.executed.get("population") == 1, "The count was not charged.")
        expect(release.schema.population.size is not None, "The count was bought and not used.")
    release.sample(3)
