"""Facts about the values that hold for everyone and that samples must obey."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal

from understudy.data.given import require_given
from understudy.errors import SchemaError


@dataclass(frozen=True)
class NonNegative:
    """The channel is never below zero."""

    kind: ClassVar[str] = "non-negative"

    channel: str

    def __post_init__(self) -> None:
        require_given(self, f"constraints.{self.channel}")

    @property
    def name(self) -> str:
        """How messages call the constraint."""
        return f"{self.kind}: {self.channel}"


@dataclass(frozen=True)
class Monotone:
    """The channel never turns back along a series (a meter reading)."""

    kind: ClassVar[str] = "monotone"

    channel: str
    direction: Literal["increasing", "decreasing"] = "increasing"

    def __post_init__(self) -> None:
        require_given(self, f"constraints.{self.channel}")
        if self.direction not in ("increasing", "decreasing"):
            raise SchemaError(
                f"Key 'constraints.{self.channel}.direction': 'increasing' or 'decreasing' is expected.",
                key=f"constraints.{self.channel}.direction",
            )

    @property
    def name(self) -> str:
        """How messages call the constraint."""
        return f"{self.kind}: {self.channel} {self.direction}"


@dataclass(frozen=True)
class Sum:
    """One channel is the sum of others at every step."""

    kind: ClassVar[str] = "sum"

    total: str
    parts: tuple[str, ...]

    def __post_init__(self) -> None:
        if isinstance(self.parts, list):
            object.__setattr__(self, "parts", tuple(self.parts))
        require_given(self, f"constraints.{self.total}")
        if len(set(self.parts)) != len(self.parts) or len(self.parts) < 1 or self.total in self.parts:
            key = f"constraints.{self.total}.parts"
            raise SchemaError(f"Key '{key}': different channels, none of them the total, are expected.", key=key)

    @property
    def name(self) -> str:
        """How messages call the constraint."""
        return f"{self.kind}: {self.total} = {' + '.join(self.parts)}"


@dataclass(frozen=True)
class ZeroWhen:
    """The channel is zero at declared hours of the day, or while a public context is below a number."""

    kind: ClassVar[str] = "zero-when"

    channel: str
    _: KW_ONLY
    hours: tuple[int, ...] | None = None
    context: str | None = None
    below: float | None = None

    def __post_init__(self) -> None:
        key = f"constraints.{self.channel}"
        if isinstance(self.hours, list):
            object.__setattr__(self, "hours", tuple(self.hours))
        require_given(self, key)
        if (self.hours is None) == (self.context is None) or (self.context is None) != (self.below is None):
            raise SchemaError(f"Key '{key}': either hours, or context with below, is expected. Declare one.", key=key)
        if self.hours is not None and (not self.hours or not all(0 <= hour <= 23 for hour in self.hours)):
            raise SchemaError(f"Key '{key}.hours': hours from 0 to 23 are expected.", key=f"{key}.hours")
        if self.below is not None:
            object.__setattr__(self, "below", float(self.below))

    @property
    def name(self) -> str:
        """How messages call the constraint."""
        when = f"at hours {self.hours}" if self.hours is not None else f"while {self.context} < {self.below}"
        return f"{self.kind}: {self.channel} {when}"


Constraint = NonNegative | Monotone | Sum | ZeroWhen


def constrained_channels(constraint: Constraint) -> tuple[str, ...]:
    """Returns the channels a constraint speaks about."""
    if isinstance(constraint, Sum):
        return (constraint.total, *constraint.parts)
    return (constraint.channel,)
