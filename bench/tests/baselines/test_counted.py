"""`gem` and `private-gsd` on noisy counts: what is made of them, and which of them are bought."""

from collections.abc import Sequence

import numpy as np
import pytest
from understudy_bench.baselines import gem, private_gsd
from understudy_bench.baselines.counting import CHOICES, PAIRS, Counting, Pair
from understudy_bench.baselines.gem import Gem, Mixture
from understudy_bench.baselines.private_gsd import bred

from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.contract.panels import make_panel, plain_schema

DOMAIN = (3, 4)
JOINT = np.array([[0.3, 0.0, 0.0, 0.1], [0.0, 0.3, 0.0, 0.0], [0.0, 0.0, 0.2, 0.1]])
ALONE = np.outer(JOINT.sum(1), JOINT.sum(0))


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """Total variation."""
    return float(np.abs(one - other).sum() / 2)


def shares_of(codes: np.ndarray) -> np.ndarray:
    found = np.zeros(DOMAIN)
    np.add.at(found, (codes[:, 0], codes[:, 1]), 1 / len(codes))
    return found


def test_a_mixture_learns_a_pair_that_no_product_is_like() -> None:
    mixture = Mixture(Gem(rows=64, updates=400, width=32, rate=1e-2), DOMAIN)
    mixture.fit((JOINT.sum(1), JOINT.sum(0)), {(0, 1): JOINT})
    assert distance(JOINT, ALONE) > 0.4
    assert distance(mixture.expected()(0, 1), JOINT) < 0.1
    released = mixture.rows().detach().numpy()
    assert (released[:, 0, 3:] == 0).all()  # a level that a column does not have is never drawn
    drawn = shares_of(gem.draw_codes(released, 20_000, np.random.default_rng(0)))
    assert distance(drawn, JOINT) < 0.12


def test_a_table_is_bred_towards_the_counts_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    start = np.stack([rng.choice(3, 200, p=JOINT.sum(1)), rng.choice(4, 200, p=JOINT.sum(0))], axis=1)
    table = bred(start, {(0, 1): JOINT}, DOMAIN, 2000, rng)
    assert distance(shares_of(start), JOINT) > 0.3
    assert distance(shares_of(table), JOINT) < 0.02


def test_what_cells_have_too_much_is_kept_up_with() -> None:
    """Breeding on from its own result, whose excess is counted anew, finds nothing that was overlooked."""
    rng, wanted = np.random.default_rng(1), {}
    target = rng.integers(0, [3, 4, 2], (300, 3))
    for first, second in ((0, 1), (0, 2), (1, 2)):
        wanted[first, second] = np.zeros(([3, 4, 2][first], [3, 4, 2][second]))
        np.add.at(wanted[first, second], (target[:, first], target[:, second]), 1 / 300)
    table = bred(rng.integers(0, [3, 4, 2], (100, 3)), wanted, (3, 4, 2), 3000, rng)
    again = bred(table, wanted, (3, 4, 2), 300, rng)
    assert (table != again).sum() <= 3


def test_an_asked_label_is_drawn_also_where_no_row_has_it() -> None:
    table = np.array([[0, 1], [0, 2], [1, 3]])
    rng = np.random.default_rng(0)
    assert set(private_gsd.draw_codes(table, 50, rng, 0)[:, 1].tolist()) == {1, 2}
    assert (private_gsd.draw_codes(table, 50, rng, 2)[:, 0] == 2).all()
    held = np.full((4, 2, 3), 1 / 3, dtype=np.float32)
    assert (gem.draw_codes(held, 20, rng, 1)[:, 0] == 1).all()


@pytest.mark.parametrize(("coefficients", "sizes"), [(1, [1]), (2, [3]), (3, [4, 2]), (5, [4, 4, 4])])
def test_no_pair_is_bought_twice_where_pairs_are_few(
    coefficients: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One channel has a column more than coefficients, so 1, 3, 6 and 15 pairs; what is planned is what is bought."""
    bought: list[Sequence[Pair]] = []
    release = Counting.release_pairs

    def noted(self: Counting, pairs: Sequence[Pair]) -> tuple[list[np.ndarray], float]:
        bought.append(pairs)
        return release(self, pairs)

    monkeypatch.setattr(Counting, "release_pairs", noted)
    method = Gem(coefficients=coefficients, rounds=3, chosen=4, rows=16, updates=2, width=8)
    panel, guarantee = make_panel(plain_schema(), 120), Guarantee(1.0, 1e-6)
    method.fit(panel, Ledger.in_memory(guarantee), guarantee=guarantee)
    assert [len(pairs) for pairs in bought] == sizes
    assert len({pair for pairs in bought for pair in pairs}) == sum(sizes)
    events = {entry.label: entry.event for entry in method.planned(panel.schema, guarantee).entries}
    for label in (CHOICES, PAIRS):
        assert isinstance(event := events[label], Gaussian)
        assert event.count == len(sizes)
