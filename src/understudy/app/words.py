"""How the pages print figures: promises rounded up, what is left rounded down, states in words."""

from collections.abc import Callable, Mapping
from typing import Any

from understudy.privacy.budget import at_least, at_most

STATES = {
    "running": "is running",
    "done": "is done",
    "failed": "was refused or failed",
    "stopped": "was cancelled",
    "lost": "was lost: its process ended without a word",
}
CHARGED = (
    "The charge stays: it was written down before the table was read, and noisy answers may have been seen since. "
    "The ledger counts it whether or not there is a release."
)


def filters() -> Mapping[str, Callable[..., Any]]:
    """Returns the filters of the templates."""
    return {
        "at_most": lambda value, digits=3: at_most(float(value), digits),
        "at_least": lambda value, digits=4: at_least(float(value), digits),
        "state": STATES.__getitem__,
        "charged": charged,
        "when": lambda text: str(text)[:16].replace("T", " "),
        "clean": lambda text: "".join(
            letter if letter.isprintable() or letter == "\n" else "\ufffd" for letter in text
        ),
    }


def charged(number: int | None) -> str:
    """Returns what a run that did not end well has cost."""
    if number is None:
        return ""
    if number == 0:
        return "Nothing was charged."
    return f"Since it began the ledger has recorded {number} charge{'s' if number > 1 else ''}. {CHARGED}"
