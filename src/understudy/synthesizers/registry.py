"""All methods by name, each loaded when it is asked for: most need torch, which takes seconds, `spectral` does not."""

from collections import UserDict
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from understudy.extras import naming_extras
from understudy.synthesizers.base import Synthesizer


class Methods(UserDict[str, Any]):
    """Classes by name, or places to import them from; `METHODS["mine"] = Mine` adds one; `own` names ours.

    Other distributions add theirs by an entry point of the group `understudy.methods`: name = "module:Class".
    """

    def __init__(self, **places: str) -> None:
        own = {name.replace("_", "-"): f"understudy.synthesizers.{place}" for name, place in places.items()}
        others = {point.name: point.value.replace(":", ".") for point in entry_points(group="understudy.methods")}
        super().__init__(own | others | own)  # ours first, and never replaced
        self.own = tuple(own)

    def __getitem__(self, name: str) -> type[Synthesizer]:
        found = self.data[name]
        if isinstance(found, str):
            module, _, kind = found.rpartition(".")
            with naming_extras(name):
                found = self.data[name] = getattr(import_module(module), kind)
        return found

    def create(self, name: str, preset: str = "default", **options: Any) -> Synthesizer:
        """Returns a method with the options of a preset, some of them replaced."""
        return self[name].from_preset(preset, **options)


METHODS = Methods(
    spectral="spectral.Spectral",
    pets="pets.method.PETS",
    pub2priv="pub2priv.method.Pub2Priv",
    vflgan_ts="vflgan_ts.method.VFLGANTS",
    dit="dit.method.DiT",
    ppem="ppem.method.PPEM",
    independent="independent.Independent",
)
