"""`understudy demo`: everything once, on invented data, in about a minute."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from understudy.cli import certificate as certificate_page
from understudy.cli import plan as planning
from understudy.cli import synth as synthesis
from understudy.cli.console import Json, Output, Quiet, bold
from understudy.cli.data import make_households
from understudy.cli.places import whole_file
from understudy.cli.verify import checked
from understudy.errors import CertificateError, InputError

_MARK = "made-by-understudy-demo.txt"
_NOTE = "Everything in this folder is invented or made from invented data. `understudy demo` replaces it.\n"


def demo(
    out: Annotated[Path, typer.Option(help="Folder to make. A former demo in it is replaced.")] = Path(
        "understudy-demo"
    ),
    n: Annotated[int, typer.Option("--n", min=100, max=100_000, help="How many homes to invent.")] = 10_000,
    epsilon: Annotated[float, typer.Option(help="What the run may cost; the example's budget is 3.")] = 1.0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make invented homes, spend a budget on them, and show synthetic homes with their certificate."""
    output = Output(json=json, quiet=quiet)
    _make_room(out)
    with _home_of_its_own(out / "home"):
        facts = _run(out, n, epsilon, output)
    output.result(facts, bold(facts["guarantee"]))


def _run(out: Path, num_homes: int, epsilon: float, output: Output) -> dict[str, Any]:
    data, release = out / "data", out / "release"
    output.say(f"$ understudy data make households --n {num_homes} --out {data}")
    table, context, schema = make_households(num_homes, data)
    output.say(f"$ understudy plan {schema} --epsilon {epsilon:g}")
    with output.progress() as progress:
        planned = planning.answer(planning.Question(schema=schema, epsilon=epsilon), progress)
    output.say(*planning.shown(planned))
    options = f"--schema {schema} --context {context} --epsilon {epsilon:g} --out {release}"
    output.say(f"$ understudy synth {table} {options}")
    request = synthesis.Request(file=table, schema=schema, context=context, epsilon=epsilon, out=release)
    with output.progress() as progress:
        made, ledger = synthesis.run(request, progress)
    output.say(f"$ understudy verify {release}")
    checks = _checks(release)
    output.say(f"  {checks}")
    page = out / "certificate.html"
    output.say(f"$ understudy certificate {release} --format html --out {page}")
    with whole_file(page) as draft:
        draft.write_text(certificate_page.page(release, certificate_page.Format.html), encoding="utf-8")
    picture = _draw(out, num_homes, made)
    output.say(f"Look at {picture}, {page} and {release}/synthetic.parquet.")
    return {
        "folder": str(out),
        "synthetic": str(release / "synthetic.parquet"),
        "certificate": str(page),
        "ledger": str(ledger.path),
        "picture": str(picture),
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


def _make_room(out: Path) -> None:
    """Removes a former demo and nothing else."""
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / _MARK).is_file())):
        raise InputError(f"--out: '{out}' exists and is not a former demo. Choose another folder.")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / _MARK).write_text(_NOTE, encoding="utf-8")


def _checks(release: Path) -> str:
    _, checks = checked(release, None)
    failed = [check.name for check in checks if not check.ok]
    if failed:
        raise CertificateError(f"The demo's own release does not hold: {', '.join(failed)}.")
    return "holds: " + ", ".join(check.name for check in checks)


def _draw(out: Path, num_homes: int, release: Any) -> Path:
    """Shows invented homes beside synthetic ones; both are public."""
    import numpy as np

    from understudy.data import simulate_households
    from understudy.report.pictures import side_by_side

    picture = out / "picture.png"
    synthetic = release.sample(num_homes, rng=np.random.default_rng())
    caption = f"A week of {num_homes} homes, learned at epsilon = {release.certificate.epsilon:.2g}"
    with whole_file(picture) as draft:
        homes = simulate_households(num_homes)
        side_by_side(homes, synthetic, draft, channel="load_kw", caption=caption, real_name="invented")
    return picture
