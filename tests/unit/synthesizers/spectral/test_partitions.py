"""One release, bit for bit: from memory, from files in any order, from processes, from a cluster that loses one."""

import hashlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.data import Panel, open_table, write_panel
from understudy.data.simulators import simulate_households
from understudy.data.table import Partition, Table
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.spectral import Spectral
from understudy.workers import Cluster, Workers

distributed = pytest.importorskip("distributed")
FILES = 6
GUARANTEE = Guarantee(2.0, 1e-6)


def released(series: Panel | Table, workers: Workers = 1) -> str:
    """Digest of all that a release holds, and of series drawn from it."""
    ledger, noise = Ledger.in_memory(GUARANTEE), NoiseSource.seeded(5)
    release = Spectral().fit(series, ledger, guarantee=GUARANTEE, noise=noise, workers=workers)
    drawn = release.sample(20, rng=np.random.default_rng(3))
    digest = hashlib.sha256(drawn.values.tobytes())
    for name in sorted(release.arrays):
        digest.update(np.ascontiguousarray(release.arrays[name]).tobytes())
    return digest.hexdigest()


@pytest.fixture(scope="module", params=[600, pytest.param(20_000, marks=pytest.mark.slow)])
def homes(request: pytest.FixtureRequest) -> Panel:
    """Homes with gaps, early ends, a label and context."""
    return replace(simulate_households(request.param, seed=7), private=True)


@pytest.fixture(scope="module")
def expected(homes: Panel) -> str:
    return released(homes)


@pytest.fixture(scope="module")
def folder(homes: Panel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same homes in another order, in files."""
    parts = tmp_path_factory.mktemp("homes")
    shuffled = np.random.default_rng(1).permutation(homes.num_series)
    for place, units in enumerate(np.array_split(shuffled, FILES)):
        file = parts / f"{place}.parquet"
        write_panel(homes.take_units(units), file)
        rows = pq.read_table(file)
        column = homes.schema.unit.column
        own = pa.array(np.asarray(rows[column]) + 100_000 * place, type=rows[column].type)  # written files count from 0
        pq.write_table(rows.set_column(rows.schema.get_field_index(column), column, own), file)
    return parts


@pytest.fixture(scope="module")
def table(homes: Panel, folder: Path) -> Table:
    return open_table(folder, homes.schema, context=np.array(homes.shared_context))


@dataclass(frozen=True, eq=False)
class Slow:
    """A partition that takes its time, so that a process can be killed while it reads."""

    partition: Partition

    def panels(self) -> Iterator[Panel]:
        time.sleep(0.1)
        yield from self.partition.panels()


def test_a_folder_in_another_order_gives_the_same_release(table: Table, expected: str) -> None:
    assert released(table) == expected


def test_processes_give_the_same_release(table: Table, expected: str) -> None:
    assert released(table, workers=4) == expected


def test_a_cluster_gives_the_same_release_and_a_killed_worker_changes_nothing(table: Table, expected: str) -> None:
    """A real scheduler and three workers, one of which is killed while it has partitions to add up."""
    slow = replace(table, partitions=tuple(Slow(partition) for partition in table.partitions))
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        processes = [nanny.pid for nanny in cluster.workers.values()]
        killer = threading.Timer(1.5, os.kill, (processes[0], signal.SIGKILL))
        killer.start()
        began = time.monotonic()
        assert released(slow, workers=Cluster(cluster.scheduler_address)) == expected
        assert time.monotonic() - began > 1.5  # it was at work when the worker died
        killer.join()
        with pytest.raises(ProcessLookupError):
            os.kill(processes[0], 0)
