"""The page of results, as Markdown and as HTML: our figures next to the papers', and all methods compared."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

from markdown_it import MarkdownIt

from understudy.evaluation.words import figure
from understudy_bench.judging import VERDICTS, Judged, Shown, figures, named, shown, verdict
from understudy_bench.results import findings
from understudy_bench.results.contest import contest, curves, which_method
from understudy_bench.results.published import ALL, OURS, Published, table_of
from understudy_bench.results.words import words_of

Results = Mapping[str, Mapping[str, Any]]  # by benchmark
_PAGES = {  # of each paper, where its figures are explained
    "Pub2Priv": "pub2priv-measured.md",
    "PETS": "pets-measured.md",
    "PPEM": "ppem-measured.md",
    "DP-aware AdaLN-Zero": "dit-measured.md",
    "VFLGAN-TS": "vflgan-ts.md",
}
_RECORD = "record-"
_APART = "not comparable: other data, unit, judge or machine"
_UNMEASURED = "not comparable: only drawn, or no measurement"


def markdown(results: Results) -> str:
    """Returns the page as Markdown."""
    parts = ["# Results", _INTRODUCTION, _MEANINGS, _tally(results)]
    parts += [part for paper in _PAGES for part in _paper(paper, results)]
    records = [result for name, result in results.items() if name.startswith(_RECORD)]
    parts += [part for result in records for part in contest(result)]
    parts += [*which_method(results), *_beyond(results), *_explained(results)]
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = (
    "Every table and figure of the five papers, compared with the benchmarks of this package. `make bench-quick` runs "
    "the benchmarks and writes this page from their files; only the reasons are written by hand. Each benchmark's "
    "name is followed by its scale: all of `quick` takes a night on two cores, with fewer iterations, smaller "
    "networks and judges that train for less; `target` and `full` take hours and days for one benchmark. Settings "
    "were chosen on public or simulated data, never on what is judged here, except where a method's page says so. ε "
    "is the certified one, unless marked *asked* (requested; the certificate does not exceed it) or *computed* (what "
    "a paper's own noise amounts to, which is no guarantee). The last section explains each figure. The page "
    "`results.html`, which the same command writes, also draws the curves over ε."
)

_MEANINGS = """\
| verdict | means |
|---|---|
| reproduced | our mean and the paper's differ by no more than our range over at least three seeds. If the true \
figures are equal, 9 of 10 pass where the paper prints a mean of many runs, 3 of 4 where it prints one run |
| better, worse | ours is better or worse by more than that |
| not comparable | for the reason in the last column |
| not judged | fewer than three seeds, or not run |
| holds | a finding of the paper: our ranges over at least three seeds do not overlap, in its direction |
| the reverse holds | they do not overlap, in the other direction |
| not shown | they overlap |"""


def _tally(results: Results) -> str:
    """Return the number of tables, figures and findings of each paper, by verdict."""
    said = [(item.paper, _verdict(item, results)) for item in ALL]
    seen = [(finding.paper, findings.tried(finding, results)) for finding in findings.ALL]
    tried = [(paper, findings.OPEN if one is None else one.verdict) for paper, one in seen]
    tables = _counts("tables and figures, by rows below", said, (*VERDICTS[:-2], _APART, _UNMEASURED, VERDICTS[-1]))
    return "\n\n".join([tables, _counts("findings", tried, findings.VERDICTS)])


def _verdict(item: Published, results: Results) -> str:
    """Return the verdict on a table or figure; one that prints no measurement has a verdict of its own."""
    if not item.measured:
        return _UNMEASURED
    found = verdict(item, _found(item, results), _run(item, results))
    return _APART if found == "not comparable" else found


def _counts(what: str, said: Sequence[tuple[str, str]], verdicts: Sequence[str]) -> str:
    lines = [f"| {what} | {' | '.join(_PAGES)} | all |", "|---" * (len(_PAGES) + 2) + "|"]
    for one in verdicts:
        numbers = [said.count((paper, one)) for paper in _PAGES]
        lines.append(f"| {one} | {' | '.join(map(str, numbers))} | {sum(numbers)} |")
    return "\n".join(lines)


def _found(item: Published, results: Results) -> list[Judged]:
    return [
        one for name in item.benchmarks if name in results for one in figures(results[name], item.apart, item.noisy)
    ]


def _run(item: Published, results: Results) -> bool:
    return bool(item.benchmarks) and all(name in results for name in item.benchmarks)


def _paper(paper: str, results: Results) -> list[str]:
    items = [item for item in ALL if item.paper == paper]
    lines = ["| place | shows | benchmark | verdict | why |", "|---|---|---|---|---|"]
    for item in items:
        found = _found(item, results)
        said, names = verdict(item, found, _run(item, results)), ", ".join(f"`{name}`" for name in item.benchmarks)
        why = _counted(item, found) if said in VERDICTS[:3] else _obstacle(item, results)
        lines.append(f"| {item.place} | {item.shows} | {names} | {said} | {why} |")
    compared = _compared([name for item in items for name in item.benchmarks], results)
    meaning = f"Explained in `docs/{_PAGES[paper]}`."
    return [f"## {paper}", "\n".join(lines), meaning, *_findings(paper, results), *compared]


def _obstacle(item: Published, results: Results) -> str:
    """Returns why nothing can be said of a table or figure."""
    missing = [name for name in item.benchmarks if name not in results]
    return f"not run: {', '.join(missing)}" if missing else item.apart or "fewer than three seeds"


def _counted(item: Published, found: Sequence[Judged]) -> str:
    """Returns how many figures of a table are better, reproduced and worse, and what is known of the worse ones."""
    verdicts = [one.verdict for one in found]
    counts = ", ".join(f"{verdicts.count(said)} {said}" for said in VERDICTS[:3] if said in verdicts)
    return counts + (f"; {item.worse}" if item.worse and "worse" in verdicts else "")


def _findings(paper: str, results: Results) -> list[str]:
    """Return the findings of the paper, and whether they hold here."""
    lines = ["| place | finding | benchmark | first | second | seeds | |", "|---|---|---|---|---|---|---|"]
    for finding in findings.ALL:
        if finding.paper != paper:
            continue
        seen = findings.tried(finding, results)
        from_real = f", from {figure(seen.real)} of real series" if seen and seen.real is not None else ""
        told = f"| {finding.place} | {finding.says} | `{finding.benchmark}`, {finding.metric}{from_real} |"
        if seen is None:
            lines.append(f"{told} | | | not judged: not run |")
            continue
        seeds = min(seen.better.seeds, seen.worse.seeds)
        unsure = seen.verdict in (findings.OPEN, findings.UNSHOWN) and seen.better.mean != seen.worse.mean
        points = f": points {'that way' if seen.points else 'the other way'}" if unsure else ""
        lines.append(f"{told} {_range(seen.better)} | {_range(seen.worse)} | {seeds} | {seen.verdict}{points} |")
    return ["Findings of the paper, tested here:", "\n".join(lines)]


def _range(found: findings.Range) -> str:
    return _spread(found.mean, found.low, found.high)


def _beyond(results: Results) -> list[str]:
    """Returns what was measured on data that no paper has."""
    repeated = {name for item in ALL for name in item.benchmarks}
    names = [name for name in OURS if name in results and name not in repeated]
    parts = [
        part
        for name in names
        for part in (_heading(results[name]), _listed(results[name], OURS[name]), *_notes(results[name]))
        if part
    ]
    return ["## Beyond the papers", *parts] if parts else []


def _compared(names: Sequence[str], results: Results) -> list[str]:
    """Return the papers' figures and ours, benchmark by benchmark, and ours where papers print none."""
    parts = []
    for name in (name for name in dict.fromkeys(names) if name in results):
        result = results[name]
        found = [one for noisy in (False, True) for one in figures(result, table_of(name, noisy).apart, noisy)]
        if found or name in OURS:
            parts.append(_heading(result))
        if found:
            parts.append("\n".join([*_COMPARED, *map(_row, found)]))
        if name in OURS:
            parts += ["Ours, where the paper prints no figure or another one:", _listed(result, OURS[name])]
        parts += _notes(result)
    return parts


def _notes(result: Mapping[str, Any]) -> list[str]:
    """Return the notes of a benchmark: its tables as they are, sentences as a list."""
    notes = result.get("notes", [])
    tables, sentences = ([note for note in notes if note.startswith("|") == table] for table in (True, False))
    return [*tables, *(["\n".join(f"- {sentence}" for sentence in sentences)] if sentences else [])]


def _explained(results: Results) -> list[str]:
    """Return an explanation of each figure on the page."""
    named = {metric for result in results.values() for line in result["rows"] for metric in line.get("paper", {})}
    named |= {metric for name, metrics in OURS.items() if name in results for metric in metrics}
    known = sorted({found for metric in named if (found := words_of(metric)) is not None})
    lines = [f"| `{name}` | {words} |" for name, words in known]
    return ["## What the figures are", "\n".join(["| figure | |", "|---|---|", *lines])] if lines else []


_COMPARED = (
    "| method | ε | unit | figure | paper | ours | seeds | seconds | |",
    "|---|---|---|---|---|---|---|---|---|",
)


def _epsilon(one: Judged | Shown) -> str:
    """Returns an epsilon, and what it is where it is not the certified one."""
    return figure(one.epsilon) + (f" ({one.epsilon_kind})" if one.epsilon_kind else "")


def _row(one: Judged) -> str:
    return (
        f"| {one.method} | {_epsilon(one)} | {one.unit or ''} | {one.metric} | {figure(one.paper)} | "
        f"{_ours(one)} | {one.seeds} | {_seconds(one.seconds)} | {one.verdict} |"
    )


def _heading(result: Mapping[str, Any]) -> str:
    """Returns what was run at which scale on which data, how long it took, and when."""
    lines = [*result["rows"], *result["controls"]]
    facts = [f"`{result['name']}`", result["scale"], named(result["data"])]
    facts.append(f"{sum(line.get('seconds') or 0.0 for line in lines):.0f} seconds")
    return ", ".join([*facts, *([result["day"]] if "day" in result else [])]) + ":" + _pearson(result)


def _listed(result: Mapping[str, Any], metrics: Sequence[str]) -> str:
    """Returns some figures of ours, row by row."""
    if not metrics:
        return ""
    lines = [f"| method | ε | unit | {' | '.join(metrics)} | seeds |", "|---" * (len(metrics) + 4) + "|"]
    for one in shown(result, metrics):
        cells = [_spread(*one.figures[metric]) if metric in one.figures else "" for metric in metrics]
        lines.append(f"| {one.method} | {_epsilon(one)} | {one.unit or ''} | {' | '.join(cells)} | {one.seeds} |")
    return "\n".join(lines)


def _pearson(result: Mapping[str, Any]) -> str:
    """Says how series and context are correlated, where a paper does (Pub2Priv, Table 2)."""
    found = result["data"].get("pearson")
    if not found:
        return ""
    other = found["of another's context"]
    return (
        f" Mean size of the correlation of series and context {found['ours']:.2f}, with another series' context "
        f"{other:.2f}; paper {found['paper']:.2f} (Table 2)."
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds else ""


def _ours(one: Judged) -> str:
    return _spread(one.mean, one.low, one.high)


def _spread(mean: float, low: float, high: float) -> str:
    return figure(mean) if low == high else f"{figure(mean)} ({figure(low)} to {figure(high)})"


def page(results: Results) -> str:
    """Returns one HTML page that needs nothing but itself."""
    drawn = "".join(
        f"<figure>{drawing.svg()}<figcaption>{html.escape(drawing.caption)}</figcaption></figure>"
        for drawing in curves(results)
    )
    return _PAGE.format(
        body=MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown(results)), drawn=drawn
    )


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Understudy: results</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root {{ color-scheme: light dark; --real: #4d4d4d; --synthetic: #d55e00; --control: #0072b2;
  --ink: #1a1a1a; --rule: #c8c8c8; --paper: #fff; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --real: #b8b8b8; --synthetic: #ff8b3d; --control: #56b4e9; --ink: #eee; --rule: #555; --paper: #121212; }}
}}
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }}
th, td {{ padding: .25rem .6rem; border-bottom: 1px solid #8884; text-align: left; vertical-align: top; }}
code {{ font-size: .92em; }} figure {{ margin: 1rem 0; }} svg {{ max-width: 100%; height: auto; }}
</style></head><body>{body}{drawn}</body></html>
"""
