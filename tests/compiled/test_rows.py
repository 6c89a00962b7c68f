"""Products of four rows at a time against scalar sums from the left, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from semibandit.compiled.jit import kernel
from semibandit.compiled.rows import ROWS, four_products, four_products_and_squares


@kernel
def products(matrix, x, out):
    for k in range(0, out.shape[0] - ROWS + 1, ROWS):
        four_products(matrix, k, x, out)


@kernel
def all_three(matrix, x, y, with_x, with_y, squares):
    for k in range(0, with_x.shape[0] - ROWS + 1, ROWS):
        four_products_and_squares(matrix, k, x, y, with_x, with_y, squares)


def from_the_left(matrix, x):
    total = np.zeros(len(matrix))
    for j in range(matrix.shape[1]):
        total = total + matrix[:, j] * x[j]
    return total


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 20, 33])
def test_sums_are_those_from_the_left(size):
    rng = np.random.default_rng(size)
    n = 4 * ROWS + 3
    matrix = rng.standard_normal((n, size)) * 10.0 ** rng.integers(-8, 9, (n, size))
    x, y = rng.standard_normal(size), rng.standard_normal(size)
    out = [np.full(n, -7.0) for _ in range(4)]
    products(matrix, x, out[0])
    all_three(matrix, x, y, *out[1:])
    whole = n - n % ROWS
    np.testing.assert_array_equal(out[0][:whole], from_the_left(matrix, x)[:whole])
    np.testing.assert_array_equal(out[1], out[0])
    np.testing.assert_array_equal(out[2][:whole], from_the_left(matrix, y)[:whole])
    squares = np.zeros(n)
    for j in range(size):
        squares = squares + matrix[:, j] * matrix[:, j]
    np.testing.assert_array_equal(out[3][:whole], squares[:whole])
    for one in out:
        assert (one[whole:] == -7.0).all(), "rows that were not asked for"


def test_what_is_not_finite_shows():
    matrix = np.ones((4, 6))
    matrix[0, 5], matrix[1, 2], matrix[2, 0] = np.inf, np.nan, -np.inf
    x = np.ones(6)
    x[0] = 0.0
    out = np.zeros(4)
    products(matrix, x, out)
    assert out[0] == np.inf and np.isnan(out[1]) and np.isnan(out[2]) and out[3] == 5.0
