"""Packs: one file, one hash, fits what it can and says what it can't."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from understudy.errors import InputError, MissingData
from understudy.synthesizers.packs import Pack, load_pack
from understudy.synthesizers.pets.modules import fitted
from understudy.synthesizers.pets.pretraining import Effort, drawn_from, pretrain
from understudy.synthesizers.pets.rules import RuleBased

TINY = Effort(
    autoencoder_iterations=2, ts2vec_iterations=2, distillation_iterations=2, distillation_series=40, latent=8
)


def tiny_pack(num_steps: int = 24, num_channels: int = 2, **options) -> Pack:
    series = RuleBased(num_steps=num_steps, num_channels=num_channels)(40, np.random.default_rng(0))
    stages: list[tuple[str, float]] = []
    pack = pretrain(
        drawn_from(series[8:]), held_out=series[:8], effort=TINY, seed=3, provenance={"command": "a test"},
        progress=lambda stage, share: stages.append((stage, share)), **options,
    )  # fmt: skip
    shares = [share for _, share in stages]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    return pack


@pytest.fixture(scope="module")
def pack() -> Pack:
    return tiny_pack()


def test_a_pack_comes_back_as_it_was_saved(pack: Pack, tmp_path: Path) -> None:
    file = tmp_path / "new" / "pack.safetensors"
    pack.save(file)
    again = load_pack(str(file), "pets")
    assert again.sha256 == pack.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert again.provenance == pack.provenance
    assert Pack.from_bytes(pack.to_bytes(), "pets").sha256 == pack.sha256
    series = RuleBased(num_steps=24, num_channels=2)(5, np.random.default_rng(1))
    ours, theirs = fitted(pack, 24, 2), fitted(again, 24, 2)
    np.testing.assert_array_equal(ours.similarity(series), theirs.similarity(series))
    varied = [m.variation(series, 20, np.random.default_rng(2)) for m in (ours, theirs)]
    np.testing.assert_array_equal(varied[0], varied[1])


def test_the_hash_sees_weights_and_provenance(pack: Pack) -> None:
    assert replace(pack, provenance={"command": "another"}).sha256 != pack.sha256
    name, array = next(iter(pack.arrays.items()))
    assert replace(pack, arrays={**pack.arrays, name: array + 1e-3}).sha256 != pack.sha256


def test_the_same_seed_makes_the_same_pack(pack: Pack) -> None:
    assert tiny_pack().sha256 == pack.sha256


def test_what_made_a_pack_is_written_into_it(pack: Pack) -> None:
    told = pack.provenance
    assert told["command"] == "a test"
    assert told["seed"] == 3
    assert set(told["versions"]) == {"understudy", "torch", "numpy", "python"}
    assert set(told["quality"]) == {"autoencoder_explains", "encoder_explains"}


def test_a_pack_is_never_written_over_another_file(pack: Pack, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        pack.save(tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "other tensors"])
def test_a_file_that_is_no_pack_is_refused(damage: str, pack: Pack, tmp_path: Path) -> None:
    from safetensors.numpy import save

    content = {
        "empty": b"",
        "text": b"no pack at all, but long enough to have a header",
        "cut": pack.to_bytes()[:-100],
        "other tensors": save({"a": np.zeros(3)}),
    }[damage]
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(InputError, match="is no pack"):
        Pack.load(tmp_path / "file", "pets")


def test_missing_newer_and_inconsistent_packs_are_refused(pack: Pack, tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="understudy pretrain pets"):
        load_pack(str(tmp_path / "nowhere"), "pets")
    newer = pack.to_bytes().replace(b'\\"format\\": 1', b'\\"format\\": 9')
    with pytest.raises(InputError, match="another method or version"):
        Pack.from_bytes(newer, "pets")
    fewer = {name: array for name, array in pack.arrays.items() if "head" not in name}
    with pytest.raises(InputError, match="damaged"):
        fitted(replace(pack, arrays=fewer), 24, 2)


def test_another_length_is_resampled_and_another_channel_count_refused(pack: Pack) -> None:
    assert "the 24 steps the pack was trained on" in fitted(pack, 24, 2).adaptation
    longer = fitted(pack, 100, 2)
    assert "varied at the pack's 24" in longer.adaptation
    assert "compared at 24" in longer.adaptation
    series = RuleBased(num_steps=100, num_channels=2)(4, np.random.default_rng(4))
    assert longer.variation(series, 30, np.random.default_rng(5)).shape == series.shape
    assert longer.similarity(series).shape == fitted(pack, 24, 2).similarity(series[:, :24]).shape
    with pytest.raises(InputError, match="trained on 2 channels together and these series have 3"):
        fitted(pack, 24, 3)


@pytest.mark.parametrize("shape", [(1, 2), (4, 1), (24, 3), (128, 1), (168, 2), (700, 1)])
def test_the_general_pack_fits_any_series(shape: tuple[int, int]) -> None:
    modules = fitted(load_pack("general", "pets"), *shape)
    series = RuleBased(num_steps=shape[0], num_channels=shape[1])(3, np.random.default_rng(6))
    assert modules.similarity(series).shape == (3, 66 * shape[1])
    assert modules.variation(series, 30, np.random.default_rng(7)).shape == series.shape
    assert ("by itself" in modules.adaptation) == (shape[1] > 1)


def test_the_general_pack_is_small_and_says_how_it_was_made() -> None:
    from tests.meta.pages import ROOT

    general = load_pack("general", "pets")
    assert len(general.to_bytes()) <= 5_000_000
    command = general.provenance["command"]
    assert command.startswith("understudy pretrain pets --rules ")
    assert command in (ROOT / "docs" / "pets-packs.md").read_text(encoding="utf-8")


def test_the_published_encoder_can_be_kept_instead() -> None:
    kept = tiny_pack(num_channels=1, encoder="ts2vec")
    assert kept.shape["similarity"]["kind"] == "ts2vec"
    assert kept.shape["similarity"]["output"] == 320
    series = RuleBased(num_steps=24)(3, np.random.default_rng(8))
    assert fitted(kept, 24, 1).similarity(series).shape == (3, 320)


def test_public_series_that_are_too_short_are_refused() -> None:
    with pytest.raises(InputError, match="at least 8 steps are expected, got 7"):
        tiny_pack(num_steps=7)
