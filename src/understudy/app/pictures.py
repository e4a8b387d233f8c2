"""What epsilon and a ledger mean, in odds and as small drawings; public facts only."""

import math
from dataclasses import dataclass
from typing import Any

from understudy.privacy.budget import at_least, at_most

_LEFT, _TOP, _SIZE = 46.0, 12.0, 200.0
_PRIORS = [place / 50 for place in range(51)]


def posterior(prior: float, epsilon: float) -> float:
    """Returns how sure an observer can be after the release, but for delta: the odds grow by at most e^epsilon."""
    if prior in (0.0, 1.0) or math.isinf(epsilon):
        return prior if prior in (0.0, 1.0) else 1.0
    return 1 / (1 + math.exp(math.log((1 - prior) / prior) - epsilon))


def sentence(epsilon: float, delta: float, relation: str) -> str:
    """Returns the guarantee in words and as odds."""
    even, rare = posterior(0.5, epsilon), posterior(0.01, epsilon)
    told = "is in the data" if relation == "added or removed" else "has the values it has"
    return (
        f"An observer who thinks it as likely as not that one unit {told}, and who sees the release and knows "
        f"everything else, can be at most {_percent(even)} sure afterwards. A suspicion of 1 % grows to at most "
        f"{_percent(rare)}. "
        f"Both hold but for a chance of {at_most(delta, 2)}, which is 1 in {1 / delta:,.0f}."
    )


def _percent(share: float) -> str:
    return f"{math.ceil(1000 * share - 1e-9) / 10:.1f} %" if share < 0.9995 else "almost 100 %"


@dataclass(frozen=True)
class Belief:
    """A drawing of what an observer may believe after the release, by what it believed before."""

    epsilon: float

    @property
    def band(self) -> str:
        """The outline of all beliefs that the guarantee allows."""
        upper = [_at(prior, posterior(prior, self.epsilon)) for prior in _PRIORS]
        lower = [_at(prior, posterior(prior, -self.epsilon)) for prior in reversed(_PRIORS)]
        return "M" + "L".join([*upper, *lower]) + "Z"

    @property
    def even(self) -> dict[str, Any]:
        """Where an even guess ends up at most."""
        after = posterior(0.5, self.epsilon)
        return {"x": _LEFT + _SIZE / 2, "y": round(_TOP + _SIZE * (1 - after), 1), "text": _percent(after)}

    @property
    def words(self) -> str:
        """The drawing for those who can't see it."""
        found = ", ".join(
            f"{prior:.0%} becomes at most {_percent(posterior(prior, self.epsilon))}" for prior in (0.1, 0.5, 0.9)
        )
        return f"What an observer may believe after the release, by what it believed before: {found}."


def _at(prior: float, after: float) -> str:
    return f"{_LEFT + _SIZE * prior:.1f} {_TOP + _SIZE * (1 - after):.1f}"


def gauge(total: float, left: float, asked: float = 0.0) -> dict[str, Any]:
    """Returns the parts of a budget in percent: spent, this run, left; and whether this run fits."""
    if not total > 0 or math.isinf(total):
        return {"spent": 0.0, "asked": 0.0, "left": 100.0, "fits": True, "words": "There is no limit to show."}
    spent = min(100.0, 100 * (total - left) / total)
    share = max(0.0, min(100.0 - spent, 100 * asked / total))
    rest = max(0.0, left - asked)
    gone, fits = f"{at_most(total - left, 3)} of ε = {total:g} is spent", asked <= left * (1 + 1e-9)
    words = f"{gone}; {at_least(left)} is left."
    if asked:
        then = f"{at_least(rest)} would be left" if fits else f"more than the {at_least(left)} left"
        words = (
            f"{gone}, this run asks for {at_most(asked, 3)}, and {then}." if fits else f"{gone}; {asked:.3g} is {then}."
        )
    return {"spent": spent, "asked": share, "left": 100 - spent - share, "fits": fits, "words": words}
