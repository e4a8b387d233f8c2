"""What a run between organisations shows: nothing planted in a table, nothing that one customer more changes."""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.planted.search import Planted, found
from tests.unit.federated.banks import SMALL, UNITS, banks, contract, held, sines
from understudy.data import Panel
from understudy.synthesizers.vflgan_ts.method import VFLGANTS

SOUND = VFLGANTS(mode="sound", scale="bounds", recipe=replace(SMALL, batch=UNITS))
VALUES = tuple(float(f"{1 + 0.009237 * place:.4f}1{place % 3}1") for place in range(1, 25))
PLANTED = Planted(numbers=VALUES, words=("customer-Kq07x", "customer-Kq08x"), moments=())


def planted() -> Panel:
    """Two customers with recognisable ids and values in the columns of both parties."""
    panel = sines()
    values, ids = np.array(panel.values), np.array(panel.unit_ids, dtype="<U20")
    values[:2, :12, :] = np.array(VALUES, dtype=np.float32).reshape(2, 12, 1)
    ids[:2] = PLANTED.words
    return replace(panel, values=values, unit_ids=ids)


def run(folder: Path, panel: Panel) -> list[tuple[str, str, float]]:
    """Returns what was told about progress."""
    told: list[tuple[str, str, float]] = []
    agreed = contract(replace(panel.schema), method=SOUND, checkpoint_every=2)
    made = banks(folder, agreed, {name: held(panel, name) for name in agreed.parties})
    for name, member in made.members.items():
        made.members[name] = replace(member, progress=lambda stage, share, name=name: told.append((name, stage, share)))
    made.run()
    return told


def test_no_planted_id_or_value_is_in_anything_a_run_leaves(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    panel = planted()
    told = run(tmp_path, panel)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 20
    findings = [finding for path in files for finding in found(path, PLANTED)]
    assert findings + found(caplog.text, PLANTED) + found(repr(told), PLANTED) == []
    np.save(tmp_path / "control.npy", panel.values)
    assert found(tmp_path / "control.npy", PLANTED) or found(repr(panel.values.tolist()), PLANTED)  # it would be found


def test_one_customer_more_changes_no_shape_no_count_and_no_word(tmp_path: Path) -> None:
    panel = sines(122)
    panel = replace(panel, schema=sines(UNITS).schema)  # the declared population stays
    sides, views = ("aggregator", "bank", "shop"), []
    for number in (121, 122):
        folder = tmp_path / str(number) / "run"
        told = run(folder, panel.take_units(range(number)))
        sizes = {
            str(path.relative_to(folder)): path.stat().st_size
            for side in sides
            for path in sorted((folder / side).rglob("*"))
            if path.suffix in (".safetensors", ".toml") or path.name == "release.json"
        }
        views.append((told, sizes))
        for side in sides:
            (folder / side / "ledger").rename(folder / side / "ledger.done")
            _forget(side)
    assert views[0] == views[1]
    assert len(views[0][1]) > 10


def _forget(side: str) -> None:
    from understudy.privacy import registry

    with registry._opened() as connection:
        connection.execute("DELETE FROM populations WHERE name = ?", (f"people of {side} (run)",))
