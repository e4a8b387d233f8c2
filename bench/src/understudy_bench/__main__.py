"""`understudy-bench`, also as `python -m understudy_bench`."""

import sys
from collections.abc import Sequence

from understudy.cli.main import main as guarded
from understudy_bench import cli
from understudy_bench.run_all import run_all

cli.app.command("all")(run_all)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command of `understudy-bench` and returns its exit code."""
    return guarded(arguments, cli.app, "understudy-bench")


if __name__ == "__main__":
    sys.exit(main())
