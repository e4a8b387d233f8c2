"""How many shadows fit into so many minutes, and what they could say at most: told before the first is made."""

import time
from dataclasses import dataclass

from understudy.audit.release import Audited, shadows_for
from understudy.audit.shadow.attacks import most_provable, require_enough
from understudy.audit.shadow.models import Shadows
from understudy.audit.shadow.targets import SCHEMES
from understudy.errors import InputError
from understudy.workers import Workers

_RESERVE = 0.9  # of the time is planned with; forests and the first imports take the rest


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What an audit will cost and could find.

    Attributes:
        seconds: Of one shadow, measured.
        most: The epsilon that a perfect attack would certify.
    """

    per_arm: int
    seconds: float
    most: float
    claimed: float

    def sentence(self) -> str:
        """The outlook in words."""
        can = "could" if self.most > self.claimed else "could not"
        return (
            f"{self.per_arm} shadows per arm and target at {self.seconds:.2g} s each: no attack on them can certify "
            f"more than ε = {self.most:.2f}, so this audit {can} contradict a certificate of ε = {self.claimed:.3g}."
        )


def outlook(audited: Audited, per_arm: int, seconds: float) -> Outlook:
    """Returns what so many shadows per arm could say; refuses what could say nothing."""
    certificate = audited.release.certificate
    require_enough(per_arm, delta=certificate.delta)
    most = most_provable(per_arm, delta=certificate.delta)
    return Outlook(per_arm=per_arm, seconds=seconds, most=most, claimed=certificate.epsilon)


def planned(audited: Audited, scheme: str, minutes: float, workers: Workers) -> Outlook:
    """Fits one shadow to see how long it takes, and returns how many fit into `minutes`."""
    if scheme not in SCHEMES:
        raise InputError(f"--attack: one of {', '.join(SCHEMES)}, asif+ is expected, got '{scheme}'.")
    seconds = seconds_of(shadows_for(audited, SCHEMES[scheme][0], per_arm=1))
    at_once = workers if isinstance(workers, int) else 1  # of a cluster nothing is known: planned as one process
    per_arm = int(_RESERVE * 60 * minutes * at_once / (seconds * 2 * len(SCHEMES[scheme])))
    try:
        return outlook(audited, per_arm, seconds)
    except InputError as problem:
        raise InputError(
            f"--budget-minutes: {minutes:g} minutes are enough for {per_arm} shadows per arm, and so few can't prove "
            "anything. Give it more time, or more --workers."
        ) from problem


def seconds_of(shadows: Shadows) -> float:
    """Returns how long one shadow takes; the second one, because the first imports and calibrates."""
    shadows.fit("absent")
    begin = time.perf_counter()
    shadows.fit("absent")
    return time.perf_counter() - begin
