"""Who is protected: the privacy unit, and how much of the data one unit may contribute."""

from dataclasses import dataclass
from typing import Literal

from understudy.data.dtypes import INTEGER_DTYPES, TEXT_DTYPES, require_dtype
from understudy.data.given import require_given
from understudy.errors import SchemaError

UnitKind = Literal["entity", "event", "overlapping-window"]
UNIT_KINDS = ("entity", "event", "overlapping-window")


@dataclass(frozen=True, kw_only=True)
class PrivacyUnit:
    """What one neighbouring dataset has and the other has not (add or remove one unit).

    Attributes:
        kind: "entity" protects everything about one entity; "event" protects any `event_steps` consecutive
            steps of one entity; "overlapping-window" repeats what papers do and protects no person.
        column: The table's identifier column; None when every series is its own unit.
        max_series: How many series one unit may contribute; a unit with more is refused.
        event_steps: Length of the protected stretch, for kind "event".
        dtype: How the user's table stores the identifier.
    """

    kind: UnitKind = "entity"
    column: str | None = None
    max_series: int = 1
    event_steps: int = 1
    dtype: str = "string"

    def __post_init__(self) -> None:
        require_given(self, "unit")
        if self.kind not in UNIT_KINDS:
            raise SchemaError(
                f"Key 'unit.kind': one of {', '.join(UNIT_KINDS)} is expected, got '{self.kind}'.",
                key="unit.kind",
            )
        for field in ("max_series", "event_steps"):
            if getattr(self, field) < 1:
                raise SchemaError(f"Key 'unit.{field}': a number of at least 1 is expected.", key=f"unit.{field}")
        require_dtype(self.dtype, INTEGER_DTYPES + TEXT_DTYPES, "unit.dtype")

    @property
    def protects_a_person(self) -> bool:
        """False for windows cut from one long series: everyone in it is in many windows."""
        return self.kind != "overlapping-window"

    def sentence(self) -> str:
        """Says in words what the guarantee covers; certificates quote it.

        >>> PrivacyUnit(column="household").sentence()
        "Everything the table holds about one 'household' (up to 1 series) is protected."
        """
        who = f"'{self.column}'" if self.column else "series"
        if self.kind == "entity":
            return f"Everything the table holds about one {who} (up to {self.max_series} series) is protected."
        if self.kind == "event":
            return (
                f"Any {self.event_steps} consecutive steps of one {who} are protected; "
                "what is the same throughout that series is not."
            )
        return (
            "No person is protected: the unit is one of many overlapping windows of the same series, "
            "as in the papers this reproduces."
        )
