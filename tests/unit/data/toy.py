"""A small schema and tables that obey it, shared by the tests of the data room."""

import numpy as np
import pyarrow as pa

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
    Time,
)

START = np.datetime64("2024-01-01T00:00:00", "s")


def toy_schema(**changes):
    """Four channels of every kind, two static columns, five hourly steps."""
    fields = {
        "name": "toy",
        "population": Population(200),
        "unit": PrivacyUnit(column="person"),
        "time": Time(column="when", frequency="1h", start=str(START), steps=5),
        "channels": (
            Continuous("power", 0.0, 10.0, missing=True),
            Integer("visits", 0, 50),
            Categorical("state", ("off", "idle", "on")),
            Binary("alarm"),
        ),
        "static": (Categorical("plan", ("basic", "plus")), Continuous("area", 0.0, 500.0, dtype="float32")),
        "label": "plan",
        "constraints": (NonNegative("power"), Monotone("visits")),
        "budget": BudgetDeclaration(epsilon=2.0, max_runs=3),
    }
    return Schema(**{**fields, **changes})


def toy_columns(num_units=120, steps=5, seed=0):
    """Columns of a long table, sorted by person and time."""
    rng = np.random.default_rng(seed)
    rows = num_units * steps
    power = np.round(rng.uniform(0, 10, rows), 2)
    gaps = rng.random(rows) < 0.1
    return {
        "person": pa.array([f"p{i:04d}" for i in range(num_units) for _ in range(steps)]),
        "when": pa.array(np.tile(START + np.arange(steps) * np.timedelta64(1, "h"), num_units)),
        "power": pa.array(power, mask=gaps),
        "visits": pa.array(np.sort(rng.integers(0, 51, (num_units, steps)), axis=1).ravel()),
        "state": pa.array(np.array(["off", "idle", "on"])[rng.integers(0, 3, rows)].tolist()),
        "alarm": pa.array(rng.random(rows) < 0.2),
        "plan": pa.array(np.repeat(np.array(["basic", "plus"])[rng.integers(0, 2, num_units)], steps).tolist()),
        "area": pa.array(np.repeat(rng.uniform(20, 300, num_units), steps).astype(np.float32)),
    }


def toy_table(num_units=120, **changes):
    """A long table that obeys `toy_schema`, with some columns replaced."""
    return pa.table({**toy_columns(num_units), **changes})


def replaced(table, column, row, value):
    """The table with one cell changed."""
    cells = table[column].to_pylist()
    cells[row] = value
    index = table.column_names.index(column)
    return table.set_column(index, column, pa.array(cells))


ONE_CHANNEL = (Continuous("x", 0.0, 100.0, missing=True),)


def simple_schema(channels=ONE_CHANNEL, unit=None, **time):
    """One channel and no static columns; keyword arguments shape the time axis."""
    axis = {"column": "t", "steps": 4, "start": str(START), **time}
    return Schema(
        name="simple",
        population=Population(100),
        unit=unit or PrivacyUnit(column="id", dtype="int64"),
        time=Time(**axis),
        channels=channels,
    )


def at(*hours):
    """Timestamps that many hours after the start."""
    return pa.array((START + (np.array(hours) * 3600).astype("timedelta64[s]")).astype("datetime64[s]"))
