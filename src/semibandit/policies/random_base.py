"""A random base: in O(D) for uniform and partition matroids, by greedy over a random order for any other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.compiled.jit import kernel
from semibandit.errors import FileError
from semibandit.matroids import Matroid, Partition, Uniform
from semibandit.matroids.base import kind_of
from semibandit.policies.state import array_of


@kernel
def draw_from_pools(order, place, first, size, pools, capacity, uniforms, out):
    """`capacity[g]` arms of each pool g in `pools` (fewer if it is smaller), all subsets equally likely. O(D).

    Pool g is order[first[g] : first[g] + size[g]]; the first steps of a Fisher-Yates shuffle bring the drawn arms to
    its front. Changes `order` and `place` (where each arm stands), and writes to `out`; returns how many.
    """
    n = 0
    for i in range(pools.shape[0]):
        g = pools[i]
        f = first[g]
        for j in range(min(capacity[g], size[g])):
            other = f + j + int(uniforms[n] * (size[g] - j))
            one = order[f + j]
            two = order[other]
            order[f + j] = two
            place[two] = f + j
            order[other] = one
            place[one] = other
            out[n] = two
            n += 1
    return n


@kernel
def leave_pools(order, place, first, size, group, arms):
    """Take present arms out: each moves behind the end of its pool. O(n)."""
    for i in range(arms.shape[0]):
        arm = arms[i]
        g = group[arm]
        size[g] -= 1
        last = first[g] + size[g]
        other = order[last]
        at = place[arm]
        order[at] = other
        place[other] = at
        order[last] = arm
        place[arm] = last


@kernel
def enter_pools(order, place, first, size, group, arms):
    """Bring absent arms back: each moves to the end of its pool. O(n)."""
    for i in range(arms.shape[0]):
        arm = arms[i]
        g = group[arm]
        last = first[g] + size[g]
        size[g] += 1
        other = order[last]
        at = place[arm]
        order[at] = other
        place[other] = at
        order[last] = arm
        place[arm] = last


class RandomBase:
    """Draws random bases of a matroid, without the arms that were taken out.

    For uniform and partition matroids every base is equally likely and a draw costs O(D). For any other class a draw
    is greedy over a random order of all arms, O(K): every base is possible, but they are not equally likely.
    """

    def __init__(self, matroid: Matroid) -> None:
        self.matroid = matroid
        n = matroid.n_arms
        self.pooled = kind_of(matroid) in (Uniform, Partition)
        if not self.pooled:
            self._present = np.ones(n, dtype=np.bool_)
            return
        if isinstance(matroid, Partition):
            group = np.array(matroid._group)
            self._capacity = np.array(matroid._capacity)
        else:
            group = np.zeros(n, dtype=np.int64)
            self._capacity = np.array([matroid.rank], dtype=np.int64)
        self._group: IntArray = group
        self._size: IntArray = np.bincount(group, minlength=len(self._capacity)).astype(np.int64)
        self._first: IntArray = np.cumsum(self._size) - self._size
        self._order: IntArray = np.argsort(group, kind="stable").astype(np.int64)
        self._place: IntArray = np.empty(n, dtype=np.int64)
        self._place[self._order] = np.arange(n)
        self._pools: IntArray = np.flatnonzero(self._capacity > 0).astype(np.int64)

    def draw(self, rng: np.random.Generator) -> IntArray:
        """A random base of the arms that are present, ascending."""
        if not self.pooled:
            order = rng.permutation(self.matroid.n_arms).astype(np.int64, copy=False)
            return np.sort(self.matroid._greedy(order[self._present[order]]))
        out = np.empty(self.matroid.rank, dtype=np.int64)
        uniforms: FloatArray = rng.random(self.matroid.rank)
        n = draw_from_pools(*self._pool_arrays(), self._pools, self._capacity, uniforms, out)
        return np.sort(out[:n])

    def remove(self, ids: IntArray) -> None:
        """Take these present, distinct arms out. O(n)."""
        if self.pooled:
            leave_pools(*self._pool_arrays(), self._group, ids)
        else:
            self._present[ids] = False

    def restore(self, ids: IntArray) -> None:
        """Bring these absent, distinct arms back. O(n)."""
        if self.pooled:
            enter_pools(*self._pool_arrays(), self._group, ids)
        else:
            self._present[ids] = True

    def state(self) -> dict[str, Any]:
        """What `set_state` needs to go on drawing as this one would. O(1)."""
        return {"order": self._order} if self.pooled else {}

    def set_state(self, state: Mapping[str, Any], present: npt.NDArray[np.bool_]) -> None:
        """Go on as told, with the arms of the mask `present`. O(K)."""
        if not self.pooled:
            self._present[:] = present
            return
        order = array_of(state, "order", np.int64, self.matroid.n_arms)
        size = np.bincount(self._group[present], minlength=len(self._size))
        whole = np.array_equal(np.sort(order), np.arange(len(order)))
        # Class by class, and within a class those that are present first.
        fits = whole and np.array_equal(self._group[order], np.sort(self._group))
        if not fits or not np.array_equal(
            present[order], np.arange(len(order)) - self._first[self._group[order]] < size[self._group[order]]
        ):
            raise FileError("the order of the arms does not fit the matroid")
        self._order[:], self._size[:] = order, size
        self._place[order] = np.arange(len(order))

    def _pool_arrays(self) -> tuple[Any, ...]:
        return self._order, self._place, self._first, self._size

    def memory(self) -> int:
        """Bytes held."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))

    def _check(self, present: Any) -> None:
        """Assert that exactly the arms of the mask `present` can be drawn. O(K)."""
        if not self.pooled:
            assert np.array_equal(self._present, present)
            return
        assert np.array_equal(self._order[self._place], np.arange(self.matroid.n_arms))
        for g in range(len(self._capacity)):
            pool = self._order[self._first[g] : self._first[g] + self._size[g]]
            assert set(pool.tolist()) == set(np.flatnonzero(present & (self._group == g)).tolist())
