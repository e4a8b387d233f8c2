"""What is expected of private series before they are looked at: public ones, or an earlier release of the same people.

An earlier release is sampled: what follows is post-processing, and free. Whoever sees the new release learns of units
in both what both charges allow, which the ledger has added up and the certificate says.
"""

from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import numpy as np

from understudy.data import Panel, Schema, read_panel
from understudy.errors import InputError, MissingData
from understudy.privacy.canonical import file_sha256
from understudy.privacy.certificate import FILE_NAME, Certificate
from understudy.statistics import rules
from understudy.synthesizers.release import MODEL_FILE, Release
from understudy.synthesizers.sampling import num_pooled

_SERIES = 8192  # sampled of an earlier release


def is_release(prior: str) -> bool:
    """Says whether a prior is an earlier release, and not a public table."""
    return (Path(prior) / FILE_NAME).is_file()


def hash_of(prior: str) -> str:
    """Returns sha256 of the public table, its files in order, or of the earlier model."""
    path = Path(prior)
    if path.is_file():
        return file_sha256(path)
    files = [path / MODEL_FILE] if is_release(prior) else sorted(one for one in path.rglob("*") if one.is_file())
    return sha256("".join(file_sha256(one) for one in files).encode()).hexdigest()


def prior_series(prior: str, schema: Schema) -> Panel:
    """Returns the public series as private ones are seen, with declared rules taken out."""
    if not Path(prior).exists():
        raise MissingData(f"prior: '{prior}' does not exist. Name a public table or the folder of an earlier release.")
    return _seen(prior, schema, hash_of(prior))


@lru_cache(maxsize=2)
def _seen(prior: str, schema: Schema, content: str) -> Panel:
    panel = _sampled(prior, schema) if is_release(prior) else _read(prior, schema)
    seen = replace(panel, schema=schema, unit=np.arange(panel.num_series, dtype=np.int64), unit_ids=None, private=False)
    return seen if rules.learned_schema(schema) is schema else rules.to_learned(seen)


def _read(prior: str, schema: Schema) -> Panel:
    if schema.own_contexts:
        raise InputError("prior: series with a public context of their own have no public table. Leave prior out.")
    return read_panel(prior, replace(schema, context=(), constraints=()), allow_few_units=True)


def _sampled(prior: str, schema: Schema) -> Panel:
    release = Release.load(prior)
    if not release.certificate.is_private:
        raise InputError(f"prior: '{prior}' is certified {release.certificate.status}. Use a private release.")
    for what in ("channels", "static", "label", "num_steps"):
        if getattr(release.schema, what) != getattr(schema, what):
            raise InputError(f"prior: '{prior}' was learned with other {what}. Use a release of the same schema.")
    if schema.own_contexts:
        raise InputError("prior: a release whose series have contexts of their own can't be continued. Leave it out.")
    return release.sample(num_pooled(schema, _SERIES), rng=np.random.default_rng(0))


def continued(prior: str) -> str:
    """Returns what the certificate says of a release that continues an earlier one."""
    earlier = Certificate.load(Path(prior) / FILE_NAME)
    return (
        f"Continues an earlier release of epsilon = {earlier.epsilon:g}, delta = {earlier.delta:g}. For units in both, "
        "this release also tells what that one told: their epsilons add up, as the ledger adds them."
    )
