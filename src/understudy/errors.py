"""Every error a caller can act on. The command line turns `exit_code` into its exit status.

Messages say what was expected, what was got and what to do. They name columns and declared facts and never
quote a value, an identifier or a count taken from private data.
"""

from typing import Any, ClassVar


class UnderstudyError(Exception):
    """Root of all errors raised on purpose; keyword arguments become attributes for programs to read."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.facts = facts
        for name, value in facts.items():
            setattr(self, name, value)


class InputError(UnderstudyError, ValueError):
    """Something the caller handed in is wrong; nothing was charged."""

    exit_code = 2


class SchemaError(InputError):
    """The public contract is incomplete or contradicts itself (attributes: `file`, `key`)."""


class DataError(InputError):
    """The table breaks its declared schema (attribute: `column`)."""

    column: str | None = None


class ReleaseError(InputError):
    """A release directory is missing, damaged or already there."""


class LedgerError(InputError):
    """A ledger file is damaged or belongs to another population."""


class CertificateError(InputError):
    """A certificate can't be read or does not hold."""


class UnknownSigner(CertificateError):
    """All else holds, but the signing key is unknown here: anyone could have made the certificate."""

    exit_code = 5


class RevokedSigner(CertificateError):
    """All else holds, but the signing key was revoked here, or had expired when it signed."""

    exit_code = 7


class MissingData(UnderstudyError, FileNotFoundError):
    """Data that the caller has to bring is not there."""

    exit_code = 3


class MissingExtra(UnderstudyError, ImportError):
    """An optional package is not installed (attributes: `module`, `extra`); the message has the command."""

    exit_code = 3


class BudgetExceeded(UnderstudyError):
    """The ledger refused (attributes: `requested`, `remaining`, `label`); nothing was charged."""

    exit_code = 4


class UnsupportedEvent(UnderstudyError):
    """An accountant was shown an event it has no rule for."""


class UnsafeModule(UnderstudyError, TypeError):
    """A network mixes the series of several units, so per-unit clipping can't bound one unit's influence."""

    exit_code = 2


class Stopped(BaseException):
    """The user pressed Ctrl-C or sent a termination signal. No `except Exception` on the way up may swallow it."""


class UnderstudyWarning(UserWarning):
    """What public facts say against a run that is allowed, such as that its series will be poor."""
