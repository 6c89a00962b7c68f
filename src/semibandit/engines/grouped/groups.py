"""Groups of arms with the same `beta` that come and go as arms move between them."""

from __future__ import annotations

import numpy as np

from semibandit.arms import ALPHA, BETA
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.random import mix64
from semibandit.compiled.words import ordered_bits
from semibandit.engines.grouped.state import CLASS, FIRST, G_ALPHA, G_BETA, K_ALPHA, K_BETA, LIVE, ROOT
from semibandit.engines.grouped.treap import comes_before, first, insert, remove


@inline_kernel
def class_of(s, arm):
    """The class of an arm. O(1)."""
    return s.classes[arm] if s.classes.shape[0] > 0 else 0


@kernel
def _home(s, c, beta):
    """Where the search for a group begins in the table. O(1)."""
    return np.int64(mix64(mix64(np.uint64(ordered_bits(beta))) + np.uint64(c)) >> np.uint64(1)) & (
        s.table.shape[0] - 1
    )


@kernel
def find(s, c, beta):
    """The place of a group in the table, or the free place where it belongs. Expected O(1)."""
    at = _home(s, c, beta)
    while True:
        g = s.table[at] - 1
        if g < 0 or (s.best[g, G_BETA] == beta and s.group[g, CLASS] == c):
            return at
        at = (at + 1) & (s.table.shape[0] - 1)


@kernel
def _forget(s, hole):
    """Take the group at this place out of the table; later ones of its run move up. Expected O(1)."""
    mask = s.table.shape[0] - 1
    at = hole
    while True:
        at = (at + 1) & mask
        other = s.table[at] - 1
        if other < 0:
            break
        home = _home(s, s.group[other, CLASS], s.best[other, G_BETA])
        if ((at - home) & mask) >= ((at - hole) & mask):
            s.table[hole] = other + 1
            hole = at
    s.table[hole] = 0


@kernel
def open_group(s, at, c, beta):
    """A new, empty group for this free place of the table; its number. O(1)."""
    g = s.meta[LIVE]
    s.meta[LIVE] = g + 1
    s.table[at] = g + 1
    s.group[g, ROOT] = -1
    s.group[g, FIRST] = -1
    s.group[g, CLASS] = c
    s.best[g, G_BETA] = beta
    return g


@kernel
def _close_group(s, at):
    """Drop the group at this place of the table; the last one takes its number. Expected O(1)."""
    g = s.table[at] - 1
    _forget(s, at)
    last = s.meta[LIVE] - 1
    s.meta[LIVE] = last
    if g != last:
        moved = find(s, s.group[last, CLASS], s.best[last, G_BETA])
        s.table[moved] = g + 1
        for i in range(s.group.shape[1]):
            s.group[g, i] = s.group[last, i]
        for i in range(s.best.shape[1]):
            s.best[g, i] = s.best[last, i]


@kernel
def enter(s, arm):
    """Put an absent arm into the group of its record. Expected O(log K)."""
    alpha, beta, c = s.recs[arm, ALPHA], s.recs[arm, BETA], class_of(s, arm)
    s.present[arm] = True
    s.key[arm, K_ALPHA] = alpha
    s.key[arm, K_BETA] = beta
    at = find(s, c, beta)
    g = s.table[at] - 1
    if g < 0:
        g = open_group(s, at, c, beta)
    s.group[g, ROOT] = insert(s.key, s.child, s.group[g, ROOT], arm)
    best = s.group[g, FIRST]
    if best < 0 or comes_before(s.key, arm, best):
        s.group[g, FIRST] = arm
        s.best[g, G_ALPHA] = alpha


@kernel
def leave(s, arm):
    """Take a present arm out of its group. Expected O(log K)."""
    s.present[arm] = False
    at = find(s, class_of(s, arm), s.key[arm, K_BETA])
    g = s.table[at] - 1
    root = remove(s.key, s.child, s.group[g, ROOT], arm)
    s.group[g, ROOT] = root
    if root < 0:
        _close_group(s, at)
    elif s.group[g, FIRST] == arm:
        best = first(s.child, root)
        s.group[g, FIRST] = best
        s.best[g, G_ALPHA] = s.key[best, K_ALPHA]
