"""Frames over gRPC: one bidirectional stream per party with mutual TLS, and the keys by which sides know each other.

A run has one authority, which signs one certificate per side and is then forgotten. Who a party is follows from its
certificate and from nothing it says. A party that is unknown, or connected already, is refused and logged; one that
goes away stops the run for all sides, because going on without it would train on other data than was agreed.
"""

import ipaddress
import logging
import queue
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from understudy.errors import InputError, MissingData, UnderstudyError
from understudy.files import whole_folder
from understudy.synthesizers.vflgan_ts.protocol import Frame, Frames, documents_of, frame_of

if TYPE_CHECKING:
    import grpc

logger = logging.getLogger(__name__)
AGGREGATOR = "aggregator"
REFUSED = "refused"  # stage of the frame by which a party leaves, with its reason
_REASON = 2000  # bytes of a reason that are passed on
_HEARD_SECONDS = 5.0  # in which a refusal should have been heard
_FILES = ("key.pem", "certificate.pem", "authority.pem")
_SERVICE, _METHOD = "understudy.Federation", "Converse"
_OPTIONS = (
    ("grpc.max_receive_message_length", 256 * 2**20),
    ("grpc.max_send_message_length", 256 * 2**20),
    ("grpc.so_reuseport", 0),
)


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
        new = "Make new keys for all sides."
        try:
            own = x509.load_pem_x509_certificate(self.certificate)
            own.verify_directly_issued_by(x509.load_pem_x509_certificate(self.authority))
        except (ValueError, TypeError, InvalidSignature) as problem:
            raise InputError(f"keys: a certificate signed by the folder's authority is expected. {new}") from problem
        first, last = own.not_valid_before_utc, own.not_valid_after_utc
        if not first <= datetime.now(UTC) <= last:
            held = f"holds from {first:%Y-%m-%d} to {last:%Y-%m-%d}, which is not now"
            raise InputError(f"keys: the certificate of '{self.name}' {held}. {new}")

    @property
    def name(self) -> str:
        """The side that the certificate names."""
        subject = x509.load_pem_x509_certificate(self.certificate).subject
        return str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def make_identities(folder: Path, parties: Iterable[str], *, host: str, days: float = 365) -> list[str]:
    """Writes one folder per side under `folder`, and returns the sides' names. The authority's key is not kept.

    The aggregator's certificate names `host`, at which parties reach it.
    """
    names = [AGGREGATOR, *parties]
    if len(set(names)) != len(names) or any(not name or "/" in name for name in names):
        raise InputError("parties: different names without '/' are expected, none of them 'aggregator'.")
    authority_key, pem = ec.generate_private_key(ec.SECP256R1()), serialization.Encoding.PEM
    authority = _certificate("understudy run", authority_key, None, authority_key, days)
    with whole_folder(folder) as draft:
        for name in names:
            key = ec.generate_private_key(ec.SECP256R1())
            signed = _certificate(name, key, authority, authority_key, days, host if name == AGGREGATOR else None)
            (draft / name).mkdir(mode=0o700)
            private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
            for file, content in zip(
                _FILES, (private, *(c.public_bytes(pem) for c in (signed, authority))), strict=True
            ):
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
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


Heard = bytes | str  # a frame, or why the other side's stream has ended


def _frame(heard: Heard, whose: str) -> Frame:
    """Return a frame, or raise when the other side is gone or has refused; `whose` begins the error."""
    if isinstance(heard, str):
        raise InputError(f"{whose}: {heard}. What was charged stays charged; start all sides again.")
    return Frame.from_bytes(heard)


class GrpcAggregatorLink:
    """The aggregator's end of the streams of parties that their certificates name; `timeout` is in seconds."""

    def __init__(self, parties: Sequence[str], timeout: float) -> None:
        self._timeout, self._stopped = timeout, ""
        self._heard: queue.Queue[tuple[str, Heard]] = queue.Queue()  # of all parties, so that the first end counts
        self._answers: dict[str, queue.Queue[bytes | None]] = {name: queue.Queue() for name in parties}
        self._present: set[str] = set()

    def gather(self) -> Frames:
        """Return the next frame of every party, or raise as soon as one is gone, silent or refuses."""
        frames: dict[str, Frame] = {}
        while missing := [name for name in self._answers if name not in frames]:
            name: str = missing[0]
            heard: Heard = f"nothing was received from it for {self._timeout:g} s"
            with suppress(queue.Empty):
                name, heard = self._heard.get(timeout=self._timeout)
            frames[name] = _frame(heard, f"'{name}' is gone")
            if frames[name].stage == REFUSED:
                reason = documents_of(frames[name], 0, REFUSED, {"reason"}, name)["reason"]
                raise InputError(f"'{name}' refuses: {reason[:_REASON].decode('utf-8', 'replace')}")
        return {name: frames[name] for name in self._answers}

    def scatter(self, answers: Frames) -> None:
        """Sends every party its answer."""
        for name, answer in answers.items():
            self._answers[name].put(answer.to_bytes())

    def close(self, reason: str = "") -> None:
        """Ends all streams; parties are told the reason, if there is one."""
        self._stopped = reason
        for answers in self._answers.values():
            answers.put(None)

    def converse(self, frames: Iterator[bytes], context: "grpc.ServicerContext") -> Iterator[bytes]:
        """One party's stream, called by gRPC in a thread of its own."""
        import grpc

        names = context.auth_context().get("x509_common_name", [])
        name = names[0].decode() if len(names) == 1 else ""
        if name not in self._answers or name in self._present:
            logger.warning("A stream was refused: its certificate names a side that is not expected, or there already.")
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "This certificate has no place in this run.")
        self._present.add(name)
        context.add_callback(lambda: self._heard.put((name, "its stream ended")))
        for frame in frames:
            self._heard.put((name, frame))
            answer = self._answers[name].get()
            if answer is None:
                context.abort(grpc.StatusCode.ABORTED, self._stopped or "The run has ended.")
            else:
                yield answer


class GrpcPartyLink:
    """A party's end of its stream."""

    def __init__(self, call: Callable[..., Iterator[bytes]], timeout: float) -> None:
        self._frames: queue.Queue[bytes | None] = queue.Queue()
        self._answers: queue.Queue[Heard] = queue.Queue()
        self._timeout, self._ended = timeout, False
        stream = call(iter(self._frames.get, None), wait_for_ready=True)
        threading.Thread(target=self._listen, args=(stream,), daemon=True).start()

    def exchange(self, frame: Frame) -> Frame:
        """Sends a frame and returns its answer, or raises when the aggregator is gone."""
        self._frames.put(frame.to_bytes())
        heard: Heard = f"nothing was received from it for {self._timeout:g} s"
        with suppress(queue.Empty):
            heard = self._answers.get(timeout=self._timeout)
        self._ended = isinstance(heard, str)
        return _frame(heard, "The aggregator ended the run")

    def close(self, reason: str = "") -> None:
        """End the stream; the aggregator, and by it every party, is told the reason if there is one."""
        if reason and not self._ended:
            self._frames.put(frame_of(0, REFUSED, {"reason": reason.encode()}).to_bytes())
            with suppress(queue.Empty):
                self._answers.get(timeout=_HEARD_SECONDS)  # until the aggregator has ended the stream
        self._frames.put(None)

    def _listen(self, stream: Iterator[bytes]) -> None:
        """Takes answers as they come, so that waiting for one can have an end."""
        import grpc

        reason = "its stream ended"
        try:
            for answer in stream:
                self._answers.put(answer)
        except grpc.RpcError as problem:
            reason = str(problem.details()).rstrip(".")
        self._answers.put(reason)


@contextmanager
def serve(link: GrpcAggregatorLink, identity: Identity, address: str, num_parties: int) -> Iterator[int]:
    """Listens while the block runs, and yields the port."""
    import grpc

    server = grpc.server(futures.ThreadPoolExecutor(num_parties + 2), options=_OPTIONS)
    handler = grpc.stream_stream_rpc_method_handler(link.converse)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(_SERVICE, {_METHOD: handler})])
    credentials = grpc.ssl_server_credentials(
        [(identity.key, identity.certificate)], root_certificates=identity.authority, require_client_auth=True
    )
    try:
        port = server.add_secure_port(address, credentials)
    except RuntimeError as problem:
        raise InputError(f"address: '{address}' can't be listened on. Is it in use?") from problem
    server.start()
    try:
        yield port
        link.close()
    except BaseException as problem:
        link.close(str(problem) if isinstance(problem, InputError) else "The aggregator has stopped.")
        raise
    finally:
        server.stop(grace=2).wait()


@contextmanager
def connect(identity: Identity, address: str, timeout: float) -> Iterator[GrpcPartyLink]:
    """Yields a stream to the aggregator; waits for it to be there."""
    import grpc

    credentials = grpc.ssl_channel_credentials(identity.authority, identity.key, identity.certificate)
    with grpc.secure_channel(address, credentials, options=_OPTIONS) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=timeout)
        except grpc.FutureTimeoutError:
            raise InputError(
                f"address: no aggregator of this run answered at '{address}' for {timeout:g} s. Is it there, and were "
                "both sides' keys made together?"
            ) from None
        link, reason = GrpcPartyLink(channel.stream_stream(f"/{_SERVICE}/{_METHOD}"), timeout), ""
        try:
            yield link
        except UnderstudyError as problem:
            reason = str(problem)
            raise
        finally:
            link.close(reason)


def refuse(keys: Path, address: str, reason: str) -> None:
    """Tell all sides of a run why this party will not take part, if an aggregator is there to hear it."""
    host, _, port = address.rpartition(":")
    with suppress(UnderstudyError, OSError, ValueError):
        socket.create_connection((host, int(port)), timeout=1).close()
        with connect(Identity.load(keys), address, _HEARD_SECONDS) as link:
            link.close(reason)
