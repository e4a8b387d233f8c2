"""What `cost-vertical-wire` counts."""

from understudy_bench.cost.vertical import BATCH
from understudy_bench.cost.vertical_wire import FEATURES, _round_mb
from understudy_bench.registry import BENCHMARKS

from understudy.synthesizers.vflgan_ts.recipe import LATENT


def test_a_round_is_counted_with_headers_and_little_else() -> None:
    numbers = 2 * BATCH * (6 * FEATURES + 2 * LATENT)  # features and slopes of two parties, and latents
    counted = _round_mb("stock") * 1e6
    assert 4 * numbers < counted < 1.02 * 4 * numbers


def test_the_benchmark_is_listed() -> None:
    assert "cost-vertical-wire" in BENCHMARKS
