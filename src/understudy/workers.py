"""Who does work that falls into parts: processes of this machine, or those of a Dask cluster."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from understudy.errors import InputError
from understudy.extras import naming_extras

if TYPE_CHECKING:
    import joblib

_SCHEMES = ("dask://", "tcp://", "tls://")
_PATIENCE = 20  # seconds to wait for a scheduler and its workers
_ATTEMPTS = 3  # of parts whose process died
Part = TypeVar("Part")
Result = TypeVar("Result")


# A number of processes, or the scheduler (`tcp://host:port`) of a Dask cluster whose workers see the same files.
Workers = int | str


def trusted_workers(workers: Workers) -> tuple[str, ...]:
    """Returns who has to be trusted because others' processes read the table, a sentence each."""
    if isinstance(workers, int):
        return ()
    told = "the workers of a cluster, which read the private rows to add them up, and their scheduler, which passes on"
    return (f"Not protected against: {told} sums without noise.",)


def cluster_of(text: str) -> str:
    """Returns the scheduler that an option `--cluster` names."""
    if not text.startswith(_SCHEMES):
        raise InputError(f"--cluster: the scheduler of a Dask cluster as tcp://host:port is expected, got '{text}'.")
    return text.replace("dask://", "tcp://", 1)


def workers_of(text: str) -> Workers:
    """Returns what an option `--workers` says."""
    if text.startswith(_SCHEMES):
        return cluster_of(text)
    if not text.isdigit() or int(text) < 1:
        raise InputError(f"--workers: a number of at least 1 or tcp://host:port is expected, got '{text}'.")
    return int(text)


@contextmanager
def pool(workers: Workers) -> "Iterator[joblib.Parallel]":
    """Yields what runs parts, and returns what they return in the order of their ends."""
    import joblib

    if isinstance(workers, int):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "A worker stopped", UserWarning)  # one that grew is replaced
            # max_nbytes: no copies on disk
            yield joblib.Parallel(n_jobs=workers, backend="loky", return_as="generator_unordered", max_nbytes=None)
        return
    with naming_extras("workers"):
        from distributed import Client
    try:
        client = Client(workers, timeout=_PATIENCE, set_as_default=True)
    except (OSError, ValueError) as problem:
        raise InputError(f"workers: no scheduler answers at '{workers}'. Start one with `dask scheduler`.") from problem
    with client, joblib.parallel_config(backend="dask", wait_for_workers_timeout=_PATIENCE):
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
