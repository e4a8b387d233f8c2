"""Public tables and arrays in working scale."""

from pathlib import Path

import numpy as np
import pytest

from understudy.data import PrivacyUnit, simulate_households
from understudy.errors import InputError
from understudy.synthesizers.contract.checks import fit, new_ledger
from understudy.synthesizers.contract.panels import make_panel, plain_schema
from understudy.synthesizers.packs import Pack
from understudy.synthesizers.pets import PETS, pretraining
from understudy.synthesizers.pets.pretraining import Effort, one_channel_each, scaled_array, scaled_panel, windows_of
from understudy.synthesizers.pets.recipe import Recipe


def test_a_public_panel_is_bridged_and_standardised() -> None:
    series = scaled_panel(simulate_households(50))
    assert series.shape == (50, 168, 2)
    assert np.isfinite(series).all()
    assert abs(series[:, :, 0].mean()) < 0.2
    assert 0.5 < series[:, :, 0].std() < 1.2


def test_a_private_panel_is_refused() -> None:
    from dataclasses import replace

    with pytest.raises(InputError, match="public panel"):
        scaled_panel(replace(simulate_households(5), private=True))


def test_an_array_is_bridged_and_standardised() -> None:
    array = np.random.default_rng(0).normal(5, 3, (40, 20, 2))
    array[3, 4:7, 1] = np.nan
    series = scaled_array(array)
    np.testing.assert_allclose(series.mean(axis=(0, 1)), 0, atol=0.05)
    np.testing.assert_allclose(series.std(axis=(0, 1)), 1, atol=0.05)
    assert np.isfinite(series).all()
    assert scaled_array(array[:, :, 0]).shape == (40, 20, 1)
    assert (scaled_array(np.ones((4, 9))) == 0).all()


@pytest.mark.parametrize(
    "array",
    [np.zeros(3), np.zeros((2, 0, 1)), np.array([["a", "b"]]), np.full((2, 3), np.inf), np.full((2, 3), np.nan)],
    ids=["flat", "no steps", "text", "infinite", "empty"],
)
def test_other_arrays_are_refused(array: np.ndarray) -> None:
    with pytest.raises(InputError, match="Public array"):
        scaled_array(array)


def test_windows_of_a_series_stay_together_and_keep_their_channels() -> None:
    series = np.arange(2 * 20 * 3).reshape(2, 20, 3)
    windows = windows_of(series, 8)
    assert windows.shape == (14, 8, 3)
    np.testing.assert_array_equal(windows[1], series[0, 2:10])
    np.testing.assert_array_equal(windows[7], series[1, :8])
    np.testing.assert_array_equal(one_channel_each(series)[4, :, 0], series[1, :, 1])
    with pytest.raises(InputError, match="at most the 20 steps"):
        windows_of(series, 21)


def test_a_pack_is_trained_on_the_public_table_where_the_paper_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With TS2Vec, as published; the release carries it, and the certificate names the table it came from."""
    brief = Effort(autoencoder_iterations=3, ts2vec_iterations=2, distillation_iterations=3, distillation_series=64)
    monkeypatch.setattr(pretraining, "_OF_DOMAINS", brief)
    public = tmp_path / "public.npy"
    np.save(public, 5 + np.random.default_rng(6).random((60, 8, 1)))
    schema = plain_schema(unit=PrivacyUnit(kind="overlapping-window"))
    recipe = Recipe(iterations=1, population=12, lookahead=1, as_published=True)
    method = PETS(scale="bounds", public=str(public), recipe=recipe)
    assert method.pack == "domain"
    assert PETS(scale="bounds", public=str(public)).pack == "general"
    release = fit(method, make_panel(schema, 30))
    carried = Pack.from_bytes(release.arrays["pack"].tobytes(), "pets")
    assert (carried.shape["similarity"]["kind"], carried.shape["num_steps"]) == ("ts2vec", 8)
    assert set(release.certificate.public_inputs) == {"pets public table"}
    assert release.sample(20).num_series == 20  # more than candidates: relatives are made by the pack it carries


def test_a_public_table_too_small_to_learn_from_is_refused_before_the_charge(tmp_path: Path) -> None:
    public = tmp_path / "public.npy"
    np.save(public, np.ones((5, 8, 1)))
    ledger = new_ledger()
    with pytest.raises(InputError, match="at least 32 of 8 steps"):
        PETS(public=str(public), pack="domain").fit(make_panel(plain_schema(), 30), ledger)
    assert not ledger.entries()
    with pytest.raises(InputError, match="public: a file is expected"):
        PETS(pack="domain")
