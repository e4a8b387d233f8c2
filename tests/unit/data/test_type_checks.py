"""Wrong calls as newcomers make them: the answer says what was expected, and is never a raw Python error."""

import numpy as np
import pytest

from tests.unit.data.toy import simple_schema, toy_schema, toy_table
from understudy.data import (
    BudgetDeclaration,
    Categorical,
    Continuous,
    Integer,
    Monotone,
    NonNegative,
    Population,
    PrivacyUnit,
    Schema,
    Sum,
    Time,
    ZeroWhen,
    read_panel,
    write_panel,
)
from understudy.errors import InputError, SchemaError, UnderstudyError
from understudy.privacy.budget import Guarantee
from understudy.privacy.certificate import Certificate, verify
from understudy.privacy.ledger import Ledger
from understudy.synthesizers import Release
from understudy.synthesizers.spectral import Spectral

DECLARATIONS = {
    "population": lambda: toy_schema(population=300),
    "population.size": lambda: Population("300"),
    "population.count_epsilon": lambda: Population(count_epsilon="0.1"),
    "unit": lambda: toy_schema(unit="person"),
    "time": lambda: toy_schema(time=None),
    "channels": lambda: toy_schema(channels=["power"]),
    "static": lambda: toy_schema(static=[{"name": "plan"}]),
    "ignore": lambda: toy_schema(ignore="person"),
    "budget": lambda: toy_schema(budget=3.0),
    "constraints": lambda: toy_schema(constraints=None),
    "budget.epsilon": lambda: BudgetDeclaration(epsilon="1"),
    "unit.max_series": lambda: PrivacyUnit(max_series=1.5),
    "unit.column": lambda: PrivacyUnit(column=3),
    "time.steps": lambda: Time(steps="24"),
    "time.frequency": lambda: Time(frequency=3600),
    "time.start": lambda: Time(start=np.datetime64("2024-01-01")),
    "a.low": lambda: Continuous("a", "0", "1"),
    "a.high": lambda: Integer("a", 0, "1"),
    "a.categories": lambda: Categorical("a", "abc"),
    "a.missing": lambda: Continuous("a", 0, 1, missing="yes"),
    "constraints.a.parts": lambda: Sum("a", "bc"),
    "constraints.a.hours": lambda: ZeroWhen("a", hours=3),
    "constraints.3.channel": lambda: Monotone(3),
    "constraints.None.channel": lambda: NonNegative(None),
}


@pytest.mark.parametrize("key", DECLARATIONS)
def test_a_declaration_of_another_type_is_refused_by_its_key(key):
    with pytest.raises(SchemaError, match="expected") as caught:
        DECLARATIONS[key]()
    assert caught.value.key == key


def panel():
    return read_panel(toy_table(), toy_schema())


def ledger():
    return Ledger.in_memory(Guarantee(1.0, 1e-6))


CALLS = {
    "a table for a panel": lambda: Spectral().fit(toy_table(), ledger()),
    "a schema for a ledger": lambda: Spectral().fit(panel(), toy_schema()),
    "a number for a guarantee": lambda: Spectral().fit(panel(), ledger(), guarantee=1.0),
    "a seed for noise": lambda: Spectral().fit(panel(), ledger(), noise=3),
    "text for window steps": lambda: Spectral(window_steps="3").fit(panel(), ledger()),
    "a path for a schema": lambda: read_panel(toy_table(), "schema.toml"),
    "a column for a table": lambda: read_panel(toy_table().to_pandas()["power"], simple_schema()),
    "a table to write": lambda: write_panel(toy_table(), "t.csv"),
    "nowhere to write": lambda: write_panel(panel(), None),
    "a schema to open as a ledger": lambda: Ledger.open(toy_schema()),
    "a number to open as a ledger": lambda: Ledger.open_for(3),
    "a number for a ledger's guarantee": lambda: Ledger.in_memory(1.0),
    "text for a ledger's runs": lambda: Ledger.in_memory(Guarantee(1.0, 1e-6), max_runs="3"),
    "text for epsilon": lambda: Guarantee("1", 1e-6),
    "no delta": lambda: Guarantee(1.0, None),
    "a path to verify": lambda: verify("release", None),
    "no path to a release": lambda: Release.load(None),
    "no path to a certificate": lambda: Certificate.load(None),
    "no path to a schema": lambda: Schema.load(None),
    "a dict for the text of a schema": lambda: Schema.loads({}),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_argument_of_another_type_is_refused_with_what_to_write(call):
    with pytest.raises(InputError, match=r"[Ee]xpected.*, got ") as caught:
        CALLS[call]()
    assert isinstance(caught.value, UnderstudyError)


def test_numbers_of_numpy_are_numbers():
    assert Population(np.int64(300)) == Population(300)
    assert type(Time(steps=np.int32(24)).steps) is int
    assert Continuous("a", np.float32(0), np.int64(3)).bounds == (0.0, 3.0)


UNKNOWN_HERE = {
    "unit.series_column": ('kind = "entity"', 'kind = "entity"\nseries_column = "trip"', r"belongs under \[time\]"),
    "time.population": ("steps = 5", "steps = 5\npopulation = 3", "before any"),
    "time.start": ("start = ", "start = 5 #", "text is expected"),
    "time.steps": ("steps = 5", 'steps = "5"', "whole number"),
    "power.low": ("low = 0.0", 'low = "0"', "a number is expected"),
    "population.size": ("population = 200", 'population = "many"', "a whole number"),
}


@pytest.mark.parametrize("key", UNKNOWN_HERE)
def test_a_wrong_key_of_a_schema_file_is_called_as_its_author_wrote_it(key):
    old, new, remedy = UNKNOWN_HERE[key]
    text = toy_schema().dumps()
    assert old in text
    with pytest.raises(SchemaError, match=remedy) as caught:
        Schema.loads(text.replace(old, new, 1))
    assert caught.value.key == key
