"""The contract is worth something: methods that break it are caught, each by the check that is meant for it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from understudy.data import Panel, Schema
from understudy.privacy.border import Statistic
from understudy.privacy.budget import Guarantee
from understudy.privacy.contributions import Rows
from understudy.privacy.events import Gaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.synthesizers import METHODS, PrivateSeries, Progress, SampleRequest
from understudy.synthesizers.contract import CHECKS, checks
from understudy.synthesizers.independent import Independent


def _one_each(panel: Panel) -> Rows:
    return Rows(np.ones((panel.num_series, 1)))


@dataclass(frozen=True, kw_only=True)
class Honest(Independent):
    """Releases one noisy count and keeps every rule; the others below break one rule each."""

    name: ClassVar[str] = "honest"

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        return SpendingPlan((PlanEntry("count", Gaussian(20.0)),), guarantee)

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        count = Statistic(
            label="count", shape=(1,), bound=1.0, contributions=lambda own: Rows(np.ones((len(own.unit), 1)))
        )
        return {"count": grant.release(count, private)}


class KeepsTheSeries(Honest):
    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        return {**super().learn(private, grant, progress), "prototype": private.panel.values[:3]}


class ShowsTheCount(Honest):
    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        return {**super().learn(private, grant, progress), "zeros": np.zeros(private.panel.num_series)}


class LogsTheCount(Honest):
    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        logging.getLogger("understudy").warning("learning from %d series", private.panel.num_series)
        return super().learn(private, grant, progress)


class TellsProgress(Honest):
    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        for series in range(private.panel.num_series):
            progress("series", series / private.panel.num_series)
        return super().learn(private, grant, progress)


class ForgetsToExecute(Honest):
    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        return {"count": np.zeros(1)}


class LooksAtTheFirstUnit(Honest):
    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        first = private.panel.values[:1, 0, 1].sum(keepdims=True).astype(np.float64)
        return {**super().learn(private, grant, progress), "first": first}


class LeavesTheBounds(Honest):
    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        panel = super().sample(arrays, schema, request)
        return panel.with_values(panel.values + 1000)


class DrawsAsManyAsItLikes(Honest):
    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        return super().sample(arrays, schema, replace(request, num_series=7))


class IgnoresTheLabel(Honest):
    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        return super().sample(arrays, schema, replace(request, label=None))


MUTANTS = [
    (KeepsTheSeries, checks.check_the_release_holds_no_reference_to_the_panel),
    (ShowsTheCount, checks.check_no_array_is_as_long_as_the_panel),
    (ShowsTheCount, checks.check_one_unit_more_changes_nothing_but_numbers),
    (LogsTheCount, checks.check_one_unit_more_changes_nothing_but_numbers),
    (TellsProgress, checks.check_one_unit_more_changes_nothing_but_numbers),
    (LooksAtTheFirstUnit, checks.check_the_order_of_units_does_not_matter),
    (ForgetsToExecute, checks.check_fit_spends_what_the_certificate_says),
    (LeavesTheBounds, checks.check_samples_obey_the_schema),
    (DrawsAsManyAsItLikes, checks.check_the_number_of_series_is_the_callers),
    (IgnoresTheLabel, checks.check_labels_can_be_asked_for),
]


@pytest.mark.parametrize(("mutant", "check"), MUTANTS, ids=lambda item: item.__name__)
def test_a_method_that_breaks_a_rule_is_caught(
    mutant: type[Honest], check: Callable[[Honest], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METHODS, "honest", mutant)
    with pytest.raises(AssertionError):
        check(mutant())


# All but one: the class inherits from the control, which never buys a count.
FITTING = [check for check in CHECKS if check is not checks.check_a_population_can_be_bought]


@pytest.mark.parametrize("check", FITTING, ids=lambda check: check.__name__)
def test_an_honest_method_of_somebody_else_passes(
    check: Callable[[Honest], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METHODS, "honest", Honest)
    check(Honest())


def test_every_check_is_in_the_list() -> None:
    written = {value for name, value in vars(checks).items() if name.startswith("check_")}
    assert written == set(CHECKS)
