"""Every method of the registry keeps the contract."""

from collections.abc import Callable

import pytest

from understudy.synthesizers import METHODS, Synthesizer
from understudy.synthesizers.contract import CHECKS
from understudy.synthesizers.pets.method import Pets
from understudy.synthesizers.pets.recipe import Recipe

# Methods that would take minutes over the suite, with as little work as shows what they do.
SMALL: dict[str, Synthesizer] = {"pets": Pets(recipe=Recipe(iterations=2, population=24, lookahead=1))}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("method", METHODS)
def test_the_method_keeps_the_contract(method: str, check: Callable[[Synthesizer], None]) -> None:
    check(SMALL.get(method) or METHODS[method]())
