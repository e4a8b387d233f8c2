"""Frames over gRPC: one bidirectional stream per party, mutual TLS, nothing but bytes of frames.

Who a party is follows from its certificate and from nothing it says. A party that is unknown, or there already, is
refused and logged; one that goes away stops the run for everybody, because going on without it would train on other
data than was agreed. Frames check their own order (`Frame.expect`), so a replayed one stops the run, too.
"""

import logging
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from understudy.errors import InputError
from understudy.federated.certificates import Identity
from understudy.synthesizers.vflgan_ts.protocol import Frame, Frames

logger = logging.getLogger(__name__)
_SERVICE, _METHOD = "understudy.Federation", "Converse"
_OPTIONS = (
    ("grpc.max_receive_message_length", 256 * 2**20),
    ("grpc.max_send_message_length", 256 * 2**20),
    ("grpc.so_reuseport", 0),
)


@dataclass(frozen=True)
class _Gone:
    """The other side's stream has ended, and why."""

    reason: str


class GrpcAggregatorLink:
    """The aggregator's end of all streams; final, implements `AggregatorLink`.

    Args:
        parties: Names that are expected, as their certificates say them.
        timeout: Seconds to wait for the slowest party before the run is stopped.
    """

    def __init__(self, parties: Sequence[str], timeout: float) -> None:
        self._timeout, self._stopped = timeout, ""
        self._heard: dict[str, queue.Queue[bytes | _Gone]] = {name: queue.Queue() for name in parties}
        self._answers: dict[str, queue.Queue[bytes | None]] = {name: queue.Queue() for name in parties}
        self._present: set[str] = set()

    def gather(self) -> Frames:
        """Returns the next frame of every party, or raises when one is gone or silent."""
        return {name: self._next_frame(name) for name in self._heard}

    def scatter(self, answers: Frames) -> None:
        """Sends every party its answer."""
        for name, answer in answers.items():
            self._answers[name].put(answer.to_bytes())

    def close(self, reason: str = "") -> None:
        """Ends all streams; parties are told the reason, if there is one."""
        self._stopped = reason
        for answers in self._answers.values():
            answers.put(None)

    def converse(self, frames: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        """One party's stream, called by gRPC in a thread of its own."""
        name = _common_name(context)
        if name not in self._heard or name in self._present:
            logger.warning("A stream was refused: its certificate names a side that is not expected, or there already.")
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "This certificate has no place in this run.")
        self._present.add(name)
        context.add_callback(lambda: self._heard[name].put(_Gone("its stream ended")))
        for frame in frames:
            self._heard[name].put(frame)
            answer = self._answers[name].get()
            if answer is None:
                context.abort(grpc.StatusCode.ABORTED, self._stopped or "The run has ended.")
            else:
                yield answer

    def _next_frame(self, name: str) -> Frame:
        try:
            heard = self._heard[name].get(timeout=self._timeout)
        except queue.Empty:
            heard = _Gone(f"nothing was heard of it for {self._timeout:g} s")
        if isinstance(heard, _Gone):
            raise InputError(
                f"'{name}' is gone: {heard.reason}. What was charged stays charged; start all sides again."
            )
        return Frame.from_bytes(heard)


class GrpcPartyLink:
    """A party's end of its stream; final, implements `PartyLink`."""

    def __init__(self, call: Callable[..., Iterator[bytes]], timeout: float) -> None:
        self._frames: queue.Queue[bytes | None] = queue.Queue()
        self._answers: queue.Queue[bytes | _Gone] = queue.Queue()
        self._timeout = timeout
        stream = call(iter(self._frames.get, None), wait_for_ready=True)
        threading.Thread(target=self._listen, args=(stream,), daemon=True).start()

    def exchange(self, frame: Frame) -> Frame:
        """Sends a frame and returns its answer, or raises when the aggregator is gone."""
        self._frames.put(frame.to_bytes())
        try:
            answer = self._answers.get(timeout=self._timeout)
        except queue.Empty:
            answer = _Gone(f"nothing was heard of it for {self._timeout:g} s. Start all sides again.")
        if isinstance(answer, _Gone):
            raise InputError(f"The aggregator ended the run: {answer.reason}")
        return Frame.from_bytes(answer)

    def close(self) -> None:
        """Ends the stream."""
        self._frames.put(None)

    def _listen(self, stream: Iterator[bytes]) -> None:
        """Takes answers as they come, so that waiting for one can have an end."""
        reason = "its stream ended. Start all sides again."
        try:
            for answer in stream:
                self._answers.put(answer)
        except grpc.RpcError as problem:
            reason = str(problem.details())
        self._answers.put(_Gone(reason))


@contextmanager
def serve(link: GrpcAggregatorLink, identity: Identity, address: str, num_parties: int) -> Iterator[int]:
    """Listens while the block runs, and yields the port."""
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
    credentials = grpc.ssl_channel_credentials(identity.authority, identity.key, identity.certificate)
    with grpc.secure_channel(address, credentials, options=_OPTIONS) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=timeout)
        except grpc.FutureTimeoutError:
            raise InputError(
                f"address: no aggregator of this run answered at '{address}' for {timeout:g} s. Is it there, and were "
                "both sides' keys made together?"
            ) from None
        link = GrpcPartyLink(channel.stream_stream(f"/{_SERVICE}/{_METHOD}"), timeout)
        try:
            yield link
        finally:
            link.close()


def _common_name(context: grpc.ServicerContext) -> str:
    facts: Mapping[str, Any] = context.auth_context()
    names = facts.get("x509_common_name", [])
    return names[0].decode() if len(names) == 1 else ""
