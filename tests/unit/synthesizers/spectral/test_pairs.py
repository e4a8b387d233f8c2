import numpy as np

from understudy.synthesizers.spectral.pairs import num_pairs, pack_pairs, unpack_pairs


def test_pairs_keep_the_length_and_come_back() -> None:
    matrices = np.random.default_rng(6).normal(size=(4, 5, 5))
    matrices = matrices + matrices.transpose(0, 2, 1)
    pairs = pack_pairs(matrices)
    np.testing.assert_allclose(np.linalg.norm(pairs, axis=1), np.linalg.norm(matrices, axis=(1, 2)))
    np.testing.assert_allclose(unpack_pairs(pairs, 5), matrices)
    assert pairs.shape[1] == num_pairs(5)
