"""`understudy demo`: one command, and a newcomer holds synthetic data with a true certificate."""

import os
from pathlib import Path

from tests.e2e.commands import finish, run, start


def test_the_demo_ends_with_everything_and_says_the_guarantee_in_one_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "understudy-demo"
    outcome = finish(start("demo", "--out", folder, "--n", "300", cwd=tmp_path))
    assert outcome.code == 0, outcome.err
    assert outcome.err == ""
    for name in (
        "release/synthetic.parquet",
        "release/certificate.json",
        "data/households.ledger",
        "certificate.html",
    ):
        assert (folder / name).stat().st_size > 500
    assert (folder / "figures" / "channel-1-bands.png").read_bytes().startswith(b"\x89PNG")
    sentence = outcome.out.splitlines()[-1]
    assert "'household'" in sentence
    assert "epsilon = 1" in sentence
    assert run("verify", folder / "release").code == 5  # its key is in the demo's own home
    assert run("verify", folder / "release", "--trust", folder / "holder.pub").code == 0


def test_a_former_demo_is_replaced_a_strange_folder_is_not_and_no_real_home_is_touched(
    tmp_path: Path, understudy_home: Path
) -> None:
    folder = tmp_path / "demo"
    for _ in range(2):
        assert run("demo", "--out", folder, "--n", "120", "--json").facts["status"] == "private"
    assert not list(understudy_home.iterdir())
    assert os.environ["UNDERSTUDY_HOME"] == str(understudy_home)
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "thesis.txt").write_text("mine")
    assert run("demo", "--out", strange).code == 2
    assert (strange / "thesis.txt").read_text() == "mine"
