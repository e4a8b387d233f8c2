"""One input: a command line, and what lies in the folder instead of the good files. As JSON it can be tried again."""

import json
from dataclasses import dataclass, field
from typing import Any

_SHOWN = 4000


@dataclass(frozen=True)
class Link:
    """A symbolic link that lies where a file was expected."""

    target: str


Content = bytes | Link | None
Contents = dict[str, Content]  # by path below the folder; None is a folder, or a file that is not there


@dataclass(frozen=True, kw_only=True, repr=False)
class Case:
    """What is tried.

    Attributes:
        arguments: Paths in them are relative to the folder.
        files: What is there instead, by path; None takes a file away.
        damaged: Whether success has to look as it does without the damage; nobody sealed it anew.
    """

    arguments: tuple[str, ...]
    files: Contents = field(default_factory=dict)
    damaged: bool = False

    def __repr__(self) -> str:
        return self.dumps()[:_SHOWN]

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        """What Hypothesis shows of it."""
        printer.text(repr(self))

    def dumps(self) -> str:
        """The input as JSON; a byte is the letter of the same number."""
        files = {name: _to_json(content) for name, content in self.files.items()}
        facts = {"arguments": self.arguments, "damaged": self.damaged, "files": files}
        return json.dumps(facts, indent=1) + "\n"

    @classmethod
    def loads(cls, text: str) -> "Case":
        """The input that was written with `dumps`."""
        facts = json.loads(text)
        files = {name: _from_json(content) for name, content in facts["files"].items()}
        return cls(arguments=tuple(facts["arguments"]), files=files, damaged=facts["damaged"])


def _to_json(content: Content) -> Any:
    if isinstance(content, Link):
        return {"link": content.target}
    return None if content is None else content.decode("latin-1")


def _from_json(content: Any) -> Content:
    if isinstance(content, dict):
        return Link(content["link"])
    return None if content is None else content.encode("latin-1")
