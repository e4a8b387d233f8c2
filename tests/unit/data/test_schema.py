"""Schemas: what they refuse, and that a file holds exactly what the dataclass holds."""

import string
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.data.toy import toy_schema
from understudy.data import (
    Binary,
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
)
from understudy.errors import MissingData, SchemaError

TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
PARTY = st.none() | TEXT
FLOATS = st.floats(-1e9, 1e9, allow_nan=False)


@st.composite
def channels(draw, name):
    common = {"missing": draw(st.booleans()), "party": draw(PARTY)}
    numeric = common | {
        "out_of_bounds": draw(st.sampled_from(["refuse", "clip"])),
        "aggregate": draw(st.sampled_from(["mean", "sum", "last", "max", "min"])),
    }
    kind = draw(st.sampled_from([Continuous, Integer, Categorical, Binary]))
    if kind is Continuous:
        low = draw(st.floats(-1e6, 1e6))
        resolution = draw(st.none() | st.floats(1e-12, 1e6))
        return Continuous(name, low, low + draw(st.floats(0.5, 1e6)), resolution=resolution, **numeric)
    if kind is Integer:
        low = draw(st.integers(-1000, 1000))
        return Integer(name, low, low + draw(st.integers(1, 500)), **numeric)
    if kind is Categorical:
        items = draw(st.one_of(st.lists(TEXT, min_size=1, max_size=4, unique=True), st.just([3, 1, 2])))
        return Categorical(name, tuple(items), **common)
    return Binary(name, **common, dtype=draw(st.sampled_from(["bool", "int8"])))


@st.composite
def schemas(draw):
    names = draw(st.lists(TEXT, min_size=8, max_size=8, unique=True))
    steps = draw(st.integers(1, 400))
    population = draw(st.one_of(st.integers(1, 10**9).map(Population), st.just(Population(count_epsilon=0.1))))
    delta = draw(st.none() | st.floats(1e-12, 0.5))
    label = Categorical(names[6], ("a", "b"))
    constrained = Continuous(names[2], -1.0, 1.0)
    temperature = Continuous(names[5], -20.0, 40.0)
    return Schema(
        name=draw(TEXT),
        population=population,
        unit=PrivacyUnit(column=names[0], max_series=draw(st.integers(1, 5)), event_steps=draw(st.integers(1, 9))),
        time=Time(
            column=names[1],
            steps=steps,
            frequency=draw(st.sampled_from(["1h", "15min", "1d", "500ms"])),
            min_steps=draw(st.none() | st.integers(1, steps)),
            off_grid=draw(st.sampled_from(["refuse", "floor", "nearest"])),
        ),
        channels=(constrained, draw(channels(names[3]))),
        static=(label, draw(channels(names[4]))),
        context=(temperature,),
        label=draw(st.sampled_from([None, names[6]])),
        constraints=(
            NonNegative(names[2]),
            Monotone(names[2], draw(st.sampled_from(["increasing", "decreasing"]))),
            ZeroWhen(names[2], hours=(0, 23)),
            ZeroWhen(names[2], context=names[5], below=draw(FLOATS)),
            ZeroWhen(names[2], channel_is_zero=names[3]),
        ),
        budget=draw(st.none() | st.just(BudgetDeclaration(epsilon=0.25, delta=delta, max_runs=2, composition="rdp"))),
        ignore=(names[7],),
    )


@given(schemas())
def test_a_schema_comes_back_from_toml_exactly(schema):
    assert Schema.loads(schema.dumps()) == schema


def test_a_schema_comes_back_from_a_file_exactly(tmp_path):
    schema = toy_schema()
    schema.save(tmp_path / "toy.toml")
    assert Schema.load(tmp_path / "toy.toml") == schema


def test_population_may_be_a_number_or_the_price_of_a_count():
    text = toy_schema().dumps()
    assert Schema.loads(text).population == Population(200)
    bought = Schema.loads(text.replace("population = 200", "population = { count_epsilon = 0.1 }"))
    assert bought.population == Population(count_epsilon=0.1)


def test_delta_comes_from_the_population_unless_declared():
    assert toy_schema().delta == pytest.approx(1 / 20_000)
    assert toy_schema(budget=BudgetDeclaration(epsilon=1.0, delta=1e-7)).delta == 1e-7
    with pytest.raises(SchemaError, match=r"budget\.delta"):
        _ = toy_schema(population=Population(count_epsilon=0.1)).delta


def test_a_toml_timestamp_is_as_good_as_text():
    text = toy_schema().dumps().replace('start = "2024-01-01T00:00:00"', "start = 2024-01-01T00:00:00")
    assert Schema.loads(text).time.start == "2024-01-01T00:00:00"


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("low = 0.0\n", "", "power.low"),
        ("high = 50\n", "", "visits.high"),
        ('categories = ["off", "idle", "on"]\n', "", "state.categories"),
        ("low = 0.0", "low = 'zero'", "power.low"),
        ("high = 10.0", "high = -3.0", "power.high"),
        ("high = 10.0", "high = inf", "power.high"),
        ("missing = true", "misssing = true", "channels.power.misssing"),
        ("version = 1", "version = 2", "version"),
        ("population = 200\n", "", "population"),
        ("population = 200", "population = 0", "population.size"),
        ("population = 200", "population = { count_epsilon = -1.0 }", "population.count_epsilon"),
        ("steps = 5", "steps = 0", "time.steps"),
        ('frequency = "1h"', 'frequency = "hourly"', "time.frequency"),
        ("start = ", "start = 'soon' #", "time.start"),
        ('label = "plan"', 'label = "area"', "label"),
        ('kind = "monotone"', 'kind = "wavy"', "constraints.visits.kind"),
        ("epsilon = 2.0", "epsilon = 0.0", "budget.epsilon"),
        ("max_runs = 3", "max_runs = 0", "budget.max_runs"),
        ('kind = "entity"', 'kind = "table"', "unit.kind"),
        ('name = "area"', 'name = "plan"', "plan"),
    ],
)
def test_a_wrong_schema_names_file_key_and_remedy(old, new, key):
    text = toy_schema().dumps()
    assert old in text
    with pytest.raises(SchemaError) as caught:
        Schema.loads(text.replace(old, new, 1), file="meters.toml")
    assert str(caught.value).startswith("meters.toml: ")
    assert caught.value.file == "meters.toml"
    assert caught.value.key == key
    assert f"'{key}" in str(caught.value)


@pytest.mark.parametrize("text", ["name = ", "a = " + "[" * 100_000, "a = " + "9" * 5000])
def test_broken_toml_is_refused(text):
    with pytest.raises(SchemaError, match="not valid TOML"):
        Schema.loads(text)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("population = 200", "population = 9223372036854775808", "population.size"),
        ("max_runs = 3", "max_runs = 9223372036854775808", "budget.max_runs"),
        ("high = 50", "high = 9223372036854775808", "visits.high"),
        ("high = 10.0", "high = 1e38", "power.high"),
        ("high = 10.0", "high = 1" + "0" * 400, "power.high"),
        ("high = 10.0", "high = 1e-60", "power.high"),
    ],
)
def test_numbers_that_arrays_and_ledgers_can_not_hold_are_refused(old, new, key):
    text = toy_schema().dumps()
    assert old in text
    with pytest.raises(SchemaError) as caught:
        Schema.loads(text.replace(old, new))
    assert caught.value.key == key


NARROW = {
    "visits.high": lambda wide: Integer("visits", 0, 127 + wide, dtype="int8"),
    "visits.low": lambda wide: Integer("visits", -wide, 9, dtype="uint64"),
    "amount.high": lambda wide: Integer("amount", 0, 2**63 - 1 - 1000 * (1 - wide), dtype="int64"),
    "code.categories": lambda wide: Categorical("code", (1, 255 + wide), dtype="uint8"),
    "time.dtype": lambda wide: replace(toy_schema().time, dtype="int8", steps=128 + wide),
    "unit.dtype": lambda wide: toy_schema(
        unit=replace(toy_schema().unit, dtype="uint8"), population=Population(256 + wide)
    ),
}


@pytest.mark.parametrize("key", NARROW)
def test_whole_numbers_that_their_own_column_can_not_hold_are_refused(key):
    """Otherwise a run is paid for, and its samples can't be written."""
    NARROW[key](0)
    with pytest.raises(SchemaError, match="wider") as caught:
        NARROW[key](1)
    assert caught.value.key == key


def test_a_wide_table_of_too_many_columns_is_refused():
    wide = replace(toy_schema().time, layout="wide", column=None, steps=100_000)
    with pytest.raises(SchemaError, match="long layout"):
        toy_schema(time=wide)


@pytest.mark.parametrize("names", [("power_0",), ("alarm_4", "alarm_4")])
def test_a_column_of_a_wide_table_can_not_be_left_out_as_well(names):
    wide = replace(toy_schema().time, layout="wide", column=None)
    with pytest.raises(SchemaError, match="declared twice"):
        toy_schema(time=wide, ignore=names)


def test_channels_whose_columns_have_the_same_name_in_a_wide_table_are_refused():
    wide = replace(toy_schema().time, layout="wide", column=None, steps=12, wide_columns="{channel}{step}")
    with pytest.raises(SchemaError, match="'a10'"):
        toy_schema(time=wide, channels=(Continuous("a", 0.0, 1.0), Continuous("a1", 0.0, 1.0)), constraints=())


def test_an_error_lists_a_few_names_and_not_thousands():
    wide = replace(toy_schema().time, layout="wide", column=None, steps=1000)
    with pytest.raises(SchemaError) as caught:
        toy_schema(time=wide, columns=("person",))
    assert len(str(caught.value)) < 500


def test_a_missing_schema_file_says_how_to_write_one(tmp_path):
    with pytest.raises(MissingData, match="understudy init"):
        Schema.load(tmp_path / "nowhere.toml")


def test_a_draft_may_leave_bounds_open_but_is_not_good_for_reading():
    text = toy_schema().dumps().replace("low = 0.0\n", "", 1)
    draft = Schema.loads(text, draft=True)
    assert draft.channels[0].low is None
    assert Schema.loads(draft.dumps(), draft=True) == draft
    with pytest.raises(SchemaError, match=r"power\.low"):
        draft.require_declared()


@pytest.mark.parametrize(
    "constraint",
    [
        lambda: NonNegative("state"),
        lambda: NonNegative("nothing"),
        lambda: ZeroWhen("power", context="nothing", below=1.0),
        lambda: ZeroWhen("power"),
        lambda: ZeroWhen("power", channel_is_zero="power"),
        lambda: ZeroWhen("power", channel_is_zero="nothing"),
        lambda: ZeroWhen("power", channel_is_zero="state", hours=(1,)),
        lambda: ZeroWhen("power", hours=(24,)),
        lambda: Monotone("power", "sideways"),
        lambda: Sum("power", ("power",)),
        lambda: Sum("power", ()),
    ],
)
def test_constraints_that_make_no_sense_are_refused(constraint):
    with pytest.raises(SchemaError):
        toy_schema(constraints=(constraint(),))


def test_a_sum_whose_bounds_can_not_meet_is_refused():
    far = (Continuous("total", 0.0, 1.0), Continuous("part", 5.0, 6.0))
    with pytest.raises(SchemaError, match="never add up"):
        toy_schema(channels=far, constraints=(Sum("total", ("part",)),))


def test_whole_number_categories_are_stored_as_whole_numbers():
    assert Categorical("grade", (1, 2, 3)).dtype == "int64"
    with pytest.raises(SchemaError):
        Categorical("grade", (1, "two"))
    with pytest.raises(SchemaError):
        Categorical("grade", (True, False))


def test_the_order_of_columns_has_to_name_every_column():
    with pytest.raises(SchemaError, match="'columns'"):
        toy_schema(columns=("person", "when"))
    order = ("when", "person", "area", "plan", "alarm", "state", "visits", "power")
    assert Schema.loads(toy_schema(columns=order).dumps()).columns == order


def test_awkward_text_survives():
    name = "".join(map(chr, range(128))) + '"\\' + string.punctuation + "é漢🙂"
    assert Schema.loads(toy_schema(name=name).dumps()).name == name


def test_the_sentence_says_who_is_protected():
    assert "'person'" in PrivacyUnit(column="person").sentence()
    event = PrivacyUnit(kind="event", column="person", event_steps=24)
    assert "24 consecutive steps" in event.sentence()
    window = PrivacyUnit(kind="overlapping-window")
    assert window.sentence().startswith("No person is protected")
    assert [unit.protects_a_person for unit in (event, window)] == [True, False]


@pytest.mark.parametrize("fields", [{"kind": "row"}, {"max_series": 0}, {"event_steps": 0}, {"dtype": "bool"}])
def test_units_that_make_no_sense_are_refused(fields):
    with pytest.raises(SchemaError, match=r"'unit\."):
        PrivacyUnit(column="person", **fields)
