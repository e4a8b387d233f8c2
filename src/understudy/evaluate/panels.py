"""The panels of one evaluation, made comparable: same columns, same length, same number of series to be judged."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from understudy.data import Panel, Schema, concatenate
from understudy.errors import InputError
from understudy.evaluate.comparison import Comparison, Completion
from understudy.synthesizers.base import SampleRequest
from understudy.synthesizers.independent import Independent

MIN_SERIES = 20  # below that no metric says anything


@dataclass(frozen=True, eq=False, kw_only=True)
class Panels:
    """What is compared. Synthetic series, other real series and the control are equally many.

    Attributes:
        other: Real series that nothing was learned from, judged as if they were synthetic.
        reference: Further such series, which tell closeness from copying.
        notes: What was left out, and why.
        completions: Other real series, parts of which were hidden and filled by the release; none if it can't.
    """

    real: Panel
    synthetic: Panel
    other: Panel
    reference: Panel
    independent: Panel
    notes: tuple[str, ...]
    completions: tuple[Completion, ...] = ()

    @classmethod
    def prepare(
        cls, real: Panel, synthetic: Panel, holdout: Panel | None = None, *, max_series: int, seed: int = 0
    ) -> "Panels":
        """Returns comparable panels; refuses what can't be compared.

        Args:
            holdout: Real series that the synthetic ones never saw. Without them the real series are halved, which
                is said in the notes: then the synthetic series may have been learned from both halves.
        """
        real, synthetic = _each_its_own(real), _each_its_own(synthetic)
        _check_alike(real.schema, synthetic.schema, "The synthetic series")
        for panel, name in ((real, "real"), (synthetic, "synthetic")):
            _check_enough(panel, name)
        rng, notes = np.random.default_rng(seed), []
        if holdout is None:
            real, other, reference = _parts(real, (2, 1, 1), rng)
            notes.append(
                "No holdout was given: half of the real series stand for the real side and the rest for other real "
                "series. The synthetic series may have been learned from both; copying can't be told from closeness."
            )
        else:
            holdout = _each_its_own(holdout)
            _check_alike(real.schema, holdout.schema, "The holdout")
            _check_enough(holdout, "holdout")
            _check_apart(real, holdout)
            other, reference = _parts(holdout, (1, 1), rng)
        size = min(other.num_units, reference.num_units, synthetic.num_units, max_series)
        cut = {"real": (real, max_series), "synthetic": (synthetic, size), "holdout": (other, size)}
        if size < MIN_SERIES:
            notes.append(f"Fewer than {MIN_SERIES} units stand for other real series: *like real* says little here.")
        notes += [f"{min(n, p.num_units)} of the {p.num_units} {name} units." for name, (p, n) in cut.items()]
        real, synthetic, other, reference = (
            _some(panel, number, rng)
            for panel, number in ((real, max_series), (synthetic, size), (other, size), (reference, size))
        )
        control = _independent(real, synthetic.num_series, rng)
        return cls(
            real=real, synthetic=synthetic, other=other, reference=reference, independent=control, notes=tuple(notes)
        )

    def of(self, candidate: Panel) -> Comparison:
        """Returns the comparison of the real series with a candidate."""
        filled = self.completions if candidate is self.synthetic else ()
        return Comparison(
            real=self.real, candidate=candidate, reference=self.reference, unseen=self.unseen, completions=filled
        )

    @property
    def unseen(self) -> Panel:
        """Real series an encoder may be trained on: the same object for every comparison of an evaluation."""
        return self.reference

    def splits(self, number: int, seed: int) -> Iterator[Comparison]:
        """Yields comparisons of real series with other real series: as given, then dealt again at random."""
        yield self.of(self.other)
        pool = concatenate([self.real, self.other, self.reference])
        sizes = np.cumsum([self.real.num_units, self.other.num_units])
        rng = np.random.default_rng(seed)
        for _ in range(number - 1):
            parts = (pool.take_units(rows) for rows in np.split(rng.permutation(pool.num_units), sizes))
            real, candidate, reference = parts
            yield Comparison(real=real, candidate=candidate, reference=reference, unseen=self.unseen)


def _each_its_own(panel: Panel) -> Panel:
    """Returns the panel with every series a unit of its own, where units are not who the series belong to."""
    if panel.schema.unit.kind == "entity":
        return panel
    return replace(panel, unit=np.arange(panel.num_series, dtype=np.int64), unit_ids=None)


def _parts(panel: Panel, weights: tuple[int, ...], rng: np.random.Generator) -> list[Panel]:
    """Returns the units dealt at random into parts of the given weights."""
    borders = (np.cumsum(weights)[:-1] * panel.num_units) // sum(weights)
    return [panel.take_units(rows) for rows in np.split(rng.permutation(panel.num_units), borders)]


def _some(panel: Panel, number: int, rng: np.random.Generator) -> Panel:
    if panel.num_units <= number:
        return panel
    return panel.take_units(np.sort(rng.choice(panel.num_units, number, replace=False)))


def _independent(real: Panel, num_series: int, rng: np.random.Generator) -> Panel:
    """Returns series of the control that has never seen private data."""
    context = None
    if real.context is not None:
        context = real.context[rng.integers(0, real.num_series, num_series)]
    return Independent().sample({}, real.schema, SampleRequest(num_series=num_series, rng=rng, context=context))


def _check_alike(real: Schema, other: Schema, what: str) -> None:
    """Refuses panels whose figures would mean different things."""
    for facts in ("channels", "static"):
        first, second = ([(c.name, c.kind) for c in getattr(schema, facts)] for schema in (real, other))
        if first != second:
            missing = ", ".join(sorted({n for n, _ in first} ^ {n for n, _ in second})) or "their kinds or order"
            raise InputError(f"{what} must have the real table's {facts}; they differ in: {missing}. Use one schema.")
    if real.num_steps != other.num_steps:
        raise InputError(
            f"{what} must have the real table's {real.num_steps} steps, got {other.num_steps}. "
            "Use the schema of the run, or cut the real series into windows of that length."
        )


def _check_enough(panel: Panel, name: str) -> None:
    if panel.num_units < MIN_SERIES:
        raise InputError(
            f"At least {MIN_SERIES} {name} units are expected: fewer say nothing about quality. Bring more series."
        )


def _check_apart(real: Panel, holdout: Panel) -> None:
    """Refuses a holdout that was learned from: every closeness would look like quality."""
    if _same_units(real.unit_ids, holdout.unit_ids) or _same_series(real, holdout):
        raise InputError(
            "The holdout shares units with the real series. Figures of a holdout that was learned from mean nothing: "
            "give series that the run never saw, such as those of `synth --holdout`."
        )


def _same_units(real: np.ndarray | None, holdout: np.ndarray | None) -> bool:
    return real is not None and holdout is not None and not set(real.tolist()).isdisjoint(holdout.tolist())


def _same_series(real: Panel, holdout: Panel) -> bool:
    """Whether a series that moves occurs in both; series at rest may well be alike by chance."""
    moves = [np.nanstd(panel.values, axis=1).max(axis=1, initial=0.0) > 0 for panel in (real, holdout)]
    first, second = (
        {series.tobytes() for series in panel.values[rows]} for panel, rows in zip((real, holdout), moves, strict=True)
    )
    return bool(first & second)
