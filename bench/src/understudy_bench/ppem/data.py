"""Tables and series of the PPEM benchmarks: parts of the credit-card table, the MIMIC demo, simulated homes."""

import csv
import gzip
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as parquet

from understudy.data import (
    Binary,
    Categorical,
    Channel,
    Continuous,
    Integer,
    Panel,
    Population,
    PrivacyUnit,
    Schema,
    Time,
    simulate_households,
)
from understudy.errors import MissingData
from understudy_bench.data.datasets import file_sha256, find_file

_CREDIT = ("credit/creditcard.csv", "credit/creditcard_rounded_113922rows.parquet")  # the paper's, then a part of it
_KAGGLE = "Credit Card Fraud Detection, Kaggle (mlg-ulb)"
_MIMIC = ("mimic/DIAGNOSES_ICD.csv", "mimic/DIAGNOSES_ICD.csv.gz", "mimic_demo/DIAGNOSES_ICD.csv")
_PHYSIONET = "MIMIC-III Clinical Database, physionet.org"
_FEWEST_PATIENTS = 8  # that a diagnosis has to have, in 100
_FACTOR_BOUND, _LARGEST_AMOUNT = 15, 5000  # round numbers, chosen with the public file in view

Loaded = tuple[Panel, dict[str, Any]]


def credit(data_root: Path | None) -> Loaded:
    """Returns the paper's 284,807 transactions without their time, as a table with the class as label.

    Without that file (`credit/creditcard.csv`): 113,922 of them, values rounded to whole numbers.
    The unit is a transaction: cardholders have several, so no person is protected by it.
    """
    path = _first_of("credit", _CREDIT, _KAGGLE, data_root)
    whole = path.suffix == ".csv"
    table = pacsv.read_csv(path) if whole else parquet.read_table(path)
    names = [name for name in table.column_names if name.startswith("V")]
    values = np.stack([table[name].to_numpy() for name in (*names, "Amount")], axis=1)
    kind = Continuous if whole else Integer
    channels: list[Channel] = [kind(name, -_FACTOR_BOUND, _FACTOR_BOUND) for name in names]
    channels.append(kind("Amount", 0, _LARGEST_AMOUNT))
    low, high = np.array([channel.bounds for channel in channels]).T
    panel = _table("credit", tuple(channels), values.clip(low, high), table["Class" if whole else "label"].to_numpy())
    facts = {"name": "credit", "sha256": file_sha256(path), "stand_in": False}
    return panel, facts if whole else facts | {"partial": "113,922 rows, rounded"}


def mimic(data_root: Path | None) -> Loaded:
    """Returns which diagnoses (first three characters of ICD-9, four of E codes) patients of MIMIC-III ever had.

    The paper has all patients of the table DIAGNOSES_ICD (`mimic/DIAGNOSES_ICD.csv` or `.csv.gz`) and all diagnoses.
    Without that file: 100 patients of the demo and their frequent diagnoses, which shows that the code runs.
    """
    path = _first_of("mimic", _MIMIC, _PHYSIONET, data_root)
    whole = path.parent.name == "mimic"
    had: dict[str, set[str]] = defaultdict(set)
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            told = {column.lower(): value for column, value in line.items()}
            if code := told["icd9_code"]:
                had[told["subject_id"]].add(code[: 4 if code.startswith("E") else 3])
    patients = sorted(had)
    codes = sorted({code for own in had.values() for code in own})
    values = np.array([[code in had[patient] for code in codes] for patient in patients], dtype=float)
    common = values.sum(axis=0) >= (1 if whole else _FEWEST_PATIENTS)
    channels = tuple(Binary(f"icd_{code}") for code, kept in zip(codes, common, strict=True) if kept)
    panel = _table("mimic" if whole else "mimic-demo", channels, values[:, common], None)
    facts = {"name": "mimic", "sha256": file_sha256(path), "stand_in": not whole}
    return panel, facts if whole else facts | {"partial": "demo of 100 patients"}


def homes(number: int) -> Loaded:
    """Returns simulated homes as they are, without constraints."""
    panel = simulate_households(number)
    data = {"name": "households", "sha256": None, "stand_in": False, "simulated": True}
    return replace(panel, schema=replace(panel.schema, constraints=())), data


def split(panel: Panel, seed: int = 0) -> tuple[Panel, Panel]:
    """Returns four fifths to learn from and the rest; the declared population is a round number above both."""
    order = np.random.default_rng(seed).permutation(panel.num_units)
    cut = int(0.8 * panel.num_units)
    train, rest = panel.take_units(np.sort(order[:cut])), panel.take_units(np.sort(order[cut:]))
    population = Population(max(100, cut))
    return replace(train, schema=replace(train.schema, population=population)), rest


def _first_of(name: str, files: Sequence[str], published: str, root: Path | None) -> Path:
    """Returns the first of several files that is there; the error names the last, of which anyone may have a copy."""
    for file in files[:-1]:
        with suppress(MissingData):
            return find_file(name, file, published, root)
    return find_file(name, files[-1], published, root)


def _table(name: str, channels: tuple[Channel, ...], values: np.ndarray, label: np.ndarray | None) -> Panel:
    """Returns a panel of one step."""
    number = len(values)
    schema = Schema(
        name=name,
        population=Population(number),
        unit=PrivacyUnit(column="row"),
        time=Time(column="step", steps=1),
        channels=channels,
        static=() if label is None else (Categorical("Class", ("no", "fraud")),),
        label=None if label is None else "Class",
    )
    static = np.zeros((number, 0)) if label is None else label[:, None]
    return Panel(
        schema=schema,
        values=values[:, None, :].astype(np.float32),
        lengths=np.ones(number, dtype=np.int32),
        unit=np.arange(number, dtype=np.int64),
        static=static.astype(np.float32),
    )
