"""All methods by name."""

from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.independent import Independent
from understudy.synthesizers.pets.method import Pets
from understudy.synthesizers.spectral import Spectral

METHODS: dict[str, type[Synthesizer]] = {
    "spectral": Spectral,
    "pets": Pets,
    "independent": Independent,
}
AUTO = "spectral"  # what `--method auto` stands for
