"""Keys by which organisations know each other: one authority of the run, one certificate per side.

The authority signs once and can then be put away. A certificate names its side and nothing else; whoever holds its key
*is* that side, so every organisation keeps its own folder and sends the key to nobody.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from understudy.errors import InputError, MissingData
from understudy.files import whole_folder

AGGREGATOR = "aggregator"
_FILES = ("key.pem", "certificate.pem", "authority.pem")


@dataclass(frozen=True, repr=False)
class Identity:
    """One side's key and certificate, and the authority whose signatures it accepts, as PEM."""

    key: bytes
    certificate: bytes
    authority: bytes

    @classmethod
    def load(cls, folder: Path) -> "Identity":
        """Returns the identity that `make_identities` wrote."""
        for name in _FILES:
            if not (folder / name).is_file():
                raise MissingData(f"keys: '{folder / name}' is expected. Make keys with `understudy federate keys`.")
        return cls(*((folder / name).read_bytes() for name in _FILES))

    def check(self) -> None:
        """Refuses a certificate that others would refuse without a word: expired, or of another authority."""
        try:
            own = x509.load_pem_x509_certificate(self.certificate)
            own.verify_directly_issued_by(x509.load_pem_x509_certificate(self.authority))
        except (ValueError, TypeError, InvalidSignature) as problem:
            raise InputError("keys: a certificate of the authority beside it is expected. Make keys anew.") from problem
        if not own.not_valid_before_utc <= datetime.now(UTC) <= own.not_valid_after_utc:
            raise InputError(
                f"keys: the certificate of '{self.name}' holds from {own.not_valid_before_utc:%Y-%m-%d} to "
                f"{own.not_valid_after_utc:%Y-%m-%d}, which is not now. Make keys for all sides anew."
            )

    @property
    def name(self) -> str:
        """The side that the certificate names."""
        subject = x509.load_pem_x509_certificate(self.certificate).subject
        return str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def make_identities(folder: Path, parties: Iterable[str], *, host: str, days: float = 365) -> list[str]:
    """Writes one folder per side under `folder`, and returns the sides' names. The authority's key is not kept.

    Args:
        host: Name or address under which parties reach the aggregator; it stands in the aggregator's certificate.
    """
    names = [AGGREGATOR, *parties]
    if len(set(names)) != len(names) or any(not name or "/" in name for name in names):
        raise InputError("parties: different names without '/' are expected, none of them 'aggregator'.")
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("understudy run", authority_key, None, authority_key, days)
    with whole_folder(folder) as draft:
        for name in names:
            key = ec.generate_private_key(ec.SECP256R1())
            signed = _certificate(name, key, authority, authority_key, days, host if name == AGGREGATOR else None)
            (draft / name).mkdir(mode=0o700)
            parts = (_pem_key(key), _pem(signed), _pem(authority))
            for file, content in zip(_FILES, parts, strict=True):
                (draft / name / file).write_bytes(content)
                (draft / name / file).chmod(0o600)
    return names


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
    days: float,
    host: str | None = None,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer is not None:
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if host is None else ExtendedKeyUsageOID.SERVER_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=True)
        builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(host or name)]), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _alternative(host: str) -> x509.GeneralName:
    import ipaddress

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _pem_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
