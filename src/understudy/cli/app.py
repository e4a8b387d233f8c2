"""All commands, put together."""

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer

from understudy.cli import (
    audit,
    buy,
    compare,
    complete,
    data,
    demo,
    evaluate,
    federate,
    init,
    keys,
    ledger,
    pets,
    plan,
    pretrain,
    report,
    sample,
    synth,
    verify,
)
from understudy.cli.console import Commands, Output
from understudy.errors import InputError

app = Commands(
    name="understudy",
    help="Generate synthetic time series that stand in for sensitive ones, under differential privacy.",
    epilog="Exit codes: 0 done, 1 internal error, 2 bad input, 3 missing data or extra, 4 budget refused, "
    "5 unknown signer.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("init")(init.init)
app.add_typer(buy.app, name="buy")
app.command("plan")(plan.plan)
app.add_typer(pretrain.app, name="pretrain")
app.command("synth")(synth.synth)
app.add_typer(pets.app, name="pets")
app.command("sample")(sample.sample)
app.command("impute")(complete.impute)
app.command("forecast")(complete.forecast)
app.command("evaluate")(evaluate.evaluate)
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.add_typer(audit.app, name="audit")
app.command("verify")(verify.verify)
app.command("certificate")(verify.certificate)
app.add_typer(federate.app, name="federate")
app.add_typer(ledger.app, name="ledger")
app.add_typer(keys.app, name="keys")
app.add_typer(data.app, name="data")
app.command("demo")(demo.demo)


@app.command("version")
def version(output: Output) -> None:
    """Print the version."""
    import understudy

    output.result({"version": understudy.__version__}, understudy.__version__)


def _print_version(asked: bool) -> None:
    if asked:
        version(Output())
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Generate synthetic time series that stand in for sensitive ones, under differential privacy."""


# Typer brings its own copy of click in some versions and imports it in others; this finds the class in both.
_UsageProblem: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


@cache
def _command(commands: typer.Typer) -> Any:
    """Returns the commands, put together once however often a process calls them."""
    return typer.main.get_command(commands)


def call(arguments: Sequence[str], commands: typer.Typer = app, program: str = "understudy") -> int:
    """Runs one command; a command line that makes no sense is an `InputError`."""
    try:
        code = _command(commands)(args=list(arguments), prog_name=program, standalone_mode=False)
    except _UsageProblem as problem:
        if type(problem).__name__ == "NoArgsIsHelpError":
            problem.show()
            return 2
        where = getattr(problem, "ctx", None)
        hint = f" Try `{where.command_path} --help`." if where is not None else ""
        raise InputError(problem.format_message().rstrip(".") + "." + hint) from None
    except typer.Abort:
        raise InputError("Aborted at the confirmation prompt.") from None
    return code if isinstance(code, int) else 0
