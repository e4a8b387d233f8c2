"""Methods as audits try them: those of the product's tests, and the baselines as small."""

from collections.abc import Mapping

from tests.subjects import POPULATION, Subject, small_schema
from tests.subjects import SUBJECTS as PRODUCT
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.registry import METHODS


def _dp_gan() -> Synthesizer:
    from understudy_bench.baselines.dp_gan import Recipe

    small = Recipe(width=8, iterations=3, batch=POPULATION, clip_norm=0.1)
    return METHODS["dp-gan"](recipe=small)  # type: ignore[call-arg]


_GEM = {"coefficients": 1, "rounds": 2, "chosen": 2, "rows": 32, "updates": 5, "width": 8}
_GSD = {"coefficients": 1, "rows": 50, "generations": 50}
_PATE = {"teachers": 3, "rounds": 2, "questions": 4, "updates": 1, "width": 8}
_GS = {"critics": 3, "iterations": 2, "questions": 4, "updates": 1, "width": 8}
SUBJECTS: Mapping[str, Subject] = {
    **PRODUCT,
    "aim": Subject(make=lambda: METHODS["aim"](coefficients=1), schema=small_schema()),  # type: ignore[call-arg]
    "gem": Subject(make=lambda: METHODS["gem"](**_GEM), schema=small_schema()),
    "private-gsd": Subject(make=lambda: METHODS["private-gsd"](**_GSD), schema=small_schema()),
    "dp-gan": Subject(make=_dp_gan, schema=small_schema(), trained=True),
    "pate-gan": Subject(make=lambda: METHODS["pate-gan"](**_PATE), schema=small_schema()),
    "gs-wgan": Subject(make=lambda: METHODS["gs-wgan"](**_GS), schema=small_schema()),
}
