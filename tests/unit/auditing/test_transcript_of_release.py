"""The transcript audit of a release in hand: a run of the same kind is listened to, and other methods are refused."""

import numpy as np
import pytest

from tests.unit.synthesizers.vflgan_ts.toy import panel as sines
from understudy.auditing.release import Audited, transcript_audit
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.spectral import Spectral
from understudy.synthesizers.vflgan_ts.method import VFLGANTS
from understudy.synthesizers.vflgan_ts.recipe import Recipe

GUARANTEE = Guarantee(200.0, 1e-6)


def audited(method: Spectral | VFLGANTS) -> Audited:
    members, others = sines(120), sines(40, seed=1)
    release = method.fit(members, Ledger.in_memory(GUARANTEE), guarantee=GUARANTEE)
    synthetic = release.sample(30, rng=np.random.default_rng(0))
    return Audited(release=release, members=members, others=others, synthetic=synthetic)


def test_rows_are_read_off_what_every_party_sends() -> None:
    """With distributions bought, which the release carries: the attacker knows that scale."""
    recipe = Recipe(iterations=12, batch=30, features=48)
    found = transcript_audit(audited(VFLGANTS(recipe=recipe)), seed=0)
    assert set(found) == {"bank", "shop"}
    assert all(inversion.ratio < 0.5 for inversion in found.values()), found


def test_a_release_of_one_place_has_no_transcript() -> None:
    with pytest.raises(InputError, match="several parties"):
        transcript_audit(audited(Spectral()), seed=0)
