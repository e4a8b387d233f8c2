"""All methods by name, each loaded when it is asked for: most need torch, which takes seconds, `spectral` does not."""

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from understudy.extras import naming_extras
from understudy.synthesizers.base import Synthesizer


class Methods(MutableMapping[str, type[Synthesizer]]):
    """Classes by name, or places to import them from; `METHODS["mine"] = Mine` adds one; `own` names ours.

    Other distributions add theirs by an entry point of the group `understudy.methods`: name = "module:Class".
    """

    def __init__(self, **places: str) -> None:
        own: dict[str, type[Synthesizer] | str] = {
            name.replace("_", "-"): f"understudy.synthesizers.{place}" for name, place in places.items()
        }
        self.own = tuple(own)
        others = {point.name: point.value.replace(":", ".") for point in entry_points(group="understudy.methods")}
        self._found: dict[str, type[Synthesizer] | str] = own | {
            name: place for name, place in others.items() if name not in own
        }

    def __getitem__(self, name: str) -> type[Synthesizer]:
        found = self._found[name]
        if isinstance(found, str):
            module, kind = found.rsplit(".", 1)
            with naming_extras(name):
                found = self._found[name] = getattr(import_module(module), kind)
        assert not isinstance(found, str)
        return found

    def create(self, name: str, preset: str = "default", **options: Any) -> Synthesizer:
        """Returns a method with the options of a preset, some of them replaced."""
        return self[name].from_preset(preset, **options)

    def __setitem__(self, name: str, kind: type[Synthesizer]) -> None:
        self._found[name] = kind

    def __delitem__(self, name: str) -> None:
        del self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


METHODS = Methods(
    spectral="spectral.Spectral",
    pets="pets.method.PETS",
    pub2priv="pub2priv.method.Pub2Priv",
    vflgan_ts="vflgan_ts.method.VFLGANTS",
    dit="dit.method.DiT",
    ppem="ppem.method.PPEM",
    independent="independent.Independent",
)
