"""`understudy demo`: everything once, on invented data, in about a minute."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from understudy.api import scoring
from understudy.api.arguments import write
from understudy.cli.console import Output, Progress, bold
from understudy.cli.evaluate import record_of
from understudy.errors import InputError
from understudy.evaluation import judging
from understudy.evaluation.metric import metrics_of
from understudy.extras import require_extra
from understudy.privacy.certificate import Certificate

_SLOW = {"general.trees_raw", "general.trees_summary", "general.forecast_skill", "general.copied_warped"}
_MARK = "made-by-understudy-demo.txt"
_NOTE = "Everything in this folder is invented or made from invented data. `understudy demo` replaces it.\n"


def demo(
    output: Output,
    out: Annotated[Path, "Folder to make; an earlier demo in it is replaced."] = Path("understudy-demo"),
    n: Annotated[int, typer.Option("--n", min=100, max=100_000, help="Number of homes to invent.")] = 10_000,
    epsilon: Annotated[float, "Epsilon of the run; the example's budget is 3."] = 1.0,
) -> None:
    """Make invented homes, spend a budget on them, and show synthetic homes with their certificate."""
    for package in ("sklearn", "matplotlib", "jinja2"):
        require_extra(package, by="demo")
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / _MARK).is_file())):
        raise InputError(f"--out: '{out}' exists and is not a former demo. Choose another folder.")
    shutil.rmtree(out, ignore_errors=True)  # a former demo, and nothing else
    out.mkdir(parents=True)
    (out / _MARK).write_text(_NOTE, encoding="utf-8")
    data, release, holder, page = out / "data", out / "release", out / "holder.pub", out / "certificate.html"
    report, figures = out / "report.html", out / "figures"
    table, context, schema = (data / name for name in ("households.parquet", "context.parquet", "schema.toml"))
    with _home(out / "home"):  # nothing of the user's is touched
        _run(output, "data", "make", "households", "--n", n, "--out", data)
        _run(output, "plan", schema, "--epsilon", f"{epsilon:g}")
        files = (table, "--schema", schema, "--context", context)
        _run(output, "synth", *files, "--epsilon", f"{epsilon:g}", "--out", release)
        _run(output, "keys", "export", "--out", holder)  # as a data holder would hand it out
        _run(output, "verify", release, "--trust", holder)  # the demo's own key, which no other home knows
        _run(output, "certificate", release, "--format", "html", "--out", page)
        output.say(f"$ understudy evaluate {release} --real {table} --context {context}  # a few measures")
        with output.progress() as progress:
            _judge(release, table, context, report, figures, progress)
    output.say(f"Open {report}, {page}, {release}/synthetic.parquet, and the figures in {figures}.")
    certificate = Certificate.load(release)
    places = {"folder": out, "synthetic": release / "synthetic.parquet", "certificate": page, "report": report}
    places |= {"ledger": data / "households.ledger", "figures": figures}
    found = {"epsilon": certificate.epsilon, "status": certificate.status, "guarantee": certificate.sentence()}
    output.result(places | found, bold(certificate.sentence()))


@contextmanager
def _home(folder: Path) -> Iterator[None]:
    """Makes `folder` the home of keys and registry within the block."""
    before = os.environ.get("UNDERSTUDY_HOME")
    os.environ["UNDERSTUDY_HOME"] = str(folder.absolute())
    try:
        yield
    finally:
        os.environ.pop("UNDERSTUDY_HOME")
        if before is not None:
            os.environ["UNDERSTUDY_HOME"] = before


def _run(output: Output, *words: object) -> None:
    """Shows a command and runs it; for a program or with `--quiet`, without a word."""
    from understudy.cli.app import call

    arguments = [str(word) for word in words]
    output.say(f"$ understudy {' '.join(arguments)}")
    call([*arguments, *(["--quiet"] if output.json or output.quiet else [])])


def _judge(release: Path, table: Path, context: Path, report: Path, figures: Path, progress: Progress) -> None:
    """Writes the report, of measures that take seconds, and its figures; `understudy evaluate` runs all measures."""
    from understudy.report.page import drawings, render

    judged, real, _ = scoring.read(release, table, {"context": context}, progress)
    metrics = tuple(metric for metric in metrics_of(("general",)) if metric.name not in _SLOW)
    card = judging.evaluate(judged.subject, real, synthetic=judged.panel, metrics=metrics, progress=progress)
    record = record_of(card)
    write(report, render(record))
    figures.mkdir()
    for drawing in drawings(record):
        drawing.save(figures)
