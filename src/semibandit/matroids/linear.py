"""Linear matroid: arms are vectors, over the rationals or a prime field; bases are bases of their span."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import IntArray
from semibandit.errors import MatroidError
from semibandit.matroids import codec
from semibandit.matroids.base import CompiledMatroid
from semibandit.matroids.elimination import LIMB_BITS, PRIME_BITS, greedy_linear, is_prime, large_primes
from semibandit.matroids.naming import label_arms, sparse_rows
from semibandit.matroids.parting import by_limbs
from semibandit.matroids.validate import readonly, whole_number

if TYPE_CHECKING:
    import scipy.sparse

# Size of the entries of a random instance.
_LARGEST_ENTRY = 5


def _from_rows(vectors: Any) -> np.ndarray[Any, Any]:
    """Rows of numbers as an array that holds each of them exactly (numpy alone would round mixed rows)."""
    try:
        rows = [row.tolist() if isinstance(row, np.ndarray) else list(row) for row in vectors]
    except TypeError:
        raise MatroidError(f"vectors = {vectors!r}: need rows of numbers, one row per arm") from None
    lengths = set(map(len, rows))
    if len(lengths) > 1:
        raise MatroidError(f"vectors: need rows of equal length, got lengths {sorted(lengths)[:5]}")
    kinds = {type(value) for row in rows for value in row}
    if kinds <= {int, bool} or kinds <= {float}:
        # Integers beyond 64 bits stay Python integers.
        with contextlib.suppress(OverflowError):
            return np.array(rows, dtype=np.float64 if float in kinds else np.int64)
    table = np.empty((len(rows), lengths.pop() if lengths else 0), dtype=object)
    for k, row in enumerate(rows):
        table[k] = row
    return table


def _table(vectors: Any) -> np.ndarray[Any, Any]:
    """`vectors` as a (K, d) array of int64, float64 or Python objects; anything else is refused. O(K * d)."""
    table = np.asarray(vectors) if hasattr(vectors, "__array__") else _from_rows(vectors)
    if table.size == 0:
        raise MatroidError("vectors is empty: need at least one vector of at least one entry")
    if table.ndim != 2:
        raise MatroidError(f"vectors: need shape (arms, dimension), got {table.shape}")
    if table.dtype.kind in "bi":
        return table.astype(np.int64)
    if table.dtype.kind == "u":
        return table.astype(np.int64) if int(table.max()) < 2**63 else table.astype(object)
    if table.dtype.kind == "f":
        if not np.isfinite(table).all():
            raise MatroidError(f"vectors{_where(~np.isfinite(table))} is not finite: need exact numbers")
        if table.dtype.itemsize > 8:
            raise MatroidError(f"vectors: need integers, fractions or 64-bit floats, got {table.dtype}")
        table = table.astype(np.float64)
        whole = np.all(np.abs(table) < 2**53) and np.all(table == np.floor(table))
        return table.astype(np.int64) if whole else table
    if table.dtype.kind == "O":
        return table
    raise MatroidError(f"vectors: need integers, fractions or floats, got an array of {table.dtype}")


def _where(bad: np.ndarray[Any, Any]) -> str:
    return f"[{', '.join(map(str, np.argwhere(bad)[0]))}]"


def _exact(value: Any, at: int) -> Fraction:
    if isinstance(value, (str, bytes)):
        raise MatroidError(f"vectors[{at}] holds {value!r}: need integers, fractions or floats")
    try:
        return Fraction(value)
    except (TypeError, ValueError, OverflowError):
        raise MatroidError(
            f"vectors[{at}] holds {value!r}: need finite integers, fractions or floats"
        ) from None


def _integer_rows(table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Rows scaled to integers without a common factor, which changes no independence. O(K * d)."""
    if table.dtype == np.int64:
        factor = np.gcd.reduce(table, axis=1, keepdims=True)
        return table // np.maximum(factor, 1)
    rows = np.zeros(table.shape, dtype=object)
    for k, row in enumerate(table.tolist()):
        exact = [_exact(value, k) for value in row]
        scale = math.lcm(*(value.denominator for value in exact))
        whole = [int(value * scale) for value in exact]
        common = math.gcd(*whole) or 1
        rows[k] = [value // common for value in whole]
    return rows


def _limbs(rows: np.ndarray[Any, Any]) -> IntArray:
    """Each integer as signed limbs of 31 bits, least first: shape (K, d, limbs). O(K * d * limbs)."""
    if rows.dtype == np.int64 and np.abs(rows).max() < 2**LIMB_BITS and rows.min() > -(2**LIMB_BITS):
        return rows[:, :, None].copy()
    whole = rows.astype(object)
    sign = np.where(whole < 0, -1, 1).astype(np.int64)
    rest = np.abs(whole)
    limbs = []
    while np.any(rest):
        limbs.append((rest % 2**LIMB_BITS).astype(np.int64) * sign)
        rest = rest // 2**LIMB_BITS
    return np.ascontiguousarray(np.stack(limbs or [np.zeros(rows.shape, dtype=np.int64)], axis=2))


def _minor_bits(limbs: IntArray) -> float:
    """An upper bound on log2 of every minor: Hadamard's product of the longest rows. O(K * d + K log K)."""
    n_rows, d, n_limbs = limbs.shape
    # |x| < (|limb| + 1) * 2^(31 j) for the highest nonzero limb j.
    size = np.where(limbs != 0, np.log2(np.abs(limbs) + 1.0) + LIMB_BITS * np.arange(n_limbs), 0.0)
    longest = size.reshape(n_rows, -1).max(axis=1) + 0.5 * math.log2(d)
    return float(np.sort(longest)[::-1][: min(n_rows, d)].sum()) + 1.0


class Linear(CompiledMatroid):
    """Linearly independent vectors, decided exactly.

    Parameters
    ----------
    vectors
        One vector per arm: a (K, d) array or rows of equal length. Over the rationals the entries may be
        integers of any size, fractions, or floats, which stand for exactly the binary fraction they hold
        (0.1 is not 1/10: write ``Fraction(1, 10)`` or scale the row). Over a prime field: integers.
    field
        None for the rationals, or a prime p < 2^31 for the field of integers modulo p.

    Raises
    ------
    MatroidError
        When there are no vectors, rows differ in length, an entry is not a finite exact number, `field` is
        not a prime below 2^31, or all vectors are zero.

    Notes
    -----
    Elimination is compiled and runs modulo primes, m of them, where m grows with the digits of the largest
    minor (m = 1 over a prime field, 2 or 3 for small integers in ten dimensions). Incremental: testing one
    more vector costs O(m * D * d). `max_weight_base` costs O(K log K + m * n * D * d), n being the arms
    looked at before the base is full. Zero vectors are loops. Floats with many digits make m large.

    Examples
    --------
    >>> from semibandit.matroids import Linear
    >>> vectors = [[1, 0], [2, 0], [1, 1]]
    >>> Linear(vectors).max_weight_base([0.2, 0.9, 0.1])
    array([1, 2])
    >>> Linear(vectors, field=2).loops
    array([1])
    """

    def __init__(self, vectors: npt.ArrayLike | Sequence[Sequence[Any]], field: int | None = None) -> None:
        table = _table(vectors)
        super().__init__(len(table))
        self.field: int | None = None
        self.dimension = int(table.shape[1])
        if field is None:
            limbs = _limbs(_integer_rows(table))
            primes = large_primes(int(_minor_bits(limbs) // PRIME_BITS) + 1)
        else:
            self.field = whole_number(field, "field")
            if not 2 <= self.field < 2**31 or not is_prime(self.field):
                raise MatroidError(
                    f"field = {self.field}: need a prime below 2^31, or None for the rationals"
                )
            limbs = self._reduced(table, self.field)[:, :, None]
            primes = (self.field,)
        self._limbs = readonly(limbs.reshape(self.n_arms, -1))
        self._primes = readonly(np.array(primes, dtype=np.int64))
        self._settle_rank("vectors")

    @classmethod
    def from_sparse(
        cls, matrix: scipy.sparse.sparray, field: int | None = None, labels: Iterable[Hashable] | None = None
    ) -> Linear:
        """A scipy.sparse matrix with a vector in each row. Vectors are kept in full: O(K * d) time and memory.

        >>> from scipy.sparse import csr_array
        >>> from semibandit.matroids import Linear
        >>> Linear.from_sparse(csr_array([[1, 0], [2, 0], [1, 1]])).rank
        2
        """
        return label_arms(cls(sparse_rows(matrix, "matrix").toarray(), field), labels)

    @staticmethod
    def _reduced(table: np.ndarray[Any, Any], p: int) -> IntArray:
        if table.dtype == np.int64:
            return table % p
        rows = np.empty(table.shape, dtype=np.int64)
        for k, row in enumerate(table.tolist()):
            exact = [_exact(value, k) for value in row]
            if any(value.denominator != 1 for value in exact):
                raise MatroidError(f"vectors[{k}] = {row}: over a prime field, entries must be integers")
            rows[k] = [int(value) % p for value in exact]
        return rows

    def _compiled_greedy(self, order: IntArray, limit: int) -> IntArray:
        limit = min(limit, self.dimension)
        picked: IntArray = greedy_linear(order, self._limbs, self.dimension, self._primes, limit)
        return picked

    def _find_loops(self) -> IntArray:
        return np.flatnonzero(~self._limbs.any(axis=1))

    def _key(self) -> tuple[Any, ...]:
        return (self._primes, self._limbs)

    def __repr__(self) -> str:
        field = "" if self.field is None else f", field={self.field}"
        return f"Linear(n_arms={self.n_arms}, dimension={self.dimension}{field}, rank={self.rank})"


def _random(arms: int, rank: int, seed: int) -> Linear:
    """Random vectors of small integers in `rank` dimensions, over the rationals. O(K * D)."""
    rng = np.random.default_rng([seed, 3])
    vectors = rng.integers(-_LARGEST_ENTRY, _LARGEST_ENTRY + 1, size=(arms, rank))
    # A triangle with a nonzero diagonal, in random places, secures the rank.
    places = rng.permutation(arms)[:rank]
    triangle = np.triu(vectors[places], 1) + np.eye(rank, dtype=np.int64)
    vectors[places] = triangle
    return Linear(vectors)


def _from_limbs(limbs: Any, dimension: int, field: int | None) -> Linear:
    """The matroid of the integers whose limbs are given."""
    table = limbs.reshape(len(limbs), dimension, -1).astype(object)
    rows: Any = sum(table[:, :, j] * 2 ** (LIMB_BITS * j) for j in range(table.shape[2]))
    return Linear(rows, field)


def _from_toml(vectors: Any, field: int | None = None) -> Linear:
    return Linear(vectors, field)


codec.register(
    Linear,
    to_parts=lambda m: {"limbs": m._limbs, "dimension": m.dimension, "field": m.field},
    from_parts=_from_limbs,
    random=_random,
    from_toml=_from_toml,
    parting=by_limbs,
)
