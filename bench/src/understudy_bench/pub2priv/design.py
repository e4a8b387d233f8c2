"""`pub2priv-design` and `pub2priv-knowledge`: what each part of `pub2priv` is worth, and what θ_T knows.

The first leaves parts out, or adds parts that were tried and not kept, one at a time, on simulated portfolios. The
other asks the pack that ships to fill in hidden entries of public series which it never saw.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from understudy.synthesizers import Synthesizer
from understudy.synthesizers.dit import DiT
from understudy.synthesizers.dit.pretraining import pretrain
from understudy.synthesizers.dit.recipe import Network, Recipe
from understudy.synthesizers.independent import Independent
from understudy.synthesizers.packs import load_pack
from understudy.synthesizers.pub2priv import Pub2Priv
from understudy.synthesizers.pub2priv.knowledge import Knowledge, KnowledgeTransformer, filling_error, windows_from
from understudy.synthesizers.spectral import Spectral
from understudy_bench.cells import Cells
from understudy_bench.data.datasets import file_sha256, find_file
from understudy_bench.data.portfolios import market_windows, simulate_market, simulate_portfolios
from understudy_bench.pub2priv.experiment import SCALES, Experiment
from understudy_bench.result import Progress, Row, Stopwatch, result, row

RATES = (
    "exchange/exchange_rate.txt.gz",
    "daily rates of eight currencies, github.com/laiguokun/multivariate-time-series",
)
_PORTFOLIOS, _STEPS, _EPSILON = 1_260, 120, 1.0
_PUBLIC_ITERATIONS, _OTHER_MARKET = 300, 40
_BOUGHT = "what context looks like bought, not public"
_LATER = ""  # stands for a public file until there is one
VARIANTS: dict[str, Synthesizer] = {
    "as it is": Pub2Priv(),
    "without context (w/o c)": Pub2Priv(knowledge="none"),
    _BOUGHT: Pub2Priv(),
    "the published network": Pub2Priv(recipe=SCALES["quick"].published),
    "AdaLN-Zero with bounds (dit)": DiT(),
    "AdaLN-Zero without bounds": DiT(recipe=Recipe(network=Network(tightness="none"))),
    "AdaLN-Zero with bounds, public training first": DiT(pack=_LATER),
}


def design(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Simulated portfolios at epsilon 1, a variant a row; `spectral` and real ones beside them."""
    work = SCALES[scale]
    experiment = _experiment(work.sampled)
    rows = []
    for place, (name, method) in enumerate(VARIANTS.items(), start=1):
        seen = replace(experiment, market=None) if name == _BOUGHT else experiment
        fits = 1 if _takes_minutes(method) else work.seeds
        rows.append(cells(f"{scale} {name}", partial(_measured, seen, name, method, fits)))
        progress(name, place / (len(VARIANTS) + 1))
    controls = [cells(f"{scale} other real portfolios", partial(_control, experiment))]
    for name, control in (("spectral", Spectral()), ("independent", Independent())):
        measure = partial(experiment.row, name, control, _EPSILON, work.seeds, ())
        controls.append(cells(f"{scale} {name}", measure))
    progress("controls", 1.0)
    facts = {"name": "simulated portfolios over a simulated market", "stand_in": True, "series": _PORTFOLIOS}
    return result("pub2priv-design", scale, {**facts, "steps": _STEPS}, rows, controls)


def knowledge(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """The general pack fills in real exchange rates; beside it, networks of its shape that learned nothing."""
    path = find_file("exchange", *RATES, data_root)
    rates, market = np.loadtxt(path, delimiter=","), simulate_market().shown
    number = {"quick": 64, "target": 512, "full": 2048}[scale]
    rows: list[Row] = []
    for place, channels in enumerate((1, 4, 8), start=1):
        rows.append(cells(f"{scale} {channels}", partial(filled, "exchange rates", rates, channels, number)))
        progress(f"{channels} channels", place / 4)
    controls = [cells(f"{scale} market", partial(filled, "simulated market", market, 5, number))]
    facts = {"name": "exchange", "file": path.name, "sha256": file_sha256(path), "stand_in": False}
    return result("pub2priv-knowledge", scale, facts, rows, controls)


def _takes_minutes(method: Synthesizer) -> bool:
    return isinstance(method, DiT) or (isinstance(method, Pub2Priv) and method.recipe.model == "diffusion")


def _measured(experiment: Experiment, name: str, method: Synthesizer, seeds: int) -> Row:
    """Returns a variant's row; one that is trained publicly first learns from portfolios over another market."""
    with TemporaryDirectory() as folder:
        public = simulate_portfolios(simulate_market(seed=_OTHER_MARKET), _PORTFOLIOS, steps=_STEPS)
        if isinstance(method, DiT) and method.pack == _LATER:
            file = Path(folder) / "pack.safetensors"
            pretrain(
                public, replace(method, pack=None), iterations=_PUBLIC_ITERATIONS, with_weights=True,
                provenance={"command": "understudy-bench"}, progress=lambda stage, share: None,
            ).save(file)  # fmt: skip
            method = replace(method, pack=str(file))
        return experiment.row(name, method, _EPSILON, seeds, ())


def _experiment(number: int) -> Experiment:
    market, work = simulate_market(), SCALES["quick"]
    first = np.random.default_rng(11).integers(0, len(market.held) - _STEPS + 1, number)
    real, second = (simulate_portfolios(market, number, steps=_STEPS, first_days=first, seed=seed) for seed in (12, 13))
    private = simulate_portfolios(market, _PORTFOLIOS, steps=_STEPS)
    windows = market_windows(market, np.arange(len(market.held) - _STEPS + 1), _STEPS)
    return Experiment(private=private, real=real, second=second, judge=work.judge, market=windows)


def _control(experiment: Experiment) -> Row:
    figures = experiment.metrics(experiment.second, trained=())
    spread = {name: {"mean": value, "low": value, "high": value} for name, value in figures.items()}
    return row("other real portfolios of the same days", spread, unit=experiment.unit)


def filled(name: str, signals: np.ndarray, num_channels: int, number: int) -> Row:
    """Returns the errors of the general pack and of untrained networks on windows of public signals [step, channel]."""
    watch, pack = Stopwatch(), load_pack("general", "pub2priv")
    windows = windows_from(signals[None, :, :num_channels], 96)(number, np.random.default_rng(0))
    errors = {"error": filling_error(Knowledge.of(pack).transformer, windows, seed=1)}
    for seed in (1, 2, 3):
        torch.manual_seed(seed)
        untrained = KnowledgeTransformer(**pack.shape, dropout=0.0)
        errors[f"error_untrained_{seed}"] = filling_error(untrained, windows, seed=1)
    return row(f"theta_T on {name}", errors, seconds=watch.seconds, channels=num_channels)
