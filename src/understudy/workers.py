"""Who does work that falls into parts: processes of this machine, or those of a Dask cluster."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, final

from understudy.errors import InputError
from understudy.extras import naming_extras

if TYPE_CHECKING:
    import joblib
    from distributed import Client

_SCHEMES = ("dask://", "tcp://", "tls://")
_PATIENCE = 20  # seconds to wait for a scheduler and its workers
_ATTEMPTS = 3  # of parts whose process died
Part = TypeVar("Part")
Result = TypeVar("Result")


@final
@dataclass(frozen=True)
class Cluster:
    """The scheduler of a Dask cluster, tcp://host:port, whose workers see the same files."""

    scheduler: str

    def __post_init__(self) -> None:
        if not self.scheduler.startswith(_SCHEMES):
            raise InputError(f"cluster: a Dask scheduler, tcp://host:port, is expected, got '{self.scheduler}'.")
        object.__setattr__(self, "scheduler", self.scheduler.replace("dask://", "tcp://", 1))

    def connected(self) -> "Client":
        """Returns a client of the cluster, which the caller closes."""
        with naming_extras("cluster"):
            from distributed import Client
        try:
            return Client(self.scheduler, timeout=_PATIENCE, set_as_default=True)
        except (OSError, ValueError) as problem:
            told = f"cluster: no scheduler answers at '{self.scheduler}'. Start one with `dask scheduler`."
            raise InputError(told) from problem


Workers = int | Cluster  # processes of this machine, or a cluster's


def workers_of(processes: Workers, cluster: str | None) -> Workers:
    """Returns what the options `--workers` and `--cluster` say."""
    return processes if cluster is None else Cluster(cluster)


def require_workers(workers: Workers) -> None:
    """Refuses a cluster that does not answer, before anything is charged."""
    if isinstance(workers, Cluster):
        workers.connected().close()
    elif workers < 1:
        raise InputError(f"workers: a number of at least 1 or a Cluster is expected, got {workers}.")


def trusted_workers(workers: Workers) -> tuple[str, ...]:
    """Returns who has to be trusted because others' processes read the table, a sentence each."""
    if isinstance(workers, int):
        return ()
    told = "the workers of a cluster, which read the private rows to add them up, and their scheduler, which passes on"
    return (f"Not protected against: {told} sums without noise.",)


@contextmanager
def pool(workers: Workers) -> "Iterator[joblib.Parallel]":
    """Yields what runs parts, and returns what they return in the order of their ends."""
    import joblib

    if isinstance(workers, int):
        with warnings.catch_warnings():
            # a worker that grew is replaced; after an error, the number of parts left to do is private
            warnings.filterwarnings("ignore", r"A worker stopped|\d+ tasks", UserWarning)
            # max_nbytes: no copies on disk
            yield joblib.Parallel(n_jobs=workers, backend="loky", return_as="generator_unordered", max_nbytes=None)
        return
    with workers.connected(), joblib.parallel_config(backend="dask", wait_for_workers_timeout=_PATIENCE):
        yield joblib.Parallel(return_as="generator_unordered")


def once_each(function: Callable[[Part], Result], parts: Sequence[Part], workers: Workers) -> Iterator[Result]:
    """Yields what `function` returns, once for each part, in the order of their ends.

    Parts of a process that died are done again.
    """
    if workers == 1:
        yield from map(function, parts)
        return
    from joblib import delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    left = dict(enumerate(parts))
    for attempt in range(_ATTEMPTS):
        try:
            with pool(workers) as run:
                for place, result in run(delayed(_placed)(function, *part) for part in list(left.items())):
                    del left[place]
                    yield result
            return
        except TerminatedWorkerError:
            if attempt == _ATTEMPTS - 1:
                raise


def _placed(function: Callable[[Part], Result], place: int, part: Part) -> tuple[int, Result]:
    return place, function(part)
