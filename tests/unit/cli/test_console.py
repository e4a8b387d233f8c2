"""Commands print errors of the Python API with their own options in place of its arguments."""

from pathlib import Path
from typing import Annotated

import pytest
import typer

from understudy.cli.console import Commands, Output
from understudy.errors import InputError


@pytest.mark.parametrize(
    ("message", "printed"),
    [
        ("save_to: nothing fits. Omit `num_series`.", "--out: nothing fits. Omit `--n`."),
        ("num_series, data: both are expected.", "--n, FILE: both are expected."),
        ("Internal, save_to: not an argument.", "Internal, save_to: not an argument."),
        ("save_to is long. Use `spectral`.", "save_to is long. Use `spectral`."),
    ],
)
def test_an_error_names_options_where_python_names_arguments(message: str, printed: str) -> None:
    app = Commands()

    @app.command("make")
    def make(
        output: Output,
        data: Annotated[Path, typer.Argument(metavar="FILE")],
        save_to: Annotated[Path, typer.Option("--out")],
        num_series: Annotated[int, typer.Option("--n")] = 1,
    ) -> None:
        raise InputError(message)

    with pytest.raises(InputError) as caught:
        typer.main.get_command(app)(["table.csv", "--out", "there"], standalone_mode=False)
    assert str(caught.value) == printed
