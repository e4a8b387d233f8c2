"""Understudy: synthetic time series that can stand in for sensitive ones, under a guarantee that is true.

The names below are the whole public surface. They load on first use, so `import understudy` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from understudy.api import buy
    from understudy.api.checking import Verification, verify
    from understudy.api.listing import methods
    from understudy.api.scoring import audit, compare, evaluate
    from understudy.api.synthesis import synthesize
    from understudy.data import Panel, PrivacyUnit, Schema, read_panel, simulate_households, write_panel
    from understudy.errors import UnderstudyError
    from understudy.planning import Plan, plan
    from understudy.privacy.budget import Guarantee
    from understudy.privacy.certificate import Certificate
    from understudy.privacy.ledger import Ledger
    from understudy.privacy.noise import NoiseSource
    from understudy.synthesizers import METHODS, Release
    from understudy.synthesizers.dit import DiT
    from understudy.synthesizers.pets import PETS
    from understudy.synthesizers.ppem import PPEM
    from understudy.synthesizers.pub2priv import Pub2Priv
    from understudy.synthesizers.spectral import Spectral
    from understudy.synthesizers.vflgan_ts.method import VFLGANTS

__all__ = [
    "METHODS",
    "PETS",
    "PPEM",
    "VFLGANTS",
    "Certificate",
    "DiT",
    "Guarantee",
    "Ledger",
    "NoiseSource",
    "Panel",
    "Plan",
    "PrivacyUnit",
    "Pub2Priv",
    "Release",
    "Schema",
    "Spectral",
    "UnderstudyError",
    "Verification",
    "audit",
    "buy",
    "compare",
    "evaluate",
    "methods",
    "plan",
    "read_panel",
    "simulate_households",
    "synthesize",
    "verify",
    "write_panel",
]

_ROOMS = {
    "METHODS": "understudy.synthesizers",
    "PETS": "understudy.synthesizers.pets",
    "PPEM": "understudy.synthesizers.ppem",
    "VFLGANTS": "understudy.synthesizers.vflgan_ts.method",
    "Certificate": "understudy.privacy.certificate",
    "DiT": "understudy.synthesizers.dit",
    "Guarantee": "understudy.privacy.budget",
    "Ledger": "understudy.privacy.ledger",
    "NoiseSource": "understudy.privacy.noise",
    "Panel": "understudy.data",
    "Plan": "understudy.planning",
    "PrivacyUnit": "understudy.data",
    "Pub2Priv": "understudy.synthesizers.pub2priv",
    "Release": "understudy.synthesizers",
    "Schema": "understudy.data",
    "Spectral": "understudy.synthesizers.spectral",
    "UnderstudyError": "understudy.errors",
    "Verification": "understudy.api.checking",
    "audit": "understudy.api.scoring",
    "compare": "understudy.api.scoring",
    "evaluate": "understudy.api.scoring",
    "buy": "understudy.api.buy",
    "methods": "understudy.api.listing",
    "plan": "understudy.planning",
    "read_panel": "understudy.data",
    "simulate_households": "understudy.data",
    "synthesize": "understudy.api.synthesis",
    "verify": "understudy.api.checking",
    "write_panel": "understudy.data",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("understudy")
    if name not in _ROOMS:
        raise AttributeError(f"module 'understudy' has no attribute '{name}'")
    from understudy.extras import naming_extras

    with naming_extras(name):
        room = import_module(_ROOMS[name])
        value = room if room.__name__.endswith(f".{name}") else getattr(room, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "__version__"])
