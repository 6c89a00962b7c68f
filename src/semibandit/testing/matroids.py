"""`check_matroid`: the matroid axioms, and what else the library relies on, by brute force."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import ArmError, ParameterError
from semibandit.matroids import Matroid


def check_matroid(m: Matroid, max_arms: int = 10, *, seed: int = 0) -> None:
    """Verify by brute force that `m` is a matroid and keeps the contract of `Matroid`.

    Looks at all 2^K subsets: the empty set is independent; subsets of independent sets are; of two
    independent sets the smaller *by cardinality* can be extended from the larger (the paper's Section 2
    compares by inclusion, which the hereditary property already settles); rank, loops and bases agree with
    the independence test; `max_weight_base` is the exhaustive optimum, ties by smaller arm id, for weights
    with ties, of either sign and infinite; `_greedy` does the same on parts of the ground set; bad arms and
    weights are refused; the object does not change.

    Parameters
    ----------
    m
        The matroid to verify.
    max_arms
        Refuse more arms than this, because the cost is exponential.
    seed
        Seed of the random weights and orders.

    Raises
    ------
    AssertionError
        Names what is violated, with a counterexample.
    ParameterError
        When `m` has more than `max_arms` arms.

    Notes
    -----
    Cost: 2^K independence tests and up to 4^K steps of vectorised set arithmetic.

    Examples
    --------
    >>> from semibandit.matroids import Matroid, Uniform
    >>> from semibandit.testing import check_matroid
    >>> check_matroid(Uniform(6, 3))
    >>> class NoNeighbours(Matroid):  # independent sets of a path: not a matroid
    ...     def _is_independent(self, arms):
    ...         return all(a + 1 not in arms for a in arms)
    >>> check_matroid(NoNeighbours(4))
    Traceback (most recent call last):
        ...
    AssertionError: NoNeighbours(n_arms=4): augmentation: no arm of [0, 2] extends [1]
    """
    if m.n_arms > max_arms:
        raise ParameterError(
            f"m has {m.n_arms} arms: need at most max_arms = {max_arms}, the cost is exponential"
        )
    rng = np.random.default_rng(seed)
    independent = _all_independent(m, rng)
    _check_axioms(m, independent)
    _check_attributes(m, independent)
    for weights in _weights(m.n_arms, rng):
        _check_base(m, independent, weights)
    for _ in range(20):
        order = rng.permutation(m.n_arms)[: rng.integers(0, m.n_arms + 1)].astype(np.int64)
        _check_greedy(m, independent, order)
    _check_refusals(m)
    _require(
        m, bool(np.all(_all_independent(m, rng) == independent)), "the independence test changed its answers"
    )


def _require(m: Matroid, holds: bool, complaint: str) -> None:
    # Not an assert statement: this must also speak under `python -O`.
    if not holds:
        raise AssertionError(f"{m!r}: {complaint}")


def _arms(subset: int) -> list[int]:
    """Subset number -> arm ids; bit k stands for arm k."""
    return [k for k in range(int(subset).bit_length()) if subset >> k & 1]


def _all_independent(m: Matroid, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Independence of every subset, each asked in a random order of its arms."""
    answers = np.zeros(1 << m.n_arms, dtype=bool)
    for subset in range(answers.size):
        answer = m.is_independent(rng.permutation(np.array(_arms(subset), dtype=np.int64)))
        _require(m, isinstance(answer, bool), f"is_independent returned {answer!r}: need a bool")
        answers[subset] = answer
    return answers


def _check_axioms(m: Matroid, independent: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
    _require(m, bool(independent[0]), "the empty set must be independent")
    subsets = np.arange(independent.size)
    size = np.array([int(s).bit_count() for s in subsets])
    grows = np.zeros(independent.size, dtype=np.int64)  # the arms that extend each subset
    for k in range(m.n_arms):
        has = (subsets >> k & 1).astype(bool)
        bad = np.flatnonzero(has & independent & ~independent[subsets & ~(1 << k)])
        if bad.size:
            whole, part = _arms(bad[0]), _arms(int(bad[0]) & ~(1 << k))
            _require(m, False, f"hereditary: {whole} is independent but its subset {part} is not")
        grows |= np.where(~has & independent[subsets | 1 << k], 1 << k, 0)
    for n in range(m.n_arms):
        small = subsets[independent & (size == n)]
        large = subsets[independent & (size == n + 1)]
        for one in small:
            # Enough for all larger sets, since their subsets of n + 1 arms are independent too.
            stuck = large[(large & ~one & grows[one]) == 0]
            if stuck.size:
                _require(m, False, f"augmentation: no arm of {_arms(stuck[0])} extends {_arms(one)}")


def _check_attributes(m: Matroid, independent: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
    rank = max(int(s).bit_count() for s in np.flatnonzero(independent))
    _require(
        m,
        type(m.rank) is int and m.rank == rank,
        f"rank is {m.rank!r}, the largest independent set has {rank}",
    )
    _require(m, type(m.n_arms) is int, f"n_arms is {m.n_arms!r}: need an int")
    _require(m, isinstance(m.name, str) and m.name != "", f"name is {m.name!r}: need a word")
    loops = [k for k in range(m.n_arms) if not independent[1 << k]]
    _require(
        m, m.loops.dtype == np.int64 and m.loops.tolist() == loops, f"loops are {m.loops}, should be {loops}"
    )
    _require(m, not m.loops.flags.writeable, "loops must be read-only")
    _require(m, m == m and hash(m) == hash(m), "a matroid must equal itself and have a stable hash")
    try:
        m.n_arms = m.n_arms
    except AttributeError:
        return
    _require(m, False, "a matroid must be immutable: n_arms could be set")


def _weights(n: int, rng: np.random.Generator) -> list[FloatArray]:
    """Weights where mistakes hide: ties, signs, zeros of both signs, infinities."""
    found = [np.zeros(n), np.full(n, np.inf), np.full(n, -np.inf), np.arange(n) * 1.0, -np.arange(n) * 1.0]
    found += [rng.standard_normal(n), -rng.random(n), rng.random(n), rng.choice([-0.0, 0.0], n)]
    for _ in range(6):
        found.append(rng.integers(-2, 3, n).astype(np.float64))
        found.append(rng.choice([np.inf, -np.inf, 0.0, 1.0, -1.0], n))
        found.append(np.where(rng.random(n) < 0.4, np.inf, rng.integers(0, 3, n)))
    return found


def _best(independent: np.ndarray[Any, np.dtype[np.bool_]], order: IntArray) -> list[int]:
    """By exhaustion: the independent set of arms in `order` whose arms come first in it.

    The i-th of n arms counts 2^(n - 1 - i), so comparing sums compares sets by the first arm in which they
    differ: the optimum under every weight that falls along `order`, and the one that greedy must find.
    """
    allowed = sum(1 << int(k) for k in order)
    value = np.zeros(independent.size, dtype=np.int64)
    subsets = np.arange(independent.size)
    for i, k in enumerate(order):
        value += (subsets >> int(k) & 1) << (len(order) - 1 - i)
    value[~independent | (subsets & ~allowed != 0)] = -1
    chosen = int(np.argmax(value))
    return [int(k) for k in order if chosen >> int(k) & 1]


def _check_base(m: Matroid, independent: np.ndarray[Any, np.dtype[np.bool_]], weights: FloatArray) -> None:
    given = weights.copy()
    base = m.max_weight_base(weights)
    told = f"max_weight_base({given.tolist()}) returned {base!r}"
    _require(m, np.array_equal(weights, given), f"{told} and changed its argument")
    _require(m, isinstance(base, np.ndarray) and base.dtype == np.int64, f"{told}: need an int64 array")
    order = np.array(sorted(range(m.n_arms), key=lambda k: (-given[k], k)), dtype=np.int64)
    best = sorted(_best(independent, order))
    _require(m, base.tolist() == best, f"{told}, the heaviest base (ties by smaller id) is {best}")
    bases = [_arms(int(s)) for s in np.flatnonzero(independent) if int(s).bit_count() == m.rank]

    def total(arms: list[int]) -> tuple[int, int, float]:
        finite = [given[k] for k in arms if np.isfinite(given[k])]
        return (
            sum(given[k] == np.inf for k in arms),
            -sum(given[k] == -np.inf for k in arms),
            float(sum(finite)),
        )

    # Infinities are compared by number; rounding of the finite part is allowed for.
    top = max(total(arms) for arms in bases)
    mine = total(base.tolist())
    close = mine[:2] == top[:2] and abs(mine[2] - top[2]) <= 1e-9 * (1 + abs(top[2]))
    _require(m, close, f"{told} of weight {mine}, but the best of all bases has {top}")
    again = m.max_weight_base(given.tolist())
    _require(m, np.array_equal(again, base), f"{told}, and {again!r} for the same weights as a list")


def _check_greedy(m: Matroid, independent: np.ndarray[Any, np.dtype[np.bool_]], order: IntArray) -> None:
    given = order.copy()
    picked = m._greedy(order)
    told = f"_greedy({given.tolist()}) returned {picked!r}"
    _require(m, np.array_equal(order, given), f"{told} and changed its argument")
    _require(m, isinstance(picked, np.ndarray) and picked.dtype == np.int64, f"{told}: need an int64 array")
    best = _best(independent, given)
    _require(m, picked.tolist() == best, f"{told}, should pick {best} in this order")


def _check_refusals(m: Matroid) -> None:
    def refused(kind: type[Exception], call: Callable[[Any], object], argument: Any) -> None:
        try:
            call(argument)
        except kind:
            return
        _require(m, False, f"{getattr(call, '__name__', call)}({argument!r}) must raise {kind.__name__}")

    for arms in ([m.n_arms], [-1], [0, 0], [0.5], [True], ["0"], [[0]], 0, [2**70]):
        refused(ArmError, m.is_independent, arms)
    for weights in (
        [0.0] * (m.n_arms + 1),
        [0.0] * (m.n_arms - 1),
        [float("nan")] * m.n_arms,
        ["a"] * m.n_arms,
    ):
        refused(ParameterError, m.max_weight_base, weights)
