"""All methods by name."""

from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.dit.method import Dit
from understudy.synthesizers.independent import Independent
from understudy.synthesizers.pets.method import Pets
from understudy.synthesizers.pub2priv.method import Pub2Priv
from understudy.synthesizers.spectral import Spectral
from understudy.synthesizers.vflgan_ts.method import VflganTs

METHODS: dict[str, type[Synthesizer]] = {
    "spectral": Spectral,
    "pets": Pets,
    "pub2priv": Pub2Priv,
    "vflgan-ts": VflganTs,
    "dit": Dit,
    "independent": Independent,
}
AUTO = "spectral"  # what `--method auto` stands for
