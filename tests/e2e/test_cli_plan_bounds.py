"""`plan` answers for any schema and method within seconds of work and 1 GiB, also where the run would not fit."""

import itertools
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.commands import measured
from understudy.synthesizers import METHODS

UNITS, STEPS, CHANNELS = (500, 10_000, 1_000_000), (24, 168, 35_064), (1, 7, 500)
PROCESSOR_SECONDS = 40  # 10 on an idle machine; imports alone take several times as long on a busy one
GIBIBYTE = 2**30
CONTEXT = '[[context]]\nkind = "continuous"\nname = "warmth"\nlow = 0\nhigh = 9\n\n'
SCHEMA = """\
version = 1
name = "many"
population = {units}

[unit]
column = "person"
dtype = "string"

[time]
column = "when"
frequency = "1h"
start = "2020-01-01T00:00:00"
steps = {steps}
dtype = "string"

{context}{channels}
[budget]
epsilon = 2.0
max_runs = 8
"""
CHANNEL = '[[channels]]\nkind = "continuous"\nname = "c{number}"\nlow = 0\nhigh = 10\n\n'


@dataclass(frozen=True)
class Answer:
    """What a plan said, and what it took: processor seconds and bytes of the largest of its processes."""

    text: str
    seconds: float
    peak_bytes: int


def asked(folder: Path, method: str, units: int, steps: int, channels: int) -> Answer:
    schema = folder / "schema.toml"
    columns = "".join(CHANNEL.format(number=number) for number in range(channels))
    context = CONTEXT if method == "pub2priv" else ""
    schema.write_text(SCHEMA.format(units=units, steps=steps, channels=columns, context=context))
    more = ("--set", "sensitive=mean(c0)") if method == "ppem" else ()
    with (folder / "answer.json").open("w+") as out:
        command = ("plan", schema, "--epsilon", "1", "--method", method, *more, "--json")
        code, seconds, peak = measured(folder, *command, processor_seconds=PROCESSOR_SECONDS, stdout=out)
        out.seek(0)
        text = out.read()
    assert code in (0, 2), f"ended by {code}"
    return Answer(text, seconds, peak)


def check(folder: Path, method: str, cell: tuple[int, int, int]) -> Answer:
    found = asked(folder, method, *cell)
    facts = json.loads(found.text)
    assert facts.get("cost") or "memory" not in facts["error"]  # a method may refuse a shape; a plan may not run short
    assert found.seconds < PROCESSOR_SECONDS
    assert found.peak_bytes < GIBIBYTE
    return found


@pytest.mark.parametrize(
    ("method", "cell"),
    [
        ("spectral", (12, 35_064, 5)),  # was ended by the operating system at 21.5 GB
        ("spectral", (1000, 24, 5000)),
        ("dit", (500, 24, 1)),  # took minutes
        ("dit", (1_000_000, 35_064, 500)),
        ("ppem", (1_000_000, 35_064, 500)),
    ],
)
def test_a_plan_takes_seconds_and_less_than_a_gibibyte(method: str, cell: tuple[int, int, int], tmp_path: Path) -> None:
    assert "cost" in json.loads(check(tmp_path, method, cell).text)


def test_a_plan_says_where_the_run_would_not_fit(tmp_path: Path) -> None:
    facts = json.loads(check(tmp_path, "spectral", (1_000_000, 35_064, 500)).text)
    assert facts["fits"] is False
    assert facts["seconds"] is None
    assert "would not fit" in facts["cost"]
    assert "GiB" in facts["cost"]


@pytest.mark.slow
@pytest.mark.parametrize("method", sorted(METHODS.own))
@pytest.mark.parametrize("cell", list(itertools.product(UNITS, STEPS, CHANNELS)))
def test_every_method_answers_for_every_shape(
    method: str, cell: tuple[int, int, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = check(tmp_path, method, cell)
    facts = json.loads(found.text)
    with capsys.disabled():
        figures = f"{found.seconds:.1f} | {found.peak_bytes / 2**20:.0f}"
        print(f"| {method} | {' | '.join(map(str, cell))} | {figures} | {facts.get('cost') or facts['error']} |")
