"""All commands, put together. The module of a command is loaded when it is run, so that help answers at once."""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer

from understudy.cli.console import Commands, Output
from understudy.errors import InputError

# By name: its module, which has an `app` or a function of that name, and its line of help.
_COMMANDS = {
    "init": ("data", "Write a schema draft: who is protected, what is public, and bounds to fill in."),
    "buy": ("buy", "Buy a fact for the schema with differential privacy, from the ledger."),
    "plan": ("plan", "State what a budget buys, before it is spent, and whether it buys anything."),
    "pretrain": ("pretrain", "Train the modules that a method needs, on public data."),
    "synth": ("synth", "Charge the ledger, learn, and write synthetic series with their certificate."),
    "pets": ("pets", "Run private evolution in two places: vote where the data is, evolve elsewhere."),
    "sample": ("sample", "Sample synthetic series. The release's certificate covers whatever is made from it."),
    "impute": ("sample", "Fill the gaps of a table, with an interval for every number."),
    "forecast": ("sample", "Forecast the steps after the end of each series, as quantiles."),
    "evaluate": ("evaluate", "Score synthetic series: marginals, dynamics, dependence, usefulness and copying."),
    "report": ("evaluate", "Write the page of a release or of its evaluation."),
    "compare": ("evaluate", "Compare releases on one page, or choose one of them with a charge to the ledger."),
    "audit": (
        "evaluate",
        "Attack a release: membership, singling out, linkability, inference; contradict its certificate.",
    ),
    "verify": ("verify", "Recompute epsilon, file hashes and the signature of a release."),
    "certificate": ("verify", "Print what is protected, from whom and how it was measured, on one page."),
    "federate": ("federate", "Train across several organisations, each side in a process of its own."),
    "ledger": ("ledger", "Show what was charged to a population and what is left; raise a budget."),
    "methods": ("plan", "List the methods: a line each, what they need, and their options."),
    "keys": ("keys", "Make, list, export, rotate, trust and revoke the keys that sign certificates."),
    "data": ("data", "Make example data; partition large tables."),
    "app": ("serve", "Walk from a table to a release in a browser, on this machine only."),
    "demo": ("demo", "Make invented homes, spend a budget on them, and show synthetic homes with their certificate."),
}


class _OnDemand(typer.core.TyperGroup):
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Returns the command that is named, from its module."""
        name, known, rest = super().resolve_command(ctx, args)
        return name, _loaded(name) if name in _COMMANDS else known, rest


@cache
def _loaded(name: str) -> Any:
    module = import_module(f"understudy.cli.{_COMMANDS[name][0]}")
    command = getattr(module, "serve" if name == "app" else name, None)
    if not callable(command):
        group = typer.main.get_group(module.app)
        group.help, group.no_args_is_help = _COMMANDS[name][1], True
        return group
    alone = Commands(add_completion=False)
    alone.command(name)(command)
    return typer.main.get_command(alone)


app = Commands(
    name="understudy",
    epilog="Exit codes: 0 done, 1 internal error, 2 bad input, 3 missing data or extra, 4 budget refused, "
    "5 unknown signer, 6 certificate contradicted, 7 signer revoked or expired.",
    cls=_OnDemand,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, (_, _line) in _COMMANDS.items():
    app.command(_name, help=_line)(lambda: None)


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
_command = cache(typer.main.get_command)  # put together once however often a process calls them


def call(arguments: Sequence[str], commands: typer.Typer = app, program: str = "understudy") -> int:
    """Runs one command; a command line that makes no sense is an `InputError`."""
    try:
        code: Any = _command(commands)(args=list(arguments), prog_name=program, standalone_mode=False)
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
