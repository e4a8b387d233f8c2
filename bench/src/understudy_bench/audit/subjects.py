"""Methods as audits try them, small: every unit in every iteration, and the same code as at any other size."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from understudy.data import Continuous, Population, PrivacyUnit, Schema, Time
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.registry import METHODS

POPULATION, STEPS = 500, 8
PARTIES = ("first", "second")


def small_schema(*, parties: bool = False, context: bool = False, population: int = POPULATION) -> Schema:
    """Two channels of eight steps; at two parties, or beside a public context, where a method needs that."""
    first, second = PARTIES if parties else (None, None)
    return Schema(
        name="audited",
        population=Population(population),
        unit=PrivacyUnit(column="home"),
        time=Time(column="when", steps=STEPS),
        channels=(Continuous("load", 0.0, 20.0, party=first), Continuous("solar", 0.0, 1.0, party=second)),
        context=(Continuous("sunshine", 0.0, 1.0),) if context else (),
    )


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A method and what it is fitted on.

    Attributes:
        trained: Whether it takes gradients; their losses are random, so that a canary's is known only if it is alone.
    """

    make: Callable[[], Synthesizer]
    schema: Schema
    trained: bool = False


def _pets() -> Synthesizer:
    from understudy.synthesizers.pets.recipe import Recipe

    return METHODS["pets"](recipe=Recipe(iterations=2, population=40))  # type: ignore[call-arg]


def _pub2priv() -> Synthesizer:
    from understudy.synthesizers.pub2priv.recipe import Recipe

    small = Recipe(
        model="diffusion", iterations=3, batch=POPULATION, clipping_norm=0.1, learning_rate=1e-3, width=8, layers=1,
        heads=2, diffusion_steps=100, sampling_steps=4,
    )  # fmt: skip
    return METHODS["pub2priv"](recipe=small, knowledge="direct")  # type: ignore[call-arg]


def _dit() -> Synthesizer:
    from understudy.synthesizers.dit.recipe import Network, Recipe

    small = Network(width=16, depth=1, num_heads=2)
    return METHODS["dit"](recipe=Recipe(network=small, iterations=3, batch=POPULATION, clipping_norm=0.1))  # type: ignore[call-arg]


def _ppem() -> Synthesizer:
    return METHODS["ppem"](sensitive="mean(load)")  # type: ignore[call-arg]


def vertical(**options: object) -> Synthesizer:
    """Returns a small `vflgan-ts`; `options` go to its recipe, but for mode and scale."""
    from understudy.synthesizers.vflgan_ts.recipe import Recipe

    own = {name: options.pop(name) for name in ("mode", "scale") if name in options}
    chosen = {"iterations": 3, "batch": POPULATION, "features": 16, "clipping_norm": 0.2, **options}
    return METHODS["vflgan-ts"](recipe=Recipe(**chosen), **own)  # type: ignore[arg-type,call-arg]


def _dp_gan() -> Synthesizer:
    from understudy_bench.baselines.dp_gan import Recipe

    small = Recipe(width=8, iterations=3, batch=POPULATION, clipping_norm=0.1)
    return METHODS["dp-gan"](recipe=small)  # type: ignore[call-arg]


_GEM = {"coefficients": 1, "rounds": 2, "chosen": 2, "rows": 32, "updates": 5, "width": 8}
_GSD = {"coefficients": 1, "rows": 50, "generations": 50}
_PATE = {"teachers": 3, "rounds": 2, "questions": 4, "updates": 1, "width": 8}
_GS = {"critics": 3, "iterations": 2, "questions": 4, "updates": 1, "width": 8}
SUBJECTS: Mapping[str, Subject] = {
    "spectral": Subject(make=lambda: METHODS["spectral"](), schema=small_schema()),
    "pets": Subject(make=_pets, schema=small_schema()),
    "pub2priv": Subject(make=_pub2priv, schema=small_schema(context=True), trained=True),
    "dit": Subject(make=_dit, schema=small_schema(), trained=True),
    "ppem": Subject(make=_ppem, schema=small_schema()),
    "vflgan-ts": Subject(make=vertical, schema=small_schema(parties=True), trained=True),
    "aim": Subject(make=lambda: METHODS["aim"](coefficients=1), schema=small_schema()),  # type: ignore[call-arg]
    "gem": Subject(make=lambda: METHODS["gem"](**_GEM), schema=small_schema()),
    "private-gsd": Subject(make=lambda: METHODS["private-gsd"](**_GSD), schema=small_schema()),
    "dp-gan": Subject(make=_dp_gan, schema=small_schema(), trained=True),
    "pate-gan": Subject(make=lambda: METHODS["pate-gan"](**_PATE), schema=small_schema()),
    "gs-wgan": Subject(make=lambda: METHODS["gs-wgan"](**_GS), schema=small_schema()),
}
