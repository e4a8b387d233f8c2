"""What is compared: panels of the same columns, length and number of series, and views of two of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from understudy.data import Panel, concatenate, windows
from understudy.data.channels import num_codes
from understudy.data.timegrid import season_steps
from understudy.errors import InputError
from understudy.evaluation.metric import Effort
from understudy.synthesizers.base import SampleRequest
from understudy.synthesizers.independent import Independent


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison:
    """What every metric looks at. Output is internal: it reads real data."""

    real: Panel  # the series that were learned from
    candidate: Panel  # what is judged: synthetic series, other real series, or a control
    reference: Panel  # further real series that the candidate never saw; distinguishes closeness from copying
    unseen: Panel  # real series that encoders may be trained on, the same for all comparisons of one evaluation
    completions: tuple["Completion", ...] = ()  # steps hidden on purpose and filled by a release that can impute
    _units: "WeakKeyDictionary[Panel, np.ndarray]" = field(default_factory=WeakKeyDictionary, init=False, repr=False)

    @cached_property
    def scale(self) -> "Scale":
        """The scale of the real series."""
        return Scale.of(self.real)

    def unit(self, panel: Panel) -> np.ndarray:
        """Returns series [series, step, feature] in the scale of the real ones, without gaps; may leave [0, 1]."""
        if panel not in self._units:
            self._units[panel] = self.scale.unit(panel)
        return self._units[panel]

    def numeric(self, panel: Panel) -> np.ndarray:
        """Returns values [series, step, numeric channel] as they are, with gaps; categories are left out."""
        return panel.values[:, :, self.scale.numeric]

    @property
    def numeric_names(self) -> list[str]:
        """Names of the channels in `numeric`."""
        return [self.real.schema.channels[place].name for place in self.scale.numeric]

    @property
    def feature_channels(self) -> list[int]:
        """Place of the channel that each feature of `unit` belongs to."""
        widths = [num_codes(channel) or 1 for channel in self.real.schema.channels]
        return [place for place, width in enumerate(widths) for _ in range(width)]

    def numeric_unit(self, panel: Panel) -> np.ndarray:
        """Returns the numeric channels of `unit`."""
        return self.unit(panel)[:, :, np.isin(self.feature_channels, self.scale.numeric)]


@dataclass(frozen=True, eq=False, kw_only=True)
class Completion:
    """What a release that can impute put in place of steps that were hidden from it. Internal: it holds real series."""

    kind: str  # how steps were hidden: a name of `understudy.data.masks.MASKS`
    truth: np.ndarray  # real series [series, step, channel], NaN where never observed
    hidden: np.ndarray  # [series, step], true where the release did not see them
    draws: np.ndarray  # [draw, series, step, channel], several fillings of the same series; read at hidden steps only


@dataclass(frozen=True, eq=False, kw_only=True)
class Scale:
    """Least and greatest real value of each channel, as the papers scale; evaluation is internal, so it may look."""

    low: np.ndarray
    width: np.ndarray
    middle: np.ndarray
    numeric: list[int]  # places of the channels that are numbers

    @classmethod
    def of(cls, real: Panel) -> "Scale":
        """Returns the scale of a panel; a channel never observed is taken from its bounds."""
        channels = real.schema.channels
        low, high, middle = (np.empty(len(channels)) for _ in range(3))
        for place, channel in enumerate(channels):
            seen = real.values[:, :, place]
            seen = seen[~np.isnan(seen)]
            low[place], high[place] = (seen.min(), seen.max()) if len(seen) else channel.bounds
            middle[place] = seen.mean(dtype=np.float64) if len(seen) else np.mean(channel.bounds)
        numeric = [place for place, channel in enumerate(channels) if num_codes(channel) is None]
        return cls(low=low, width=np.where(high > low, high - low, 1.0), middle=middle, numeric=numeric)

    def unit(self, panel: Panel) -> np.ndarray:
        """Returns [series, step, feature]: numbers scaled, categories one-hot, gaps closed by straight lines."""
        features = []
        for place, channel in enumerate(panel.schema.channels):
            codes, filled = num_codes(channel), without_gaps(panel.values[:, :, place], self.middle[place])
            if codes is None:
                features.append(((filled - self.low[place]) / self.width[place])[:, :, None])
            else:
                features.append(np.eye(codes)[np.rint(filled).astype(int)])
        return np.concatenate(features, axis=2).astype(np.float32)


def without_gaps(values: np.ndarray, otherwise: float) -> np.ndarray:
    """Returns [series, step] with gaps closed by straight lines, ends held, and empty series at `otherwise`."""
    filled, steps = np.array(values, dtype=np.float64), np.arange(values.shape[1])
    for row in np.flatnonzero(np.isnan(filled).any(axis=1)):
        seen = ~np.isnan(filled[row])
        filled[row] = np.interp(steps, steps[seen], filled[row][seen]) if seen.any() else otherwise
    return filled


MIN_SERIES = 20  # below that no metric says anything


@dataclass(frozen=True, eq=False)
class Panels:
    """What is compared. Synthetic series, other real series and the control are equally many."""

    real: Panel
    synthetic: Panel
    other: Panel  # real series that nothing was learned from, judged as if they were synthetic
    reference: Panel  # further such series, which tell closeness from copying
    independent: Panel
    notes: tuple[str, ...]
    completions: tuple[Completion, ...] = ()

    @classmethod
    def prepare(
        cls, real: Panel, synthetic: Panel, holdout: Panel | None = None, *, max_series: int, seed: int = 0
    ) -> "Panels":
        """Returns comparable panels; refuses what can't be compared. Without a holdout the real series are halved."""
        real, synthetic = _each_its_own(real), _each_its_own(synthetic)
        _check_alike(real, synthetic, "synthetic")
        _check_enough(real, "real")
        rng, notes = np.random.default_rng(seed), []
        if holdout is None:
            real, other, reference = _parts(real, (2, 1, 1), rng)
            notes.append(
                "No holdout was given: half of the real series stand for the real side and the rest for other real "
                "series. The synthetic series may have been learned from both; copying can't be told from closeness."
            )
        else:
            holdout = _each_its_own(holdout)
            _check_alike(real, holdout, "holdout")
            _check_apart(real, holdout)
            other, reference = _parts(holdout, (1, 1), rng)
        size = min(other.num_units, reference.num_units, synthetic.num_units, max_series)
        if size < MIN_SERIES:
            notes.append(f"Fewer than {MIN_SERIES} units stand for other real series: *like real* says little here.")
        cut = {"real": (real, max_series), "synthetic": (synthetic, size), "holdout": (other, size)}
        notes += [f"{min(n, p.num_units)} of the {p.num_units} {name} units." for name, (p, n) in cut.items()]
        real, synthetic, other, reference = (_some(*one, rng) for one in (*cut.values(), (reference, size)))
        context = None if real.context is None else real.context[rng.integers(0, real.num_series, synthetic.num_series)]
        request = SampleRequest(num_series=synthetic.num_series, rng=rng, context=context)
        control = Independent().sample({}, real.schema, request)  # which has never seen private data
        return cls(real, synthetic, other, reference, control, tuple(notes))

    def of(self, candidate: Panel) -> Comparison:
        """Returns the comparison of the real series with a candidate."""
        filled = self.completions if candidate is self.synthetic else ()
        return Comparison(
            real=self.real, candidate=candidate, reference=self.reference, unseen=self.reference, completions=filled
        )

    def splits(self, number: int, seed: int) -> Iterator[Comparison]:
        """Yields comparisons of real series with other real series: as given, then dealt again at random."""
        yield self.of(self.other)
        pool = concatenate([self.real, self.other, self.reference])
        sizes = np.cumsum([self.real.num_units, self.other.num_units])
        rng = np.random.default_rng(seed)
        for _ in range(number - 1):
            real, candidate, reference = map(pool.take_units, np.split(rng.permutation(pool.num_units), sizes))
            yield Comparison(real=real, candidate=candidate, reference=reference, unseen=self.reference)


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


def _check_alike(real: Panel, other: Panel, name: str) -> None:
    """Refuses panels whose figures would mean different things, and too few series."""
    for facts in ("channels", "static"):
        first, second = ([(c.name, c.kind) for c in getattr(panel.schema, facts)] for panel in (real, other))
        if first != second:
            missing = ", ".join(sorted({n for n, _ in first} ^ {n for n, _ in second})) or "their kinds or order"
            raise InputError(
                f"The {name} series must have the real table's {facts}; they differ in: {missing}. Use one schema."
            )
    if real.num_steps != other.num_steps:
        raise InputError(
            f"The {name} series must have the real table's {real.num_steps} steps, got {other.num_steps}. "
            "Use the schema of the run, or cut the real series into windows of that length."
        )
    _check_enough(other, name)


def _check_enough(panel: Panel, name: str) -> None:
    if panel.num_units < MIN_SERIES:
        raise InputError(
            f"At least {MIN_SERIES} {name} units are expected: fewer say nothing about quality. Bring more series."
        )


def _check_apart(real: Panel, holdout: Panel) -> None:
    """Refuses a holdout that was learned from: it shares ids, or a series that moves; those at rest may be alike."""
    ids = [set() if panel.unit_ids is None else set(panel.unit_ids.tolist()) for panel in (real, holdout)]
    series = [
        {row.tobytes() for row in panel.values[np.nanstd(panel.values, axis=1).max(axis=1, initial=0.0) > 0]}
        for panel in (real, holdout)
    ]
    if ids[0] & ids[1] or series[0] & series[1]:
        raise InputError(
            "The holdout shares units with the real series. Figures of a holdout that was learned from mean nothing: "
            "give series that the run never saw, such as those of `synth --holdout`."
        )


_FEWEST_DRAWN = 100
_MAX_CHANNELS = 64


def subsampled(real: Panel, synthetic: Panel, holdout: Panel | None, effort: Effort, *, seed: int = 0) -> Panels:
    """Returns comparable panels of a size that suits the effort; their notes say what was left out. Internal."""
    same = real.num_steps == synthetic.num_steps and real.schema.num_channels == synthetic.schema.num_channels
    if effort.max_values is None or not same:
        return Panels.prepare(real, synthetic, holdout, max_series=effort.max_series, seed=seed)
    given, notes = [real, synthetic, *([] if holdout is None else [holdout])], []
    if (number := real.schema.num_channels) > _MAX_CHANNELS:
        chosen = np.sort(np.random.default_rng(seed).choice(number, _MAX_CHANNELS, replace=False))
        kept = tuple(real.schema.channels[place] for place in chosen)
        schemas = [replace(panel.schema, channels=kept, constraints=(), columns=()) for panel in given]
        given = [replace(p, schema=own, values=p.values[:, :, chosen]) for p, own in zip(given, schemas, strict=True)]
        notes.append(f"{_MAX_CHANNELS} of the {number} channels, drawn at random; constraints are not judged.")
    steps = real.num_steps
    if effort.max_steps is not None and steps > effort.max_steps:
        season = season_steps(real.schema.time, steps) or 1  # windows that begin at the same hour of the day
        steps = effort.max_steps // season * season or effort.max_steps
    num_series = max(_FEWEST_DRAWN, effort.max_values // (steps * given[0].schema.num_channels))
    own = 1 if steps < real.num_steps else max(1.0, real.num_series / max(1, real.num_units))
    max_units = min(effort.max_series, max(2 * MIN_SERIES, int(num_series / own)))
    if steps < real.num_steps:
        per_unit = max(1, num_series // max(1, min(real.num_units, effort.max_series)))
        given = [_shorter(panel, steps, per_unit, seed) for panel in given]
        notes.append(
            f"The first {steps} of {real.num_steps} steps."
            if real.schema.time.variable_length
            else f"Windows of {steps} of the {real.num_steps} steps, at most {per_unit} of each unit, drawn at random: "
            "nothing longer than a window was judged."
        )
    panels = Panels.prepare(*given, max_series=max_units, seed=seed)
    return replace(panels, notes=(*notes, *panels.notes))


def _shorter(panel: Panel, steps: int, per_unit: int, seed: int) -> Panel:
    """Returns windows; of series of many lengths, of which windows would leave the short ones out, the first steps."""
    time = panel.schema.time
    if not time.variable_length:
        return windows.cut(panel, steps, steps, per_unit, np.random.default_rng(seed))
    least = None if time.min_steps is None else min(time.min_steps, steps)
    return replace(
        panel,
        schema=replace(panel.schema, time=replace(time, steps=steps, min_steps=least), columns=()),
        values=panel.values[:, :steps],
        lengths=np.minimum(panel.lengths, np.int32(steps)),
        context=None if panel.context is None else panel.context[:, :steps],
        shared_context=None if panel.shared_context is None else panel.shared_context[:steps],
        ticks=None if panel.ticks is None else panel.ticks[:, :steps],
    )
