"""What one run is going to do to private data, frozen before it reads any."""

from dataclasses import dataclass
from typing import Any

from understudy.errors import InputError
from understudy.privacy import accountants
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Event, executions, from_json, to_json


@dataclass(frozen=True)
class PlanEntry:
    """One labelled event; the label is how the code that executes it asks for its noise."""

    label: str
    event: Event


@dataclass(frozen=True)
class SpendingPlan:
    """All events of one run and the guarantee that they stay within."""

    entries: tuple[PlanEntry, ...]
    guarantee: Guarantee

    def __post_init__(self) -> None:
        labels = [entry.label for entry in self.entries]
        if len(set(labels)) != len(labels):
            raise InputError("Every entry of a spending plan needs a label of its own.")

    @property
    def events(self) -> tuple[Event, ...]:
        """The events without their labels, in order."""
        return tuple(entry.event for entry in self.entries)

    def event(self, label: str) -> Event:
        """The event charged under `label`."""
        for entry in self.entries:
            if entry.label == label:
                return entry.event
        known = ", ".join(entry.label for entry in self.entries) or "none"
        raise InputError(f"Nothing was charged under the label '{label}'. Labels of this plan: {known}.")

    def executions(self, label: str) -> int:
        """How often `label` may be executed."""
        return executions(self.event(label))

    def epsilon(self, delta: float | None = None) -> float:
        """Epsilon of all events together, at the guarantee's delta unless another is given."""
        return accountants.epsilon(self.events, self.guarantee.delta if delta is None else delta)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "guarantee": {"epsilon": self.guarantee.epsilon, "delta": self.guarantee.delta},
            "entries": [{"label": entry.label, "event": to_json(entry.event)} for entry in self.entries],
        }

    @classmethod
    def from_json(cls, body: Any) -> "SpendingPlan":
        """The plan that `to_json` wrote."""
        try:
            promised = body["guarantee"]
            entries = tuple(PlanEntry(entry["label"], from_json(entry["event"])) for entry in body["entries"])
            return cls(entries, Guarantee(float(promised["epsilon"]), float(promised["delta"])))
        except (KeyError, TypeError) as problem:
            raise InputError("A spending plan needs 'guarantee' and labelled 'entries'.") from problem
