"""What can be said without any data: the methods there are, and whether a release holds what it states."""

import html
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy import display
from understudy.data.type_checks import require_argument
from understudy.errors import CertificateError, MissingExtra, RevokedSigner, UnknownSigner
from understudy.privacy import keys
from understudy.privacy.certificate import Certificate, Check
from understudy.privacy.certificate import verify as check_all

if TYPE_CHECKING:
    from understudy.synthesizers import Release


COLUMNS = ("method", "idea", "needs", "options")


@dataclass(frozen=True)
class MethodList:
    """Methods by name, each with its idea, what it needs and its options; it shows itself in a notebook."""

    rows: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {idea}" for name, idea, *_ in self.rows)

    def _repr_html_(self) -> str:
        return display.html_table(COLUMNS, self.rows)


def methods() -> MethodList:
    """Returns the methods that are installed: their ideas, what they need, and their options.

    Example:
        >>> import understudy as us
        >>> [name for name, *_ in us.methods().rows][:2]
        ['spectral', 'pets']
    """
    from understudy.synthesizers import METHODS

    def row(name: str) -> tuple[str, ...]:
        try:
            kind = METHODS[name]
        except MissingExtra as missing:
            return name, "", str(missing), ""
        told = (import_module(kind.__module__).__doc__ or "").split("\n\n")[0]
        options = [option for option, field in kind.__dataclass_fields__.items() if field.init]
        return name, " ".join(told.split()).removeprefix(f"`{name}`: "), kind.needs, ", ".join(options)

    return MethodList(tuple(row(name) for name in METHODS))


@dataclass(frozen=True)
class Verification:
    """The outcome of every check of a release; it shows itself in a notebook.

    Attributes:
        certificate: The certificate that was checked; believe it only if `holds`.
        checks: One for each question, with its answer.
    """

    certificate: Certificate
    checks: tuple[Check, ...]
    remarks: tuple[str, ...] = ()

    @property
    def failed(self) -> list[Check]:
        """The checks that did not pass."""
        return [check for check in self.checks if not check.ok]

    @property
    def holds(self) -> bool:
        """Whether every check passed, the signer's included."""
        return not self.failed

    def __bool__(self) -> bool:
        return self.holds

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)

    @property
    def verdict(self) -> str:
        """The outcome in one sentence."""
        if self.holds:
            return "Everything agrees with the certificate, and the signer is known."
        if all(check.unknown for check in self.failed):
            return "Everything agrees, but the signer is unknown here. Pass the public key of the holder: trust=…"
        return f"Do not rely on it: {', '.join(check.name for check in self.failed)} can't be confirmed."

    def rows(self) -> list[tuple[str, str, str]]:
        """Returns each answer, its question and what was found."""
        marks = ("ok" if check.ok else "?" if check.unknown else "NO" for check in self.checks)
        return [(mark, check.name, check.detail) for mark, check in zip(marks, self.checks, strict=True)]

    def as_dict(self) -> dict[str, Any]:
        """Returns every answer as plain values."""
        return {
            "holds": self.holds,
            "signer_known": all(check.ok for check in self.checks if check.name == "signer" or check.unknown),
            "status": self.certificate.status,
            "epsilon": self.certificate.epsilon,
            "delta": self.certificate.delta,
            "amendments": list(self.certificate.amendments),
            "checks": [vars(check) for check in self.checks],
        }

    def refusal(self, source: Path) -> CertificateError:
        """Returns the error about a release of which a check failed."""
        failed = self.failed
        if all(check.unknown for check in failed):
            mark = keys.fingerprint(str(self.certificate.signer))
            return UnknownSigner(
                f"'{source}' agrees with its certificate, but the key that signed it ({mark}) is unknown here: a "
                "forger can sign with a new key. Compare the fingerprint with the holder's through another channel; "
                "then --signer NAME records the key under that name, or --trust FILE takes the holder's public key.",
                **self.as_dict(),
            )
        kind = RevokedSigner if all(check.unknown or check.revoked for check in failed) else CertificateError
        return kind(
            f"'{source}' does not hold: {', '.join(check.name for check in failed)}. "
            + " ".join(f"{check.name}: {check.detail.rstrip('.')}." for check in failed)
            + " Do not rely on it; download the release again.",
            **self.as_dict(),
        )

    def require_holding(self, source: Path) -> None:
        """Refuses to write about a certificate that does not hold; that its signer is unknown here is no reason."""
        failed = [check.name for check in self.failed if not check.unknown]
        if failed:
            raise CertificateError(
                f"The certificate of '{source}' does not hold ({', '.join(failed)}), so no page is written about it. "
                "`understudy verify` says more. Download the release again."
            )

    def __repr__(self) -> str:
        return f"Verification({self.verdict})"

    def _repr_html_(self) -> str:
        shown = display.html_table(("holds", "check", "found"), self.rows())
        return f"<p><strong>{html.escape(self.verdict)}</strong></p>{shown}"


def verify(
    release: "Release | Certificate | Path | str",
    directory: Path | str | None = None,
    *,
    trust: Iterable[str | Path] | str | Path | None = None,
    signer: str | None = None,
) -> Verification:
    """Recomputes epsilon from the certificate's events, the hash of every file, and the signature.

    Args:
        release: A release directory, a certificate file, or either as it was loaded.
        directory: The release's files, where `release` is a certificate.
        trust: Public keys one of which must have signed, or their files; None takes this computer's own and trusted.
        signer: Name of the signer: their key is recorded at first, and expected later.

    Example:
        >>> from understudy import Ledger, simulate_households, synthesize
        >>> release = synthesize(simulate_households(200), epsilon=1, ledger=Ledger.scratch(), progress=False)
        >>> [check.name for check in verify(release) if not check.ok]
        ['signature', 'signer']
    """
    if isinstance(release, str | Path):
        found = Certificate.load(release)
        directory = release if directory is None and Path(release).is_dir() else directory
    elif isinstance(release, Certificate):
        found = release
    else:
        from understudy.synthesizers import Release

        kinds = Release | Certificate | Path | str
        require_argument(release, kinds, "verify: release", "Give the release, or its directory.")
        found, directory = release.certificate, release.source if directory is None else directory
    given = [trust] if isinstance(trust, str | Path) else trust
    trusted = [keys.given(str(key)) for key in given] if given else None
    made = Verification(found, tuple(check_all(found, directory, trusted)))
    return made if signer is None else _by_name(made, signer)


def _by_name(made: Verification, name: str) -> Verification:
    """Expects the key that was recorded under a signer's name, and records it if there is none and all else holds."""
    known, found = keys.recorded(name), made.certificate.signer
    remarks: tuple[str, ...] = ()
    if known is None and found is not None and all(check.ok or check.unknown for check in made):
        known = keys.record(name, found)
        remarks = (
            f"Recorded the key {known.fingerprint} as '{name}', on first use: compare the fingerprint with {name} "
            "through another channel.",
        )
    if known is None:
        return made
    right = known.hexadecimal == found
    answer = Check("signer", right, f"{name}, {known.fingerprint}{'' if right else ' expected: another key signed'}")
    checks = tuple(answer if check.name == "signer" else check for check in made)
    return Verification(made.certificate, checks, remarks)
