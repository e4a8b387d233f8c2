import json

import pytest

from understudy.errors import InputError, UnsupportedEvent
from understudy.privacy.events import (
    ApproximateDP,
    DiscreteGaussian,
    Gaussian,
    MixtureOfGaussians,
    NonPrivate,
    PureDP,
    SubsampledGaussian,
    from_json,
    to_json,
)

EVERY_KIND = [
    Gaussian(1.5, 3),
    DiscreteGaussian(2.0, 2, one_vote=True),
    SubsampledGaussian(0.01, 1.1, 100),
    MixtureOfGaussians(0.01, 1.1, 4, 100),
    PureDP(0.5, 2),
    ApproximateDP(0.5, 1e-8),
    Gaussian(2.0, relation="values"),
    NonPrivate("a paper's unsound variant"),
]


@pytest.mark.parametrize("event", EVERY_KIND, ids=lambda event: type(event).__name__)
def test_every_event_survives_a_round_trip_through_json(event):
    assert from_json(json.loads(json.dumps(to_json(event)))) == event


@pytest.mark.parametrize(
    "body", [{"type": "Magic"}, {}, "Gaussian", {"type": "Gaussian", "noise_multiplier": 1.0}, None]
)
def test_an_event_that_is_not_known_exactly_is_unsupported(body):
    with pytest.raises(UnsupportedEvent):
        from_json(body)


def test_an_event_with_an_extra_field_is_unsupported_rather_than_ignored():
    with pytest.raises(UnsupportedEvent, match="exactly the fields"):
        from_json({**to_json(Gaussian(1.0)), "scale": 2.0})


@pytest.mark.parametrize(
    "make",
    [
        lambda: Gaussian(0.0),
        lambda: Gaussian(float("inf")),
        lambda: Gaussian(1.0, count=0),
        lambda: Gaussian(1.0, count=1.5),
        lambda: SubsampledGaussian(0.0, 1.0, 1),
        lambda: SubsampledGaussian(1.1, 1.0, 1),
        lambda: ApproximateDP(1.0, 1.0),
        lambda: Gaussian(1.0, relation="whatever"),
    ],
)
def test_impossible_parameters_are_refused(make):
    with pytest.raises(InputError):
        make()


def test_a_label_may_be_executed_as_often_as_its_event_counts():
    assert [event.executions for event in EVERY_KIND] == [3, 2, 100, 100, 2, 1, 1, 1]
