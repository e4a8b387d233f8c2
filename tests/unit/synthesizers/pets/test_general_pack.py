"""The pack that ships with the package knows more than an untrained network of its shape, on data it never saw."""

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from understudy.data import simulate_households
from understudy.nn.nearest import nearest
from understudy.synthesizers.packs import load_pack
from understudy.synthesizers.pets.modules import EncoderSimilarity, Modules, PooledConv, Similarity, fitted
from understudy.synthesizers.pets.pretraining import scaled_panel

FALSE_ALARM = 1e-9  # probability that an encoder which is no better than the other passes
HOMES = 4000


@pytest.fixture(scope="module")
def homes() -> tuple[np.ndarray, np.ndarray]:
    panel = simulate_households(HOMES)
    assert panel.label is not None
    return scaled_panel(panel), panel.label


def general_modules() -> Modules:
    return fitted(load_pack("general", "pets"), 168, 2)


def tells_the_tariff(embed: Similarity, homes: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Whether the nearest home of the second half has the tariff of each home of the first half."""
    series, tariff = homes
    embedded, half = embed(series), HOMES // 2
    return tariff[:half] == tariff[half:][nearest(embedded[:half], embedded[half:])[0][:, 0]]


def better(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Exact p-value of the sign test on the homes that only one of the two got right."""
    won, lost = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    return float(binomtest(won, won + lost, 0.5, alternative="greater").pvalue)


def untrained(seed: int) -> EncoderSimilarity:
    torch.manual_seed(seed)
    return EncoderSimilarity(network=PooledConv(channels=1).train(False), level_weight=1.0)


def test_the_general_encoder_beats_untrained_ones_of_its_shape(homes: tuple[np.ndarray, np.ndarray]) -> None:
    """Detects about five points of accuracy in two thousand homes; control: no untrained one beats another."""
    general = general_modules().similarity
    assert isinstance(general, EncoderSimilarity)
    assert general.network.shape == PooledConv(channels=1).shape
    ours = tells_the_tariff(general, homes)
    others = [tells_the_tariff(untrained(seed), homes) for seed in (1, 2)]
    assert max(better(ours, other) for other in others) < FALSE_ALARM
    assert min(better(others[0], others[1]), better(others[1], others[0])) > FALSE_ALARM


def test_the_general_autoencoder_expresses_homes(homes: tuple[np.ndarray, np.ndarray]) -> None:
    from understudy.synthesizers.pets.modules import ConvVAE, VAEVariation, resampled
    from understudy.synthesizers.pets.pretraining import explained

    variation = general_modules().variation
    assert isinstance(variation, VAEVariation)
    load = resampled(torch.as_tensor(homes[0][:500, :, :1].copy()), variation.network.steps).numpy()
    torch.manual_seed(0)
    fresh = ConvVAE(**variation.network.shape).train(False)
    assert explained(variation.network, load) > 0.7
    assert explained(fresh, load) < 0.1
