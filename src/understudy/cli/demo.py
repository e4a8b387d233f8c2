"""`understudy demo`: everything once, on invented data, in about a minute."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from understudy.cli import plan as plan_command
from understudy.cli import synth as synthesis
from understudy.cli.console import Output, Progress, bold
from understudy.cli.data import make_households
from understudy.cli.panels import RealTables, read_real, read_release
from understudy.cli.places import whole_file
from understudy.cli.verify import checked, page_of
from understudy.errors import CertificateError, InputError
from understudy.extras import require_extra

_REPORT_SERIES = 1_000
_SLOW = {"general.trees_raw", "general.trees_summary", "general.forecast_skill", "general.copied_warped"}
_FIGURES = "figures"
_MARK = "made-by-understudy-demo.txt"
_NOTE = "Everything in this folder is invented or made from invented data. `understudy demo` replaces it.\n"


def demo(
    output: Output,
    out: Annotated[Path, typer.Option(help="Folder to make; an earlier demo in it is replaced.")] = Path(
        "understudy-demo"
    ),
    n: Annotated[int, typer.Option("--n", min=100, max=100_000, help="Number of homes to invent.")] = 10_000,
    epsilon: Annotated[float, typer.Option(help="Epsilon of the run; the example's budget is 3.")] = 1.0,
) -> None:
    """Make invented homes, spend a budget on them, and show synthetic homes with their certificate."""
    for package in ("sklearn", "matplotlib", "jinja2"):
        require_extra(package, by="demo")
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / _MARK).is_file())):
        raise InputError(f"--out: '{out}' exists and is not a former demo. Choose another folder.")
    shutil.rmtree(out, ignore_errors=True)  # a former demo, and nothing else
    out.mkdir(parents=True)
    (out / _MARK).write_text(_NOTE, encoding="utf-8")
    with _home_of_its_own(out / "home"):
        facts = _run(out, n, epsilon, output)
    output.result(facts, bold(facts["guarantee"]))


def _run(out: Path, num_homes: int, epsilon: float, output: Output) -> dict[str, Any]:
    from understudy import planning
    from understudy.privacy import keys

    data, release = out / "data", out / "release"
    output.say(f"$ understudy data make households --n {num_homes} --out {data}")
    table, context, schema = make_households(num_homes, data)
    output.say(f"$ understudy plan {schema} --epsilon {epsilon:g}")
    with output.progress() as progress:
        made_plan = planning.plan(schema, epsilon=epsilon, progress=progress)
    output.say(*plan_command.shown(made_plan))
    options = f"--schema {schema} --context {context} --epsilon {epsilon:g} --out {release}"
    output.say(f"$ understudy synth {table} {options}")
    choice = planning.MethodChoice()
    request = synthesis.Request(file=table, schema=schema, context=context, epsilon=epsilon, out=release, choice=choice)
    made, left, _ = synthesis.run(request, output)
    holder = out / "holder.pub"
    keys.export(keys.load_or_create().public, holder)  # as a data holder would hand it out
    output.say(f"$ understudy verify {release} --trust {holder}  # the demo's own key, which no other home knows")
    _, checks = checked(release, [str(holder)])
    failed = [check.name for check in checks if not check.ok]
    if failed:
        raise CertificateError(f"The demo's own release does not hold: {', '.join(failed)}.")
    output.say("  holds: " + ", ".join(check.name for check in checks))
    page = out / "certificate.html"
    output.say(f"$ understudy certificate {release} --format html --out {page}")
    with whole_file(page) as draft:
        draft.write_text(page_of(release, "html"), encoding="utf-8")
    output.say(f"$ understudy evaluate {release} --real {table} --context {context} --suite general  # a few measures")
    with output.progress() as progress:
        report = _report(out, RealTables(real=table, context=context), release, progress)
    output.say(f"Open {report}, {page}, {release}/synthetic.parquet, and the figures in {out / _FIGURES}.")
    return {
        "folder": str(out),
        "synthetic": str(release / "synthetic.parquet"),
        "certificate": str(page),
        "ledger": left["file"],
        "figures": str(out / _FIGURES),
        "report": str(report),
        "epsilon": made.certificate.epsilon,
        "status": made.certificate.status,
        "guarantee": made.certificate.sentence(),
    }


@contextmanager
def _home_of_its_own(folder: Path) -> Iterator[None]:
    """Keys and the registry of ledgers go into the demo's folder: nothing real is touched."""
    before = os.environ.get("UNDERSTUDY_HOME")
    os.environ["UNDERSTUDY_HOME"] = str(folder.absolute())
    try:
        yield
    finally:
        del os.environ["UNDERSTUDY_HOME"]
        if before is not None:
            os.environ["UNDERSTUDY_HOME"] = before


def _report(out: Path, tables: RealTables, release: Path, progress: Progress) -> Path:
    """Writes the report, of measures that take seconds, and its figures; `understudy evaluate` runs all measures."""
    from dataclasses import replace

    from understudy.cli.ledger import facts_of_payer
    from understudy.evaluate.metric import QUICK, metrics_of
    from understudy.evaluate.panels import Panels
    from understudy.evaluate.scorecard import evaluate
    from understudy.report.page import drawings, render
    from understudy.report.record import make_record

    judged = read_release(release, 0, progress)
    assert judged.release is not None
    real, _ = read_real(tables, judged)
    panels = Panels.prepare(real, judged.panel, max_series=_REPORT_SERIES)
    metrics = [metric for metric in metrics_of(("general",)) if metric.name not in _SLOW]
    card = evaluate(panels, metrics, replace(QUICK, max_series=_REPORT_SERIES), progress=progress)
    payer = facts_of_payer(judged.release.certificate)
    record = make_record(judged.release, judged.panel, panels, card, ledger=payer)
    target = out / "report.html"
    with whole_file(target) as draft:
        draft.write_text(render(record), encoding="utf-8")
    (out / _FIGURES).mkdir()
    for drawing in drawings(record):
        drawing.save(out / _FIGURES)
    return target
