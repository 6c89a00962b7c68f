"""Linear matroids against exact rational and modular rank."""

from __future__ import annotations

import math
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import oracles.matroids as naive
from semibandit.matroids import Linear
from semibandit.matroids.elimination import is_prime, large_primes
from semibandit.testing import check_matroid


@pytest.mark.parametrize("seed", range(8))
def test_linear_against_exact_rational_rank(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d, inner = 40, 8, 5
    scale = 10 ** int(rng.integers(0, 12))
    left, right = rng.integers(-9, 10, (n, inner)), rng.integers(-9, 10, (inner, d))
    vectors = (left.astype(object) @ right.astype(object)) * scale + 0
    vectors[rng.integers(n)] = vectors[rng.integers(n)] * 3  # parallel arms
    vectors[rng.integers(n)] *= 0
    m = Linear(vectors)
    assert m.rank == naive.rational_rank(vectors.tolist())
    assert m.loops.tolist() == [k for k in range(n) if not any(vectors[k])]
    for _ in range(40):
        arms = rng.permutation(n)[: rng.integers(0, 7)]
        assert m.is_independent(arms) == (naive.rational_rank(vectors[arms].tolist()) == len(arms))


def test_linear_over_floats_is_exact() -> None:
    # 0.1 + 0.2 is not 0.3 in binary: these rows are dependent only in decimal.
    decimal = [[0.1, 1], [0.2, 1], [0.3, 2], [Fraction(3, 10), 2]]
    assert Linear([[0.1 + 0.2, 1.0], [0.3, 1.0]]).rank == 2
    assert Linear([[Fraction(1, 10) + Fraction(2, 10), 1], [Fraction(3, 10), 1]]).rank == 1
    assert Linear(decimal).is_independent([2, 3])
    rng = np.random.default_rng(5)
    table = rng.standard_normal((12, 4)) * 10.0 ** rng.integers(-250, 250, (12, 1))
    table[3] = table[7] * -0.5
    m = Linear(table)
    assert not m.is_independent([3, 7])
    for arms in naive.subsets(range(8)):
        assert m.is_independent(arms) == (naive.rational_rank(table[list(arms)].tolist()) == len(arms))


def test_linear_survives_minors_that_vanish_modulo_its_primes() -> None:
    first, second, third = large_primes(3)
    rows: list[list[int]] = [
        [1, 0, 0, 0],
        [1, first, 0, 0],  # parallel to row 0 modulo the first prime
        [1, 0, second, 0],
        [1, 0, 0, first * second * third],
        [2, first, 0, 0],  # the sum of rows 0 and 1
        [2, 0, second, 0],
    ]
    m = Linear(rows)
    assert m.rank == 4
    assert m.max_weight_base([6.0, 5.0, 4.0, 3.0, 5.5, 4.5]).tolist() == [0, 3, 4, 5]
    check_matroid(m)
    for arms in naive.subsets(range(6)):
        assert m.is_independent(arms) == naive.linear(rows)(arms)
    assert Linear(rows, field=first).rank == 2
    rng = np.random.default_rng(0)
    for _ in range(30):
        products = [
            [int(rng.choice([0, 1, first, second, first * second])) for _ in range(3)] for _ in range(6)
        ]
        if naive.rational_rank(products):
            check = Linear(products)
            for arms in naive.subsets(range(6)):
                assert check.is_independent(arms) == naive.linear(products)(arms), products


def test_linear_holds_mixed_rows_exactly() -> None:
    # numpy would turn the first row into floats and lose the last bit of 2^60 + 1.
    rows = [[2**60 + 1, 0.5], [2**61, 1], [2**61 + 2, 1.0]]
    assert Linear(rows).is_independent([0, 1])
    assert not Linear(rows).is_independent([0, 2])
    huge = Linear(np.array([[2**63, 1], [2**64 - 1, 0]], dtype=np.uint64))
    assert huge.rank == 2
    assert Linear([[-(2**63), 1], [2**200, 0]]).rank == 2
    assert Linear(np.array([[-(2**63), 1], [-(2**63), 2]])).rank == 2
    assert Linear(np.array([[True, False], [True, True]]), field=2).rank == 2
    assert Linear(np.array([[1.0, 2.0], [3.0, 6.0]], dtype=np.float32)).rank == 1


def test_primes() -> None:
    sieve = [n for n in range(2000) if n > 1 and all(n % q for q in range(2, math.isqrt(n) + 1))]
    assert [n for n in range(2000) if is_prime(n)] == sieve
    assert all(not is_prime(n) for n in (561, 1105, 3215031751, 3825123056546413051, (2**31 - 1) ** 2))
    primes = large_primes(40)
    assert primes[0] == 2**31 - 1 and len(set(primes)) == 40 and min(primes) > 2**30
    assert all(pow(2, p - 1, p) == 1 for p in primes)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.integers(1, 4).flatmap(
        lambda d: st.lists(
            st.lists(st.fractions(-3, 3, max_denominator=4), min_size=d, max_size=d), min_size=1, max_size=6
        )
    )
)
def test_hypothesis_linear(vectors: list[list[Fraction]]) -> None:
    if not any(any(row) for row in vectors):
        with pytest.raises(ValueError, match="loop"):
            Linear(vectors)
        return
    m, independent = Linear(vectors), naive.linear(vectors)
    assert m.max_weight_base([0.0] * m.n_arms).tolist() == naive.greedy(independent, range(m.n_arms))
