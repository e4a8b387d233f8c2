"""Commands that write, each on a stage of its own: what is there before, what is run, what may be run again."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.commands import Clinic, make_clinic
from tests.faults.server import COMMAND, Report, Server
from tests.faults.tracing import Fault

TRAINING = "tests.faults.training:main"
PERSONS = 101
_SYNTH = ("synth", "clinic.csv", "--schema", "schema.toml", "--epsilon", "0.2", "--n", "5", "--out")
_BUY = ("--epsilon", "20", "--out", "bought.toml", "--schema")
_KEY = "understudy-ed25519 " + "ab" * 32 + " friend\n"


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One command and those that have to come before it."""

    arguments: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    function: str = COMMAND


SCENES: dict[str, Scene] = {
    "synth": Scene(arguments=(*_SYNTH, "release", "--holdout", "0.4", "--allow-few-units", "a test")),
    "synth again": Scene(arguments=(*_SYNTH, "release"), before=((*_SYNTH, "earlier"),)),
    "buy bounds": Scene(
        arguments=("buy", "bounds", "clinic.csv", *_BUY, "bounds.toml", "--column", "pulse", "--between", "-50", "50")
    ),
    "buy categories": Scene(arguments=("buy", "categories", "clinic.csv", *_BUY, "wards.toml", "--column", "ward")),
    "buy population": Scene(arguments=("buy", "population", "clinic.csv", *_BUY, "count.toml")),
    "sample csv": Scene(
        arguments=("sample", "earlier", "--n", "4", "--out", "more.csv"), before=((*_SYNTH, "earlier"),)
    ),
    "sample parquet": Scene(
        arguments=("sample", "earlier", "--n", "4", "--out", "more.parquet"), before=((*_SYNTH, "earlier"),)
    ),
    "certificate": Scene(
        arguments=("certificate", "earlier", "--format", "html", "--out", "page.html"), before=((*_SYNTH, "earlier"),)
    ),
    "ledger": Scene(arguments=("ledger", "show", "schema.toml"), before=((*_SYNTH, "earlier"),)),
    "keys create": Scene(arguments=("keys", "create", "mine")),
    "keys trust": Scene(arguments=("keys", "trust", "friend.pub")),
    "training": Scene(function=TRAINING, arguments=("6", "2")),  # iterations, and in each block
}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A scene with its folder, which every trial finds as it was at first."""

    scene: Scene
    server: Server
    folder: Path

    @property
    def clinic(self) -> Path:
        """Where commands run."""
        return self.folder / "clinic"

    def set_up(self) -> None:
        """Puts everything back to how it was before the command."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.refill()

    def refill(self) -> None:
        """Puts everything into the folder, which may be a disk of its own."""
        for path in self.folder.iterdir() if self.folder.exists() else ():
            shutil.rmtree(path)
        shutil.copytree(self._kept, self.folder, dirs_exist_ok=True)

    def act(self, fault: Fault | None = None, *, way: tuple[str, ...] = ()) -> Report:
        """Runs the scene's command, under a fault, or in another way than the command line's: a function and words."""
        function, words = (way[0], way[1:]) if way else (self.scene.function, ())
        return self._run(function, (*words, *self.scene.arguments), fault)

    def build(self) -> None:
        """Plays what comes before the command and keeps the folder as it then is."""
        _furnish(self.clinic)
        for arguments in self.scene.before:
            report = self._run(COMMAND, arguments)
            assert report.code == 0, report.err
        # Ledgers are known by their place, so the copy moves and not the stage.
        shutil.move(self.folder, self._kept)

    @property
    def _kept(self) -> Path:
        return self.folder.with_name(f"{self.folder.name} as it was")

    def _run(self, function: str, arguments: tuple[str, ...], fault: Fault | None = None) -> Report:
        return self.server.run(function, arguments, folder=self.folder, place="clinic", fault=fault)


def staged(name: str, server: Server, folder: Path) -> Stage:
    """Returns the stage of a scene, ready for trials."""
    stage = Stage(scene=SCENES[name], server=server, folder=folder / name.replace(" ", "-"))
    stage.build()
    return stage


def warm_up(function: str) -> None:
    """Loads in this process what commands load when they run, so that forked children find it there."""
    with tempfile.TemporaryDirectory() as folder, _away_from_home(Path(folder)):
        if function == TRAINING:
            from tests.faults.training import main as train

            train(["2", "1"])
            return
        from understudy.cli.main import main

        _furnish(Path.cwd())
        for scene in ("synth", "buy bounds", "buy categories", "sample csv", "certificate"):
            arguments = [
                word.replace("bought", scene).replace("earlier", "release") for word in SCENES[scene].arguments
            ]
            code = main(arguments)
            assert code == 0, arguments


def _furnish(folder: Path) -> Clinic:
    clinic = make_clinic(folder, PERSONS)
    clinic.edit_schema("epsilon = 2.0\nmax_runs = 8", "epsilon = 1000.0\nmax_runs = 100\ndelta = 1e-5")
    whole = clinic.schema.read_text()
    (folder / "bounds.toml").write_text(whole.replace("low = 0\nhigh = 10\n", ""))
    (folder / "wards.toml").write_text(whole.replace('categories = ["north", "south"]\n', ""))
    (folder / "count.toml").write_text(whole.replace("population = 120", "population = { count_epsilon = 1.0 }"))
    (folder / "friend.pub").write_text(_KEY)
    return clinic


@contextmanager
def _away_from_home(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.environ["UNDERSTUDY_HOME"] = str(folder / "home")
    os.chdir(folder)
    try:
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            yield
    finally:
        os.chdir(before)
