"""Column names that follow one pattern: steps or sensors, or a column per person, whose name is an identifier."""

import re
from collections import Counter
from collections.abc import Iterable

MANY_NUMBERED, MANY_WORDED = 8, 30  # names of one pattern that are taken for identifiers
_WORD = re.compile(r"[^\W_]+")


def pattern_of(name: str) -> str:
    """Returns a name with its words made alike: "#" for one that holds a digit, "a" for any other.

    >>> pattern_of("MT_001"), pattern_of("anna@home"), pattern_of("load_kw")
    ('a_#', 'a@a', 'a_a')
    """
    return _WORD.sub(lambda word: "#" if any(letter.isdigit() for letter in word[0]) else "a", name)


def alike(names: Iterable[str]) -> frozenset[str]:
    """Returns the names that share their pattern with enough others that they may be identifiers."""
    patterns = {name: pattern_of(name) for name in names}
    sizes = Counter(patterns.values())
    return frozenset(
        name
        for name, pattern in patterns.items()
        if sizes[pattern] >= (MANY_NUMBERED if "#" in pattern else MANY_WORDED)
    )
