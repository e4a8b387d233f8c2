"""Every public name and where it lives; `__init__.py` loads each on first use."""

from understudy.api import buy
from understudy.api.checking import Verification, methods, verify
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
__version__: str
_ROOMS: dict[str, str]
