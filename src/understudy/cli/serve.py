"""`understudy app`: the web app on this machine."""

import os
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.console import Output
from understudy.errors import InputError
from understudy.extras import require_extra

VARIABLE = "UNDERSTUDY_APP_PASSWORD"


def serve(
    output: Output,
    folder: Annotated[
        Path, typer.Argument(help="Project folder: the app reads and writes nothing outside it.")
    ] = Path(),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on. Default: one that is free.")] = 0,
    listen: Annotated[str, "Address to listen on; only this machine reaches the default."] = "127.0.0.1",
    others_can_reach_it: Annotated[
        bool,
        "Let everybody on the network of --listen reach the app. Asks for a password, or takes it from "
        "UNDERSTUDY_APP_PASSWORD. Nothing is encrypted: where that matters, use an SSH tunnel to the default address.",
    ] = False,
    open_browser: Annotated[bool, "Open the first page in the browser."] = False,
) -> None:
    """Walk from a table to a release in a browser, on this machine only."""
    for module in ("starlette", "uvicorn", "jinja2"):
        require_extra(module, by="app")
    from understudy.app.server import HERE, Address
    from understudy.app.server import serve as run

    password = None
    if listen != HERE:
        if not others_can_reach_it:
            raise InputError(
                f"--listen: {HERE} is expected, because at '{listen}' others may reach the app, your ledgers and your "
                "internal pages. Add --others-can-reach-it if that is meant."
            )
        password = os.environ.get(VARIABLE) or typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    first = True

    def announce(link: str) -> None:
        nonlocal first
        told = "Open this link; it lets one browser in, once:" if first else "For another browser:"
        output.result({"link": link}, told, link)
        if first and open_browser:
            webbrowser.open(link)
        first = False

    run(folder, Address(host=listen, port=port, password=password), announce)
