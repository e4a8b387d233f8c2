"""All methods on one table, what epsilon buys with each, and which one a rule from public facts would take."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from understudy.evaluation.words import figure
from understudy.report.figures import FAINT, INK, SYNTHETIC, Drawing, style, tidy
from understudy_bench.judging import named
from understudy_bench.results.which_method import (
    FIRST,
    FOLLOWING,
    Cell,
    Chosen,
    cells_of,
    context_cells,
    contexts_left_out,
    counted,
    fit_rule,
    followed,
    left_out,
    no_worse,
)

_TICKS = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)  # of a ratio
_MARKS, _RECORD = "osD^vP*X<>hd", "record-"
_CUT = {  # what was made of a public file
    "metr-la": ": a week of hourly means, half of all sensors",
    "pemsd7": ": a week of hourly means, half of all sensors",
    "sp500": ": a hundred weeks of logarithmic prices, half of all members",
    "electricity": ": logarithms of weekly or daily use, half of all clients",
}


def contest(result: Mapping[str, Any]) -> list[str]:
    """Returns all methods on one table, the best forecasts first."""
    shown = sorted(
        (line for line in [*result["rows"], *result["controls"]] if "ratio" in line["metrics"]),
        key=lambda line: (line["epsilon"] or 0.0, line["metrics"]["ratio"]),
    )
    lines = [
        "| method | ε certified | TSTR ÷ train-on-real | TSTR MAE | KS | autocorrelation | splits | seconds |",
        "|" + "---|" * 8,
    ]
    for line in _once(shown):
        cells = [_ratio(line["metrics"])]
        cells += [_spread(line["metrics"].get(name)) for name in ("tstr_mae", "ks", "autocorrelation_error")]
        cells += [str(line.get("seeds") or ""), f"{line['seconds']:.0f}" if line["seconds"] else ""]
        epsilon = line.get("epsilon_certified", line["epsilon"])
        lines.append(f"| {line['method']} | {figure(epsilon)} | {' | '.join(cells)} |")
    refused = [f"{line['method']}: {line['note']}" for line in result["rows"] if line.get("note")]
    data = result["data"]
    about = f"{data.get('units', '')} units, each protected{_CUT.get(data['name'], '')}. "
    about += "Ratios compare errors on the same splits."
    ran = f" {result['scale']}, {result['day']}." if "day" in result else ""
    return [
        f"## All methods on {named(data)}",
        about.strip() + ran,
        "\n".join(lines),
        *_bought(result),
        "\n".join(f"- {one}" for one in dict.fromkeys(refused)),
    ]


def _bought(result: Mapping[str, Any]) -> list[str]:
    """Returns what each epsilon buys: the error over that of train-on-real, method by method."""
    lines = [line for line in result["rows"] if "ratio" in line["metrics"] and line["epsilon"]]
    epsilons = sorted({line["epsilon"] for line in lines})
    if len(epsilons) < 2:
        return []
    ratios = {(line["method"], line["epsilon"]): f"{line['metrics']['ratio']:.2f}" for line in lines}
    table = [f"| method | {' | '.join(f'ε = {figure(epsilon)}' for epsilon in epsilons)} |"]
    table += ["|---" * (len(epsilons) + 1) + "|"]
    for method in dict.fromkeys(line["method"] for line in lines):
        table.append(f"| {method} | {' | '.join(ratios.get((method, epsilon), '') for epsilon in epsilons)} |")
    return ["What ε buys, by the same ratio:", "\n".join(table)]


def _ratio(metrics: Mapping[str, Any]) -> str:
    """Returns the error over that of train-on-real, with its range over splits where that is known."""
    splits = metrics.get("split_ratio", {"low": 0.0, "high": 0.0})
    ranged = f" ({splits['low']:.2f} to {splits['high']:.2f})" if splits["high"] > splits["low"] else ""
    return f"{metrics['ratio']:.2f}" + ranged


def _once(lines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the lines; one that spends nothing is the same at every epsilon."""
    kept = {(line["method"], line["epsilon"], line["metrics"]["ratio"]): line for line in reversed(lines)}
    return list(reversed(kept.values()))


def which_method(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the choice of `--method auto` for each table, made without that table, and its rival."""
    cells = cells_of(results)
    judged = left_out(cells)
    if not judged:
        return []
    rule = fit_rule(cells)
    said = f"`{rule.above}`" if rule.below == rule.above else (
        f"`{rule.below}` where units × ε ÷ numbers in a series is below {rule.threshold:.2g}, else `{rule.above}`"
    )  # fmt: skip
    lines = [f"| table | ε | signal | {_CHOSEN} |", "|" + "---|" * 10]
    lines += [
        f"| {one.cell.table} | {figure(one.cell.epsilon)} | {figure(one.cell.signal)} | {_chosen(one, '.2f')} |"
        for one in judged
    ]
    shares = [
        f"{name} {sum(one.near for one in some)} of {len(some)} (always `{FIRST}`: {sum(o.rival_near for o in some)})"
        for name, some in (("all cells", judged), ("cells of ε = 1", [one for one in judged if one.cell.epsilon == 1]))
    ]
    return [
        "## Which method when",
        f"The rule of `--method auto`, fitted to all tables: {said}. Each row below is judged by a rule that was "
        f"fitted without its table; for homes, without either table of homes. *Near*: within 10 % of the error of the "
        f"best method with at least three splits there; away from ε = 1 only methods that take seconds have them. Near "
        f"in {'; '.join(shares)}. Errors are divided by that of train-on-real.",
        "\n".join(lines),
        *_with_contexts(context_cells(results)),
    ]


def _with_contexts(cells: Sequence[Cell]) -> list[str]:
    """Returns the same of tables whose series each have a context, where the rule always names one method."""
    if not cells:
        return []
    named, judged = FOLLOWING if no_worse(counted(followed(cells))) else FIRST, contexts_left_out(cells)
    lines = [f"| table | {_CHOSEN} |", "|" + "---|" * 8]
    lines += [f"| {one.cell.table} | {_chosen(one, '.3g')} |" for one in judged]
    said = (
        f"Where every series has its own context, the rule names `{FOLLOWING}` if that was near at least as often "
        f"as `{FIRST}`: at present `{named}`. Each row below is judged without its own data. Errors "
        "are `predictive` at ε = 1."
    )
    return [said, "\n".join(lines)]


_CHOSEN = "best | its error | auto | its error | near | spectral | near"  # heads of what `_chosen` returns


def _chosen(one: Chosen, digits: str) -> str:
    """Returns the best method, the one that was chosen and its rival, each with its error."""
    errors = one.cell.ratios
    return (
        f"{one.cell.best} | {errors[one.cell.best]:{digits}} | {one.method} | {errors[one.method]:{digits}} | "
        f"{_yes(one.near)} | {errors[FIRST]:{digits}} | {_yes(one.rival_near)}"
    )


def _yes(found: bool) -> str:
    return "yes" if found else "no"


def _spread(found: Any) -> str:
    if found is None:
        return ""
    ranged = f" ({figure(found['low'])} to {figure(found['high'])})" if found["high"] > found["low"] else ""
    return figure(found["mean"]) + ranged


def curves(results: Mapping[str, Mapping[str, Any]]) -> list[Drawing]:
    """Returns, for each table, what epsilon buys with every method, on the same axes."""
    return [
        _curve(name, result)
        for name, result in results.items()
        if name.startswith(_RECORD) and len({line["epsilon"] for line in result["rows"] if line["epsilon"]}) > 1
    ]


def _curve(name: str, result: Mapping[str, Any]) -> Drawing:
    lines = [line for line in result["rows"] if "ratio" in line["metrics"] and line["epsilon"]]
    methods = list(dict.fromkeys(line["method"] for line in lines))
    with style():
        made = Figure(figsize=(8, 4.2), dpi=72, layout="constrained")
        axes = made.subplots()
        axes.axhline(1.0, color=FAINT, linewidth=1)
        for place, method in enumerate(methods):
            own = sorted((line["epsilon"], line["metrics"]["ratio"]) for line in lines if line["method"] == method)
            axes.plot(
                *zip(*own, strict=True),
                marker=_MARKS[place % len(_MARKS)],
                linewidth=0.8,
                label=method,
                color=SYNTHETIC if method == FIRST else INK,
            )
        tidy(axes)
        _marked(axes.set_xscale, axes.xaxis, sorted({line["epsilon"] for line in lines}))
        _marked(axes.set_yscale, axes.yaxis, _TICKS)
        axes.set_xlabel("epsilon")
        axes.set_title("error trained on synthetic ÷ trained on real", loc="left", fontsize=10, color=INK)
        made.legend(loc="outside lower center", ncols=5, frameon=False)
    return Drawing(
        name=f"{name}-epsilon",
        figure=made,
        caption=f"{result['data']['name']}: what epsilon buys. 1 is as good as real series.",
        alternative=f"Curves over epsilon of {', '.join(methods)}.",
    )


def _marked(set_scale: Callable[[str], None], axis: Axis, ticks: Sequence[float]) -> None:
    """Makes an axis logarithmic with plain numbers at the given places."""
    set_scale("log")
    low, high = axis.get_view_interval()
    axis.set_minor_locator(NullLocator())
    axis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axis.set_major_formatter(FuncFormatter(lambda tick, place: figure(tick)))
