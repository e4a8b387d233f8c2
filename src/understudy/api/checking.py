"""What a recipient can check about a release without the data."""

import html
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from understudy import display
from understudy.data.type_checks import require_argument
from understudy.privacy import keys
from understudy.privacy.certificate import Certificate, Check
from understudy.privacy.certificate import verify as check_all
from understudy.synthesizers import Release


@dataclass(frozen=True)
class Verification:
    """The outcome of every check of a release; it shows itself in a notebook.

    Attributes:
        certificate: The certificate that was checked; believe it only if `holds`.
        checks: One for each question, with its answer.
    """

    certificate: Certificate
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether every check passed, the signer's included."""
        return all(check.ok for check in self.checks)

    def __bool__(self) -> bool:
        return self.holds

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)

    @property
    def verdict(self) -> str:
        """The outcome in one sentence."""
        failed = [check for check in self.checks if not check.ok]
        if not failed:
            return "Everything agrees with the certificate, and the signer is known."
        if all(check.unknown for check in failed):
            return "Everything agrees, but the signer is unknown here. Pass the public key of the holder: trust=…"
        return f"Do not rely on it: {', '.join(check.name for check in failed)} can't be confirmed."

    def __repr__(self) -> str:
        return f"Verification({self.verdict})"

    def _repr_html_(self) -> str:
        marks = ((check, "yes" if check.ok else "unknown" if check.unknown else "NO") for check in self.checks)
        rows = [(mark, check.name, check.detail) for check, mark in marks]
        shown = display.html_table(("holds", "check", "found"), rows)
        return f"<p><strong>{html.escape(self.verdict)}</strong></p>{shown}"


def verify(
    release: Release | Certificate | Path | str,
    directory: Path | str | None = None,
    *,
    trust: Iterable[str | Path] | str | Path | None = None,
) -> Verification:
    """Recomputes epsilon from the certificate's events, the hash of every file, and the signature.

    Args:
        release: A release directory, a certificate file, or either as it was loaded.
        directory: The release's files, where `release` is a certificate.
        trust: Public keys one of which must have signed, or their files; None takes this computer's own and trusted.

    Example:
        >>> from understudy import Ledger, simulate_households, synthesize
        >>> release = synthesize(simulate_households(200), epsilon=1, ledger=Ledger.scratch(), progress=False)
        >>> [check.name for check in verify(release) if not check.ok]
        ['signature', 'signer']
    """
    require_argument(
        release, Release | Certificate | Path | str, "verify: release", "Give the release, or its directory."
    )
    if isinstance(release, str | Path):
        found = Certificate.load(release)
        directory = release if directory is None and Path(release).is_dir() else directory
    elif isinstance(release, Release):
        found, directory = release.certificate, release.source if directory is None else directory
    else:
        found = release
    given = [trust] if isinstance(trust, str | Path) else trust
    trusted = None if given is None else [keys.given(str(key)) for key in given]
    return Verification(found, tuple(check_all(found, directory, trusted)))
