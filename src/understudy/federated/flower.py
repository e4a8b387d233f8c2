"""A Flower app that launches a run: SuperLink and SuperNodes start the sides, which then talk over their own stream.

Flower's packages exclude ours (typer, rich), so its environment is another one and the app calls `understudy` as a
program. A round of Flower messages takes seconds; one message per party for the whole training costs that once.
"""

import shutil
import sys
from importlib.resources import files
from pathlib import Path

from understudy.errors import InputError
from understudy.federated.config import SideConfig
from understudy.files import whole_folder

_PACKAGE = "understudy_flower"


def write_flower_app(target: Path, server_file: Path, side: SideConfig) -> list[str]:
    """Writes the app's folder for the aggregator's file; returns the names of its files.

    Args:
        side: What the file says; read before, so that a file that can't be read is refused here and not on a node.
    """
    program = shutil.which("understudy", path=str(Path(sys.executable).parent)) or shutil.which("understudy")
    if program is None:
        raise InputError("The program `understudy` is expected on the path: the app calls it. Install the package.")
    templates = files("understudy.federated") / "flower_app"
    known = {"understudy": program, "server": server_file.resolve(), "num_parties": len(side.contract.parties)}
    with whole_folder(target) as draft:
        (draft / _PACKAGE).mkdir()
        (draft / _PACKAGE / "__init__.py").write_text("", encoding="utf-8")
        for name in ("server_app.py", "client_app.py"):
            text = (templates / f"{name}.txt").read_text(encoding="utf-8")
            (draft / _PACKAGE / name).write_text(text, encoding="utf-8")
        project = (templates / "pyproject.toml.txt").read_text(encoding="utf-8").format(**known)
        (draft / "pyproject.toml").write_text(project, encoding="utf-8")
    return sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file())
