"""What checks share: fitting, expecting, and the view from outside."""

import contextlib
import gc
import io
import logging
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from understudy.data import Continuous, Panel, Schema, constraints
from understudy.errors import UnderstudyError
from understudy.privacy.budget import Guarantee
from understudy.privacy.keys import SigningKey
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.contract.panels import make_panel, plain_schema, rich_schema, shared_context
from understudy.synthesizers.release import PUBLIC_CONTEXT, Release

BUDGET = Guarantee(2.0, 2e-6)  # of a ledger
ONE_RUN = Guarantee(1.0, 1e-6)  # half of it


def new_ledger(max_runs: int = 1) -> Ledger:
    """A ledger with the whole budget, in memory."""
    return Ledger.in_memory(BUDGET, max_runs=max_runs)


def fit(synthesizer: Synthesizer, panel: Panel, noise: NoiseSource | None = None) -> Release:
    """Fits with all of a new budget."""
    return synthesizer.fit(panel, new_ledger(), noise=noise)


_RELEASED: dict[tuple[str, bool], tuple[Synthesizer, Release]] = {}


def released(synthesizer: Synthesizer, *, plain: bool = False) -> Release:
    """Returns a release that checks may read and not change: one per method and schema, fitted on first use."""
    key = (synthesizer.name, plain)
    held = _RELEASED.get(key)
    if held is None or type(held[0]) is not type(synthesizer) or held[0] != synthesizer:
        held = synthesizer, fit(synthesizer, make_panel(plain_schema() if plain else rich_schema()))
        _RELEASED[key] = held
    return held[1]


def new_key() -> SigningKey:
    """A key that signs and is kept nowhere."""
    return SigningKey("contract", Ed25519PrivateKey.generate())


def expect(condition: object, message: str) -> None:
    """Raises AssertionError unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def expect_raises(kind: type[UnderstudyError], attempt: Callable[[], Any]) -> None:
    """Expects one kind of error; any other is a failure too."""
    try:
        attempt()
    except kind:
        return
    except Exception as problem:
        found = f"{type(problem).__name__}: {problem}"
        raise AssertionError(f"{kind.__name__} is expected, not {found}") from problem
    raise AssertionError(f"{kind.__name__} is expected.")


def expect_valid_samples(synthesizer: Synthesizer, panel: Panel) -> None:
    """Fits, samples, and expects what the schema describes."""
    context = shared_context(panel.schema) if panel.schema.context else None
    expect_valid(fit(synthesizer, panel).sample(25, context=context))


def expect_valid(panel: Panel) -> None:
    """Expects series that their own schema describes."""
    schema: Schema = panel.schema
    fewest = schema.time.min_steps or schema.num_steps
    declared = (panel.lengths >= fewest) & (panel.lengths <= schema.num_steps)
    expect(declared.all(), "A length is not declared.")
    inside = np.arange(schema.num_steps) < panel.lengths[:, None]
    columns = [(channel, panel.values[:, :, place][inside]) for place, channel in enumerate(schema.channels)]
    columns += [(column, panel.static[:, place]) for place, column in enumerate(schema.static)]
    for column, values in columns:
        known = values[~np.isnan(values)]
        low, high = (np.float32(bound) for bound in column.bounds)
        expect(column.missing or len(known) == len(values), f"'{column.name}' has undeclared gaps.")
        expect(((known >= low) & (known <= high)).all(), f"'{column.name}' leaves its bounds.")
        whole = isinstance(column, Continuous) or (known == np.rint(known)).all()
        expect(whole, f"'{column.name}' is not whole.")
    broken = constraints.violations(panel.values, schema, context=panel.context)
    expect(not broken, f"Constraints are broken: {broken}.")
    expect(not panel.private, "Synthetic series are called private.")


def expect_same_view(synthesizer: Synthesizer, first: Panel, second: Panel) -> None:
    """Expects that only numbers differ between runs on two neighbouring panels."""
    one, other = outside_view(synthesizer, first), outside_view(synthesizer, second)
    for name in one:
        expect(one[name] == other[name], f"The {name} tell whether one unit is there.")


def outside_view(synthesizer: Synthesizer, panel: Panel) -> dict[str, Any]:
    """Everything but numbers that an outsider can see of a run."""
    calls: list[tuple[str, float]] = []
    with _everything_printed() as printed, tempfile.TemporaryDirectory() as folder:
        release = synthesizer.fit(panel, new_ledger(), progress=lambda *call: calls.append(call))
        release.save(Path(folder) / "release", key=new_key())
        sizes = {path.name: path.stat().st_size for path in sorted((Path(folder) / "release").iterdir())}
    return {
        "shapes": {name: (array.shape, array.dtype.str) for name, array in release.arrays.items()},
        "files": {name: size for name, size in sizes.items() if name != "certificate.json"},
        "public context": release.arrays[PUBLIC_CONTEXT].tobytes(),
        "events": (release.certificate.events, release.certificate.executed, release.certificate.epsilon),
        "progress calls": calls,
        "printed lines": printed(),
    }


@contextlib.contextmanager
def _everything_printed() -> Iterator[Callable[[], str]]:
    """Collects standard output, standard error and log records."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            yield stream.getvalue
    finally:
        root.removeHandler(handler)


def reachable(release: Release) -> list[Any]:
    """Every object that a release leads to, without walking into modules, classes and functions."""
    seen: dict[int, Any] = {}
    waiting: list[Any] = [release]
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, type | type(gc) | type(reachable)):
            continue
        seen[id(item)] = item
        waiting += gc.get_referents(item)
        waiting += [item.base] if isinstance(item, np.ndarray) and item.base is not None else []
    return list(seen.values())
