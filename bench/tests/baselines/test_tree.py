"""Trees: margins are kept, noise is taken for independence, and draws follow the joints."""

import numpy as np
from understudy_bench.baselines.tree import Tree, joint_of, spanning_tree

FIRST, SECOND = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.9])
JOINT = np.array([[0.05, 0.45], [0.05, 0.25], [0.0, 0.2]])


def test_a_joint_has_the_margins_it_is_given_whatever_the_noise() -> None:
    rng = np.random.default_rng(0)
    for noise in (0.0, 0.01, 10.0):
        joint = joint_of(JOINT + noise * rng.standard_normal(JOINT.shape), FIRST, SECOND, noise)
        assert (joint >= 0).all()
        np.testing.assert_allclose(joint.sum(axis=1), FIRST, atol=1e-3)
        np.testing.assert_allclose(joint.sum(axis=0), SECOND, atol=1e-9)


def test_without_noise_a_joint_is_what_was_counted() -> None:
    np.testing.assert_allclose(joint_of(JOINT, FIRST, SECOND, 0.0), JOINT, atol=1e-6)


def test_what_departs_no_more_than_noise_would_is_independence() -> None:
    independent = np.outer(FIRST, SECOND)
    np.testing.assert_allclose(joint_of(JOINT, FIRST, SECOND, 1.0), independent, atol=1e-6)
    assert np.abs(JOINT - independent).max() > 0.02


def test_the_tree_takes_the_pairs_with_the_most_merit() -> None:
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    edges = spanning_tree(pairs, np.array([5.0, -9.0, 1.0, 8.0, 0.0, 7.0]), 4)
    assert sorted(map(sorted, edges.tolist())) == [[0, 1], [1, 2], [2, 3]]
    assert edges[:, 1].tolist() == [1, 2, 3]  # from the first column outwards, so that parents are drawn first


def test_draws_follow_the_joints_and_a_fixed_first_column() -> None:
    """Of 40 000 draws a share is off by 0.02 with probability below 2·exp(−2·0.02²·40000) < 3e-14 each."""
    tree = Tree.of((FIRST, SECOND, SECOND), np.array([[0, 1], [1, 2]]), (JOINT, np.diag(SECOND)))
    codes = tree.draw(40_000, np.random.default_rng())
    shares = np.zeros((3, 2))
    np.add.at(shares, (codes[:, 0], codes[:, 1]), 1 / len(codes))
    assert np.abs(shares - JOINT).max() < 0.02
    assert np.abs(shares - np.outer(FIRST, SECOND)).max() > 0.02  # a draw without the joint would be noticed
    assert (codes[:, 1] == codes[:, 2]).all()
    fixed = tree.draw(1000, np.random.default_rng(), first=2)
    assert (fixed[:, 0] == 2).all()
    assert (fixed[:, 1] == 1).all()


def test_a_level_that_nobody_has_can_still_be_asked_for() -> None:
    tree = Tree.of((np.array([1.0, 0.0]), SECOND), np.array([[0, 1]]), (np.array([SECOND, [0.0, 0.0]]),))
    assert set(tree.draw(500, np.random.default_rng(0), first=1)[:, 1].tolist()) == {0, 1}
