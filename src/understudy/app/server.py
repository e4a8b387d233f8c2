"""The server: one project, one address, until it is stopped."""

import ipaddress
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import uvicorn

from understudy.app.door import Door
from understudy.app.pages import application
from understudy.app.project import Project
from understudy.errors import InputError, Stopped

HERE = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where the app listens.

    Attributes:
        host: 127.0.0.1, which only this machine reaches; another address needs a password.
        port: 0 takes one that is free.
    """

    host: str = HERE
    port: int = 0
    password: str | None = None

    def __post_init__(self) -> None:
        try:
            address = ipaddress.ip_address(self.host)
        except ValueError:
            raise InputError("--listen: an address such as 127.0.0.1 is expected, and no name.") from None
        if address.is_unspecified:
            raise InputError("--listen: one address of this machine is expected, not all of them at once. Name it.")
        if not address.is_loopback and not self.password:
            raise InputError("--listen: others could reach this address, so a password is expected.")


def serve(folder: Path, address: Address, announce: Callable[[str], None]) -> None:
    """Serves a project until Ctrl-C; `announce` gets a link for each browser, good for one use."""
    project = Project.at(folder)
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address.host, address.port))
            listener.listen(100)  # a browser that follows the link at once waits instead of being refused
        except OSError as problem:
            raise InputError(
                f"--listen, --port: a free address is expected ({problem.strerror}). Choose another."
            ) from None
        host = f"[{address.host}]" if family == socket.AF_INET6 else address.host
        door = Door(f"{host}:{listener.getsockname()[1]}", address.password, announce)
        settings = uvicorn.Config(
            application(project, door),
            log_level="critical",  # requests name files, errors may name values
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
            limit_concurrency=200,
            timeout_graceful_shutdown=2,
        )
        server = uvicorn.Server(settings)
        threading.Thread(target=_load_the_rest, daemon=True).start()
        announce(door.link)
        with suppress(Stopped):  # Ctrl-C is how it ends
            server.run(sockets=[listener])


def _load_the_rest() -> None:
    """Loads what later pages need, while the first one is read."""
    for module in ("understudy.planning", "understudy.privacy.ledger", "understudy.privacy.purchases"):
        import_module(module)
