"""What may leave the building: arrays made from noisy statistics, the schema, and the certificate."""

import dataclasses
import html
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as dump_tensors

from understudy import display
from understudy.data import Panel, Schema, write_panel
from understudy.data.panel import broadcast_context
from understudy.data.type_checks import require_argument, require_path
from understudy.errors import InputError, ReleaseError, UnderstudyError
from understudy.files import whole_folder
from understudy.privacy import canonical, keys
from understudy.privacy.budget import at_most
from understudy.privacy.certificate import FILE_NAME, Certificate, file_hashes, is_as_signed, seal
from understudy.synthesizers import completing
from understudy.synthesizers.sampling import Completer, CompletionRequest, SampleRequest, cautions, first_steps
from understudy.synthesizers.wanted import Rule, Wanted

if TYPE_CHECKING:
    from understudy.synthesizers.base import Synthesizer

FORMAT = 1
PUBLIC_CONTEXT = "public_context"  # name of the array that holds the public context of the fit
MODEL_FILE, FACTS_FILE = "model.safetensors", "release.json"
SCHEMA_FILE, DATA_FILE = "schema.toml", "synthetic.parquet"


@dataclass(frozen=True, eq=False, kw_only=True)
class Release:
    """A fitted method. Holds no private data and no reference to any; whatever is made from it is free.

    Attributes:
        source: The directory it was read from; None straight after a fit.
    """

    synthesizer: "Synthesizer"
    schema: Schema
    arrays: dict[str, np.ndarray]
    certificate: Certificate
    source: Path | None = None

    def sample(
        self,
        num_series: int,
        *,
        rng: np.random.Generator | None = None,
        context: np.ndarray | None = None,
        label: str | int | None = None,
        start: str | None = None,
        steps: int | None = None,
        where: Mapping[str, Any] | None = None,
        rule: Rule | None = None,
    ) -> Panel:
        """Returns synthetic series in the schema's columns and units of measure.

        Series that do not satisfy `where` and `rule` are left out and others drawn, so what both leave is as the
        release has it. `acceptance` says how many that are.

        Args:
            num_series: How many; chosen by the caller and never tied to the number of private series.
            context: Public context to respond to, [step, context] for all or [series, step, context].
            label: A category of the label column; None draws labels in their released proportions.
            start: Timestamp of the first step, if the context belongs to another time.
            steps: Length of the series, if it is another than the one learned from; longer ones only of a method that
                `continues` its declared season.
            where: Wanted values of static columns, the label included: a category or number, or a pair (low, high).
            rule: Takes a panel of synthetic series and returns True for each that is wanted.
        """
        require_argument(num_series, int, "num_series", "Write sample(500).")
        require_argument(rng, np.random.Generator | None, "rng", "Write rng=np.random.default_rng(7).")
        require_argument(steps, int | None, "steps", "Write a number of steps.")
        if num_series < 1:
            raise InputError(f"num_series must be at least 1, got {num_series}.")
        wanted = Wanted.of(self.schema, where, rule, label)
        if wanted.selects and context is not None and np.ndim(context) == 3:
            raise InputError(
                "context: one for all series is expected with where or rule. Select the series afterwards."
            )
        rng = rng or np.random.default_rng()
        draw = partial(self._drawn, rng=rng, context=context, label=wanted.label, start=start, steps=steps)
        return wanted.select(num_series, draw) if wanted.selects else draw(num_series)

    def acceptance(
        self,
        *,
        where: Mapping[str, Any] | None = None,
        rule: Rule | None = None,
        of: int = 2_000,
        rng: np.random.Generator | None = None,
    ) -> float:
        """Returns the share of `of` synthetic series, of their label where `where` names one, that satisfy both."""
        wanted = Wanted.of(self.schema, where, rule, None)
        return float(wanted.keep(self.sample(of, rng=rng, label=wanted.category)).mean())

    def _drawn(
        self,
        num_series: int,
        *,
        rng: np.random.Generator,
        context: np.ndarray | None,
        label: int | None,
        start: str | None,
        steps: int | None,
    ) -> Panel:
        schema = self.schema if start is None else replace(self.schema, time=replace(self.schema.time, start=start))
        longer = steps is not None and steps > schema.num_steps
        if steps is not None and steps < 1:
            raise InputError(f"steps: a number from 1 is expected, got {steps}.")
        if longer and not self.synthesizer.continues:
            raise InputError(
                f"steps: at most the {schema.num_steps} steps that '{self.synthesizer.name}' learned are expected, got "
                f"{steps}. Sample shorter series, or use `spectral`, which continues a declared season."
            )
        if longer and schema.context and context is None:
            raise InputError(f"context: the public context of all {steps} steps is expected. Bring it with the steps.")
        asked = replace(schema, time=replace(schema.time, steps=steps or 0), columns=()) if longer else schema
        request = SampleRequest(
            num_series=num_series,
            rng=rng,
            context=_context_for(self.public_context if context is None else context, asked, num_series),
            fit_context=self.public_context,
            label=label,
            steps=asked.num_steps,
        )
        with _damage_told(self.source):
            drawn = self.synthesizer.sample(self.arrays, schema, request)
        return drawn if longer or steps is None else first_steps(drawn, steps)

    def impute(self, panel: Panel, **options: Any) -> completing.Completed:
        """Returns a given panel with its gaps filled and an interval for each; see `completing.impute`."""
        require_argument(panel, Panel, "impute: panel", "Read the table first: read_panel(table, schema).")
        return completing.impute(self, panel, **options)

    def forecast(self, panel: Panel, horizon: int, **options: Any) -> completing.Forecast:
        """Returns quantiles of the steps after the end of given series; see `completing.forecast`."""
        require_argument(panel, Panel, "forecast: panel", "Read the table first: read_panel(table, schema).")
        require_argument(horizon, int, "horizon", "Write a number of steps.")
        return completing.forecast(self, panel, horizon, **options)

    def __repr__(self) -> str:
        shown = self.certificate
        cost = f"{shown.status}: epsilon = {at_most(shown.epsilon)} at delta = {at_most(shown.delta)}"
        return f"Release({self.synthesizer.name}; {self.schema}; {cost})"

    def _repr_html_(self) -> str:
        source = "not saved yet" if self.source is None else str(self.source)
        facts = {"method": self.synthesizer.name, "series": str(self.schema), "saved": source}
        facts["more series"] = "release.sample(1000), free and as often as you like"
        table = display.html_table(("", "release"), facts.items())
        return f"<p><strong>{html.escape(self.certificate.sentence())}</strong></p>{table}"

    @property
    def completes(self) -> bool:
        """Whether it fills gaps and continues series."""
        return isinstance(self.synthesizer, Completer)

    def complete(self, gaps: CompletionRequest) -> np.ndarray:
        """Returns one filling of series that are as long as those that were learned from."""
        method: object = self.synthesizer
        if not isinstance(method, Completer):
            name = self.synthesizer.name
            raise InputError(f"A release of '{name}' generates series and fills no gaps. Use one of `dit`.")
        with _damage_told(self.source):
            return method.complete(self.arrays, self.schema, gaps)

    @property
    def public_context(self) -> np.ndarray | None:
        """The public context [step, context] of the fit, which sampling uses unless given another."""
        held = self.arrays.get(PUBLIC_CONTEXT)
        return None if held is None or held.size == 0 else held

    def save(
        self, directory: str | Path, *, samples: Panel | None = None, key: "keys.SigningKey | None" = None
    ) -> "Release":
        """Writes the release directory whole or not at all, with synthetic series to ship, and signs the certificate.

        `key` is whose signature it carries; None takes the holder's own, made on first use.
        """
        require_path(directory, "save: directory")
        target = unused_directory(directory)
        try:
            with whole_folder(target) as draft:
                self.write_files(draft, samples)
                told = replace(self.certificate, findings=() if samples is None else cautions(samples))
                certificate = seal(told, draft, key or keys.load_or_create())
        except OSError as problem:
            raise ReleaseError(
                f"'{target}' could not be written ({problem.strerror}). Nothing half-written was left."
            ) from problem
        return replace(self, certificate=certificate)

    def write_files(self, folder: Path, samples: Panel | None = None) -> None:
        """Writes all files but the certificate."""
        contiguous = {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}
        (folder / MODEL_FILE).write_bytes(dump_tensors(contiguous))
        options = dataclasses.asdict(self.synthesizer)
        facts = {"format": FORMAT, "method": self.synthesizer.name, "options": options}
        (folder / FACTS_FILE).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        self.schema.save(folder / SCHEMA_FILE)
        if samples is not None:
            write_panel(samples, folder / DATA_FILE, with_context=True)

    @classmethod
    def load(cls, directory: str | Path) -> "Release":
        """Reads a release directory; every file has to be the one its certificate names."""
        require_path(directory, "Release.load")
        folder = Path(directory)
        if not folder.is_dir() or not (folder / FILE_NAME).is_file():
            raise ReleaseError(f"'{folder}' is not a release: a directory with {FILE_NAME} is expected.")
        certificate = Certificate.load(folder / FILE_NAME)
        if not is_as_signed(certificate):
            raise _damaged(folder, "its certificate was edited after it was signed")
        found = file_hashes(folder)
        for name in (MODEL_FILE, FACTS_FILE, SCHEMA_FILE):
            if found.get(name) != certificate.files.get(name) or name not in found:
                raise _damaged(folder, f"{name} is not the file its certificate names")
        return cls(
            synthesizer=_synthesizer(folder),
            schema=Schema.load(folder / SCHEMA_FILE),
            arrays=_arrays(folder),
            certificate=certificate,
            source=folder,
        )


_USUAL_NUMBER, _MOST_USUAL = 1_000, 4_000  # series: where no population is declared; where it is large


def usual_sample(release: Release, seed: int) -> Panel:
    """Returns series to judge a release by: as many as its population, at most 4,000; a public number."""
    if release.synthesizer.needs_context(release.schema) and release.public_context is None:
        raise InputError(
            "synthetic: this release answers to public context. Sample it first, and pass the series: "
            "synthetic=release.sample(500, context=context)."
        )
    number = min(_MOST_USUAL, release.schema.population.size or _USUAL_NUMBER)
    return release.sample(number, rng=np.random.default_rng(seed))


def unused_directory(directory: str | Path) -> Path:
    """Returns the directory of a release to be; refuses one that is there: releases are never overwritten."""
    target = Path(directory)
    if target.exists() or target.is_symlink():
        raise ReleaseError(f"'{target}' exists already. Releases are never overwritten: choose another directory.")
    return target


def _synthesizer(folder: Path) -> "Synthesizer":
    from understudy.synthesizers.registry import METHODS

    try:
        facts: dict[str, Any] = canonical.loads((folder / FACTS_FILE).read_bytes())
        if facts["format"] != FORMAT or facts["method"] not in METHODS:
            raise ReleaseError(f"'{folder}' was written by another version of Understudy. Use that one to read it.")
        return METHODS[facts["method"]](**facts["options"])
    except ReleaseError:
        raise
    except (ValueError, KeyError, TypeError) as problem:
        raise _damaged(folder, f"{FACTS_FILE} can't be read") from problem


def _arrays(folder: Path) -> dict[str, np.ndarray]:
    try:
        return load_tensors((folder / MODEL_FILE).read_bytes())
    except (SafetensorError, KeyError, TypeError, ValueError) as problem:
        raise _damaged(folder, f"{MODEL_FILE} can't be read") from problem


def _damaged(source: Path, what: str) -> ReleaseError:
    return ReleaseError(f"'{source}' is damaged: {what}. Download the release again.")


@contextmanager
def _damage_told(source: Path | None) -> Iterator[None]:
    """Report as damage what a release directory, which anyone may have written, makes of sampling."""
    if source is None:
        yield
        return
    try:
        with np.errstate(all="ignore"):
            yield
    except UnderstudyError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as problem:
        raise _damaged(source, f"{MODEL_FILE} does not hold what its method draws from") from problem


def _context_for(context: np.ndarray | None, schema: Schema, num_series: int) -> np.ndarray | None:
    if context is None:
        return None
    with np.errstate(over="ignore"):  # what float32 can't hold becomes infinite, and is refused
        try:
            given = np.asarray(context, dtype=np.float32)
        except (TypeError, ValueError):
            raise InputError(
                "context: an array of numbers is expected. Read a table with read_context first."
            ) from None
    expected = (schema.num_steps, len(schema.context))
    if given.shape[-2:] != expected or given.ndim not in (2, 3) or not np.isfinite(given).all():
        raise InputError(
            f"context: finite numbers of shape [{expected[0]} steps, {expected[1]} channels] are expected "
            f"({', '.join(channel.name for channel in schema.context) or 'this schema declares no context'})."
        )
    if given.ndim == 3 and given.shape[0] != num_series:
        raise InputError(f"context: one per series is expected, {num_series} in all, got {given.shape[0]}.")
    return given if given.ndim == 3 else broadcast_context(given, num_series)
