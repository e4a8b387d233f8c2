"""`understudy pretrain pub2priv`: public signals in, one pack out."""

from pathlib import Path

import numpy as np
import pytest

from tests.e2e.commands import run


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("public") / "prices.csv"
    walk = np.cumsum(np.random.default_rng(0).standard_normal((200, 2)), axis=0)
    rows = [f"2020-01-{1 + row % 28:02d},{first:.4f},{second:.4f}" for row, (first, second) in enumerate(walk)]
    file.write_text("\n".join(["day,index,share", *rows]) + "\n", encoding="utf-8")
    return file


def test_a_pack_is_trained_described_and_usable(prices: Path, tmp_path: Path) -> None:
    from understudy.synthesizers.packs import load_pack
    from understudy.synthesizers.pub2priv.knowledge import Knowledge

    out = tmp_path / "market.safetensors"
    options = ("--window-steps", "16", "--work", "quick", "--seed", "5")
    made = run("pretrain", "pub2priv", "--public", prices, "--out", out, *options, "--json")
    assert made.code == 0, made.err
    pack = load_pack(str(out), "pub2priv")
    assert made.facts["sha256"] == pack.sha256
    assert set(made.facts["quality"]) == {"error", "error_untrained"}
    assert pack.provenance["command"] == (
        "understudy pretrain pub2priv --out market.safetensors --public prices.csv --window-steps 16 "
        "--preset default --work quick --seed 5"
    )
    assert list(pack.provenance["public"]) == ["prices.csv"]
    assert str(prices.parent) not in str(pack.provenance)
    assert Knowledge.of(pack).embed(np.zeros((2, 9, 4), dtype=np.float32)).shape == (2, 9, 16)


def test_bad_input_is_refused_before_any_training(prices: Path, tmp_path: Path) -> None:
    out, words, empty = tmp_path / "p.safetensors", tmp_path / "words.csv", tmp_path / "empty.npy"
    words.write_text("day,mood\nmonday,low\n", encoding="utf-8")
    np.save(empty, np.zeros((0, 3)))
    refusals = [
        (("--out", out), 2, "--simulated"),
        (("--out", out, "--simulated", "--public", prices), 2, "one of the two"),
        (("--out", prices, "--simulated"), 2, "exists already"),
        (("--out", out, "--public", tmp_path / "nothing.npy"), 3, "nothing is at"),
        (("--out", out, "--public", words), 2, "no column of numbers"),
        (("--out", out, "--public", empty), 2, "numbers [step, feature]"),
    ]
    for arguments, code, expected in refusals:
        outcome = run("pretrain", "pub2priv", *arguments)
        assert (outcome.code, expected in outcome.err) == (code, True), outcome.err
    assert not out.exists()


def test_a_pack_can_have_the_size_of_the_publication(tmp_path: Path) -> None:
    """Table 3: width 128, 8 heads, 8 layers, four along each axis; a year of days is seen whole."""
    from understudy.synthesizers.packs import load_pack
    from understudy.synthesizers.pub2priv.knowledge import Knowledge

    whole, small = tmp_path / "paper.safetensors", tmp_path / "small.safetensors"
    made = run("pretrain", "pub2priv", "--simulated", "--preset", "paper", "--iterations", "1", "--out", whole)
    assert made.code == 0, made.err
    shape = load_pack(str(whole), "pub2priv").shape
    assert [shape[name] for name in ("width", "num_heads", "depth")] == [128, 8, 4]
    sizes = ("--preset", "paper", "--width", "8", "--num-heads", "2", "--depth", "1", "--iterations", "1")
    assert run("pretrain", "pub2priv", "--simulated", *sizes, "--out", small).code == 0
    theta, seen = Knowledge.of(load_pack(str(small), "pub2priv")), list[int]()
    theta.transformer.register_forward_hook(lambda module, given, z: seen.append(given[0].shape[1]))
    assert theta.embed(np.random.default_rng(0).normal(size=(1, 360, 2)).astype(np.float32)).shape == (1, 360, 8)
    assert set(seen) == {360}
    refused = run("pretrain", "pub2priv", "--simulated", "--width", "9", "--out", tmp_path / "odd.safetensors")
    assert (refused.code, "twice the number of heads" in refused.err) == (2, True)
