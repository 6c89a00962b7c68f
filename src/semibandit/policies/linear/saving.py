"""The posterior in files, and in a policy of more dimensions; what must hold of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from semibandit.arms import IntArray
from semibandit.errors import FileError
from semibandit.policies.linear.posterior import (
    INVERTED,
    SOLVED,
    WAITED,
    WAITING,
    Posterior,
    changed,
    new_posterior,
)
from semibandit.policies.state import array_of

# What a posterior consists of; the rest follows, or is scratch.
_SQUARE = ("root", "sums", "lost", "held", "held_lost", "tight")
_VECTOR = ("right", "drawn", "moment", "moment_lost")


def posterior_to(p: Posterior) -> dict[str, Any]:
    """As it goes into a file."""
    parts = {f"posterior_{name}": getattr(p, name).reshape(-1) for name in (*_SQUARE, *_VECTOR)}
    return {**parts, "posterior_meta": p.meta}


def posterior_from(state: Mapping[str, Any], size: int) -> Posterior:
    """The inverse; anything malformed is a `FileError`."""
    made = new_posterior(size, 1.0)
    for name in (*_SQUARE, *_VECTOR):
        target = getattr(made, name)
        target[:] = array_of(state, f"posterior_{name}", np.float64, target.size).reshape(target.shape)
        if not np.isfinite(target).all():
            raise FileError(f"the posterior holds what is not finite ({name})")
    meta = array_of(state, "posterior_meta", np.int64, len(made.meta))
    if (meta < 0).any():
        raise FileError("the posterior has a negative count")
    made.meta[:] = meta
    made.meta[[SOLVED, INVERTED, WAITED]] = 0
    if not (np.diag(made.root) > 0.0).all() or (meta[WAITING] and not (np.diag(made.tight) > 0.0).all()):
        raise FileError("the posterior is not positive definite")
    return made


def widen(old: Posterior, new: Posterior) -> None:
    """Put what is known in `old` into a fresh one that may have more dimensions. O(d^2)."""
    d = len(old.row)
    for name in _SQUARE:
        getattr(new, name)[:d, :d] = getattr(old, name)
    for i in range(d, len(new.row)):
        new.tight[i, i] = new.root[i, i]
    for name in _VECTOR:
        getattr(new, name)[:d] = getattr(old, name)
    new.meta[:] = old.meta
    new.meta[[SOLVED, INVERTED]] = 0


def forget(p: Posterior, ids: IntArray, scale: float) -> None:
    """Forget these coordinates, of which no row had another beside them: every square is diagonal. O(n d)."""
    for part, value in (
        (p.root, 1.0 / scale),
        (p.sums, 1.0 / scale**2),
        (p.lost, 0.0),
    ):
        part[ids, ids] = value
    for vector in (p.right, p.moment, p.moment_lost):
        vector[ids] = 0.0
    changed.py_func(p)


def check_posterior(p: Posterior) -> None:
    """Assert all invariants. O(d^3)."""
    root = np.triu(p.root)
    whole = np.triu(p.sums + p.lost)
    size = np.abs(np.diag(whole)).max()
    assert (np.diag(root) > 0.0).all()
    np.testing.assert_allclose(np.triu(root.T @ root), whole, rtol=0, atol=1e-9 * size)
    np.testing.assert_allclose(root.T @ p.right, p.moment + p.moment_lost, rtol=0, atol=1e-9 * size)
    if p.meta[WAITING]:
        tight = np.triu(p.tight)
        held = whole + np.triu(p.held + p.held_lost)
        assert (np.diag(tight) > 0.0).all()
        np.testing.assert_allclose(np.triu(tight.T @ tight), held, rtol=0, atol=1e-9 * np.abs(held).max())
    else:
        assert not p.held.any() and not p.held_lost.any()
