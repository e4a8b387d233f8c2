"""All benchmarks by name: each takes (scale, data folder, progress, finished parts) and returns one JSON object."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from understudy.bench.cells import Cells
from understudy.bench.result import Progress


def _spectral_stock(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Stock windows: error of a forecaster trained on synthetic windows (target: about 5 minutes)."""
    from understudy.bench.spectral_windows import stock

    return stock(scale, data_root, progress, cells)


def _spectral_energy(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Energy windows: error of a forecaster trained on synthetic windows (target: about 6 minutes)."""
    from understudy.bench.spectral_windows import energy

    return energy(scale, data_root, progress, cells)


def _spectral_households(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Simulated homes, entity level: marginals, categories, gaps, lengths and dynamics (target: about 10 minutes)."""
    from understudy.bench.spectral_households import households

    return households(scale, data_root, progress, cells)


def _cost_scale(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Seconds and peak memory of `spectral` from Parquet at 10⁴, 10⁵ and 10⁶ series (target: a few minutes)."""
    from understudy.bench.cost_scale import scale_cost

    return scale_cost(scale, data_root, progress, cells)


def _cost_dpsgd(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Private step over non-private step of five networks, beside Opacus (target: about 20 minutes)."""
    from understudy.bench.cost_dpsgd import MODELS, run

    parts = []
    for place, model in enumerate(MODELS, start=1):
        parts.append(cells(f"{scale} {model}", partial(run, scale, data_root, (model,))))
        progress(model, place / len(MODELS))
    rows, controls = ([line for part in parts for line in part[kind]] for kind in ("rows", "controls"))
    return {**parts[0], "rows": rows, "controls": controls}


def _metrics_catch(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Which metric catches which fake of simulated homes, and none that sees other real ones (quick: 6 minutes)."""
    from understudy.bench.metrics_catch import caught

    return caught(scale, data_root, progress, cells)


def _cost_voting(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Tiled nearest neighbours beside scikit-learn's brute force (target: a minute)."""
    from understudy.bench.pets_cost import voting

    return voting(scale, data_root, progress, cells)


def _cost_pets(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Seconds of an iteration of `pets` beside what it can't avoid, and encoders (quick: about 20 minutes)."""
    from understudy.bench.pets_cost import evolution

    return evolution(scale, data_root, progress, cells)


def _pub2priv_portfolio(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Portfolios over real prices beside the public market: Table 1, Fig. 3 to 5 of paper 000 (target: hours)."""
    from understudy.bench.pub2priv_portfolio import portfolio

    return portfolio(scale, data_root, progress, cells)


def _pub2priv_strategies(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Portfolios traded in 2, 6 and 10 ways: Fig. 6 of paper 000 (target: hours)."""
    from understudy.bench.pub2priv_portfolio import strategies

    return strategies(scale, data_root, progress, cells)


def _pub2priv_electricity(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Electricity of clients with season and stand-in weather, clients and windows as units (target: hours)."""
    from understudy.bench.pub2priv_domains import electricity

    return electricity(scale, data_root, progress, cells)


def _pub2priv_trade(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Monthly imports of ten countries with the semiconductor index, the paper's unit (target: hours)."""
    from understudy.bench.pub2priv_domains import trade

    return trade(scale, data_root, progress, cells)


def _pub2priv_trade_simulated(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """The same on a simulated stand-in of imports and index (target: hours)."""
    from understudy.bench.pub2priv_domains import trade_simulated

    return trade_simulated(scale, data_root, progress, cells)


def _pub2priv_toy(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """What context is worth by its correlation with the series: Table 5 of paper 000 (target: hours)."""
    from understudy.bench.pub2priv_toy import toy

    return toy(scale, data_root, progress, cells)


def _pub2priv_households(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Simulated homes as entities with temperature and price, beside `spectral` (target: hours)."""
    from understudy.bench.pub2priv_households import households

    return households(scale, data_root, progress, cells)


def _pub2priv_design(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """What each part of `pub2priv` is worth: one left out or added a row, simulated portfolios (quick: 10 minutes)."""
    from understudy.bench.pub2priv_design import design

    return design(scale, data_root, progress, cells)


def _pub2priv_knowledge(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """How well the shipped knowledge transformer fills in real exchange rates it never saw (quick: a minute)."""
    from understudy.bench.pub2priv_design import knowledge

    return knowledge(scale, data_root, progress, cells)


def _cost_pub2priv(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Seconds and memory of private steps by length and channels: Tables 6 and 7 of paper 000 (target: minutes)."""
    from understudy.bench.pub2priv_cost import cost

    return cost(scale, data_root, progress, cells)


def _pets_har(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Private evolution from WISDM to UCI HAR, windows and subjects, beside its controls (quick: about an hour)."""
    from understudy.bench.pets_results import har

    return har(scale, data_root, progress, cells)


def _pets_traffic(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Private evolution from PeMSD7 to METR-LA, a week of each, beside its controls (quick: about half an hour)."""
    from understudy.bench.pets_results import traffic

    return traffic(scale, data_root, progress, cells)


def _pets_households(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Private evolution of ten thousand simulated homes, entity level, beside its controls (quick: about an hour)."""
    from understudy.bench.pets_results import households

    return households(scale, data_root, progress, cells)


def _pets_recipes(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Which recipe makes votes help, tried on people of WISDM alone at epsilon 1 (quick: about 10 minutes)."""
    from understudy.bench.pets_recipes import recipes

    return recipes(scale, data_root, progress, cells)


def _pets_ablation(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """One option of the published PETS at a time, on METR-LA at epsilon 5 (quick: about half an hour)."""
    from understudy.bench.pets_ablation import ablation

    return ablation(scale, data_root, progress, cells)


def _vertical_sine2(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Two sines at two parties: do their amplitudes agree, without and with noise (quick: 15 minutes)."""
    from understudy.bench.vertical import sine

    return sine("sine-2", scale, data_root, progress, cells)


def _vertical_sine6(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Six sines at two parties: do their amplitudes agree, without and with noise (quick: 15 minutes)."""
    from understudy.bench.vertical import sine

    return sine("sine-6", scale, data_root, progress, cells)


def _vertical_stock(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Stock windows at two parties: `vflgan-ts`, its rivals and `spectral`, by AWD, AADA, TPD (quick: 15 minutes)."""
    from understudy.bench.vertical import window

    return window("stock", scale, data_root, progress, cells)


def _vertical_energy(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Energy windows at two parties: `vflgan-ts`, its rivals and `spectral`, by AWD, AADA, TPD (quick: 15 minutes)."""
    from understudy.bench.vertical import window

    return window("energy", scale, data_root, progress, cells)


def _vertical_eeg(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """EEG windows at two parties, eyes open or closed: a classifier's TPD, one model or one per class (minutes)."""
    from understudy.bench.vertical import waves

    return waves(scale, data_root, progress, cells)


def _vertical_parties(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Energy windows at 2 to 10 parties: Table 5 and Fig. 12 of paper 004, beside `spectral` (quick: 15 minutes)."""
    from understudy.bench.vertical import more_parties

    return more_parties(scale, data_root, progress, cells)


def _vertical_households(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Ten thousand simulated homes at two parties, each home protected, beside `spectral` (quick: 15 minutes)."""
    from understudy.bench.vertical import households

    return households(scale, data_root, progress, cells)


def _cost_vertical(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """An iteration of `vflgan-ts`, stacked, beside one network per attribute; Table 6 (quick: two minutes)."""
    from understudy.bench.vertical_cost import cost

    return cost(scale, data_root, progress, cells)


def _cost_vertical_wire(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """An iteration of `vflgan-ts` over gRPC with mutual TLS beside one process; memory, bytes (quick: a minute)."""
    from understudy.bench.vertical_wire import wire

    return wire(scale, data_root, progress, cells)


def _adaln(name: str, scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    from understudy.bench.adaln import compare

    return compare(name, scale, data_root, progress, cells)


def _adaln_etth1(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """ETTh1, any one hour protected: DP-vanilla beside DP-aware (quick: minutes; target: hours)."""
    return _adaln("adaln-etth1", scale, data_root, progress, cells)


def _adaln_ettm1(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """ETTm1, any quarter of an hour protected: DP-vanilla beside DP-aware (quick: minutes; target: hours)."""
    return _adaln("adaln-ettm1", scale, data_root, progress, cells)


def _adaln_power(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """One household's hourly load, any one hour protected, in place of the paper's meter (quick: minutes)."""
    return _adaln("adaln-power", scale, data_root, progress, cells)


def _adaln_households(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """10,000 simulated homes, each protected: DP-vanilla beside DP-aware (quick: minutes; target: hours)."""
    return _adaln("adaln-households", scale, data_root, progress, cells)


def _audit_catch(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """What audits contradict and what not: every method as it is and with its noise halved (quick: 10 minutes)."""
    from understudy.bench.audit_catch import catch

    return catch(scale, data_root, progress, cells)


def _audit_stock(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Shadow models on Stock: Tables 7 to 10 of paper 004 with intervals, and features inverted (quick: minutes)."""
    from understudy.bench.audit_tables import stock

    return stock(scale, data_root, progress, cells)


def _cost_audit(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Shadows per minute: one process, two, and vertical ones in a stack (quick: a few minutes)."""
    from understudy.bench.audit_cost import cost

    return cost(scale, data_root, progress, cells)


def _from(module: str, name: str, about: str) -> Callable[[str, Path | None, Progress, Cells], dict[str, Any]]:
    """Returns a benchmark that is imported when it is run."""

    def benchmark(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
        found: dict[str, Any] = getattr(import_module(f"understudy.bench.{module}"), name)(
            scale, data_root, progress, cells
        )
        return found

    benchmark.__doc__ = about
    return benchmark


BENCHMARKS: dict[str, Callable[[str, Path | None, Progress, Cells], dict[str, Any]]] = {
    "spectral-stock": _spectral_stock,
    "spectral-energy": _spectral_energy,
    "spectral-households": _spectral_households,
    "cost-scale": _cost_scale,
    "cost-dpsgd": _cost_dpsgd,
    "metrics-catch": _metrics_catch,
    "audit-catch": _audit_catch,
    "audit-stock": _audit_stock,
    "cost-audit": _cost_audit,
    "cost-voting": _cost_voting,
    "cost-pets": _cost_pets,
    "pets-har": _pets_har,
    "pets-traffic": _pets_traffic,
    "pets-households": _pets_households,
    "pets-ablation": _pets_ablation,
    "pets-recipes": _pets_recipes,
    "pub2priv-portfolio": _pub2priv_portfolio,
    "pub2priv-strategies": _pub2priv_strategies,
    "pub2priv-electricity": _pub2priv_electricity,
    "pub2priv-trade": _pub2priv_trade,
    "pub2priv-trade-simulated": _pub2priv_trade_simulated,
    "pub2priv-toy": _pub2priv_toy,
    "pub2priv-households": _pub2priv_households,
    "pub2priv-design": _pub2priv_design,
    "pub2priv-knowledge": _pub2priv_knowledge,
    "cost-pub2priv": _cost_pub2priv,
    "cost-vertical": _cost_vertical,
    "cost-vertical-wire": _cost_vertical_wire,
    "vertical-sine2": _vertical_sine2,
    "vertical-sine6": _vertical_sine6,
    "vertical-stock": _vertical_stock,
    "vertical-energy": _vertical_energy,
    "vertical-eeg": _vertical_eeg,
    "vertical-parties": _vertical_parties,
    "vertical-households": _vertical_households,
    "cost-dit": _from("dit_cost", "cost", "Sampling by DDIM-50, and what bounding adds to a private step (a minute)."),
    "cost-ppem": _from("ppem_cost", "cost", "What Stein penalty and clipping cost an iteration (quick: a minute)."),
    "ppem-tests": _from("ppem_cost", "tests", "Three Stein statistics on mixtures: Fig. 2 of paper 002 (a minute)."),
    "ppem-credit": _from("ppem_tables", "credit", "Part of the credit-card table, two factors hidden (20 minutes)."),
    "ppem-mimic": _from("ppem_tables", "mimic", "The MIMIC-III demo, five diagnoses hidden (quick: 10 minutes)."),
    "ppem-series": _from("ppem_tables", "series", "Homes, tariff mix and mean load hidden (quick: 20 minutes)."),
    "adaln-etth1": _adaln_etth1,
    "adaln-ettm1": _adaln_ettm1,
    "adaln-power": _adaln_power,
    "adaln-households": _adaln_households,
}
