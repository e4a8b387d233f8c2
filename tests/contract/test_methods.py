"""Every method of the registry keeps the contract."""

from collections.abc import Callable

import pytest

from understudy.synthesizers import METHODS, Synthesizer
from understudy.synthesizers.contract import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("method", METHODS)
def test_the_method_keeps_the_contract(method: str, check: Callable[[Synthesizer], None]) -> None:
    check(METHODS[method]())
