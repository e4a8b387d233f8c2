import math
from dataclasses import dataclass

import pytest

from understudy.privacy import canonical

REFUSED = {
    "no JSON": "{",
    "a field said twice": '{"epsilon": 0.01, "epsilon": 9.0}',
    "a field said twice further in": '{"a": [{"b": 1, "b": 1}]}',
    "not a number": '{"a": NaN}',
    "half a letter": '{"a": "\\ud800"}',
    "brackets within brackets": "[" * 100_000,
    "brackets that only writing would trip over": "[" * 600 + "]" * 600,
    "a number of many digits": "9" * 5000,
    "a number of more than 64 bits": "9223372036854775808",
    "a negative one": "-9223372036854775809",
}


@pytest.mark.parametrize("kind", REFUSED)
def test_text_is_refused_that_could_not_be_written_again(kind):
    with pytest.raises(ValueError, match=r"."):
        canonical.loads(REFUSED[kind])


def test_what_was_written_is_read_again():
    body = {"text": "é漢", "none": None, "numbers": [1, -(2**63), 2**63 - 1, 0.1], "yes": True}
    assert canonical.loads(canonical.dumps(body)) == body


@dataclass(frozen=True)
class Budget:
    epsilon: canonical.Number


def test_infinities_are_written_as_text_and_become_numbers_again():
    body = canonical.loads(canonical.dumps({"epsilon": math.inf}))
    assert body == {"epsilon": "inf"}
    assert canonical.typed(Budget, body) == Budget(math.inf)


@pytest.mark.parametrize("value", ["1.0", "infinite", True, None, 10**400])
def test_what_is_no_double_is_refused(value):
    with pytest.raises(ValueError, match=r"."):
        canonical.typed(Budget, {"epsilon": value})
