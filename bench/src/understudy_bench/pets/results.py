"""`pets-har`, `pets-traffic` and `pets-households`: private evolution and its controls (Fig. 3 and 4 of the paper)."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from understudy.data import Panel, Population, simulate_households
from understudy.data.io.read import check_units
from understudy.errors import UnderstudyError
from understudy.evaluation.metric import PAPER, QUICK
from understudy.synthesizers.pets import PETS
from understudy.synthesizers.pets.recipe import PAPER as PUBLISHED
from understudy.synthesizers.pets.recipe import Recipe
from understudy_bench.cells import Cells
from understudy_bench.pets import data as pets_data
from understudy_bench.pets.contest import CENTRAL, Contender, Contest, notes
from understudy_bench.pets.experiment import Experiment, public_file, split_units
from understudy_bench.result import Progress, Row, result

PAPER_NAME = "PETS, delta = 1e-5"
# PETS, section 4: C-FID of PETS with its own encoder as judge, and of what it compares with.
_PAPER_HAR = {0.7: {"c_fid": 12.82}, 32.0: {"c_fid": 4.57}}
TRAFFIC = (40.0, 35.0, 30.0, 25.0, 20.0, 15.0, 15.0, 10.0, 10.0, 10.0, *[5.0] * 51)  # appendix D, degrees
PAPER_TRAFFIC = replace(PUBLISHED, iterations=61, schedule=TRAFFIC, lookahead=4, threshold=8.0)
_PAPER_TRAFFIC = {0.7: {"c_fid": 3.38, "forecast_rmse": 0.98, "forecast_mae": 0.59}, 32.0: {"c_fid": 1.70}}
_RIVALS_HAR = {("gs-wgan", 0.7): {"c_fid": 99.89}}
_RIVALS_TRAFFIC = {("gs-wgan", 0.7): {"c_fid": 47.72}}
_HOMES, _JUDGED, _PUBLIC = 10_000, 2_000, 8_000


def har(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """WISDM is public and UCI HAR private: windows as units as in the paper, and subjects (about an hour)."""
    public, private = pets_data.wisdm(data_root), pets_data.har(data_root)
    if scale == "quick":
        public = public.take(np.random.default_rng(2).permutation(len(public.values))[:_PUBLIC])
    facts = {"name": "UCI HAR", "sha256": private.sha256, "public": "WISDM", "public_sha256": public.sha256}
    with tempfile.TemporaryDirectory() as folder:
        file = public_file(public.values, Path(folder))
        contenders = _contenders(file, scale, PUBLISHED)
        windows, people = (
            Contest(
                experiment=_experiment("har", unit, (private, public), scale),
                contenders=contenders if unit != "entity" else contenders[:1],
                key=f"{scale} har {unit}",
                paper=_PAPER_HAR if unit != "entity" else {},
                rivals=_RIVALS_HAR if unit != "entity" else {},
                all_seeds=scale != "quick",
            )
            for unit in ("overlapping-window", "entity")
        )
        found = [contest.run(cells, progress) for contest in (windows, people)]
        samples = windows.samples(cells)
    refused = f"30 subjects, without the override: {_refusal(people.experiment.private)}"
    return _result("pets-har", scale, {**facts, "stand_in": False}, found, samples, refused)


def traffic(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """A week of PeMSD7 is public and a week of METR-LA private; sensors scaled as in the paper (about an hour)."""
    public, private = (pets_data.traffic(name, data_root) for name in ("pemsd7", "metr-la"))
    facts = {"name": "METR-LA, one week", "sha256": private.sha256, "public": "PeMSD7", "public_sha256": public.sha256}
    with tempfile.TemporaryDirectory() as folder:
        file = public_file(public.values, Path(folder))
        contest = Contest(
            experiment=_experiment("traffic", "overlapping-window", (private, public), scale),
            contenders=_contenders(file, scale, PAPER_TRAFFIC),
            key=f"{scale} traffic",
            paper=_PAPER_TRAFFIC,
            rivals=_RIVALS_TRAFFIC,
            all_seeds=scale != "quick",
        )
        found, samples = contest.run(cells, progress), contest.samples(cells)
    return _result("pets-traffic", scale, {**facts, "stand_in": True}, [found], samples)


def households(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Simulated homes protected as entities, n = 10⁴, no public data (about an hour)."""
    judged = _JUDGED // 2 if scale == "quick" else _JUDGED
    homes = simulate_households(_HOMES + 2 * judged)
    private, reference, unseen = split_units(homes, (_HOMES, judged, judged))
    private = replace(private, schema=replace(private.schema, population=Population(_HOMES)))
    contest = Contest(
        experiment=Experiment(
            private=private, reference=reference, unseen=unseen, sampled=judged, effort=_effort(scale)
        ),
        contenders=(
            Contender(name="pets, mean embedding alone", method=PETS(scale="bounds", selection="mean")),
            Contender(name="pets, mean embedding", method=PETS(selection="mean")),
            Contender(name="pets, votes alone", method=PETS(scale="bounds", selection="votes"), epsilons=(CENTRAL,)),
            Contender(name="pets, votes", method=PETS(selection="votes"), epsilons=(CENTRAL,)),
            Contender(name="pets, population 2,000", method=PETS(recipe=_QUICK), epsilons=(CENTRAL,)),
        ),
        key=f"{scale} households",
        all_seeds=scale != "quick",
    )
    found, samples = contest.run(cells, progress), contest.samples(cells)
    facts = {"name": "households", "sha256": None, "stand_in": False, "simulated": True}
    return _result("pets-households", scale, facts, [found], samples)


def experiment_of(
    name: str, unit: str, sides: tuple[pets_data.Windows, pets_data.Windows], **options: Any
) -> Experiment:
    """Returns an experiment over windows: 70 % private, 15 % to compare with, 15 % to train the judge on."""
    private, public = sides
    train, holdout = private.split(0.3, seed=0)
    reference, unseen = holdout.split(0.5, seed=1)
    panels = [pets_data.panel_of(name, part, unit) for part in (train, reference, unseen, public)]
    return Experiment(private=panels[0], reference=panels[1], unseen=panels[2], public=panels[3], **options)


_QUICK = Recipe(population=2_000, lookahead=2, iterations=10, neighbours=1)


def _experiment(name: str, unit: str, sides: tuple[pets_data.Windows, pets_data.Windows], scale: str) -> Experiment:
    """As published, windows are protected with the paper's delta; people with their own."""
    paper = unit != "entity"
    sampled = min(_JUDGED, len(sides[0].values))
    delta, named = (1e-5, PAPER_NAME) if paper else (None, None)
    return experiment_of(
        name, unit, sides, sampled=sampled, delta=delta, reproduction=named, effort=_effort(scale)
    )  # fmt: skip


def _contenders(file: str, scale: str, published: Recipe) -> tuple[Contender, ...]:
    """One mean embedding, our two recipes of votes and, by scale, the published one or one with a small population."""
    base = PETS(scale="bounds", public=file, selection="votes")
    public = PETS(start="public", scale="bounds", public=file)
    as_published = _QUICK if scale == "quick" else published
    name = "pets, population 2,000" if scale == "quick" else "pets as published"
    return (
        Contender(name="pets, mean embedding", method=public),
        Contender(name="pets, votes, public start", method=replace(public, selection="votes")),
        Contender(name="pets, rules", method=base),
        Contender(name=name, method=replace(base, recipe=as_published), epsilons=(CENTRAL,)),
    )


def _effort(scale: str) -> Any:
    return QUICK if scale == "quick" else PAPER


def _result(
    name: str,
    scale: str,
    data: Mapping[str, Any],
    found: Sequence[tuple[list[Row], list[Row]]],
    samples: dict[str, Any],
    *also: str,
) -> dict[str, Any]:
    rows, controls = ([line for part in found for line in part[place]] for place in (0, 1))
    whole = result(name, scale, dict(data), rows, controls)
    return {**whole, "samples": samples, "notes": [*notes(rows), *also]}


def _refusal(panel: Panel) -> str:
    """Returns what a user is told who wants to protect thirty subjects."""
    try:
        check_units(panel.num_units, panel.num_series, panel.schema, allow_few_units=False)
    except UnderstudyError as problem:
        return str(problem)
    raise AssertionError("Expected a refusal of thirty units.")
