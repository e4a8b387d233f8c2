"""Every table and figure of the five papers, which benchmark repeats it, and what keeps the two from being compared."""

from collections.abc import Mapping
from dataclasses import dataclass

METERS = "its meter is not public; another household's load stands in"
SHORT = "one week of METR-LA instead of seventeen, PeMSD7 instead of PeMS-BAY, and another judge"
TRAINED = "networks here are trained for far fewer iterations"
UNTRAINED = "800 iterations instead of 11,400; published TPDs keep a forecaster's worst epoch, ours its best"
UNTRAINED_SINES = "800 iterations instead of 11,400"
CLAIMED = "the published epsilon does not hold (a noisy scalar per tensor, batches known to parties)"


@dataclass(frozen=True, kw_only=True)
class Published:
    """One table or figure.

    Attributes:
        paper: Number of the paper.
        place: Such as "Table 1".
        shows: In a few words.
        benchmarks: Names of those that repeat it; none where it shows no measurement.
        apart: Why its figures and ours can't be compared, if they can't.
        worse: What is known of figures that are worse here.
        noisy: Only rows that promise a finite epsilon belong to it, or only others; None for all.
    """

    paper: str
    place: str
    shows: str
    benchmarks: tuple[str, ...] = ()
    apart: str = ""
    worse: str = ""
    noisy: bool | None = None


def _of(paper: str, *lines: tuple[str, ...], noisy: Mapping[str, bool] | None = None) -> tuple[Published, ...]:
    """Returns items of (place, shows, benchmarks, apart, worse); `noisy` by place, where tables share a benchmark."""
    return tuple(
        Published(
            paper=paper,
            place=place,
            shows=shows,
            benchmarks=tuple(names.split()),
            apart=apart,
            worse="".join(worse),
            noisy=(noisy or {}).get(place),
        )
        for place, shows, names, apart, *worse in lines
    )


PUB2PRIV = _of(
    "000",
    ("Fig. 1", "idea", "", "drawing of the method"),
    ("Fig. 2, 7", "architecture", "", "drawing of the method"),
    (
        "Table 1",
        "utility at epsilon 1",
        "pub2priv-portfolio pub2priv-electricity pub2priv-trade-simulated",
        "it samples for contexts of training series and judges on these; TSLA and the Dow Jones are missing here",
    ),
    ("Fig. 3", "utility over epsilon, portfolios", "pub2priv-portfolio", "figures are only drawn there"),
    ("Fig. 4", "t-SNE of samples", "pub2priv-portfolio pub2priv-electricity", "a picture"),
    (
        "Fig. 5",
        "identifiability over epsilon",
        "pub2priv-portfolio pub2priv-electricity pub2priv-trade-simulated",
        "against training series there, at most 0.04 at epsilon 1; against series put aside here",
    ),
    ("Fig. 6", "portfolios of growing complexity", "pub2priv-strategies", "figures are only drawn there"),
    (
        "Table 2",
        "correlation of context and series",
        "pub2priv-portfolio pub2priv-electricity pub2priv-trade-simulated",
        "one stock and one index are missing here; weekly clients with weather of elsewhere; imports are simulated",
    ),
    ("Tables 3, 4", "hyperparameters", "", "no measurement"),
    ("Table 5", "toy: error by correlation of the context", "pub2priv-toy", ""),
    ("Fig. 8", "series of one context", "pub2priv-portfolio", "a picture"),
    ("Fig. 9", "distributions of three statistics", "pub2priv-portfolio", "a picture"),
    ("Tables 6, 7", "time and memory", "cost-pub2priv", "a GPU there"),
)
PETS = _of(
    "001",
    ("Fig. 1, 2", "idea and pipeline", "", "drawing of the method"),
    ("Fig. 3a, 3c", "C-FID and forecasts over epsilon, METR-LA", "pets-traffic", SHORT),
    ("Fig. 3b", "C-FID over epsilon, UCI HAR", "pets-har", "another judge: the paper's is the encoder that voted"),
    ("Fig. 4", "real and synthetic traffic", "pets-traffic", "a picture"),
    ("Table 1", "options one at a time", "pets-ablation", SHORT),
)
PPEM = _of(
    "002",
    ("Fig. 1", "idea", "", "drawing of the method"),
    ("Fig. 2", "three estimators under null and alternative", "ppem-tests", "figures are only drawn there"),
    (
        "Table 1",
        "tests and prediction, credit and MIMIC",
        "ppem-credit ppem-mimic",
        "part of one table, two hidden attributes of it and not five; the demo of the other, too small for an AUROC",
    ),
    ("Fig. 3", "marginals and conditionals, credit", "ppem-credit", "a picture"),
    ("Fig. 4", "diagnoses, MIMIC", "ppem-mimic", "a picture, of the demo here"),
    (
        "D.3",
        "statistics of the Stein and of the two-sample test",
        "ppem-credit ppem-mimic",
        "sums over other rows; part of one table, the demo of the other",
    ),
    ("D.4", "DP on the hidden attributes alone", "ppem-credit", "part of the table; its DP does not hold"),
)
ADALN = _of(
    "003",
    ("Fig. 1", "heavy tails of the condition's gradients", "adaln-gradients", METERS),
    ("Fig. 2, 3", "distributions of gradient norms", "adaln-gradients", METERS),
    ("Fig. 4", "what clipping leaves", "adaln-gradients", METERS),
    ("Fig. 5", "loss over iterations", "", "a loss of private training is not shown here"),
    ("Table 1", "imputing and forecasting by noise", "adaln-power", METERS),
    ("Tables 2, 3, 12", "gradient norms and clipping", "adaln-gradients", METERS),
    ("Tables 4, 17", "components", "adaln-ablation", METERS),
    ("Tables 5, 10, 11", "operators", "adaln-ablation", METERS),
    ("Tables 6, 7", "all metrics by noise", "adaln-power", METERS),
    (
        "Table 8",
        "ETTh1",
        "adaln-etth1",
        "errors there are of one sample of unknown masks; a network eight times as large",
    ),
    (
        "Table 9",
        "ETTm1",
        "adaln-ettm1",
        "errors there are of one sample of unknown masks; a network eight times as large",
    ),
    ("Tables 13, 16", "tightness", "adaln-ablation", METERS),
    ("Table 14", "bounds without noise", "adaln-ablation", METERS),
    ("Table 15", "clip", "adaln-ablation", METERS),
    (
        "Table 18",
        "time of a step",
        "cost-dit",
        "a GPU there; private over ordinary steps, 1.69 there, are in `cost-dpsgd`",
    ),
    ("Table 19", "ranges of masks", "", "no measurement"),
)
VFLGAN = _of(
    "004",
    ("Fig. 1", "architecture", "", "drawing of the method"),
    ("Fig. 2", "AWD while training, sines", "vertical-sine2 vertical-sine6", TRAINED),
    (
        "Table 1, Fig. 3",
        "sines: error and amplitudes (here over 200 steps of 800, in a fourteenth of the iterations)",
        "vertical-sine2 vertical-sine6",
        "",
        UNTRAINED_SINES,
    ),
    ("Table 2, Fig. 4, 5", "EEG", "vertical-eeg", TRAINED),
    ("Table 3, Fig. 6, 7", "Stock and Energy without noise", "vertical-stock vertical-energy", "", UNTRAINED),
    (
        "Fig. 8",
        "AADA on four sets",
        "vertical-sine2 vertical-eeg vertical-stock vertical-energy",
        "figures are only drawn there",
    ),
    ("Table 4, Fig. 9, 10", "Stock and Energy with noise", "vertical-stock vertical-energy", CLAIMED),
    ("Fig. 11", "EEG with noise", "vertical-eeg", CLAIMED),
    ("Table 5, Fig. 12", "2 to 10 parties", "vertical-parties", "", UNTRAINED),
    (
        "Table 6",
        "operations, memory, bytes",
        "cost-vertical cost-vertical-wire",
        "the paper does not say what its operations count; its memory is a GPU's",
    ),
    ("Tables 7 to 10", "attacks", "audit-stock", "Stock alone, Table 9 at epsilon 10, fewer models"),
    noisy={"Table 3, Fig. 6, 7": False, "Table 4, Fig. 9, 10": True, "Table 2, Fig. 4, 5": False, "Fig. 11": True},
)
ALL = (*PUB2PRIV, *PETS, *PPEM, *ADALN, *VFLGAN)

_FOLLOWING = ("ks_r", "ks_ar", "corr_meta", "discriminative", "predictive", "nearer_to_real", "ks_corr")
_NEARNESS = ("awd", "aada")
# What ours show where a paper only draws or prints something else, and on data that no paper has.
OURS: dict[str, tuple[str, ...]] = {
    **{f"pub2priv-{name}": _FOLLOWING for name in ("portfolio", "electricity", "trade-simulated", "households")},
    "pub2priv-strategies": _FOLLOWING,
    "pub2priv-toy": ("predictive", "corr_meta"),
    "pub2priv-design": ("ks_corr", "corr_meta", "ks_ar"),
    "pub2priv-limits": ("over_train_on_real",),
    "pub2priv-knowledge": ("error", "error_untrained_1", "error_untrained_2", "error_untrained_3"),
    "pets-households": ("c_fid", "forecast_rmse", "diversity"),
    "ppem-tests": ("rejected_normalised", "rejected_studentised", "rejected_finite", "negative_linear"),
    "ppem-series": ("effect_mmd", "effect_wasserstein", "conditional_gap", "auroc", "regression_r2"),
    "adaln-households": ("impute_rmse", "forecast_rmse"),
    **{f"vertical-{name}": _NEARNESS for name in ("sine2", "sine6", "eeg", "stock", "energy", "parties")},
    "vertical-households": (*_NEARNESS, "tpd", "tpd_tstr"),
    **{f"spectral-{name}": ("tstr_mae", "ratio") for name in ("stock", "energy")},
    "spectral-households": (
        "ks_load_kw",
        "ks_solar_kw",
        "tariff_total_variation",
        "gaps_ks",
        "lengths_ks",
        "autocorrelation_error",
        "profile_error",
    ),
    "cost-dit": ("seconds", "over_unbounded", "series_per_second"),
    "cost-vertical": ("ms", "speedup", "over_plain"),
    "cost-vertical-wire": ("ms", "adds", "adds_processor"),
    "cost-scale": ("read_seconds", "fit_seconds", "microseconds_per_series"),
    "cost-voting": ("cpu_seconds", "times_as_fast_as_scikit_learn", "agreement"),
    "cost-judges": ("update_seconds", "speedup"),
    "cost-ppem": ("penalty_share", "private_over_plain", "vmap_over_plain"),
}


def table_of(benchmark: str, noisy: bool) -> Published:
    """Returns the table that a benchmark's rows with or without noise belong to, or the figure where there is none."""
    named = [item for item in ALL if benchmark in item.benchmarks and item.noisy in (None, noisy)]
    return next((item for item in named if item.place.startswith("Table")), named[0])
