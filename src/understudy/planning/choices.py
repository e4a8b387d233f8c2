"""A run as it is asked for: its guarantee, and its method with every option, checked before any table is read."""

import math
import tomllib
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypedDict, Unpack, get_type_hints

from understudy.data import Schema
from understudy.data.type_checks import require_argument
from understudy.errors import InputError, SchemaError
from understudy.privacy.budget import Guarantee, check_delta
from understudy.privacy.charges import Composition, declared
from understudy.privacy.events import NonPrivate
from understudy.privacy.plan import SpendingPlan
from understudy.synthesizers import METHODS, Synthesizer
from understudy.synthesizers.auto import TASKS, choose

# The lowest ratio of gradient noise to the largest possible summed gradient at which `dit` was measured. All 49
# releases of `dit` and `dp-gan` at or above it were poor (bench/docs/record); whether noise is to blame is not known.
_LEAST_NOISE_TRIED = 0.75
_ELSEWHERE = ("window_steps", "window_stride")  # arguments of the run itself
_FOLDERS = ("pack", "prior")  # arguments that some methods have and others have not
_OF_METHOD = (*_ELSEWHERE, *_FOLDERS)


class MethodOptions(TypedDict, total=False):
    """How a method is configured, where it is called by its name.

    Attributes:
        task: What "auto" chooses for: "series" to share series, "complete" to fill gaps and forecast.
        window_steps: Cut series into windows of this many steps.
        window_stride: Steps from one window to the next.
        pack: Pretrained modules to start from.
        prior: An earlier release of the same population to continue, or a public table; costs nothing.
        preset: "default", or "paper" for the options that were published.
        options: NAME=VALUE, one for each option of the method; NAME may name a part, such as recipe.iterations.
    """

    task: str
    window_steps: int | None
    window_stride: int | None
    pack: Path | str | None
    prior: Path | str | None
    preset: str
    options: Sequence[str] | None


def contract_of(schema: Schema | Path | str, *, draft: bool = False) -> tuple[Schema, Path | None]:
    """Returns a schema, and the file it was read from; `draft` lets bounds that are still open pass."""
    require_argument(schema, Schema | Path | str, "schema", "Draft one: Schema.draft(df, unit='meter', time='when').")
    return (schema, None) if isinstance(schema, Schema) else (Schema.load(schema, draft=draft), Path(schema))


def chosen(
    schema: Schema, *, method: str | Synthesizer = "auto", **given: Unpack[MethodOptions]
) -> tuple[Synthesizer, tuple[str, ...]]:
    """Returns the method of a run, and the reasons for it where it was chosen from public facts.

    Args:
        method: A name in `METHODS`, "auto" to choose from public facts, or a method that has its options.
    """
    require_argument(method, str | Synthesizer, "method", "Write method='spectral', or a method such as Spectral().")
    settings = {name: given[name] for name in _OF_METHOD if given.get(name) is not None}  # type: ignore[literal-required]
    task, preset, options = given.get("task", "series"), given.get("preset", "default"), given.get("options")
    if isinstance(method, Synthesizer):
        if settings or options or preset != "default":
            raise InputError(f"method: {method.name} was given with its options. Set them there, not beside it.")
        return method, ()
    if method != "auto" and method not in METHODS:
        near = get_close_matches(method, ["auto", *METHODS], 1)
        meant = f" Did you mean '{near[0]}'?" if near else ""
        raise InputError(f"method: one of auto, {', '.join(METHODS)} is expected, got '{method}'.{meant}")
    steps, stride = settings.get("window_steps"), settings.get("window_stride")
    if steps is not None and steps > schema.num_steps:
        raise InputError(f"window_steps: at most the schema's {schema.num_steps} steps are expected, got {steps}.")
    if stride is not None and not 1 <= stride <= (steps or 0):
        raise InputError(f"window_stride: 1 to `window_steps` is expected, got {stride}.")
    if task not in TASKS:
        raise InputError(f"task: one of {', '.join(TASKS)} is expected, got '{task}'.")
    reasons: list[str] = []
    if method == "auto":
        method, *reasons = choose(schema, task)
    kind = METHODS[method]
    for name in (name for name in _FOLDERS if name in settings):
        settings[name] = str(settings[name])
        if name not in kind.__dataclass_fields__:
            raise InputError(f"{name}: '{kind.name}' takes no {name}. Omit `{name}`, or choose another method.")
    return configured(kind, options or (), preset, **settings), tuple(reasons)


def require_budget(schema: Schema) -> None:
    """Refuses a schema that has no ledger to charge."""
    if schema.budget is None:
        raise SchemaError(
            "The schema declares no [budget], so there is no ledger to charge. Add [budget] with epsilon and "
            "max_runs: all that may ever be spent on this population.",
            key="budget",
        )


def guarantee_for(
    schema: Schema, epsilon: float | None, delta: float | None, *, not_private: bool = False
) -> Guarantee:
    """Returns the guarantee of one run: what was asked for, completed by a share of the declared budget.

    Delta is checked here, before any table is read, so that a refusal costs nothing.

    Args:
        not_private: Whether epsilon is infinite, for a published form of a method that protects no unit.
    """
    share = None
    if schema.budget is not None:  # an equal share of epsilon, and the delta that the ledger gives each run
        facts = declared(schema)
        rule = Composition(kind=facts["composition"], guarantee=facts["guarantee"], max_runs=facts["max_runs"])
        share = Guarantee(rule.epsilon_left(rule.limit / rule.max_runs), rule.run_delta)
    elif epsilon is None:
        raise InputError("epsilon: a number is expected, because the schema declares no [budget] yet.")
    share = share or Guarantee(1.0, schema.delta)
    asked = Guarantee(share.epsilon if epsilon is None else epsilon, share.delta if delta is None else delta)
    if not_private != math.isinf(asked.epsilon):
        raise InputError(
            "epsilon: a finite number above 0 is expected; 1 is strict, 10 is weak. A published form that protects no "
            "unit needs two things together: epsilon=math.inf and not_private=True, or `--epsilon none --not-private`."
        )
    check_delta(asked.delta, schema.protected_units)
    return asked


def spending_plan(method: Synthesizer, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
    """Returns every event of a run; refuses to run a form that protects units as if it did not."""
    plan = method.spending_plan(schema, guarantee)
    if math.isinf(guarantee.epsilon) and not any(isinstance(event, NonPrivate) for event in plan.events):
        raise InputError(
            f"not_private: '{method.name}' protects units as it is configured. Give a finite `epsilon`, and omit "
            "`not_private`."
        )
    return plan


def doubts(method: Synthesizer, schema: Schema, guarantee: Guarantee, task: str) -> list[str]:
    """Returns a warning where gradient noise foretells poor series, with the better method; nothing otherwise.

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
        "much as on real ones, on every table of the record. `spectral` erred less on all of them: use that."
    ]


def configured(kind: type[Synthesizer], given: Sequence[str], preset: str = "default", **arguments: Any) -> Synthesizer:
    """Returns a preset with `arguments` and the options of `--set`, each checked against its declared type."""
    parts: dict[str, dict[str, str]] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--set: NAME=VALUE is expected, got '{text}'.")
        name, _, part = name.strip().replace("-", "_").partition(".")
        if part:
            _require_known(kind, name)
            parts.setdefault(name, {})[part] = value.strip()
        else:
            arguments[name] = _checked(kind, name, value.strip())
    method = kind.from_preset(preset, **arguments)
    for name, values in parts.items():  # within what the other options settled
        whole: Any = getattr(method, name)
        if not hasattr(whole, "__dataclass_fields__"):
            raise InputError(
                f"--set: '{name}' of '{kind.name}' has no parts as it is configured. Choose a --preset in which it "
                f"has, or write {name}=VALUE."
            )
        known = {part: _checked(type(whole), part, value, f"{name}.") for part, value in values.items()}
        changed: dict[str, Any] = {name: replace(whole, **known)}
        method = replace(method, **changed)
    return method


def _require_known(kind: Any, name: str, prefix: str = "") -> None:
    names = [field.name for field in fields(kind) if field.init and field.name not in _ELSEWHERE]
    names = [one for one in names if one in getattr(kind, "shown", names)]
    if name not in names:
        expected = ", ".join(prefix + one for one in names) or "none"
        raise InputError(f"--set: one of {expected} is expected, got '{prefix}{name}'.")


def _checked(kind: Any, name: str, text: str, prefix: str = "") -> Any:
    """Returns the value in the option's own type."""
    from pydantic import TypeAdapter, ValidationError

    _require_known(kind, name, prefix)
    hint = get_type_hints(kind)[name]
    if is_dataclass(hint):
        raise InputError(f"--set: '{prefix}{name}' has parts. Write {prefix}{name}.PART=VALUE.")
    message = ""
    for value in (_value(text), text):
        try:
            return TypeAdapter(hint).validate_python(value)
        except ValidationError as problem:
            message = message or str(problem.errors()[0]["msg"])
    raise InputError(f"--set {prefix}{name}: {message}; got '{text}'.")


def _value(text: str) -> Any:
    """Returns a TOML value, such as 3, 0.5, true or [0.2, 0.8]; anything else is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
