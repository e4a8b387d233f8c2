"""Methods that train, small enough for tests: every unit in every iteration, the same code as at any other size."""

from collections.abc import Callable, Mapping

from understudy.data import Continuous, Population, PrivacyUnit, Schema, Time
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.registry import METHODS

_UNITS = 500


def small_schema(*, parties: bool = False, context: bool = False) -> Schema:
    """Two channels of eight steps; at two parties, or beside a public context, where a method needs that."""
    first, second = ("first", "second") if parties else (None, None)
    return Schema(
        name="audited",
        population=Population(_UNITS),
        unit=PrivacyUnit(column="home"),
        time=Time(column="when", steps=8),
        channels=(Continuous("load", 0.0, 20.0, party=first), Continuous("solar", 0.0, 1.0, party=second)),
        context=(Continuous("sunshine", 0.0, 1.0),) if context else (),
    )


def _pub2priv() -> Synthesizer:
    from understudy.synthesizers.pub2priv.recipe import Recipe

    small = Recipe(
        model="diffusion", iterations=3, batch=_UNITS, clipping_norm=0.1, learning_rate=1e-3, width=8, layers=1,
        heads=2, diffusion_steps=100, sampling_steps=4,
    )  # fmt: skip
    return METHODS["pub2priv"](recipe=small, knowledge="direct")  # type: ignore[call-arg]


def _dit() -> Synthesizer:
    from understudy.synthesizers.dit.recipe import Network, Recipe

    small = Network(width=16, depth=1, num_heads=2)
    return METHODS["dit"](recipe=Recipe(network=small, iterations=3, batch=_UNITS, clipping_norm=0.1))  # type: ignore[call-arg]


def _vertical() -> Synthesizer:
    from understudy.synthesizers.vflgan_ts.recipe import Recipe

    small = Recipe(iterations=3, batch=_UNITS, features=16, clipping_norm=0.2)
    return METHODS["vflgan-ts"](recipe=small)  # type: ignore[call-arg]


TRAINED: Mapping[str, tuple[Callable[[], Synthesizer], Schema]] = {
    "pub2priv": (_pub2priv, small_schema(context=True)),
    "dit": (_dit, small_schema()),
    "vflgan-ts": (_vertical, small_schema(parties=True)),
}
