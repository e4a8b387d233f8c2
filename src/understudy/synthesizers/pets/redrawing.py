"""Relatives of candidates as fresh draws that fall next to them, for starts that can be drawn from without end.

A candidate stands for its cell: whatever is nearer to it than to any other. Votes say how many private series lie in
each cell, and fresh draws of the start fill it. So a vote puts the start's density right and costs no variety, where
a variation would blur every series a little. Nothing here sees private data.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from understudy.nn.nearest import nearest
from understudy.synthesizers.pets.population import Population

Fresh = Callable[[np.ndarray, np.random.Generator], Population]  # (classes, sorted) → a new candidate for each
Embed = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (series, static) → embeddings
_PER_PARENT = 3  # fresh draws for each relative that is needed: the more, the fewer are taken twice
_PASS_PARENTS = 8192


def redrawn(parents: Population, fresh: Fresh, embed: Embed, rng: np.random.Generator) -> Population:
    """Returns one fresh draw from the cell of every parent; parents that are alike get different ones if there are."""
    pieces = [
        _piece(parents.take(np.arange(begin, min(begin + _PASS_PARENTS, parents.size))), fresh, embed, rng)
        for begin in range(0, parents.size, _PASS_PARENTS)
    ]
    return Population(
        **{name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in vars(parents)}
    )  # fmt: skip


def _piece(parents: Population, fresh: Fresh, embed: Embed, rng: np.random.Generator) -> Population:
    pool = fresh(np.sort(np.repeat(parents.group, _PER_PARENT)), rng)
    places, rows = embed(pool.series, pool.static), np.empty(parents.size, dtype=np.int64)
    wanted = embed(parents.series, parents.static)
    for own in np.unique(parents.group):
        mine, theirs = np.flatnonzero(parents.group == own), np.flatnonzero(pool.group == own)
        rows[mine] = theirs[_in_cells(wanted[mine], places[theirs], rng)]
    return replace(pool.take(rows), ancestor=parents.ancestor)


def _in_cells(parents: np.ndarray, pool: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns for each parent a place in the pool: one of its cell at random, the nearest of all if that is empty."""
    points, which = np.unique(parents, axis=0, return_inverse=True)
    cell = nearest(pool, points)[0][:, 0]
    shuffled = rng.permutation(len(pool))
    order = shuffled[np.argsort(cell[shuffled], kind="stable")]  # cell by cell, in any order inside
    number = np.bincount(cell, minlength=len(points))
    begin = np.cumsum(number) - number
    rows = nearest(points, pool)[0][:, 0][which]
    turn = _turns(which)
    filled = number[which] > 0
    rows[filled] = order[(begin[which] + turn % np.maximum(number[which], 1))[filled]]
    return rows


def _turns(which: np.ndarray) -> np.ndarray:
    """Returns for each entry how many equal ones come before it."""
    order = np.argsort(which, kind="stable")
    sorted_ = which[order]
    turn = np.empty(len(which), dtype=np.int64)
    turn[order] = np.arange(len(which)) - np.searchsorted(sorted_, sorted_, side="left")
    return turn
