"""Transversal matroid: arms that can be matched to distinct right nodes (tasks, slots, workers)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from semibandit.arms import IntArray
from semibandit.errors import ArmError, MatroidError
from semibandit.matroids import codec
from semibandit.matroids.base import CompiledMatroid
from semibandit.matroids.few import MANY, lists_of, places, renumbered
from semibandit.matroids.greedy import _pick_transversal, distinct_neighbours, greedy_transversal
from semibandit.matroids.naming import Table, column, columns_of, distinct, label_arms, numbered, sparse_rows
from semibandit.matroids.parting import by_lists
from semibandit.matroids.validate import (
    arm_ids,
    flatten,
    in_range,
    inferred_size,
    integer_table,
    integers,
    positive,
    readonly,
)

if TYPE_CHECKING:
    import scipy.sparse

# Right nodes of an arm in a random instance.
_DEGREE = 3


class _Rows(NamedTuple):
    """Neighbours of all arms one after the other, and how many each has."""

    indices: IntArray
    lengths: IntArray


class Transversal(CompiledMatroid):
    """Sets of arms that can all be matched at once, each to a right node of its own.

    Parameters
    ----------
    neighbours
        For each arm, the right nodes it may be matched to: a list of lists, or a (K, d) array when every arm
        has d of them. An arm without neighbours is a loop. Naming a neighbour twice changes nothing.
    n_right
        Number of right nodes; 1 + the largest id when not given.

    Raises
    ------
    MatroidError
        When there are no arms, a right node is unknown, negative or not an integer, or no arm has any.

    Notes
    -----
    Membership searches one augmenting path, breadth first, from the matching kept so far (paper, appendix on
    membership oracles). Right nodes that a failed search has seen are closed for good, so that a whole greedy
    costs O(K log K + E + D * E_D), where E counts all edges and E_D those of the picked arms.
    `is_independent` costs O(V + n * edges of the n arms).

    Examples
    --------
    Arms 0 and 1 both need node 0, so only one of them can be played:

    >>> from semibandit.matroids import Transversal
    >>> Transversal([[0], [0], [0, 1]]).max_weight_base([0.4, 0.5, 0.1])
    array([1, 2])
    """

    def __init__(self, neighbours: Sequence[npt.ArrayLike] | IntArray, n_right: int | None = None) -> None:
        if isinstance(neighbours, _Rows):
            indices, lengths = neighbours
        elif isinstance(neighbours, np.ndarray) and neighbours.ndim == 2:
            table = integer_table(neighbours, "neighbours", columns=neighbours.shape[1])
            indices, lengths = table.ravel(), np.full(len(neighbours), table.shape[1], dtype=np.int64)
        else:
            indices, lengths = flatten(neighbours, "neighbours")
        if lengths.size == 0:
            raise MatroidError(
                "neighbours is empty: need one list of right nodes per arm, and at least one arm"
            )
        super().__init__(lengths.size)
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        if n_right is None:
            hint = ", or give n_right"
            self.n_right = inferred_size(indices, lengths.size, "neighbours", "right node", hint)
        else:
            self.n_right = positive(n_right, "n_right")
            if indices.size and not 0 <= indices.min() <= indices.max() < self.n_right:
                bad = int(np.flatnonzero((indices < 0) | (indices >= self.n_right))[0])
                arm = int(np.searchsorted(indptr, bad, side="right")) - 1
                what = f"right nodes (n_right = {self.n_right})"
                in_range(indices[indptr[arm] : indptr[arm + 1]], self.n_right, f"neighbours[{arm}]", what)
        indptr, indices = distinct_neighbours(indptr, np.ascontiguousarray(indices), self.n_right)
        self._indptr = readonly(indptr)
        self._indices = readonly(indices)
        self._settle_rank("neighbours")

    @classmethod
    def from_arrays(
        cls, indptr: npt.ArrayLike, indices: npt.ArrayLike, n_right: int | None = None
    ) -> Transversal:
        """Neighbours as two arrays: those of arm k are ``indices[indptr[k]:indptr[k + 1]]``. O(their size).

        >>> from semibandit.matroids import Transversal
        >>> Transversal.from_arrays([0, 1, 2, 4], [0, 0, 0, 1]).matching([1, 2])
        {1: 0, 2: 1}
        """
        starts = integers(indptr, "indptr")
        flat = integers(indices, "indices")
        if starts.size < 1 or starts[0] != 0 or starts[-1] != flat.size or (np.diff(starts) < 0).any():
            raise MatroidError(f"indptr must ascend from 0 to the number of indices, {flat.size}")
        return cls(_Rows(flat, np.diff(starts)), n_right)

    @classmethod
    def from_frame(cls, frame: Table, worker: str = "worker", task: str = "task") -> Transversal:
        """A table with a row for each task that a worker can do: arms are the workers, right nodes the tasks. O(rows).

        Workers and tasks are numbered by first appearance; `labels` are the workers, `names` the tasks. A base is a
        largest set of workers who can all work at once, each on a task of their own; `matching` says who does what.

        Parameters
        ----------
        frame
            A table (`semibandit.matroids.naming`): pandas, polars, a dictionary of columns, the path of a CSV file, or
            rows that are dictionaries.
        worker, task
            The names of the two columns.

        >>> from semibandit.matroids import Transversal
        >>> can = {"worker": ["ann", "ann", "bob"], "task": ["paint", "weld", "paint"]}
        >>> Transversal.from_frame(can).matching([0, 1])
        {'ann': 'weld', 'bob': 'paint'}
        """
        who, what = columns_of(frame, [worker, task])
        if not who:
            raise MatroidError("frame is empty: need a row for each task that a worker can do")
        arm, workers = numbered(who, worker)
        right, tasks = numbered(what, task)
        order = np.argsort(arm, kind="stable")
        lengths = np.bincount(arm, minlength=len(workers)).astype(np.int64)
        return label_arms(cls(_Rows(right[order], lengths), len(tasks)), workers, tasks)

    @classmethod
    def from_sparse(
        cls,
        matrix: scipy.sparse.sparray,
        labels: Iterable[Hashable] | None = None,
        names: Iterable[Hashable] | None = None,
    ) -> Transversal:
        """A scipy.sparse matrix: rows are arms, columns right nodes, entries other than 0 who can do what. O(entries).

        >>> from scipy.sparse import csr_array
        >>> from semibandit.matroids import Transversal
        >>> Transversal.from_sparse(csr_array([[1, 0], [1, 1]])).matching([0, 1])
        {0: 0, 1: 1}
        """
        rows = sparse_rows(matrix, "matrix")
        made = cls.from_arrays(rows.indptr, rows.indices, rows.shape[1])
        if names is not None:
            names = column(names, "names")
            if len(distinct(names, "names")) != made.n_right:
                raise MatroidError(f"names: need one per column ({made.n_right}), got {len(names)}")
        return label_arms(made, labels, names)

    def matching(self, arms: npt.ArrayLike) -> dict[Any, Any]:
        """Who does what: a right node of its own for each of `arms`, by label and name where there are such.

        Of all ways one is returned, the same for the same arms in the same order. O(n_right + n * edges of the arms).

        Raises
        ------
        ArmError
            When these arms cannot all be matched at once.

        >>> from semibandit.matroids import Transversal
        >>> Transversal([[0], [0, 1], [2]]).matching([1, 0])
        {1: 1, 0: 0}
        """
        ids = arm_ids(arms, self.n_arms)
        matched = np.zeros((2, ids.size), np.int64)
        right = np.zeros((4, self.n_right), np.int64)
        if ids.size and _pick_transversal(ids, self._indptr, self._indices, matched, right) < ids.size:
            raise ArmError("arms: these cannot all be matched at once")
        who: Any = matched[0] if self.labels is None else self.labels[matched[0]]
        what: Any = matched[1] if self.names is None else self.names[matched[1]]
        return dict(zip(who.tolist(), what.tolist(), strict=True))

    def _compiled_greedy(self, order: IntArray, limit: int) -> IntArray:
        picked: IntArray = greedy_transversal(order, self._indptr, self._indices, self.n_right, limit)
        return picked

    def _greedy_few(self, order: IntArray) -> IntArray:
        if self.n_right <= MANY * order.size:
            return self._greedy(order)
        starts, flat = lists_of(self._indptr, self._indices, order)
        nodes, indices = renumbered(flat)
        return order[greedy_transversal(places(order), readonly(starts), indices, nodes.size, self.rank)]

    def _find_rank(self) -> int:
        most = min(self.n_arms, self.n_right)
        return len(self._compiled_greedy(np.arange(self.n_arms, dtype=np.int64), most))

    def _find_loops(self) -> IntArray:
        return np.flatnonzero(np.diff(self._indptr) == 0)

    def _key(self) -> tuple[Any, ...]:
        return (self.n_right, self._indptr, self._indices)

    def __repr__(self) -> str:
        return f"Transversal(n_arms={self.n_arms}, n_right={self.n_right}, rank={self.rank})"


def _random(arms: int, rank: int, seed: int) -> Transversal:
    """`rank` right nodes; every arm may be matched to a few random ones (three at most). O(K)."""
    rng = np.random.default_rng([seed, 2])
    neighbours = rng.integers(0, rank, size=(arms, min(_DEGREE, rank)))
    neighbours[rng.permutation(arms)[:rank], 0] = np.arange(rank)
    return Transversal(neighbours, n_right=rank)


def _from_toml(neighbours: Any, slots: int | None = None) -> Transversal:
    return Transversal(neighbours, slots)


codec.register(
    Transversal,
    to_parts=lambda m: {"indptr": m._indptr, "indices": m._indices, "n_right": m.n_right},
    from_parts=Transversal.from_arrays,
    random=_random,
    from_toml=_from_toml,
    words={"n_right": "slots"},
    parting=by_lists,
)
