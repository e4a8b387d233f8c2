"""Damaged tables, long and wide, and every command that reads one."""

from hypothesis import strategies as st

from tests.fuzz.case import Case
from tests.fuzz.columnar_files import columnar_file
from tests.fuzz.commands import Command, buy_bounds, buy_categories, buy_population, plan, synth
from tests.fuzz.csv_files import csv_file
from tests.fuzz.place import LAYOUTS

SUFFIXES = ("csv", "csv", "parquet", "arrow")


def commands(layout: str, suffix: str) -> list[Command]:
    """Command lines that read a table."""
    file = f"{layout}.{suffix}"
    schema, draft = {"table": ("schema.toml", "draft.toml"), "wide": ("wide.toml", "wide.toml")}[layout]
    shared = [
        *(synth(file, schema), synth(file, schema, "--allow-few-units", "fuzz", "--json")),
        *(synth(file, schema, "--holdout", "0.5", "--allow-few-units", "a test"), buy_bounds(file, draft)),
        *(("init", file, "--out", "made.toml"), plan(schema, "--public", file)),
    ]
    return [*shared, buy_population(file, draft), buy_categories(file, draft)] if layout == "table" else shared


@st.composite
def table_cases(draw: st.DrawFn) -> Case:
    """A private table that does not look as it should."""
    layout, suffix = draw(st.sampled_from(LAYOUTS)), draw(st.sampled_from(SUFFIXES))
    content = csv_file(draw, layout) if suffix == "csv" else columnar_file(draw, layout, suffix)
    arguments = draw(st.sampled_from(commands(layout, suffix)))
    return Case(arguments=arguments, files={f"{layout}.{suffix}": content})
