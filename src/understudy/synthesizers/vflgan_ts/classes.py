"""A model of its own for every class: each is trained on the rows of that class alone, and on nothing else.

Privacy: one charge covers all of them. A unit has one class, so with it or without it all models but one are trained on
the same rows by the same coins: whoever sees all of them sees the one mechanism that the unit took part in. Every model
draws units at the rate that was charged, whatever the size of its class.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from understudy.data import Schema
from understudy.errors import InputError
from understudy.synthesizers.vflgan_ts.aggregator import Draws
from understudy.synthesizers.vflgan_ts.agreement import Agreement
from understudy.synthesizers.vflgan_ts.fitting import Named
from understudy.synthesizers.vflgan_ts.modes import NOT_PRIVATE, Rule
from understudy.synthesizers.vflgan_ts.network import ClassGenerators
from understudy.synthesizers.vflgan_ts.party import Rows

KNOWN = "Every class has a model of its own: every party and the aggregator know the class of every row."


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """One training: what all sides agree on, the rows of all parties, and how they are drawn and noised."""

    agreement: Agreement
    rows: Named
    rule: Rule


def check(labels: str, mode: str, schema: Schema) -> None:
    """Refuses models by class where one unit could take part in several of them, or where classes are noised."""
    if labels != "apart" or schema.label_column is None:
        return
    if mode == "local":
        raise InputError("labels: 'conditional' is expected in the mode 'local', which noises the classes as well.")
    if mode not in NOT_PRIVATE and schema.unit.max_series > 1:
        raise InputError(
            "labels: a model per class needs units of one class, so unit.max_series = 1 is expected, got "
            f"{schema.unit.max_series}. Use labels = 'conditional'."
        )


def divided(whole: Model, labels: np.ndarray) -> list[Model]:
    """Returns one training for each class; generators are told no class, and features hold none."""
    alone = replace(whole.agreement, recipe=replace(whole.agreement.recipe, labels="conditional"), num_classes=0)
    models = []
    for label in range(whole.agreement.num_classes):
        members = np.flatnonzero(labels == label)
        rows = [(name, _taken(own, members)) for name, own in whole.rows]
        rule = whole.rule if alone.mode in NOT_PRIVATE else replace(whole.rule, draws=among(whole.rule.draws, members))
        models.append(Model(alone, rows, rule))
    return models


def gathered(models: Sequence[tuple[nn.Module, ...]]) -> tuple[nn.Module, ...]:
    """Returns every party's generators of all classes as one module."""
    return tuple(ClassGenerators(classes) for classes in zip(*models, strict=True))


def among(draws: Draws, members: np.ndarray) -> Draws:
    """Returns draws of everybody as draws of some: whoever is no member is left out, the others keep their coins."""

    def drawn(num_rows: int) -> Iterator[Tensor]:
        everybody = draws(num_rows)
        for rows in everybody:
            place = np.searchsorted(members, rows.numpy())
            inside = np.isin(rows.numpy(), members)
            yield torch.from_numpy(place[inside])

    return drawn


def _taken(rows: Rows, members: np.ndarray) -> Rows:
    return Rows(rows.series[members], rows.label[members, :0])
