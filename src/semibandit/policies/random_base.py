"""A random base: in O(D) for uniform and partition matroids, by greedy over a random order for any other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, IntArray
from semibandit.compiled.generic import generic, implement
from semibandit.compiled.handle import Ints1, by_handle, make_handle
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.random import fill_uniforms, next_uniform
from semibandit.compiled.sorting import sort_ids_in_place
from semibandit.engines.base import Engine, bytes_of
from semibandit.engines.kernels import AnyEngine, engine_select, engine_touch_all
from semibandit.engines.resolve.oracle import resolve_engine
from semibandit.errors import FileError
from semibandit.matroids import Matroid, Partition, Uniform
from semibandit.matroids.base import kind_of
from semibandit.policies.state import array_of

Words = npt.NDArray[np.uint64]


@generic
def draw_base(draws: Any, rng: Any, out: Any) -> int:
    """A random base of the arms that are present, ascending, into `out`; how many. Changes `rng` and `draws`."""
    raise NotImplementedError("called by kernels only")


class Pools(NamedTuple):
    """Pool g is order[first[g] : first[g] + size[g]], the present arms of a class; `place`: where each arm stands.

    `pools`: the classes of positive capacity. `group`: the class of each arm.
    """

    order: Ints1
    place: Ints1
    first: Ints1
    size: Ints1
    group: Ints1
    pools: Ints1
    capacity: Ints1


@kernel
def _draw_from_pools(draws, rng, out):
    """`capacity[g]` arms of each pool g (fewer if it is smaller), all subsets equally likely. O(D log D).

    The first steps of a Fisher-Yates shuffle bring the drawn arms to the front of their pool.
    """
    order, place = draws.order, draws.place
    n = 0
    for i in range(draws.pools.shape[0]):
        g = draws.pools[i]
        f, size = draws.first[g], draws.size[g]
        for j in range(min(draws.capacity[g], size)):
            other = f + j + int(next_uniform(rng) * (size - j))
            one = order[f + j]
            two = order[other]
            order[f + j] = two
            place[two] = f + j
            order[other] = one
            place[one] = other
            out[n] = two
            n += 1
    sort_ids_in_place(out, n)
    return n


implement(draw_base, Pools, _draw_from_pools)


@kernel
def _leave_pools(draws, arms):
    """Take present arms out: each moves behind the end of its pool. O(n)."""
    for i in range(arms.shape[0]):
        g = draws.group[arms[i]]
        draws.size[g] -= 1
        _move(draws, arms[i], draws.first[g] + draws.size[g])


@kernel
def _enter_pools(draws, arms):
    """Bring absent arms back: each moves to the end of its pool. O(n)."""
    for i in range(arms.shape[0]):
        g = draws.group[arms[i]]
        _move(draws, arms[i], draws.first[g] + draws.size[g])
        draws.size[g] += 1


@inline_kernel
def _move(draws, arm, to):
    """Let `arm` change places with the arm that stands at `to`."""
    other = draws.order[to]
    at = draws.place[arm]
    draws.order[at] = other
    draws.place[other] = at
    draws.order[to] = arm
    draws.place[arm] = to


@kernel
def _draw_by_weights(engine, rng, out):
    """Greedy over a random order: the best base of random weights. O(K)."""
    for arm in range(engine.recs.shape[0]):
        engine.recs[arm, ALPHA] = next_uniform(rng)
    engine_touch_all(engine)
    return engine_select(engine, 0.0, out)


implement(draw_base, AnyEngine, _draw_by_weights)


@inline_kernel
def _draw_entry(draws, rng, out):
    return draw_base(draws, rng, out)


class RandomBase:
    """Draws random bases of a matroid, without the arms that were taken out.

    For uniform and partition matroids every base is equally likely and a draw costs O(D). For any other class a draw
    is greedy over a random order of all arms, O(K): every base is possible, but they are not equally likely.

    `draws` is the state for kernels, on which `draw_base` is defined; None where the matroid's greedy runs in Python.
    """

    def __init__(self, matroid: Matroid) -> None:
        self.matroid = matroid
        self.draws: Any
        self._engine: Engine | None = None
        self.pooled = kind_of(matroid) in (Uniform, Partition)
        if self.pooled:
            self.draws = self._new_pools(matroid)
        else:
            self._engine = resolve_engine(matroid)
            self._engine._recs[:, ALPHA] = 0.0
            self._engine.touch_all()
            self.draws = getattr(self._engine, "any", None)
        self._handle = None if self.draws is None else make_handle(self.draws)

    def _new_pools(self, matroid: Matroid) -> Pools:
        n = matroid.n_arms
        if isinstance(matroid, Partition):
            group, capacity = np.array(matroid._group), np.array(matroid._capacity)
        else:
            group, capacity = np.zeros(n, dtype=np.int64), np.array([matroid.rank], dtype=np.int64)
        size = np.bincount(group, minlength=len(capacity)).astype(np.int64)
        order = np.argsort(group, kind="stable").astype(np.int64)
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n)
        pools = np.flatnonzero(capacity > 0).astype(np.int64)
        return Pools(order, place, np.cumsum(size) - size, size, group, pools, capacity)

    def draw(self, rng: Words) -> IntArray:
        """A random base of the arms that are present, ascending."""
        if self.draws is None:
            assert self._engine is not None
            weights = np.empty(self.matroid.n_arms)
            fill_uniforms(rng, weights)
            self._engine._recs[:, ALPHA] = weights
            self._engine.touch_all()
            return self._engine._select(0.0)
        out = np.empty(self.matroid.rank, dtype=np.int64)
        n = by_handle(_draw_entry, type(self.draws)).entry(self._handle, rng, out)
        return out if n == out.shape[0] else out[:n].copy()

    def draw_without(self, rng: Words, ids: IntArray | None) -> IntArray:
        """`draw` that avoids these present, distinct arms too."""
        if ids is None or len(ids) == 0:
            return self.draw(rng)
        self.remove(ids)
        try:
            return self.draw(rng)
        finally:
            self.restore(ids)

    def remove(self, ids: IntArray) -> None:
        """Take these present, distinct arms out. O(n)."""
        if self._engine is None:
            by_handle(_leave_pools, Pools)(self._handle, ids)
        else:
            self._engine.delete(ids)

    def restore(self, ids: IntArray) -> None:
        """Bring these absent, distinct arms back. O(n)."""
        if self._engine is None:
            by_handle(_enter_pools, Pools)(self._handle, ids)
        else:
            self._engine.insert(ids)

    def state(self) -> dict[str, Any]:
        """What `set_state` needs to go on drawing as this one would. O(1)."""
        return {"order": self.draws.order} if self.pooled else {}

    def state_without(self, gone: IntArray) -> dict[str, Any]:
        """What `state` would be, had these present arms been taken out. O(K)."""
        self.remove(gone)
        state = {name: value.copy() for name, value in self.state().items()}
        self.restore(gone)
        return state

    def set_state(self, state: Mapping[str, Any], present: npt.NDArray[np.bool_]) -> None:
        """Let a fresh one go on as told, with the arms of the mask `present`. O(K)."""
        if self._engine is not None:
            # The policy's own account may have taken some out already.
            self._engine.delete(np.setdiff1d(np.flatnonzero(~present), self._engine.deleted))
            return
        pools = self.draws
        order = array_of(state, "order", np.int64, self.matroid.n_arms)
        size = np.bincount(pools.group[present], minlength=len(pools.size))
        whole = np.array_equal(np.sort(order), np.arange(len(order)))
        # Class by class, and within a class those that are present first.
        fits = whole and np.array_equal(pools.group[order], np.sort(pools.group))
        if not fits or not np.array_equal(
            present[order], np.arange(len(order)) - pools.first[pools.group[order]] < size[pools.group[order]]
        ):
            raise FileError("the order of the arms does not fit the matroid")
        pools.order[:], pools.size[:] = order, size
        pools.place[order] = np.arange(len(order))

    def memory(self) -> int:
        """Bytes held."""
        return bytes_of(self.draws) if self._engine is None else self._engine.memory()

    def _check(self, present: Any) -> None:
        """Assert that exactly the arms of the mask `present` can be drawn. O(K)."""
        if self._engine is not None:
            self._engine._check()
            assert np.array_equal(self._engine.deleted, np.flatnonzero(~present))
            return
        pools = self.draws
        assert np.array_equal(pools.order[pools.place], np.arange(self.matroid.n_arms))
        for g in range(len(pools.capacity)):
            pool = pools.order[pools.first[g] : pools.first[g] + pools.size[g]]
            assert set(pool.tolist()) == set(np.flatnonzero(present & (pools.group == g)).tolist())
