"""First populations: by rules, from a public panel, or from a `spectral` release. None looks at private data."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from understudy.data import Panel, Schema, read_panel
from understudy.data.timegrid import season_steps
from understudy.statistics.encoding import Encoding
from understudy.synthesizers.base import SampleRequest
from understudy.synthesizers.pets.population import Population
from understudy.synthesizers.registry import METHODS


def by_rules(encoding: Encoding, group: np.ndarray, public: Panel | None, rng: np.random.Generator) -> Population:
    """Returns rule-based series (Eq. 2).

    Their levels are those of public series if there are any; their season is the calendar's if they share one.
    """
    from understudy.synthesizers.pets.generation import RuleBased, levels_of

    levels = None if public is None else levels_of(encoding.series(public, slice(None)))
    time, num_steps = encoding.schema.time, encoding.schema.num_steps
    generate = RuleBased(
        num_steps=num_steps,
        num_channels=encoding.num_channels,
        rescale="spread" if levels is None else "public",
        public_levels=levels,
        season=season_steps(time, num_steps) if time.align == "calendar" else None,
        one_hot=encoding.channel_codes,
    )
    return Population.first(generate(len(group), rng), _any_static(encoding, len(group), rng), group)


def from_public(encoding: Encoding, group: np.ndarray, public: Panel, rng: np.random.Generator) -> Population:
    """Returns public series; those of a class where the public panel has that label, any where it has not."""
    rows = np.empty(len(group), dtype=np.int64)
    for own in np.unique(group):
        fitting = np.flatnonzero(public.label == own) if public.label is not None else np.empty(0, dtype=np.int64)
        pool = fitting if len(fitting) else np.arange(public.num_series)
        number = int((group == own).sum())
        rounds = [rng.permutation(pool) for _ in range(-(-number // len(pool)))]
        rows[group == own] = np.concatenate(rounds)[:number]
    whole = slice(None)
    return Population.first(encoding.series(public, whole)[rows], encoding.static(public, whole)[rows], group)


def from_spectral(
    encoding: Encoding, arrays: dict[str, np.ndarray], group: np.ndarray, rng: np.random.Generator
) -> Population:
    """Returns a series for each class of `group`, which is sorted, from what `spectral` released in the same run.

    Constraints wait until the end.
    """
    series, static = [], []
    bare, labelled = replace(encoding.schema, constraints=()), encoding.schema.label_column is not None
    for own in np.unique(group):
        number = int((group == own).sum())
        request = SampleRequest(num_series=number, rng=rng, label=int(own) if labelled else None)
        drawn = METHODS.create("spectral").sample(arrays, bare, request)
        series.append(encoding.series(drawn, slice(None)))
        static.append(encoding.static(drawn, slice(None)))
    return Population.first(np.concatenate(series), np.concatenate(static), group)


def read_public(path: Path, schema: Schema) -> Panel:
    """Returns a public table of series as long as those that are learned from, with the same columns."""
    bare = replace(schema, context=(), constraints=())
    return replace(read_panel(path, bare, allow_few_units=True), private=False, unit_ids=None)


def _any_static(encoding: Encoding, number: int, rng: np.random.Generator) -> np.ndarray:
    """Returns static columns of which nothing is known: normal numbers, even codes."""
    width = encoding.num_static
    static = rng.standard_normal((number, width), dtype=np.float32)
    for begin, end in encoding.static_codes:
        static[:, begin:end] = np.eye(end - begin, dtype=np.float32)[rng.integers(0, end - begin, number)]
    return static
