"""`audit-…`: Tables 7 to 10 of VFLGAN-TS on Stock, Energy and EEG, with intervals, and with tests that mean something.

Shadows are trained in stacks, with networks and iterations far below the paper's: what can be compared is what the
statistics say, and not whether the published figures come out.
"""

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from understudy.auditing.attacks import Vectors, vectors
from understudy.auditing.scores import Interval
from understudy.auditing.shadows import TARGETS, fit_shadows
from understudy.data import Panel
from understudy.synthesizers.vflgan_ts.published import claimed_noise
from understudy_bench.audit.published_tests import Repeated, as_published, repeated, valid
from understudy_bench.audit.stock import Size, inversions, small_vertical, some_windows
from understudy_bench.audit.vertical_shadows import VerticalShadows
from understudy_bench.cells import Cells
from understudy_bench.result import Progress, Row, Stopwatch, result, row

SIZES = {"quick": Size(30, 200, 800), "target": Size(128, 2000, 3661), "full": Size(128, 11400, 3661)}  # at most
_CLAIMED, _DELTA = 10.0, 3e-4  # Table 9, Stock
# Tables 7, 8, 9 and 10 of VFLGAN-TS, rows of Stock.
_FEATURES = ("naive", "correlation", "knn", "F1 naive", "F2 naive", "F1 correlation", "F2 correlation")
PAPER = {
    name: dict(zip(_FEATURES, figures, strict=False))
    for name, figures in {
        "record-1": (0.48, 0.51, 0.55),
        "record-2": (0.50, 0.50, 0.56),
        "influential": (0.50, 0.52, 0.60, 0.50, 0.51, 0.52, 0.51),
        "influential, noised as published": (0.49, 0.49, 0.53, 0.50, 0.48, 0.51, 0.50),
    }.items()
}


def attacks(name: str, scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Every target of Tables 7 and 8, the noise of Table 9, the features of Table 10, and their inversion."""
    size, paper = SIZES[scale], PAPER if name == "stock" else {}
    panel, data = some_windows(name, data_root, size.windows)
    jobs = {target: partial(_attacked, target, panel, size, paper.get(target)) for target in (*PAPER, "isolated")}
    found = {}
    for place, (target, job) in enumerate(jobs.items(), start=1):
        found[target] = cells(f"{scale} {target}", job)
        progress(target, place / (len(jobs) + 1))
    rows = list(found.values())
    controls = [
        cells(f"{scale} inversion {mode}", partial(inversions, mode, panel)) for mode in ("plain", "sound", "local")
    ]
    return {
        **result(f"audit-{name}", scale, data, rows, controls),
        "notes": [table(rows), _compared(found), *_inverted(controls)],
    }


def _attacked(name: str, panel: Panel, size: Size, paper: dict[str, float] | None = None) -> Row:
    """Trains shadows with and without one target and reads them in all ways."""
    watch, noised = Stopwatch(), name.endswith("as published")
    target = chosen(name.split(",")[0], panel, size)
    method = small_vertical(size.iterations, mode="paper" if noised else "plain")
    rate = method.recipe.batch / panel.num_units
    noise = claimed_noise(_CLAIMED, rate, size.iterations, _DELTA) if noised else None
    shadows = VerticalShadows(
        method=method, panel=panel, target=target, per_arm=size.per_arm, num_samples=panel.num_units,
        noise_multiplier=noise, transcript=True,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        features = fit_shadows(shadows, Path(folder))
    rng = np.random.default_rng(0)
    found = {feature: repeated(features, feature, rng) for feature in features["absent"]}
    metrics = {
        feature: {"mean": one.area.estimate, "low": one.area.low, "high": one.area.high}
        for feature, one in found.items()
    }
    facts: dict[str, Any] = {"repeats": {feature: one.repeats.tolist() for feature, one in found.items()}}
    p_values = {feature: one.p_value for feature, one in found.items()}
    return row(
        name, metrics, paper=paper, seconds=watch.seconds, unit="window", p_values=p_values,
        shadows_per_arm=size.per_arm, **facts,
    )  # fmt: skip


def chosen(name: str, panel: Panel, size: Size) -> int:
    """The target that a criterion picks, given synthetic series of a run over all windows that serves nothing else."""
    real = vectors(panel)
    maker = VerticalShadows(
        method=small_vertical(size.iterations), panel=panel, target=0, per_arm=1, num_samples=panel.num_units
    )
    synthetic: Vectors = maker.one_release(seed=10**6)
    return TARGETS[name](real, synthetic)


def table(rows: list[Row]) -> str:
    """Returns areas with their intervals, the paper's beside them, as the page about auditing prints them."""
    lines = ["| target | " + " | ".join(_FEATURES) + " |", "|---" * (1 + len(_FEATURES)) + "|"]
    for line in rows:
        cells = []
        for feature in _FEATURES:
            area, paper = line["metrics"][feature], line["paper"].get(feature)
            said = "" if paper is None else f" ({paper:.2f})"
            cells.append(f"{area['mean']:.2f} [{area['low']:.2f}, {area['high']:.2f}]{said}")
        lines.append(f"| {line['method']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _compared(found: dict[str, Row]) -> str:
    """What the published test and a valid one say about the enhanced attack against the original one."""
    best = _read(found["influential"], "knn")
    rivals = [_read(found[name], feature) for name in ("record-1", "record-2") for feature in ("naive", "correlation")]
    published, meant = (max(test(best, rival) for rival in rivals) for test in (as_published, valid))
    return (
        "KNN on the influential target against naive and correlation features on records 1 and 2: Wilcoxon over ten "
        f"repeats, as published, p = {published:.3g} (it can't be below 0.002); from shadows kept apart {meant:.3g}."
    )


def _read(line: Row, feature: str) -> Repeated:
    area = line["metrics"][feature]
    return Repeated(
        repeats=np.array(line["repeats"][feature]),
        area=Interval(area["mean"], area["low"], area["high"]),
        p_value=line["p_values"][feature],
    )


def _inverted(controls: list[Row]) -> list[str]:
    return [f"Features of the mode {line['method']}: {line['sentence']}" for line in controls]
