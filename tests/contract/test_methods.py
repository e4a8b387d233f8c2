"""Every method of the registry keeps the contract."""

from collections.abc import Callable

import pytest

from understudy.synthesizers import METHODS, Synthesizer
from understudy.synthesizers.contract import CHECKS
from understudy.synthesizers.dit import DiT
from understudy.synthesizers.dit.recipe import Network
from understudy.synthesizers.dit.recipe import Recipe as DiTRecipe
from understudy.synthesizers.pets import PETS
from understudy.synthesizers.pets import method as pets_method
from understudy.synthesizers.pets.recipe import Recipe
from understudy.synthesizers.ppem import PPEM
from understudy.synthesizers.ppem.recipe import Recipe as EnergyRecipe
from understudy.synthesizers.pub2priv import Pub2Priv
from understudy.synthesizers.pub2priv.recipe import Recipe as Pub2PrivRecipe
from understudy.synthesizers.vflgan_ts.method import VFLGANTS
from understudy.synthesizers.vflgan_ts.recipe import Recipe as VerticalRecipe

# Methods that would take minutes over the suite, with as little work as shows what they do.
SMALL: dict[str, Synthesizer] = {
    "pets": PETS(selection="mean"),
    "pets, votes": PETS(recipe=Recipe(iterations=2, population=24, lookahead=1)),
    "dit": DiT(
        recipe=DiTRecipe(network=Network(width=8, depth=1, num_heads=2), iterations=4, draws=1), sampling_steps=2
    ),
    # Without context, because half of the panels have none; with one, its own tests make the checks again.
    "pub2priv": Pub2Priv(recipe=Pub2PrivRecipe(model="regression"), knowledge="none"),
    # The level of a channel that every panel has. Here and in `vflgan-ts` all units are in every iteration, which is
    # the quickest to calibrate.
    "ppem": PPEM(sensitive="mean(load)", recipe=EnergyRecipe(iterations=2, batch=500, width=8)),
    "vflgan-ts": VFLGANTS(recipe=VerticalRecipe(iterations=2, batch=500, features=8)),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("method", [*METHODS.own, "pets, votes"])
def test_the_method_keeps_the_contract(
    method: str, check: Callable[[Synthesizer], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pets_method, "_POOL", 60)  # candidates
    monkeypatch.setattr(pets_method, "_FEWEST_POOLED", 20)
    check(SMALL.get(method) or METHODS[method]())
