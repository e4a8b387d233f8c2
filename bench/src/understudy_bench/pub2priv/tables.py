"""Tables 1 and 2 of Pub2Priv compared with ours: the curve over epsilon, ablations, controls, what figures mean."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from understudy.data import Panel
from understudy.synthesizers import Synthesizer
from understudy.synthesizers.independent import Independent
from understudy.synthesizers.spectral import Spectral
from understudy_bench.baselines.aim import Aim
from understudy_bench.baselines.dp_gan import DpGan
from understudy_bench.baselines.gem import Gem
from understudy_bench.baselines.pate_gan import PateGan
from understudy_bench.baselines.private_gsd import PrivateGsd
from understudy_bench.cells import Cells
from understudy_bench.data.datasets import DatasetInfo
from understudy_bench.metrics.pub2priv.context import correlations
from understudy_bench.pub2priv.experiment import (
    PUBLISHED,
    WITHOUT_THETA,
    Experiment,
    Scale,
    WithContext,
    methods,
    published,
)
from understudy_bench.pub2priv.pictures import pictures
from understudy_bench.result import Progress, Row

FEW_RIVALS: dict[str, Synthesizer] = {"independent": Independent(), "dp-gan": DpGan(), "pate-gan": PateGan()}
RIVALS: dict[str, Synthesizer] = {
    **FEW_RIVALS,
    "gem": Gem(),
    "aim, segments": Aim(cut="segments"),  # as the paper has it: ten segments of fifty levels
    "private-gsd": PrivateGsd(),
}
TOLD: dict[str, WithContext] = {
    f"{name}, told context": WithContext(RIVALS[name]) for name in ("dp-gan", "pate-gan", "gem", "private-gsd")
}
MOST_OVER_REAL = 1.1  # most that training on synthetic series may cost, beside training on real ones
_FIGURES = ("ks_r", "ks_ar", "corr_meta", "discriminative", "predictive")


def _table(lines: Mapping[str, tuple[float, ...]]) -> dict[str, dict[str, float]]:
    return {name: dict(zip(_FIGURES, figures, strict=True)) for name, figures in lines.items()}


# Pub2Priv, Table 1, at epsilon 1 and delta 1e-5, the paper's unit.
TABLE = {
    "portfolio": _table(
        {
            "pub2priv": (0.28, 0.17, 0.18, 0.100, 0.003),
            "pub2priv w/o c": (0.43, 0.42, 0.53, 0.210, 0.008),
            "pub2priv w/o theta_T": (0.42, 0.44, 0.48, 0.220, 0.016),
            "dp-gan": (0.29, 0.26, 0.38, 0.262, 0.006),
            "pate-gan": (0.46, 0.42, 0.52, 0.282, 0.054),
            "gem": (0.36, 0.56, 0.53, 0.481, 0.053),
            "aim, segments": (0.40, 0.56, 0.53, 0.340, 0.008),
            "private-gsd": (0.46, 0.56, 0.53, 0.391, 0.063),
        }
    ),
    "electricity": _table(
        {
            "pub2priv": (0.26, 0.17, 0.08, 0.119, 0.007),
            "pub2priv w/o c": (0.28, 0.32, 0.35, 0.155, 0.015),
            "pub2priv w/o theta_T": (0.26, 0.18, 0.08, 0.121, 0.007),
            "dp-gan": (0.25, 0.18, 0.10, 0.111, 0.012),
            "pate-gan": (0.29, 0.32, 0.35, 0.125, 0.042),
            "gem": (0.34, 0.32, 0.34, 0.152, 0.054),
            "aim, segments": (0.25, 0.32, 0.34, 0.159, 0.049),
            "private-gsd": (0.34, 0.32, 0.35, 0.324, 0.051),
        }
    ),
    "trade": _table(
        {
            "pub2priv": (0.32, 0.77, 0.44, 0.113, 0.013),
            "pub2priv w/o c": (0.37, 0.77, 0.68, 0.332, 0.015),
            "pub2priv w/o theta_T": (0.33, 0.77, 0.48, 0.111, 0.011),
            "dp-gan": (0.32, 0.79, 0.59, 0.303, 0.013),
            "pate-gan": (0.33, 0.79, 0.68, 0.290, 0.046),
            "gem": (0.19, 0.26, 0.33, 0.215, 0.073),
            "aim, segments": (0.20, 0.25, 0.32, 0.350, 0.044),
            "private-gsd": (0.22, 0.26, 0.33, 0.275, 0.061),
        }
    ),
}
PEARSON = {"portfolio": 0.573, "electricity": 0.386, "trade": 0.761}  # Table 2


def measure(
    experiment: Experiment,
    work: Scale,
    key: str,
    cells: Cells,
    progress: Progress,
    *,
    with_published: bool = True,
    rivals: Mapping[str, Synthesizer] = RIVALS,
) -> tuple[list[Row], list[Row], dict[str, Any]]:
    """Returns judged rows of the method over epsilon and of its ablations, the controls, and what pictures show."""
    told = {name: method for name, method in TOLD.items() if name.split(",")[0] in rivals}
    plain: list[tuple[str, Synthesizer | WithContext, float]] = [(name, method, 1.0) for name, method in rivals.items()]
    plain += [(name, method, 1.0) for name, method in told.items()]
    plain += [("spectral", Spectral(), epsilon) for epsilon in work.epsilons]
    ours: list[tuple[str, Synthesizer | WithContext, float]] = [
        (name, method, epsilon)
        for name, method in (methods(work) | (published(work) if with_published else {})).items()
        for epsilon in (work.epsilons if name == "pub2priv" else (1.0,))
    ]
    second = cells(f"{key} second", lambda: experiment.control("second real series", experiment.second))
    found: dict[tuple[str, float], Row] = {}
    for name, method, epsilon in sorted((*ours, *plain), key=_judged_first):
        fits = 1 if name in (PUBLISHED, WITHOUT_THETA) else work.fits(epsilon)  # that network takes hours
        compute = partial(Experiment.row, experiment, name, method, epsilon, fits)
        found[name, epsilon] = cells(f"{key} {name} {epsilon}", compute)
        progress(f"{name}, epsilon {epsilon:g}", len(found) / (len(plain) + len(ours) + 1))
    rows = [found[name, epsilon] for name, _, epsilon in (*plain, *ours)]
    drawn = cells(f"{key} pictures", partial(drawings, experiment, methods(work)["pub2priv"]))
    without = next(line for line in rows if line["method"] == "pub2priv w/o c")
    judgements = [judged(line, second, without) for line in rows[len(plain) :]]
    return judgements, [second, *rows[: len(plain)]], {"pictures": drawn}


def _judged_first(one: tuple[str, Synthesizer | WithContext, float]) -> tuple[bool, bool]:
    """Sorts so that a run that is cut has what goals are stated for; the published network takes hours and is last."""
    name, _, epsilon = one
    return name in (PUBLISHED, WITHOUT_THETA), epsilon != 1.0 or not name.startswith("pub2priv")


def drawings(experiment: Experiment, method: Synthesizer) -> dict[str, Any]:
    """Returns what pictures show of one fit at epsilon 1."""
    return pictures(experiment.real, experiment.fitted(method, 1.0, 0)[0], 1.0)


def judged(line: Row, second: Row, without_context: Row | None = None) -> Row:
    """Returns the row with what the figures mean beside the second real series and the ablation without context."""
    ours, real = line["metrics"], second["metrics"]
    said: dict[str, Any] = {"corr_meta": _closeness(ours["corr_meta"]["mean"], real["corr_meta"])}
    for name in ("predictive", "forecast"):
        if name in ours and name in real:
            ratio = ours[name]["mean"] / real[name]["mean"]
            said |= {f"{name}_over_train_on_real": ratio, f"{name}_holds": ratio <= MOST_OVER_REAL}
    if without_context is not None:
        other = without_context["metrics"]
        both = [name for name in ("corr_meta", "predictive") if name in ours and name in other]
        said["better_than_without_context"] = {name: ours[name]["mean"] < other[name]["mean"] for name in both}
    return {**line, "judgement": said}


def _closeness(gap: float, second: Mapping[str, float]) -> str:
    """Says how a gap in correlation stands beside that of two real series of one context."""
    if gap > second["high"]:
        return "worse than a second real series"
    if gap < second["low"]:
        return "collapse: closer to the context than real series are"
    return "no worse than a second real series"


def beside_spectral(line: Row, spectral: Row | None) -> Row:
    """Returns the row with what it does better than `spectral` at the same epsilon."""
    if spectral is None:
        return line
    ours, theirs = line["metrics"], spectral["metrics"]
    said = {name: ours[name]["mean"] < theirs[name]["mean"] for name in ("corr_meta", "predictive") if name in ours}
    return {**line, "judgement": {**line["judgement"], "better_than_spectral": said}}


def facts(info: DatasetInfo | None, name: str, panel: Panel) -> dict[str, Any]:
    """Says what the data are, with the mean size of their correlation with the context beside the paper's Table 2."""
    assert panel.context is not None
    found = np.abs(correlations(panel.values, panel.context)).mean()
    other = np.random.default_rng(0).permutation(panel.num_series)
    chance = np.abs(correlations(panel.values, panel.context[other])).mean()
    return {
        "name": name if info is not None else f"{name}, simulated stand-in",
        "sha256": None if info is None else info.sha256,
        "stand_in": info is None or info.stand_in,
        "series": list(panel.values.shape),
        "pearson": {"ours": float(found), "of another's context": float(chance), "paper": PEARSON[name]},
    }
