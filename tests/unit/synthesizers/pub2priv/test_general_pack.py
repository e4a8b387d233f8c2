"""θ_T as a pack: trained on public signals, frozen, and better than an untrained one on signals it never saw."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from understudy.errors import InputError, MissingData
from understudy.synthesizers import packs
from understudy.synthesizers.packs import Pack, load_pack
from understudy.synthesizers.pub2priv.knowledge import (
    METHOD,
    Knowledge,
    KnowledgeTransformer,
    filling_error,
    hide,
    pretrain,
    simulated,
    windows_from,
)
from understudy.synthesizers.pub2priv.recipe import KNOWLEDGE_RECIPES

MAX_BYTES = 5 * 2**20
GENERAL_PACK = Path(packs.__file__).parent / METHOD / "packs" / "general.safetensors"


def unseen(num_windows: int, num_features: int) -> np.ndarray:
    """Returns windows of a kind that no rule of the package draws: damped swings that begin at a random step."""
    rng = np.random.default_rng(17)
    step = np.arange(60)[None, :, None]
    begin = rng.integers(0, 40, (num_windows, 1, 1))
    since = np.maximum(step - begin, 0)
    pace = rng.uniform(0.2, 0.6, (num_windows, 1, num_features))
    swing = (step >= begin) * np.exp(-since / 15) * np.sin(pace * since)
    series = swing + 0.05 * rng.standard_normal((num_windows, 60, num_features))
    return ((series - series.mean(1, keepdims=True)) / series.std(1, keepdims=True)).astype(np.float32)


def market(num_features: int) -> np.ndarray:
    """Returns windows of prices that follow one index, which the pack's own rules do not draw from."""
    rng = np.random.default_rng([7, 3])
    returns = 3e-4 + 0.011 * rng.standard_normal((1259, 1)) + 0.012 * rng.standard_normal((1259, num_features))
    prices = 100 * np.exp(np.cumsum(returns, axis=0))[None]
    return windows_from(prices, 96)(40, np.random.default_rng(3))


UNSEEN = {
    "market, 1 channel": market(1),
    "market, 5 channels": market(5),
    "swings, 3 channels": unseen(40, 3),
    "swings, 9 channels": unseen(40, 9),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_the_general_pack_beats_untrained_networks_of_its_shape(name: str) -> None:
    """Any number of context channels. Untrained networks guess no better than the mean, which has error one."""
    pack = load_pack("general", "pub2priv")
    ours = filling_error(Knowledge.of(pack).transformer, UNSEEN[name], seed=1)
    untrained = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        untrained.append(filling_error(KnowledgeTransformer(**pack.shape, dropout=0.0), UNSEEN[name], seed=1))
    assert ours < 0.75
    assert min(untrained) > 0.9


def test_the_general_pack_is_small_and_says_where_it_comes_from() -> None:
    pack = load_pack("general", "pub2priv")
    assert GENERAL_PACK.stat().st_size <= MAX_BYTES
    assert pack.provenance["command"] == (
        "understudy pretrain pub2priv --simulated --work standard --seed 0 --out general.safetensors"
    )
    assert pack.to_bytes() == GENERAL_PACK.read_bytes()
    assert pack.provenance["quality"]["error"] < pack.provenance["quality"]["error_untrained"]


def test_a_pack_comes_back_as_it_was_and_is_never_overwritten(tmp_path) -> None:
    pack, file = load_pack("general", "pub2priv"), tmp_path / "pack.safetensors"
    pack.save(file)
    again = Pack.load(file, METHOD)
    assert again.sha256 == pack.sha256
    for name, array in pack.arrays.items():
        assert np.array_equal(again.arrays[name], array)
    with pytest.raises(InputError, match="exists already"):
        pack.save(file)


def test_files_that_are_no_packs_are_refused(tmp_path) -> None:
    broken, other = tmp_path / "broken", tmp_path / "other"
    broken.write_bytes(b"nothing")
    Pack(method="other", arrays={}, shape={}, provenance={}).save(other)
    for file, words in ((broken, "no pack"), (other, "another method")):
        with pytest.raises(InputError, match=words):
            Pack.load(file, METHOD)
    with pytest.raises(MissingData, match="understudy pretrain pub2priv"):
        Pack.load(tmp_path / "none", METHOD)


def test_context_at_rest_knows_nothing() -> None:
    knowledge = Knowledge.of(load_pack("general", "pub2priv"))
    assert np.allclose(knowledge.embed(np.zeros((2, 30, 3), dtype=np.float32)), 0, atol=1e-6)


def test_long_windows_are_seen_coarsely_and_keep_their_length() -> None:
    """A slow wave of 400 steps moves z as it does when every third step is shown. Control: another wave does not."""

    def strongest(wave: np.ndarray) -> np.ndarray:
        z = knowledge.embed(wave)[0]
        return z @ direction

    knowledge = Knowledge.of(load_pack("general", "pub2priv"))
    long, other = (np.sin(np.arange(400) / pace)[None, :, None].astype(np.float32) for pace in (30, 17))
    centred = knowledge.embed(long)[0] - knowledge.embed(long)[0].mean(axis=0)
    direction = np.linalg.svd(centred, full_matrices=False)[2][0]
    z, short, unlike = strongest(long), strongest(long[:, 1::3]), strongest(other)
    assert np.corrcoef(z[1::3], short)[0, 1] > 0.95
    assert np.corrcoef(unlike[1::3], short)[0, 1] < 0.8
    with_holes = long.copy()
    with_holes[:, 10:40] = np.nan
    assert np.isfinite(knowledge.embed(with_holes)).all()


def test_missing_entries_change_nothing_elsewhere_in_what_is_known() -> None:
    """Padding and holes: z of the other steps stays; control: a value that is there does change it."""
    knowledge = Knowledge.of(load_pack("general", "pub2priv"))
    context = unseen(3, 2)
    padded = np.concatenate([context, np.full((3, 60, 1), np.nan, dtype=np.float32)], axis=2)
    z, more = knowledge.transformer(torch.from_numpy(context)), knowledge.transformer(torch.from_numpy(padded))
    assert torch.allclose(z, more, atol=1e-5)
    changed = context.copy()
    changed[:, 59] += 1.0
    assert not torch.allclose(knowledge.transformer(torch.from_numpy(changed))[:, :50], z[:, :50], atol=1e-4)


def test_hiding_leaves_something_to_fill_in() -> None:
    present = torch.ones(8, 30, 2, dtype=torch.bool)
    assert hide(present, torch.Generator().manual_seed(0)).any(dim=1).all()


def test_a_context_that_many_series_met_is_seen_once() -> None:
    knowledge, seen = Knowledge.of(load_pack("general", "pub2priv")), list[int]()
    knowledge.transformer.register_forward_hook(lambda module, given, z: seen.append(len(given[0])))
    windows = np.random.default_rng(4).normal(size=(3, 20, 2)).astype(np.float32)
    windows[1, 5, 0] = np.nan
    met = np.array([0, 1, 1, 2, 0, 1])
    found = knowledge.embed(windows[met])
    assert seen == [1, 1, 1, 1]  # what rest says, then the three of them one by one
    assert np.allclose(found, knowledge.embed(windows)[met], atol=1e-6)


def test_the_knowledge_transformer_of_the_paper_can_be_trained() -> None:
    """Table 3: width 128, 8 heads, 8 layers, four along each axis."""
    recipe = replace(KNOWLEDGE_RECIPES["paper"], iterations=1, batch=2)
    rng = np.random.default_rng(0)
    pack = pretrain(
        lambda number, rng: simulated(number, rng)[:, :24], simulated(2, rng)[:, :24], recipe=recipe, seed=0,
        provenance={}, progress=lambda stage, share: None,
    )  # fmt: skip
    assert Knowledge.of(pack).embed(np.zeros((1, 24, 2), dtype=np.float32)).shape == (1, 24, 128)
    layers = Knowledge.of(pack).transformer.layers
    assert sum(len([layer.over_time, layer.over_features]) for layer in layers) == 8  # type: ignore[list-item]
