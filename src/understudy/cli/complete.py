"""`understudy impute` and `understudy forecast`: a release fills gaps of a table, or says what comes after its end."""

import json as json_format
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli.console import Output
from understudy.cli.options import ContextFile
from understudy.cli.places import existing, outside, require_room, unused, whole_file
from understudy.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from understudy.data import Panel, Schema
    from understudy.synthesizers import Release

_OTHERS = (
    "It holds what was observed, so it is as private as the table. Filling other people's series costs the release's "
    "units nothing. If the release was learned from these very series, the file is internal: use --training-series."
)
_OWN = (
    "Internal: the release was learned from these series, and what was observed of them is in the file. The release's "
    "guarantee does not cover it. Do not share it."
)
_Release = Annotated[Path, typer.Argument(help="Release directory of a method that fills gaps, such as dit.")]
_Data = Annotated[Path, typer.Option("--data", help="Table of the series: .parquet, .csv, .arrow, .npz or .npy.")]
_Out = Annotated[Path, typer.Option(help="File to write, with the table's columns and more; it must not exist yet.")]
_SchemaFile = Annotated[
    Path | None, typer.Option(help="Schema of the table, if its time axis is another. Default: the release's.")
]
_Samples = Annotated[int, typer.Option("--draws", min=1, help="Completions of each series, for the intervals.")]
_TrainingSeries = Annotated[
    bool, typer.Option("--training-series", help="Mark the file internal: the release was learned from these series.")
]
_Seed = Annotated[int | None, typer.Option(min=0, help="Seed to fill in the same way again. Costs no privacy.")]


@dataclass(frozen=True, kw_only=True)
class Request:
    """A table to complete, and what its result is to be called."""

    release: Path
    data: Path
    out: Path
    schema: Path | None
    context: Path | None
    training_series: bool
    seed: int | None

    def opened(self) -> "tuple[Release, Panel, np.random.Generator]":
        """Returns the release, the series and a generator; refuses what could be known to be wrong."""
        import numpy as np

        from understudy.data import Schema, read_panel
        from understudy.synthesizers import Release

        unused(outside(self.out, existing(self.release, "RELEASE"), "--out"), "--out")
        unused(self.note, "--out")
        release = Release.load(self.release)
        wanted = release.schema if self.schema is None else Schema.load(existing(self.schema, "--schema"))
        context = None if self.context is None else existing(self.context, "--context")
        given = release.public_context if context is None and self.schema is None else context
        schema = _with_gaps(wanted, given is not None)
        panel = read_panel(existing(self.data, "--data"), schema, context=given, allow_few_units=True)
        if wanted.context and not schema.context:
            panel = replace(panel, schema=replace(schema, context=wanted.context))
        require_room(self.out, 32 * max(1, panel.values.size))
        return release, panel, np.random.default_rng(self.seed)

    @property
    def note(self) -> Path:
        """The file beside it that says what it is and who may see it."""
        return self.out.with_name(f"{self.out.name}.about.json")

    def write(self, panel: "Panel", release: "Release", facts: dict[str, Any], output: Output, did: str) -> None:
        """Writes the table and the note beside it, and says so."""
        from understudy.data import write_panel

        self.out.parent.mkdir(parents=True, exist_ok=True)
        write_panel(panel, self.out)
        about = {
            "internal": self.training_series,
            "says": _OWN if self.training_series else _OTHERS,
            "method": release.synthesizer.name,
            "release": release.certificate.sentence(),
            **facts,
        }
        with whole_file(self.note) as draft:
            draft.write_text(json_format.dumps(about, indent=2) + "\n", encoding="utf-8")
        output.result({"file": str(self.out), "about": str(self.note), **about}, did, str(about["says"]))


def impute(
    output: Output,
    release: _Release,
    data: _Data,
    out: _Out,
    schema: _SchemaFile = None,
    context: ContextFile = None,
    level: Annotated[float, typer.Option(help="Probability level of the intervals.")] = 0.9,
    samples: _Samples = 39,
    training_series: _TrainingSeries = False,
    seed: _Seed = None,
) -> None:
    """Fill the gaps of a table, with an interval for every number; what was observed stays as it is."""
    request = Request(
        release=release, data=data, out=out, schema=schema, context=context, training_series=training_series, seed=seed
    )
    with output.progress() as progress:
        opened, panel, rng = request.opened()
        made = opened.impute(panel, level=level, num_draws=samples, rng=rng, progress=progress)
    facts = {"level": level, "draws": samples, "columns": "…_low and …_high: ends of the interval"}
    request.write(made.with_intervals(), opened, facts, output, f"Wrote {out}, without gaps.")


def forecast(
    output: Output,
    release: _Release,
    data: _Data,
    out: _Out,
    horizon: Annotated[int, typer.Option(help="Number of steps to forecast.")],
    schema: _SchemaFile = None,
    context: ContextFile = None,
    ahead: Annotated[Path | None, typer.Option(help="Table of public context of the forecast steps, by time.")] = None,
    quantile: Annotated[
        list[float] | None, typer.Option(help="Quantile to forecast; may be repeated. Default: 0.05, 0.5, 0.95.")
    ] = None,
    samples: _Samples = 39,
    training_series: _TrainingSeries = False,
    seed: _Seed = None,
) -> None:
    """Forecast the steps after the end of each series, as quantiles; without --ahead, for any context there."""
    from understudy.synthesizers.completing import QUANTILES

    request = Request(
        release=release, data=data, out=out, schema=schema, context=context, training_series=training_series, seed=seed
    )
    with output.progress() as progress:
        opened, panel, rng = request.opened()
        wanted = tuple(quantile or QUANTILES)
        given = None if ahead is None or horizon < 1 else _context_ahead(panel, existing(ahead, "--ahead"), horizon)
        made = opened.forecast(
            panel, horizon, quantiles=wanted, num_draws=samples, context=given, rng=rng, progress=progress
        )
    facts = {"horizon": horizon, "quantiles": list(wanted), "draws": samples}
    request.write(made.as_panel(), opened, facts, output, f"Wrote {out}, {horizon} steps ahead.")


def _context_ahead(panel: "Panel", table: Path, horizon: int) -> "np.ndarray":
    """Returns the context of the steps after the end of each series."""
    import numpy as np

    from understudy.data import read_context

    schema, ends = panel.schema, panel.lengths.astype(np.int64)
    if not schema.context or schema.time.align != "calendar":
        raise InputError("--ahead: a release with public context and series on one calendar is expected.")
    first = int(ends.min(initial=schema.num_steps))
    known = read_context(table, schema, steps=int(ends.max(initial=first)) - first + horizon, first_step=first)
    return np.asarray(known[(ends - first)[:, None] + np.arange(horizon)])


def _with_gaps(schema: "Schema", with_context: bool) -> "Schema":
    """Returns the schema that lets every channel have gaps and series be short; context only if it is given."""
    return replace(
        schema,
        channels=tuple(replace(channel, missing=True) for channel in schema.channels),
        static=tuple(replace(column, missing=True) for column in schema.static),
        time=replace(schema.time, min_steps=1),
        context=schema.context if with_context else (),
        constraints=schema.constraints if with_context else tuple(c for c in schema.constraints if not _reads(c)),
        columns=() if schema.context and not with_context else schema.columns,
    )


def _reads(constraint: Any) -> bool:
    return getattr(constraint, "context", None) is not None
