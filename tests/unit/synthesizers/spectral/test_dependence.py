import numpy as np
import pytest

from understudy.privacy.border import Given, Statistic
from understudy.privacy.budget import Guarantee
from understudy.privacy.contributions import SideBySide
from understudy.privacy.events import Gaussian
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.statistics.series import dct_matrix, triangle
from understudy.synthesizers.spectral import dependence
from understudy.synthesizers.spectral.dependence import Coupling, Covariance

COUPLINGS = [
    Coupling(0, 2, 4, np.arange(4), 1.0),
    Coupling(3, 2, 3, np.array([0, 1, 3, 2, 4]), 0.4),
    Coupling(1, 1, 2, np.arange(6), 1.0),
    Coupling(2, 3, 5, np.arange(5), 0.2),
]
COUPLING_IDS = ["all coupled", "some free", "one channel", "weak across"]


def coordinates_for(coupling: Coupling, number: int, scale: float = 1.0) -> np.ndarray:
    size = coupling.num_single + len(coupling.order) * coupling.num_channels
    return scale * np.random.default_rng(size).normal(size=(number, size))


def moments_of(rows: np.ndarray, coupling: Coupling, kinds: np.ndarray | None = None) -> SideBySide:
    """What the border sums, of coordinates that stand in the order of the coupling."""
    singles, blocks = rows[:, : coupling.num_single], rows[:, coupling.num_single :]
    in_order = blocks.reshape(len(rows), len(coupling.order), coupling.num_channels)
    own = np.zeros(len(rows), dtype=np.int64) if kinds is None else kinds
    return coupling.moments(singles, in_order[:, np.argsort(coupling.order)], own, int(own.max(initial=0)) + 1)


def released(rows: np.ndarray, coupling: Coupling, kinds: np.ndarray | None = None) -> np.ndarray:
    """The sum [kind, pair] as the border clips it, without noise."""
    moments, number = moments_of(rows, coupling, kinds), 1 if kinds is None else int(kinds.max()) + 1
    statistic = Statistic(label="sum", shape=(number * coupling.num_pairs,), bound=coupling.radius)
    plan = SpendingPlan((PlanEntry("sum", Gaussian(1.0)),), Guarantee(9.0, 1e-6))
    grant = Ledger.in_memory(plan.guarantee).charge(plan, label="test", noise=NoiseSource.constant(0))
    return coupling.by_kind(grant.release(statistic, Given(moments)), number)


def written_out(row: np.ndarray, coupling: Coupling) -> np.ndarray:
    """All weighted second moments of one series, upper triangles end to end."""
    coupled, free = row[: coupling.num_coupled], row[coupling.num_coupled :]
    blocks = free.reshape(coupling.num_free, coupling.num_channels)
    weights = np.where(coupling.same_block, 1.0, coupling.cross_weight)
    parts = [weights * np.outer(coupled, coupled)] + [np.outer(block, block) for block in blocks]
    return np.concatenate([triangle(part[None])[0] for part in parts])


@pytest.mark.parametrize("coupling", COUPLINGS, ids=COUPLING_IDS)
def test_the_norm_in_closed_form_is_the_norm_of_the_moments_written_out(coupling: Coupling) -> None:
    rows = coordinates_for(coupling, 20, scale=10.0)
    norms = [np.linalg.norm(written_out(row, coupling)) for row in rows]
    np.testing.assert_allclose(moments_of(rows, coupling).norms(), norms, rtol=1e-9)


@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0, 1e100, np.inf, np.nan])
@pytest.mark.parametrize("coupling", COUPLINGS, ids=COUPLING_IDS)
def test_no_series_adds_more_than_the_radius_whatever_its_coordinates(coupling: Coupling, scale: float) -> None:
    for row in coordinates_for(coupling, 5, scale):
        vector = released(row[None], coupling)
        assert np.isfinite(vector).all()
        assert np.linalg.norm(vector) <= coupling.radius * (1 + 1e-9)


@pytest.mark.parametrize("coupling", COUPLINGS, ids=COUPLING_IDS)
def test_a_small_series_is_released_as_it_is(coupling: Coupling) -> None:
    row = coordinates_for(coupling, 1, scale=0.1)
    (vector,) = released(row, coupling)
    np.testing.assert_allclose(vector, written_out(row[0], coupling), atol=1e-4 * coupling.radius)
    coupled, free = dependence.unpack_moments(written_out(row[0], coupling), coupling)
    first, rest = row[0, : coupling.num_coupled], row[0, coupling.num_coupled :]
    np.testing.assert_allclose(coupled, np.outer(first, first))
    blocks = rest.reshape(coupling.num_free, coupling.num_channels)
    np.testing.assert_allclose(free, np.einsum("bi,bj->bij", blocks, blocks))
    assert len(vector) == coupling.num_pairs


@pytest.mark.parametrize("coupling", COUPLINGS, ids=COUPLING_IDS)
def test_kinds_are_summed_apart(coupling: Coupling) -> None:
    rows, kinds = coordinates_for(coupling, 30, scale=0.5), np.arange(30) % 3
    apart = [released(rows[kinds == kind], coupling)[0] for kind in range(3)]
    assert np.array_equal(released(rows, coupling, kinds), apart)


def test_the_radius_lets_most_independent_gaussian_series_pass_unclipped() -> None:
    coupling = Coupling(0, 4, 20, np.arange(20), 1.0)
    lengths = moments_of(coordinates_for(coupling, 2000), coupling).norms()
    assert (lengths <= coupling.radius).mean() > 0.9
    assert np.median(lengths) > 0.5 * coupling.radius  # and it is not much too wide


@pytest.mark.parametrize("floor", [1e-3, 0.1])
def test_the_nearest_correlation_is_a_correlation_matrix(floor: float) -> None:
    noisy = np.eye(8) + np.random.default_rng(7).normal(0, 0.6, (8, 8))
    repaired = dependence.nearest_correlation(noisy, floor)
    np.testing.assert_allclose(np.diag(repaired), 1.0)
    np.testing.assert_allclose(repaired, repaired.T)
    assert np.linalg.eigvalsh(repaired).min() > 0
    np.linalg.cholesky(repaired)


def test_a_correlation_matrix_is_its_own_nearest_one() -> None:
    truth = 0.6 ** np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    np.testing.assert_allclose(dependence.nearest_correlation(truth), truth, atol=1e-12)


def test_a_process_without_a_clock_has_the_same_covariance_at_every_step() -> None:
    """The prior, turned back into time, is constant along every lag (a Toeplitz matrix)."""
    steps, channels = 8, 2
    deviation = np.repeat(np.array([2.0, 1.0, *np.linspace(1.5, 0.3, steps - 1)])[:, None], channels, axis=1)
    within = np.kron(np.eye(steps + 1), np.array([[1.0, 0.5], [0.5, 1.0]]))
    prior = dependence.stationary_prior(within, deviation)
    volatility = slice(channels, 2 * channels)
    assert not prior[volatility].any()
    kept = np.delete(np.arange(len(prior)), np.s_[channels : 2 * channels])
    before = within[np.ix_(kept, kept)] * np.outer(
        np.delete(deviation, 1, 0).ravel(), np.delete(deviation, 1, 0).ravel()
    )
    covariance = dependence._same_at_every_step(before, (steps, channels))
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(prior[np.ix_(kept, kept)], covariance / np.outer(scale, scale), atol=1e-12)
    basis = np.kron(dct_matrix(steps), np.eye(channels))
    in_time = (basis.T @ covariance @ basis).reshape(steps, channels, steps, channels)
    for lag in range(steps):
        along = in_time[np.arange(steps - lag), :, np.arange(steps - lag) + lag, :]
        np.testing.assert_allclose(along, np.broadcast_to(along[0], along.shape), atol=1e-12)
    assert np.trace(covariance) == pytest.approx(np.trace(before))


@pytest.mark.parametrize("clockless", [True, False])
@pytest.mark.parametrize("blocks", [2, 3, 30, 2000])
def test_every_block_is_measured_once_whatever_the_population(blocks: int, clockless: bool) -> None:
    energy = np.random.default_rng(9).random(blocks)
    for relative_noise in (1e-9, 1e-3, 1e3):
        coupling = dependence.choose_coupling(4, energy, 3, clockless=clockless, relative_noise=relative_noise)
        assert sorted(coupling.order) == list(range(blocks))
        assert 1 <= coupling.num_coupled_blocks <= blocks
        assert coupling.num_coupled <= max(dependence.MAX_COUPLED, 4 + 2 * 3)


def test_without_noise_the_fitted_covariance_is_the_true_one() -> None:
    coupling = Coupling(0, 2, 6, np.arange(6), 1.0)
    truth = np.kron(np.eye(6), np.array([[1.0, 0.7], [0.7, 1.0]]))
    truth[:2, 4:6] = truth[4:6, :2] = 0.3
    rows = np.random.default_rng(10).multivariate_normal(np.zeros(12), truth, 40_000)
    moments = released(rows, coupling)[0] / len(rows)
    fitted = dependence.fit_covariance(moments, 1e-3, coupling, None)
    spread = np.sqrt(np.diag(fitted.coupled))
    assert np.abs(fitted.coupled / np.outer(spread, spread) - truth).max() < 0.06


def test_draws_have_the_covariance_and_keep_what_is_known() -> None:
    coupled = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 2.0]])
    covariance = Covariance(coupled, np.array([[[1.0, -0.5], [-0.5, 1.0]]]))
    normal = np.random.default_rng(11).standard_normal((20_000, 5))
    drawn = covariance.sample(normal)
    np.testing.assert_allclose(np.cov(drawn[:, :3].T), coupled, atol=0.06)
    np.testing.assert_allclose(np.cov(drawn[:, 3:].T), covariance.free[0], atol=0.06)
    known = covariance.sample(normal, {0: np.full(20_000, 1.5)})
    assert (known[:, 0] == 1.5).all()
    assert known[:, 1].mean() == pytest.approx(0.8 * 1.5, abs=0.02)
    assert known[:, 1].var() == pytest.approx(1 - 0.8**2, abs=0.02)
