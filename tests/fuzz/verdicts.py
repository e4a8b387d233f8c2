"""Damaged certificates put to `verify`, counted: how many are refused, how many hold, and the longest anyone took.

`python -m tests.fuzz.verdicts 20000` prints the counts for so many inputs.
"""

import copy
import json
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from understudy.errors import CertificateError
from understudy.privacy import keys
from understudy.privacy.certificate import Certificate, verify

POOL: tuple[Any, ...] = (
    *(0, 1, -1, 2**63, 2**62, 1e-300, 1e300, 1e-12, 0.5, 1e12, "inf", "-inf", "nan", "", "private", None, True),
    *([], {}, [[]], [{}], "0" * 64, "0" * 128, [0.1] * 2000, {"type": "Gaussian", "noise_multiplier": 9.0, "count": 1}),
    *({"type": "SubsampledGaussian", "sampling_rate": rate, "noise_multiplier": noise, "iterations": count}
      for rate, noise, count in ((1e-9, 1e-4, 10**12), (0.01, 1.0, 2**62), (1e-300, 1e300, 1))),
    *({"type": "MixtureOfGaussians", "sampling_rate": 0.001, "noise_multiplier": 30.0, "max_windows": most,
       "iterations": 9} for most in (10**9, 300)),
    {"type": "DiscreteGaussian", "noise_multiplier": 1e12, "count": 10**9, "one_vote": True},
    *({"type": "PureDP", "epsilon": 1e-12, "count": 10**12}, {"type": "NonPrivate", "reason": "x"}),
)  # fmt: skip


LIMIT = 2.0  # seconds of processor time for one certificate


class TooSlow(BaseException):
    """`verify` took longer than any certificate may take; no handler on the way up may swallow it."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Ends what takes more processor time."""

    def end(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@dataclass
class Verdicts:
    """What became of the inputs."""

    inputs: int = 0
    unreadable: int = 0
    refused: int = 0
    accepted: int = 0
    too_slow: int = 0
    longest: float = 0.0  # seconds of processor time

    def put(self, text: str, original: Certificate, trusted: Sequence[keys.PublicKey]) -> None:
        """Judges one input; whatever means the same as the original is not an input."""
        began = time.process_time()
        try:
            with limited(LIMIT):
                found = Certificate.loads(text)
                if found == original:
                    return
                holds = all(check.ok for check in verify(found, None, trusted))
            self.accepted, self.refused = self.accepted + holds, self.refused + (not holds)
        except CertificateError:
            self.unreadable += 1
        except TooSlow:
            self.too_slow += 1
        self.inputs += 1
        self.longest = max(self.longest, time.process_time() - began)


def mutated(body: dict[str, Any], rng: random.Random) -> str:
    """The certificate with one to three changes of its values, or of its letters."""
    if rng.random() < 0.2:
        letters = list(json.dumps(body))
        for _ in range(rng.randint(1, 3)):
            letters[rng.randrange(len(letters))] = chr(rng.randrange(32, 127))
        return "".join(letters)
    changed = copy.deepcopy(body)
    for _ in range(rng.randint(1, 3)):
        _change(changed, rng)
    return json.dumps(changed)


def _change(body: dict[str, Any], rng: random.Random) -> None:
    place: Any = body
    while True:
        names = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not names:
            return
        name = rng.choice(names)
        if isinstance(place[name], dict | list) and rng.random() < 0.7:
            place = place[name]
            continue
        value = place[name]
        what = rng.random()
        if what < 0.15:
            del place[name]
        elif what < 0.4 and isinstance(value, int | float) and not isinstance(value, bool):
            place[name] = value * rng.choice((0.5, 0.9, 1.001, 1.02, 2, 10, -1))
        else:
            place[name] = copy.deepcopy(rng.choice(POOL))
        return


def run(number: int, certificates: Sequence[Certificate], trusted: Sequence[keys.PublicKey], seed: int) -> Verdicts:
    """Puts so many damaged certificates to `verify`."""
    rng, verdicts = random.Random(seed), Verdicts()
    bodies = [json.loads(certificate.dumps()) for certificate in certificates]
    while verdicts.inputs < number:
        which = rng.randrange(len(bodies))
        verdicts.put(mutated(bodies[which], rng), certificates[which], trusted)
    return verdicts


def originals() -> tuple[list[Certificate], list[keys.PublicKey]]:
    """Signed certificates of several kinds of events, and the key that signed them."""
    from tests.unit.privacy.conftest import make_schema
    from understudy.privacy import events
    from understudy.privacy.budget import Guarantee
    from understudy.privacy.certificate import issue, sign
    from understudy.privacy.ledger import Ledger
    from understudy.privacy.noise import NoiseSource
    from understudy.privacy.plan import PlanEntry, SpendingPlan

    key, made = keys.load_or_create("fuzz"), []
    kinds = (
        events.Gaussian(6.0),
        events.SubsampledGaussian(0.01, 3.0, 100),
        events.DiscreteGaussian(30.0, 4, one_vote=True),
        events.DiscreteGaussian(30.0, 4),
        events.MixtureOfGaussians(0.01, 20.0, 40, 100),
        events.PureDP(0.1, 3),
    )
    for kind in kinds:
        plan = SpendingPlan((PlanEntry("mean", kind), PlanEntry("count", events.PureDP(0.05))), Guarantee(2.0, 1e-6))
        ledger = Ledger.in_memory(Guarantee(2.0, 1e-6))
        made.append(issue(ledger.charge(plan, label="run", noise=NoiseSource.secure()), make_schema(), method="mean"))
    return [sign(certificate, key) for certificate in made], [key.public]


def main() -> None:
    number, seed = int(sys.argv[1]), random.randrange(2**32)
    print(f"seed {seed}: {run(number, *originals(), seed)}")


if __name__ == "__main__":
    main()
