"""What the papers say beyond figures: that one row is better than another. Such a statement can be tried on other data.

Figures of other data, units and judges can't be compared; which of two methods is better can. A finding *holds* where
the ranges over at least three seeds are apart in the stated direction; *the reverse holds* where they are apart in the
other one, and it is *not shown* where they overlap. What is best where other real series are is compared by its
distance from them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from understudy_bench.judging import AS_REAL, ENOUGH_SEEDS

HOLDS, REVERSED, UNSHOWN, OPEN = "holds", "the reverse holds", "not shown", "not judged"
VERDICTS = (HOLDS, REVERSED, UNSHOWN, OPEN)
Results = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Which:
    """Which rows of a result are meant: those of a method, at an epsilon and with facts where rows differ by these."""

    method: str
    epsilon: float | None = None
    facts: tuple[tuple[str, float], ...] = ()

    def means(self, line: Mapping[str, Any]) -> bool:
        """Whether a row is one of them."""
        near = self.epsilon is None or abs((line["epsilon"] or 0.0) - self.epsilon) < 0.01 * self.epsilon
        return line["method"] == self.method and near and all(line.get(name) == value for name, value in self.facts)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """That `better` has a smaller `metric` than `worse`, or a larger one where `larger`."""

    paper: str
    place: str
    says: str
    benchmark: str
    metric: str
    better: Which
    worse: Which
    larger: bool = False


@dataclass(frozen=True)
class Range:
    """A figure over seeds."""

    mean: float
    low: float
    high: float
    seeds: int


@dataclass(frozen=True)
class Tried:
    """A finding beside what was seen."""

    finding: Finding
    better: Range
    worse: Range
    real: float | None = None  # what other real series have, where ranges are distances from that

    @property
    def verdict(self) -> str:
        """Returns whether it holds."""
        if min(self.better.seeds, self.worse.seeds) < ENOUGH_SEEDS:
            return OPEN
        if self.better.high >= self.worse.low and self.better.low <= self.worse.high:
            return UNSHOWN
        return HOLDS if self.points else REVERSED

    @property
    def points(self) -> bool:
        """Whether the means are in the stated order."""
        more = self.better.mean - self.worse.mean
        return more > 0 if self.finding.larger else more < 0


def tried(finding: Finding, results: Results) -> Tried | None:
    """Returns a finding with what a benchmark shows; None where it was not run."""
    if finding.benchmark not in results:
        return None
    result = results[finding.benchmark]
    lines = [*result["rows"], *result["controls"]]
    better, worse = (_range(lines, finding.metric, which) for which in (finding.better, finding.worse))
    if better is None or worse is None:
        return None
    real = _range(lines, finding.metric, Which(AS_REAL.get(finding.metric, "")))
    if real is None:
        return Tried(finding, better, worse)
    return Tried(finding, _away(better, real.mean), _away(worse, real.mean), real.mean)


def _away(found: Range, real: float) -> Range:
    """Returns how far a figure is from that of other real series."""
    ends = abs(found.low - real), abs(found.high - real)
    least = 0.0 if found.low <= real <= found.high else min(ends)
    return Range(abs(found.mean - real), least, max(ends), found.seeds)


def _range(lines: Sequence[Mapping[str, Any]], metric: str, which: Which) -> Range | None:
    found = [line for line in lines if which.means(line) and metric in line["metrics"]]
    found = [line for line in found if line.get("unit") == found[0].get("unit")]  # of several units the first
    values = [line["metrics"][metric] for line in found]
    if not values:
        return None
    spreads = [
        value if isinstance(value, Mapping) else {"mean": value, "low": value, "high": value} for value in values
    ]
    told = (
        int(line.get("seeds") or 1) for line, value in zip(found, values, strict=True) if isinstance(value, Mapping)
    )
    seeds = max(len(found), *told, 1)  # a figure without a range is one figure, whatever it is the mean of
    return Range(
        sum(float(one["mean"]) for one in spreads) / len(spreads),
        min(float(one["low"]) for one in spreads),
        max(float(one["high"]) for one in spreads),
        seeds,
    )


# paper | place | what it says | benchmark | metric | the better row, its epsilon | the worse row, its epsilon | larger?
_TABLE = """
Pub2Priv | Table 1 | predicts better than DP-GAN | pub2priv-portfolio | predictive | pub2priv @ 1 | dp-gan @ 1
Pub2Priv | Table 1 | predicts better than PATE-GAN | pub2priv-portfolio | predictive | pub2priv @ 1 | pate-gan @ 1
Pub2Priv | Table 1 | predicts better than GEM | pub2priv-portfolio | predictive | pub2priv @ 1 | gem @ 1
Pub2Priv | Table 1 | predicts better than AIM | pub2priv-portfolio | predictive | pub2priv @ 1 | aim, segments @ 1
Pub2Priv | Table 1 | predicts better than Private-GSD | pub2priv-portfolio | predictive | pub2priv @ 1 | private-gsd @ 1
Pub2Priv | Table 1 | context helps predicting | pub2priv-portfolio | predictive | pub2priv @ 1 | pub2priv w/o c @ 1
Pub2Priv | Table 1 | portfolios follow context | pub2priv-portfolio | corr_meta | pub2priv @ 1 | pub2priv w/o c @ 1
Pub2Priv | Table 1 | θ_T helps following it | pub2priv-portfolio | corr_meta | \
 pub2priv, published network @ 1 | pub2priv, published network w/o theta_T @ 1
Pub2Priv | Table 1 | electricity follows context | pub2priv-electricity | corr_meta | pub2priv @ 1 | pub2priv w/o c @ 1
Pub2Priv | Table 1 | electricity: context helps predicting | pub2priv-electricity | predictive | pub2priv @ 1 | \
pub2priv w/o c @ 1
Pub2Priv | Table 1 | electricity: better than DP-GAN | pub2priv-electricity | predictive | pub2priv @ 1 | dp-gan @ 1
Pub2Priv | Table 1 | electricity: better than PATE-GAN | pub2priv-electricity | predictive | pub2priv @ 1 | pate-gan @ 1
Pub2Priv | Table 1 | electricity: better than GEM | pub2priv-electricity | predictive | pub2priv @ 1 | gem @ 1
Pub2Priv | Table 1 | electricity: better than AIM | pub2priv-electricity | predictive | pub2priv @ 1 | aim, segments @ 1
Pub2Priv | Table 1 | electricity: better than Private-GSD | pub2priv-electricity | predictive | pub2priv @ 1 | \
private-gsd @ 1
Pub2Priv | Table 1 | trade follows context | pub2priv-trade-simulated | corr_meta | pub2priv @ 1 | pub2priv w/o c @ 1
Pub2Priv | Table 1 | trade: context helps predicting | pub2priv-trade-simulated | predictive | pub2priv @ 1 | \
pub2priv w/o c @ 1
Pub2Priv | Table 1 | trade: better than DP-GAN | pub2priv-trade-simulated | predictive | pub2priv @ 1 | dp-gan @ 1
Pub2Priv | Table 1 | trade: better than PATE-GAN | pub2priv-trade-simulated | predictive | pub2priv @ 1 | pate-gan @ 1
Pub2Priv | Table 1 | trade: better than GEM | pub2priv-trade-simulated | predictive | pub2priv @ 1 | gem @ 1
Pub2Priv | Table 1 | trade: better than AIM | pub2priv-trade-simulated | predictive | pub2priv @ 1 | aim, segments @ 1
Pub2Priv | Table 1 | trade: better than Private-GSD | pub2priv-trade-simulated | predictive | pub2priv @ 1 | \
private-gsd @ 1
Pub2Priv | Fig. 3 | a larger ε predicts better | pub2priv-portfolio | predictive | pub2priv @ 5 | pub2priv @ 0.25
Pub2Priv | Fig. 6 | fewer strategies are predicted better | pub2priv-strategies | predictive | \
pub2priv [strategies 2] @ 1 | pub2priv [strategies 10] @ 1
Pub2Priv | Table 5 | context of 0.9 predicts better than none | pub2priv-toy | predictive | \
pub2priv [correlation 0.9, series 100] @ 1 | pub2priv [correlation 0, series 100] @ 1
PETS | Fig. 3a | nearer than GS-WGAN, traffic | pets-traffic | c_fid | pets, rules @ 0.7 | gs-wgan @ 0.7
PETS | Fig. 3b | nearer than GS-WGAN, HAR | pets-har | c_fid | pets, rules @ 0.7 | gs-wgan @ 0.7
PETS | Fig. 3a | a larger ε is nearer, traffic | pets-traffic | c_fid | pets, rules @ 32 | pets, rules @ 0.7
PETS | Fig. 3b | a larger ε is nearer, HAR | pets-har | c_fid | pets, rules @ 32 | pets, rules @ 0.7
PETS | Fig. 3c | forecasts better than GS-WGAN | pets-traffic | forecast_rmse | pets, rules @ 0.7 | gs-wgan @ 0.7
PETS | Table 1 | one neighbour beats five | pets-ablation | c_fid | neighbours = 1 @ 5 | neighbours = 5 @ 5
PETS | Table 1 | a threshold of 12 beats 4 | pets-ablation | c_fid | threshold = 12.0 @ 5 | threshold = 4.0 @ 5
PPEM | Table 1 | x′ is more surely told from the real one than WGAN's | ppem-credit | p_mmd | ppem, lmdp | wgan-gp
PPEM | Table 1 | predicts better than EnergyGAN | ppem-credit | regression_mse | ppem, lmdp | energygan
PPEM | Table 1 | predicts better than SteinGAN | ppem-credit | regression_mse | ppem, lmdp | steingan
PPEM | Table 1 | with DP errs less than DP-GAN | ppem-credit | regression_mse | ppem, sound @ 1 | dp-gan @ 1
PPEM | Table 1 | with DP errs less than PATE-GAN | ppem-credit | regression_mse | ppem, sound @ 1 | pate-gan @ 1
PPEM | D.4 | the penalty costs less than DP on x′ | ppem-credit | regression_mse | \
ppem, lmdp | ppem, marginal-dp (not private)
DP-aware AdaLN-Zero | Table 9 | bounds help imputing, ETTm1, noise 0.1 | adaln-ettm1 | impute_rmse | \
dp-aware [noise_multiplier 0.1] | dp-vanilla [noise_multiplier 0.1]
DP-aware AdaLN-Zero | Table 9 | bounds help forecasting, ETTm1, noise 0.1 | adaln-ettm1 | forecast_rmse | \
dp-aware [noise_multiplier 0.1] | dp-vanilla [noise_multiplier 0.1]
DP-aware AdaLN-Zero | Table 8 | bounds help imputing, ETTh1, noise 0.1 | adaln-etth1 | impute_rmse | \
dp-aware [noise_multiplier 0.1] | dp-vanilla [noise_multiplier 0.1]
DP-aware AdaLN-Zero | Table 8 | bounds help forecasting, ETTh1, noise 0.1 | adaln-etth1 | forecast_rmse | \
dp-aware [noise_multiplier 0.1] | dp-vanilla [noise_multiplier 0.1]
DP-aware AdaLN-Zero | Table 1 | bounds help imputing, power, noise 0.1 | adaln-power | impute_rmse | \
dp-aware [noise_multiplier 0.1] | dp-vanilla [noise_multiplier 0.1]
DP-aware AdaLN-Zero | Table 1 | bounds help forecasting, power, noise 0.1 | adaln-power | forecast_rmse | \
dp-aware [noise_multiplier 0.1] | dp-vanilla [noise_multiplier 0.1]
DP-aware AdaLN-Zero | Table 2 | bounds shorten gradients, 0.03 | adaln-gradients | s_cond_p99 | aware, noise 0.03 | \
vanilla, noise 0.03
DP-aware AdaLN-Zero | Table 2 | bounds shorten gradients, 0.05 | adaln-gradients | s_cond_p99 | aware, noise 0.05 | \
vanilla, noise 0.05
DP-aware AdaLN-Zero | Table 2 | bounds shorten gradients, 0.1 | adaln-gradients | s_cond_p99 | aware, noise 0.1 | \
vanilla, noise 0.1
DP-aware AdaLN-Zero | Table 2 | bounds shorten gradients, 0.2 | adaln-gradients | s_cond_p99 | aware, noise 0.2 | \
vanilla, noise 0.2
DP-aware AdaLN-Zero | Fig. 5 | more noise, more loss | adaln-gradients | loss_last | aware, noise 0.03 | \
aware, noise 0.2
VFLGAN-TS | Fig. 2 | nearer than C-CosciGAN, two sines | vertical-sine2 | sine_amplitude | vflgan-ts | \
central-coscigan
VFLGAN-TS | Table 1 | nearer than C-CosciGAN, two sines | vertical-sine2 | sine_error | vflgan-ts | central-coscigan
VFLGAN-TS | Fig. 3 | amplitudes go together, sines | vertical-sine2 | sine_ratio | vflgan-ts | party-coscigan
VFLGAN-TS | Table 2 | nearer than V-CosciGAN, EEG | vertical-eeg | tpd | vflgan-ts | party-coscigan
VFLGAN-TS | Table 3 | nearer than VFLGAN, Stock | vertical-stock | tpd | vflgan-ts | vflgan
VFLGAN-TS | Table 3 | nearer than C-CosciGAN, Stock | vertical-stock | tpd | vflgan-ts | central-coscigan
VFLGAN-TS | Table 3 | nearer than V-CosciGAN, Stock | vertical-stock | tpd | vflgan-ts | party-coscigan
VFLGAN-TS | Table 3 | nearer than V-CosciGAN, Energy | vertical-energy | tpd | vflgan-ts | party-coscigan
VFLGAN-TS | Fig. 6a | nearer than VFLGAN, Stock | vertical-stock | awd | vflgan-ts | vflgan
VFLGAN-TS | Fig. 6b | nearer than V-CosciGAN, Energy | vertical-energy | awd | vflgan-ts | party-coscigan
VFLGAN-TS | Fig. 6b | nearer than VFLGAN, Energy | vertical-energy | awd | vflgan-ts | vflgan
VFLGAN-TS | Table 4 | a larger ε is nearer, Stock | vertical-stock | tpd | vflgan-ts, sound @ 10 | vflgan-ts, sound @ 2
VFLGAN-TS | Table 4 | a larger ε is nearer, Energy | vertical-energy | tpd | vflgan-ts, sound @ 10 | \
vflgan-ts, sound @ 2
"""


def _finding(line: str) -> Finding:
    paper, place, says, benchmark, metric, better, worse, *larger = (part.strip() for part in line.split("|"))
    return Finding(
        paper=paper, place=place, says=says, benchmark=benchmark, metric=metric, better=_which(better),
        worse=_which(worse),
        larger=bool(larger),
    )  # fmt: skip


def _which(text: str) -> Which:
    named, _, epsilon = text.partition(" @ ")
    method, _, facts = named.partition(" [")
    pairs = (fact.rsplit(" ", 1) for fact in facts.rstrip("]").split(", ") if fact)
    return Which(method, float(epsilon) if epsilon else None, tuple((name, float(value)) for name, value in pairs))


ALL = tuple(_finding(line) for line in _TABLE.strip().splitlines())
