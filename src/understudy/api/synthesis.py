"""A private table becomes a release.

Order: everything that can be checked without the table, then the table, then room on the disk and the signing
key, then the charge. Whatever can fail should fail before it costs something.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from understudy.api.arguments import check_names, contract_for, existing_table, require_room, unused
from understudy.api.charging import Payer, charging, check_budget, payer_of, with_budget, without_limit
from understudy.api.holdouts import Holdout, check_share, check_split, list_written, split_table
from understudy.api.progress import Shown, shown
from understudy.api.sampling import sample_in_pieces, usual_number
from understudy.data import Panel, Schema, Table
from understudy.data.channels import require_fit
from understudy.data.table import table_of
from understudy.errors import InputError, UnderstudyWarning
from understudy.planning.choices import MethodOptions, chosen, doubts, guarantee_for, spending_plan
from understudy.privacy import keys
from understudy.privacy.budget import Guarantee
from understudy.privacy.canonical import file_sha256
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import SpendingPlan
from understudy.synthesizers import Progress, Release, Synthesizer
from understudy.workers import Workers, require_workers, workers_of

_MODEL_BYTES = 64 * 2**20
_EXAMPLE = "us.synthesize(df, schema, epsilon=1, ledger='meters.ledger')"


class RunOptions(MethodOptions, total=False):
    """What `synthesize` also takes, by name; `MethodOptions` has the options of its method.

    Attributes:
        num_series: Synthetic series in a saved release; None means as many as the population.
        holdout_list: Units to keep out, or the file of an earlier run that lists them. With a share as `holdout`: the
            file to write the list of the chosen units to.
        allow_few_units: Reason for accepting fewer than 100 units; the certificate prints it.
        seed: Reproducible noise, for tests: the certificate says *not private*.
        key: Name of the signing key, made on first use.
        workers: Processes that share the work, or a `Cluster`.
        cluster: Dask scheduler to use instead, tcp://host:port.
        not_private: Whether a published form that protects no unit is run, with epsilon = inf.
    """

    num_series: int | None
    holdout_list: Any
    allow_few_units: str | None
    seed: int | None
    key: str
    workers: Workers
    cluster: str | None
    not_private: bool


def synthesize(
    data: Any,
    schema: Schema | Path | str | None = None,
    epsilon: float | None = None,
    *,
    ledger: Payer | None = None,
    method: str | Synthesizer = "spectral",
    delta: float | None = None,
    context: Any = None,
    label: str | None = None,
    holdout: Any = None,
    save_to: Path | str | None = None,
    progress: Shown = True,
    **options: Unpack[RunOptions],
) -> Release:
    """Charges the ledger, learns from a private table, and returns a release that can be shared.

    Args:
        data: The private table: a data frame, a path or a URL, a `Panel` or a `Table`.
        schema: Who is protected and what is public: a `Schema` or its file. A panel brings its own.
        epsilon: Epsilon of this run; 1 is strict, 10 is weak. None takes an equal share of the declared budget.
        ledger: Ledger of these people: a file, which the first run makes, or an open `Ledger`. None takes the one in
            the folder of the schema's file.
        method: "auto", the name of a method, or a method with its options, such as `Spectral()`.
        delta: Delta of this run; None takes the share that the ledger gives each run.
        context: Public context by time, a table or its file.
        label: Static column by whose categories samples can be asked for; None takes the schema's.
        holdout: Share of units to keep out of the run, drawn at random, such as 0.2; or the identifiers of such units.
        save_to: Directory to write the signed release and its synthetic series to; it must not exist.
        progress: Whether a bar is shown, or a function that takes the stage and the share done.

    Privacy: whatever can be refused is refused before the charge; nothing is computed from the table before it.

    Example:
        >>> from understudy import Ledger, simulate_households, synthesize
        >>> release = synthesize(simulate_households(200), epsilon=1, ledger=Ledger.scratch(), progress=False)
        >>> release.certificate.is_private
        False
    """
    check_names(options, RunOptions.__annotations__, synthesize)
    run = prepared(
        data, schema, epsilon, ledger=ledger, method=method, delta=delta, context=context, label=label,
        holdout=holdout, save_to=save_to, **options,
    )  # fmt: skip
    with shown(progress) as tell:
        return run.carry_out(tell)[0]


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run, checked as far as it can be without the table."""

    data: Any
    schema: Schema
    guarantee: Guarantee
    method: Synthesizer
    plan: SpendingPlan
    payer: Payer
    context: Any
    kept_out: Holdout
    save_to: Path | None
    public_inputs: Mapping[str, str]
    workers: Workers
    options: RunOptions

    def carry_out(self, progress: Progress) -> tuple[Release, Ledger]:
        """Reads the table, charges, learns, and writes the release where it was asked for; returns the ledger, too.

        Privacy: all that leaves the table goes through `Synthesizer.fit`, which charges first.
        """
        private, few = not self.options.get("not_private"), self.options.get("allow_few_units")
        if private:
            check_budget(self.payer, self.schema, self.plan, self.method.name)
        progress("reading", 0.0)
        seed = self.options.get("seed")
        table, held_out = split_table(self._table(), self.kept_out, np.random.default_rng(seed))
        check_split(table, held_out, allow_few_units=few is not None)
        key = self._room_and_key()
        with charging(self.payer, self.schema) as ledger:
            release = self.method.fit(
                table,
                ledger if private else without_limit(ledger, self.schema, self.guarantee, self.method.name),
                workers=self.workers,
                guarantee=self.guarantee,
                noise=None if seed is None else NoiseSource.seeded(seed),
                progress=lambda stage, share: progress(stage, 0.1 + 0.5 * share),
                public_inputs=self.public_inputs,
                overrides=None if few is None else {"few_units": few},
            )
            del table  # samples need the room
            samples = self._samples(release, progress)
            progress("writing", 0.9)
            with list_written(held_out, self.kept_out.file):
                if self.save_to is not None:
                    release = replace(release.save(self.save_to, samples=samples, key=key), source=self.save_to)
        return release, ledger

    def _table(self) -> Table:
        if isinstance(self.data, Table):
            return self.data
        if isinstance(self.data, Panel):
            return Table.of(replace(self.data, schema=self.schema))
        few = self.options.get("allow_few_units") is not None
        return table_of(self.data, self.schema, context=self.context, allow_few_units=few, workers=self.workers)

    def _room_and_key(self) -> keys.SigningKey | None:
        """Returns the signing key of a release to be saved, for which there is room on the disk."""
        if self.save_to is None:
            return None
        num_series = self.options.get("num_series") or usual_number(self.schema)
        require_fit(self.schema.unit.dtype, num_series - 1, "unit.dtype")
        require_room(self.save_to, _MODEL_BYTES + 8 * num_series * self.schema.num_steps * self.schema.num_channels)
        return keys.load_or_create(self.options.get("key", keys.DEFAULT_NAME))

    def _samples(self, release: Release, progress: Progress) -> Panel | None:
        """Returns the series that are shipped: none where they need a public context and no table of it was given."""
        follows = release.synthesizer.needs_context(release.schema)
        if self.save_to is None or (follows and self.context is None):
            return None
        return sample_in_pieces(
            release,
            self.options.get("num_series"),
            np.random.default_rng(self.options.get("seed")),  # never the one whose coins chose the holdout
            context=self.context if follows else None,
            progress=lambda stage, share: progress(stage, 0.6 + 0.3 * share),
        )


def prepared(
    data: Any,
    schema: Schema | Path | str | None,
    epsilon: float | None,
    *,
    ledger: Payer | None = None,
    method: str | Synthesizer,
    delta: float | None,
    context: Any,
    label: str | None = None,
    holdout: Any,
    save_to: Path | str | None,
    **options: Unpack[RunOptions],
) -> Run:
    """Makes every check that needs no table; warns of what public facts say against the run."""
    target = None if save_to is None else unused(Path(save_to), "save_to")
    contract, file = contract_for(data, schema, _EXAMPLE)
    existing_table(data, "data")
    followed = None if context is None else existing_table(context, "context")
    workers = workers_of(options.get("workers", 1), options.get("cluster"))
    require_workers(workers)
    few = options.get("allow_few_units")
    if few is not None and not few.strip():
        raise InputError("allow_few_units: the reason is expected; the certificate prints it.")
    contract = contract if label is None else replace(contract, label=label)
    contract.require_declared()
    payer, contract = payer_of(ledger, contract, file)
    contract = with_budget(contract, payer, epsilon)
    kept_out = Holdout.of(holdout, options.get("holdout_list"), contract, target)
    check_share(kept_out.share, contract, allow_few_units=few is not None)
    if delta is None and isinstance(ledger, Ledger):
        delta = ledger.composition.run_delta
    guarantee = guarantee_for(contract, epsilon, delta, not_private=options.get("not_private", False))
    own, _ = chosen(contract, method=method, **_of_method(options))
    plan = spending_plan(own, contract, guarantee)
    for sentence in doubts(own, contract, guarantee, options.get("task", "series")):
        warnings.warn(sentence, UnderstudyWarning, stacklevel=3)
    public = {"schema": file, "context": followed}
    return Run(
        data=data,
        schema=contract,
        guarantee=guarantee,
        method=own,
        plan=plan,
        payer=payer,
        context=followed,
        kept_out=kept_out,
        save_to=target,
        public_inputs={name: file_sha256(path) for name, path in public.items() if isinstance(path, Path)},
        workers=workers,
        options=options,
    )


def _of_method(options: RunOptions) -> MethodOptions:
    return {name: value for name, value in options.items() if name in MethodOptions.__annotations__}  # type: ignore
