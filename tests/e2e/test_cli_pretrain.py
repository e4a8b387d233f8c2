"""`understudy pretrain pets`: public series in, one pack out."""

from pathlib import Path

import numpy as np
import pytest

from tests.e2e.commands import make_clinic, run


@pytest.fixture(scope="module")
def waves(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("public") / "waves.npy"
    rng = np.random.default_rng(0)
    period = rng.uniform(5, 20, (40, 1, 1))
    np.save(file, 3 + np.sin(2 * np.pi * np.arange(40)[None, :, None] / period) * rng.uniform(0.5, 2, (40, 1, 2)))
    return file


def test_a_pack_is_trained_described_and_usable(waves: Path, tmp_path: Path) -> None:
    from understudy.synthesizers.packs import Pack
    from understudy.synthesizers.pets.modules import fitted

    out = tmp_path / "waves.safetensors"
    options = ("--window-steps", "16", "--channels", "each", "--work", "quick", "--seed", "5")
    made = run("pretrain", "pets", "--public", waves, "--out", out, *options, "--json")
    assert made.code == 0, made.err
    pack = Pack.load(out, "pets")
    assert made.facts["sha256"] == pack.sha256
    assert (pack.shape["num_steps"], pack.shape["num_channels"]) == (16, 1)
    assert set(made.facts["quality"]) == {"autoencoder_explains", "encoder_explains"}
    assert pack.provenance["command"] == (
        "understudy pretrain pets --out waves.safetensors --public waves.npy --encoder pooled-conv --channels each "
        "--window-steps 16 --work quick --seed 5"
    )
    assert list(pack.provenance["public"]) == ["waves.npy"]
    assert str(waves.parent) not in str(pack.provenance)
    assert fitted(pack, 16, 2).similarity(np.zeros((1, 16, 2), dtype=np.float32)).shape == (1, 132)


def test_bad_input_is_refused_before_any_training(waves: Path, tmp_path: Path) -> None:
    clinic, out = make_clinic(tmp_path / "clinic"), tmp_path / "p.safetensors"
    refusals = [
        (("--out", out), 2, "--rules"),
        (("--out", out, "--rules", "--public", waves), 2, "one of the two"),
        (("--out", waves, "--rules"), 2, "exists already"),
        (("--out", out, "--public", tmp_path / "nothing.npy"), 3, "nothing is at"),
        (("--out", out, "--public", clinic.table), 2, "--schema"),
        (("--out", out, "--public", clinic.table, "--schema", clinic.schema), 2, "at least 8 steps"),
        (("--out", out, "--public", waves, "--window-steps", "41"), 2, "at most the 40 steps"),
    ]
    for arguments, code, words in refusals:
        outcome = run("pretrain", "pets", *arguments)
        assert (outcome.code, words in outcome.err) == (code, True), outcome.err
    assert not out.exists()
