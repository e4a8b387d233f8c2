"""Small and odd panels."""

from dataclasses import replace

from understudy.data import Categorical, Time
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.contract.expectations import expect_valid_samples
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema, without_values


def check_small_panels(synthesizer: Synthesizer) -> None:
    """Nobody, one unit, one step, two steps: the same road, and samples that obey the schema."""
    expect_valid_samples(synthesizer, make_panel(rich_schema(), 0))
    expect_valid_samples(synthesizer, make_panel(rich_schema(), 1))
    for steps in (1, 2):
        fixed, varying = (Time(column="when", steps=steps, min_steps=fewest) for fewest in (None, 1))
        expect_valid_samples(synthesizer, make_panel(plain_schema(time=fixed)))
        expect_valid_samples(synthesizer, make_panel(rich_schema(time=varying)))


def check_nothing_observed(synthesizer: Synthesizer) -> None:
    """A channel, or every channel, without a single value."""
    columns = tuple(replace(channel, missing=True) for channel in rich_schema().channels)
    panel = make_panel(rich_schema(channels=columns))
    expect_valid_samples(synthesizer, without_values(panel, "load"))
    expect_valid_samples(synthesizer, without_values(panel, *(channel.name for channel in columns)))


def check_a_column_with_one_category(synthesizer: Synthesizer) -> None:
    """A category without alternative is declared by some schemas and teaches nothing."""
    schema = rich_schema(
        channels=(Categorical("state", ("on",), missing=True), rich_schema().channels[0]),
        static=(Categorical("tariff", ("flat",)), Categorical("region", ("north",))),
        constraints=(),
    )
    expect_valid_samples(synthesizer, make_panel(schema))
