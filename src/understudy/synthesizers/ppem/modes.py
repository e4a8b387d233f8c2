"""What is promised in which mode, and what is refused."""

from typing import Literal

from understudy.errors import InputError
from understudy.synthesizers.ppem import targets

Mode = Literal["both", "dp", "lmdp", "marginal-dp"]
MODES = ("both", "dp", "lmdp", "marginal-dp")
PRIVATE = ("both", "dp")
HIDING = ("both", "lmdp")  # modes in which the marginal of x′ is to differ

NOT_PRIVATE = {
    "lmdp": "a marginal is obfuscated, which protects no person; gradients were not noised",
    "marginal-dp": "noise on the marginal energy only, as in appendix D.4 of paper 002; the rest was learned without",
}
_PAPER = (
    "mode: 'paper', the DP variant as printed, is not differentially private: its penalty makes every gradient depend "
    "on the whole batch, and its conditional generator is trained on real attributes. Use 'both'."
)
NOTHING = (
    "This is obfuscation of an aggregate, not protection of a person, and no part of epsilon. It does not hide what a "
    "reader can infer from the other columns, nor from how well they fit a value of x′.",
)


def check(mode: str, target: targets.Target, effect: float | None) -> None:
    """Refuses a mode that does not exist or can't be sound, and a promise that the mode does not keep."""
    if mode == "paper":
        raise InputError(_PAPER)
    if mode not in MODES:
        raise InputError(f"mode: one of {', '.join(MODES)} is expected, got '{mode}'.")
    if mode not in HIDING and (effect is not None or target != targets.DIFFERENT):
        raise InputError(f"target, effect: the mode '{mode}' hides no marginal. Use 'both', or leave them out.")
