"""All benchmarks by name: each takes (scale, data folder, progress, finished parts) and returns one JSON object.

Each is imported when it is run: most need torch, and a list of them should not.
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from understudy_bench.cells import Cells
from understudy_bench.result import Progress


@dataclass(frozen=True)
class Benchmark:
    """Where a benchmark lies.

    Attributes:
        about: One line for the list, with how long it takes.
        place: Module and function within `understudy_bench`.
        variant: What the function is told first, if it serves several benchmarks.
    """

    about: str
    place: str
    variant: str | None = None

    def __call__(self, scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
        module, name = self.place.rsplit(".", 1)
        first = () if self.variant is None else (self.variant,)
        function = getattr(import_module(f"understudy_bench.{module}"), name)
        found: dict[str, Any] = function(*first, scale, data_root, progress, cells)
        return found


BENCHMARKS: dict[str, Benchmark] = {
    "spectral-stock": Benchmark(
        "Stock windows: error of a forecaster trained on synthetic windows (target: about 5 minutes).",
        "spectral.windows.stock",
    ),
    "spectral-energy": Benchmark(
        "Energy windows: error of a forecaster trained on synthetic windows (target: about 6 minutes).",
        "spectral.windows.energy",
    ),
    "spectral-households": Benchmark(
        "Simulated homes, entity level: marginals, categories, gaps, lengths and dynamics (target: about 10 minutes).",
        "spectral.households.households",
    ),
    "structure-few": Benchmark(
        "Forecasts by `spectral` on four tables of a few hundred units, ε = 0.5 to 2 (target: about 3 minutes).",
        "structure.few",
    ),
    "structure-homes": Benchmark(
        "Forecasts by `spectral` on 1,000 and 10,000 simulated homes, ε = 0.5 to 2 (target: about 10 minutes).",
        "structure.some_homes",
    ),
    "structure-icu": Benchmark(
        "Gaps, labels and a classifier on 8,000 simulated stays (target: about 5 minutes).",
        "structure.intensive_care",
    ),
    "structure-tails": Benchmark(
        "Heavy-tailed counts, the largest loads of homes, meters that never fall (target: about 10 minutes).",
        "structure.tails",
    ),
    "structure-blind": Benchmark(
        "The general suite of `spectral` and of `independent` on six tables of few units (target: about 10 minutes).",
        "structure.against_blind",
    ),
    "structure-trees": Benchmark(
        "Boosted trees that tell `spectral` from 10,000 simulated homes (target: about 5 minutes).",
        "structure.trees",
    ),
    "cost-scale": Benchmark(
        "Seconds and peak memory of `spectral` from Parquet at 10⁴, 10⁵ and 10⁶ series (target: a few minutes).",
        "cost.scale.scale_cost",
    ),
    "cost-dpsgd": Benchmark(
        "Private step over non-private step of five networks, and Opacus' (target: about 20 minutes).",
        "cost.dpsgd.all_models",
    ),
    "metrics-catch": Benchmark(
        "Which metric catches which fake of simulated homes, and none that sees other real ones (quick: 6 minutes).",
        "metrics_catch.caught",
    ),
    "audit-catch": Benchmark(
        "What audits contradict and what not: every method as it is and with its noise halved (quick: 10 minutes).",
        "audit.catch.catch",
    ),
    "audit-stock": Benchmark(
        "Shadow models on Stock: Tables 7 to 10 of VFLGAN-TS with intervals, and features inverted (quick: minutes).",
        "audit.tables.attacks",
        "stock",
    ),
    "audit-energy": Benchmark("The same on Energy (quick: minutes).", "audit.tables.attacks", "energy"),
    "audit-eeg": Benchmark("The same on EEG, without the label (quick: minutes).", "audit.tables.attacks", "eeg"),
    "cost-audit": Benchmark(
        "Shadows per minute: one process, two, and vertical ones in a stack (quick: a few minutes).",
        "cost.audit.cost",
    ),
    "cost-judges": Benchmark(
        "An update of a recurrent judge with our GRU and with torch's, by length (seconds).",
        "cost.judges.cost",
    ),
    "cost-voting": Benchmark(
        "Tiled nearest neighbours compared with scikit-learn's brute force (target: a minute).",
        "cost.pets.voting",
    ),
    "cost-pets": Benchmark(
        "Seconds of an iteration of `pets` and of its unavoidable part; encoders (quick: about 10 minutes).",
        "cost.pets.evolution",
    ),
    "pets-har": Benchmark(
        "Private evolution from WISDM to UCI HAR, windows and subjects, with its controls (quick: about an hour).",
        "pets.results.har",
    ),
    "pets-traffic": Benchmark(
        "Private evolution from PeMSD7 to METR-LA, a week of each, with its controls (quick: about half an hour).",
        "pets.results.traffic",
    ),
    "pets-households": Benchmark(
        "Private evolution of ten thousand simulated homes, entity level, with its controls (quick: about an hour).",
        "pets.results.households",
    ),
    "pets-ablation": Benchmark(
        "One option of the published PETS at a time, on METR-LA at epsilon 5 (quick: about half an hour).",
        "pets.ablation.ablation",
    ),
    "pets-recipes": Benchmark(
        "Which recipe makes votes help, tried on people of WISDM alone at epsilon 1 (quick: about 10 minutes).",
        "pets.recipes.recipes",
    ),
    "pub2priv-portfolio": Benchmark(
        "Portfolios over real prices, by the public market: Table 1, Fig. 3 to 5 of Pub2Priv (quick: 43 minutes).",
        "pub2priv.portfolio.portfolio",
    ),
    "pub2priv-strategies": Benchmark(
        "Portfolios traded in 2, 6 and 10 ways: Fig. 6 of Pub2Priv (quick: 50 minutes).",
        "pub2priv.portfolio.strategies",
    ),
    "pub2priv-electricity": Benchmark(
        "Electricity of clients with season and stand-in weather, clients and windows as units (quick: 12 minutes).",
        "pub2priv.domains.electricity",
    ),
    "pub2priv-trade": Benchmark(
        "Monthly imports of ten countries with the semiconductor index, the paper's unit (quick: 10 minutes).",
        "pub2priv.domains.trade",
    ),
    "pub2priv-trade-simulated": Benchmark(
        "The same on a simulated stand-in of imports and index (quick: 10 minutes).",
        "pub2priv.domains.trade_simulated",
    ),
    "pub2priv-toy": Benchmark(
        "What context is worth by its correlation with the series: Table 5 of Pub2Priv (quick: 55 minutes).",
        "pub2priv.toy.toy",
    ),
    "pub2priv-households": Benchmark(
        "Simulated homes as entities with temperature and price, and `spectral` (quick: an hour).",
        "pub2priv.households.households",
    ),
    "pub2priv-design": Benchmark(
        "What each part of `pub2priv` is worth: one left out or added a row, simulated portfolios (quick: 42 minutes).",
        "pub2priv.design.design",
    ),
    "pub2priv-limits": Benchmark(
        "How near a Gaussian given context comes to real portfolios, without noise (quick: 4 minutes).",
        "pub2priv.limits.limits",
    ),
    "pub2priv-knowledge": Benchmark(
        "How well the shipped knowledge transformer fills in real exchange rates it never saw (quick: a minute).",
        "pub2priv.design.knowledge",
    ),
    "cost-pub2priv": Benchmark(
        "Seconds and memory of private steps by length and channels: Tables 6 and 7 of Pub2Priv (target: minutes).",
        "cost.pub2priv.cost",
    ),
    "cost-vertical": Benchmark(
        "An iteration of `vflgan-ts`, stacked and with one network per attribute; Table 6 (quick: two minutes).",
        "cost.vertical.cost",
    ),
    "cost-vertical-wire": Benchmark(
        "An iteration of `vflgan-ts` over gRPC with mutual TLS and in one process; memory, bytes (quick: a minute).",
        "cost.vertical_wire.wire",
    ),
    "vertical-sine2": Benchmark(
        "Two sines at two parties: do their amplitudes agree, without and with noise (three quarters of an hour).",
        "vertical.experiment.sine",
        "sine-2",
    ),
    "vertical-sine6": Benchmark(
        "Six sines at two parties: do their amplitudes agree, without and with noise (an hour and a half).",
        "vertical.experiment.sine",
        "sine-6",
    ),
    "vertical-stock": Benchmark(
        "Stock windows at two parties: `vflgan-ts`, its rivals and `spectral`, by AWD, AADA, TPD (quick: 15 minutes).",
        "vertical.experiment.window",
        "stock",
    ),
    "vertical-energy": Benchmark(
        "Energy windows at two parties: `vflgan-ts`, its rivals and `spectral`, by AWD, AADA, TPD (quick: 15 minutes).",
        "vertical.experiment.window",
        "energy",
    ),
    "vertical-eeg": Benchmark(
        "EEG windows at two parties, eyes open or closed: a classifier's TPD, one model or one per class (minutes).",
        "vertical.experiment.waves",
    ),
    "vertical-parties": Benchmark(
        "Energy windows at 2 to 10 parties: Table 5 and Fig. 12 of VFLGAN-TS, and `spectral` (quick: 15 minutes).",
        "vertical.experiment.more_parties",
    ),
    "vertical-households": Benchmark(
        "Ten thousand simulated homes at two parties, each home protected, and `spectral` (quick: 15 minutes).",
        "vertical.experiment.households",
    ),
    "cost-dit": Benchmark(
        "Sampling by DDIM-50, and what bounding adds to a private step (a minute).",
        "cost.dit.cost",
    ),
    "cost-ppem": Benchmark(
        "What the Stein penalty costs an iteration (quick: a minute).",
        "cost.ppem.cost",
    ),
    "ppem-tests": Benchmark(
        "Three Stein statistics on mixtures: Fig. 2 of PPEM (a minute).",
        "cost.ppem.tests",
    ),
    "ppem-credit": Benchmark(
        "Part of the credit-card table, two factors hidden (20 minutes).",
        "ppem.tables.credit",
    ),
    "ppem-mimic": Benchmark(
        "The MIMIC-III demo, five diagnoses hidden (quick: 10 minutes).",
        "ppem.tables.mimic",
    ),
    "ppem-series": Benchmark(
        "Homes, tariff mix and mean load hidden (quick: 20 minutes).",
        "ppem.tables.series",
    ),
    "adaln-etth1": Benchmark(
        "ETTh1, any one hour protected: DP-vanilla and DP-aware (quick: minutes; target: hours).",
        "adaln.experiment.compare",
        "adaln-etth1",
    ),
    "adaln-ettm1": Benchmark(
        "ETTm1, any quarter of an hour protected: DP-vanilla and DP-aware (quick: minutes; target: hours).",
        "adaln.experiment.compare",
        "adaln-ettm1",
    ),
    "adaln-power": Benchmark(
        "One household's hourly load, any one hour protected, in place of the paper's meter (quick: minutes).",
        "adaln.experiment.compare",
        "adaln-power",
    ),
    "adaln-ablation": Benchmark(
        "Components, operators, tightness and clip of bounding, on one household's load (quick: minutes).",
        "adaln.ablation.ablation",
    ),
    "adaln-gradients": Benchmark(
        "Norms of single windows' gradients with bounds and without, on a public load (quick: minutes).",
        "adaln.ablation.gradients",
    ),
    "adaln-households": Benchmark(
        "10,000 simulated homes, each protected: DP-vanilla and DP-aware (quick: minutes; target: hours).",
        "adaln.experiment.compare",
        "adaln-households",
    ),
    "record-metr-la": Benchmark(
        "All methods on 207 sensors of METR-LA, each protected.", "record.contest.contest", "record-metr-la"
    ),
    "record-pemsd7": Benchmark(
        "All methods on 228 sensors of PeMSD7, each protected.", "record.contest.contest", "record-pemsd7"
    ),
    "record-sp500": Benchmark(
        "All methods on S&P 500 members, each protected.", "record.contest.contest", "record-sp500"
    ),
    "record-electricity": Benchmark(
        "All methods on clients of a utility, each protected.", "record.contest.contest", "record-electricity"
    ),
    "record-homes": Benchmark(
        "All methods on 10,000 simulated homes, each protected.", "record.contest.contest", "record-homes"
    ),
    "record-homes-many": Benchmark(
        "All methods on 100,000 simulated homes, each protected (quick: an hour and a half).",
        "record.contest.contest",
        "record-homes-many",
    ),
}
