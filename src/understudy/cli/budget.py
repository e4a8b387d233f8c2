"""What a run may cost: the asked epsilon and delta against what the schema declares."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.cli.options import configured
from understudy.errors import InputError, LedgerError, SchemaError

if TYPE_CHECKING:
    from understudy.data import Schema
    from understudy.privacy.budget import Guarantee
    from understudy.privacy.ledger import Ledger
    from understudy.privacy.plan import SpendingPlan
    from understudy.synthesizers import Synthesizer


# The least ratio of gradient noise to the largest possible gradient at which `dit` was measured (bench/docs/record,
# record-*.json: 0.8 for 10,000 homes at epsilon 10 and for 100,000 at epsilon 1). All 49 releases of `dit` and `dp-gan`
# at or above this ratio were poor: evidence begins here; whether noise alone is to blame is not known.
_LEAST_NOISE_TRIED = 0.75


def require_budget(schema: "Schema") -> None:
    """Refuses a schema that has no ledger to charge."""
    if schema.budget is None:
        raise SchemaError(
            "The schema declares no [budget], so there is no ledger to charge. Add [budget] with epsilon and "
            "max_runs: all that may ever be spent on this population.",
            key="budget",
        )


def guarantee_for(schema: "Schema", epsilon: float | None, delta: float | None) -> "Guarantee":
    """Returns the guarantee of one run: what was asked for, completed by a share of the declared budget.

    Delta is checked here, before any table is read, so that a refusal costs nothing.
    """
    from understudy.privacy.budget import Guarantee, check_delta

    share = None if schema.budget is None else _share_of_a_run(schema)
    if epsilon is None:
        if share is None:
            raise InputError("--epsilon: a number is expected, because the schema declares no [budget] yet.")
        epsilon = share.epsilon
    if delta is None:
        delta = schema.delta if share is None else share.delta
    asked = Guarantee(epsilon, delta)
    if not asked.epsilon < float("inf"):
        raise InputError("--epsilon: a finite number above 0 is expected. 1 is strict, 10 is weak.")
    check_delta(asked.delta, schema.protected_units)
    return asked


def method_for(
    name: str,
    window_steps: int | None,
    schema: "Schema",
    *,
    guarantee: "Guarantee",
    task: str = "series",
    window_stride: int | None = None,
    pack: Path | None = None,
    options: Sequence[str] = (),
) -> "Synthesizer":
    """Returns the method of that name; "auto" is chosen from public facts."""
    from understudy.synthesizers.auto import TASKS, choose
    from understudy.synthesizers.registry import METHODS

    if name != "auto" and name not in METHODS:
        raise InputError(f"--method: one of auto, {', '.join(METHODS)} is expected, got '{name}'.")
    if window_steps is not None and window_steps > schema.num_steps:
        raise InputError(
            f"--window-steps: at most the schema's {schema.num_steps} steps are expected, got {window_steps}."
        )
    if window_stride is not None and not 1 <= window_stride <= (window_steps or 0):
        raise InputError(f"--window-stride: 1 to --window-steps is expected, got {window_stride}.")
    if task not in TASKS:
        raise InputError(f"--task: one of {', '.join(TASKS)} is expected, got '{task}'.")
    kind = METHODS[choose(schema, guarantee, window_steps=window_steps, task=task).method if name == "auto" else name]
    if pack is not None and "pack" not in kind.__dataclass_fields__:
        raise InputError(f"--pack: '{kind.name}' starts from none. Leave it out.")
    packed = {} if pack is None else {"pack": str(pack)}
    return configured(kind, options, window_steps=window_steps, window_stride=window_stride, **packed)


def doubts(method: "Synthesizer", schema: "Schema", guarantee: "Guarantee", task: str) -> list[str]:
    """Says from public facts that series drawn by a network would be poor, and what does better; nothing otherwise.

    Judged where it was measured: series of persons or other entities. Filling gaps, and events of one series, are not.
    """
    if task != "series" or schema.unit.kind == "event":
        return []
    ratio = method.gradient_noise(schema, guarantee)
    if ratio is None or ratio < _LEAST_NOISE_TRIED:
        return []
    return [
        f"Expect poor series: the noise on a summed gradient is {ratio:.2g} times the largest possible sum. From "
        f"{_LEAST_NOISE_TRIED:g} on, forecasters trained on series of `dit` or `dp-gan` erred at least 2.5 times as "
        "much as on real ones, on every table of the record. `--method spectral` erred less on all of them: use that."
    ]


def ledger_path(schema_file: Path, schema: "Schema") -> Path:
    """Returns where the population's ledger lies or will lie: beside the schema."""
    return schema_file.absolute().parent / f"{schema.name}.ledger"


def refuse_early(schema_file: Path, schema: "Schema", plan: "SpendingPlan", label: str) -> None:
    """Says no before the table is read; a ledger that is not there yet is judged by what it would declare."""
    from understudy.privacy.charges import declared
    from understudy.privacy.ledger import Ledger

    there = ledger_path(schema_file, schema).exists()
    beside = schema_file.absolute().parent
    ledger = Ledger.open_for(schema, beside) if there else Ledger.in_memory(**declared(schema))
    ledger.check(plan, label=label)


@contextmanager
def charge_stays_known(ledger: "Ledger") -> Iterator[None]:
    """Adds to any error whether the ledger had been charged: a charge is never given back."""
    before = ledger.head()
    try:
        yield
    except BaseException as problem:
        try:
            if ledger.head() != before:
                problem.add_note("The run had been charged and stays charged: `understudy ledger show` prints it.")
        except LedgerError:  # the disk fails
            problem.add_note("Whether the run was charged can't be read now: ask `understudy ledger show` later.")
        raise


def _share_of_a_run(schema: "Schema") -> "Guarantee":
    """An equal share of epsilon, and the delta that the ledger gives each run."""
    from understudy.privacy.budget import Guarantee
    from understudy.privacy.charges import Composition, declared

    facts = declared(schema)
    whole, runs = facts["guarantee"], facts["max_runs"]
    rule = Composition(kind=facts["composition"], guarantee=whole, max_runs=runs)
    return Guarantee(whole.epsilon / (runs if rule.kind == "basic" else 1), rule.run_delta)
