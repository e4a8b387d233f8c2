"""All methods by name, each loaded when it is asked for: most need torch, which takes seconds, `spectral` does not."""

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any

from understudy.synthesizers.base import Synthesizer


class Methods(MutableMapping[str, type[Synthesizer]]):
    """Classes by name, or places to import them from; `METHODS["mine"] = Mine` adds one."""

    def __init__(self, **places: str) -> None:
        self._found: dict[str, type[Synthesizer] | str] = {name.replace("_", "-"): at for name, at in places.items()}

    def __getitem__(self, name: str) -> type[Synthesizer]:
        found = self._found[name]
        if isinstance(found, str):
            module, kind = found.rsplit(".", 1)
            found = self._found[name] = getattr(import_module(f"understudy.synthesizers.{module}"), kind)
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
    pets="pets.method.Pets",
    pub2priv="pub2priv.method.Pub2Priv",
    vflgan_ts="vflgan_ts.method.VflganTs",
    dit="dit.method.Dit",
    ppem="ppem.method.Ppem",
    aim="baselines.aim.Aim",
    gem="baselines.gem.Gem",
    private_gsd="baselines.private_gsd.PrivateGsd",
    dp_gan="baselines.dp_gan.DpGan",
    pate_gan="baselines.pate_gan.PateGan",
    gs_wgan="baselines.gs_wgan.GsWgan",
    independent="independent.Independent",
)
