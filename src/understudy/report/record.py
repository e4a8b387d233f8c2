"""Everything a report shows, as one JSON file with a public and an internal half. Pages are pure functions of it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from understudy.data import Channel, Panel, Schema
from understudy.errors import InputError
from understudy.evaluation.portraits import Frame, embedding, portrait
from understudy.evaluation.scorecard import Scorecard
from understudy.evaluation.words import internal_cautions, public_cautions
from understudy.privacy import canonical
from understudy.privacy.certificate import Certificate
from understudy.synthesizers import Release

FORMAT = 2
Facts = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One run, in two halves."""

    public: Facts  # what may go with the release: nothing in it was computed from real series but through a charge
    internal: Facts | None = None  # what was computed without one; None where nothing was, or after it was dropped

    def without_internal(self) -> "RunRecord":
        """Returns the half that may leave."""
        return replace(self, internal=None)

    def dumps(self) -> str:
        """Returns the record as JSON."""
        body = {"format": FORMAT, "public": self.public, "internal": self.internal}
        return canonical.dumps(body | {"sha256": _digest(self.public, self.internal)}) + "\n"

    @classmethod
    def loads(cls, text: str, *, name: str = "The record") -> "RunRecord":
        """Reads what `dumps` wrote, all of it as it was; errors call it `name`."""
        again = "Write it again: `understudy evaluate --record`."
        try:
            body = canonical.loads(text)
        except ValueError as problem:
            raise InputError(f"{name} is damaged: JSON is expected. {again}") from problem
        if not isinstance(body, dict) or body.get("format") != FORMAT:
            raise InputError(f"{name} is not a record of a run: format {FORMAT} is expected. {again}")
        public, internal = body.get("public"), body.get("internal")
        if body.get("sha256") != _digest(public, internal) or not isinstance(public, dict):
            raise InputError(f"{name} is damaged: it is not as it was written. {again}")
        return cls(public=public, internal=internal)

    @classmethod
    def load(cls, path: Path | str) -> "RunRecord":
        """Reads a record's file."""
        try:
            return cls.loads(Path(path).read_text(encoding="utf-8"), name=f"'{path}'")
        except UnicodeDecodeError as problem:
            raise InputError(f"'{path}' is not a record of a run: it is not text.") from problem


def make_record(card: Scorecard, *, ledger: Facts | None = None, audit: Sequence[Facts] | None = None) -> RunRecord:
    """Returns the record of an evaluation.

    Args:
        ledger: What `understudy ledger show --json` prints.
        audit: Findings, one for each attack.

    Privacy: the internal half shows single real series. The public half shows the synthetic series as they were
    released: how many of them an evaluation looks at depends on the number of real series, which it must not tell.
    """
    assert card.judged is not None
    panels, synthetic = card.judged.panels, card.judged.synthetic
    public = public_record(card.judged.release, synthetic, ledger=ledger).public
    shown = synthetic if synthetic.schema == panels.synthetic.schema else panels.synthetic  # cut as the real ones were
    scores, frame = card.as_dict(), Frame.of(panels.real, shown)
    internal = {
        "scorecard": scores,
        "real": portrait(panels.real, frame),
        "synthetic": portrait(shown, frame),
        "embedding": embedding(panels.of(panels.synthetic)),
        "audit": audit,
        "cautions": internal_cautions(scores, public["certificate"]),
    }
    return RunRecord(public=public, internal=internal)


def with_audit(record: RunRecord, certificate: Certificate, findings: Sequence[Facts]) -> RunRecord:
    """Returns the record with what an audit of the same release found; an earlier audit's findings are replaced."""
    if record.internal is None:
        raise InputError(
            "--record: a record with an internal half is expected. `understudy evaluate --record` writes it."
        )
    if record.public["certificate"] != json.loads(certificate.dumps()):
        raise InputError("--record: the record is about another release. Evaluate this one: `understudy evaluate`.")
    return replace(record, internal={**record.internal, "audit": list(findings)})


def public_record(release: Release | None, synthetic: Panel, *, ledger: Facts | None = None) -> RunRecord:
    """Returns a record without an internal half: all that can be said without real series."""
    if synthetic.private:
        raise ValueError("Expected synthetic series: a public record shows single series.")
    certificate = None if release is None else json.loads(release.certificate.dumps())
    public = {
        "title": synthetic.schema.name,
        "software": f"Understudy {version('understudy')}",
        "written": datetime.now(UTC).date().isoformat(),
        "method": None if release is None else release.certificate.method,
        "certificate": certificate,
        "ledger": ledger,
        "schema": _schema_facts(synthetic.schema),
        "synthetic": portrait(synthetic, Frame.of(synthetic)),
        "cautions": public_cautions(certificate),
    }
    return RunRecord(public=public)


def _schema_facts(schema: Schema) -> dict[str, Any]:
    def facts(column: Channel) -> dict[str, Any]:
        names = getattr(column, "categories", None)
        return {
            "name": column.name,
            "kind": column.kind,
            "bounds": list(column.bounds),
            "categories": None if names is None else [str(name) for name in names],
            "missing": column.missing,
        }

    return {
        "name": schema.name,
        "steps": schema.num_steps,
        "frequency": str(schema.time.frequency),
        "population": schema.population.size,
        "label": schema.label,
        **{group: [facts(c) for c in getattr(schema, group)] for group in ("channels", "static", "context")},
    }


def _digest(public: Any, internal: Any) -> str:
    """Returns a checksum: damage is found before anything is drawn from it. No proof of who wrote it."""
    return canonical.sha256(canonical.dumps([public, internal]))
