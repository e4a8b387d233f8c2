"""Every baseline keeps the contract of a method."""

from collections.abc import Callable

import pytest
from understudy_bench.baselines.aim import Aim
from understudy_bench.baselines.dp_gan import DpGan
from understudy_bench.baselines.dp_gan import Recipe as GanRecipe
from understudy_bench.baselines.gem import Gem
from understudy_bench.baselines.gs_wgan import GsWgan
from understudy_bench.baselines.pate_gan import PateGan
from understudy_bench.baselines.private_gsd import PrivateGsd

from understudy.synthesizers import METHODS, Synthesizer
from understudy.synthesizers.contract import CHECKS

# As little work as shows what they do; in `dp-gan` all units are in every iteration, the quickest to calibrate.
SMALL: dict[str, Synthesizer] = {
    "aim": Aim(coefficients=1),
    "gem": Gem(coefficients=1, rounds=1, chosen=2, rows=16, updates=2, width=8),
    "private-gsd": PrivateGsd(coefficients=1, rows=40, generations=20),
    "dp-gan": DpGan(recipe=GanRecipe(iterations=2, batch=500, width=8)),
    "pate-gan": PateGan(teachers=3, rounds=1, questions=4, updates=1, width=8),
    "gs-wgan": GsWgan(critics=3, iterations=1, questions=4, updates=1, width=8),
}


def test_the_registry_finds_every_baseline_by_its_entry_point() -> None:
    assert set(SMALL) <= set(METHODS)
    assert all(METHODS[name] is type(method) for name, method in SMALL.items())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("method", SMALL)
def test_the_baseline_keeps_the_contract(method: str, check: Callable[[Synthesizer], None]) -> None:
    check(SMALL[method])
