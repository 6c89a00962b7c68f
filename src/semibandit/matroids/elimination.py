"""Exact greedy for vectors: elimination modulo primes, compiled.

Over GF(p) one prime is the field itself. Over the rationals, independence modulo any prime proves
independence, while a nonzero minor may vanish modulo a few primes: one bounded by B is divisible by at most
log2(B) / 30 primes above 2^30. So with more primes than that, a set of vectors is independent exactly when it
is so modulo one of them. Nothing is rounded and no big integer is touched.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from semibandit.arms import IntArray
from semibandit.compiled.jit import kernel

LIMB_BITS = 31
PRIME_BITS = 30  # every prime handed out below is larger than 2^30 and smaller than 2^31


def is_prime(n: int) -> bool:
    """Miller-Rabin with bases that leave no error below 3.3 * 10^24. O(log(n)^3)."""
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)
    if n < 2:
        return False
    for base in bases:
        if n % base == 0:
            return n == base
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in bases:
        x = pow(base, odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


@lru_cache(maxsize=8)
def large_primes(count: int) -> tuple[int, ...]:
    """The `count` largest primes below 2^31."""
    found: list[int] = []
    candidate = 2**31 - 1
    while len(found) < count:
        if is_prime(candidate):
            found.append(candidate)
        candidate -= 2
    return tuple(found)


@kernel
def _inverse(x, p):
    """x^(p - 2) mod p, the inverse of x by Fermat."""
    result = 1
    e = p - 2
    while e > 0:
        if e & 1:
            result = result * x % p
        x = x * x % p
        e >>= 1
    return result


@kernel
def _residual(limbs, arm, p, rows, pivots, size, out):
    """Write into `out` the arm's vector modulo p, less its part in the span of `rows`; where it starts.

    `rows` is in reduced echelon form (1 in its own pivot column, 0 in the others'), so the coefficients are
    read off the vector. Sums stay below p * 2^31 < 2^62 and are reduced once, at the end. Returns the
    column of the first nonzero, or -1 when nothing is left, which means: dependent.
    """
    d = out.size
    n_limbs = limbs.shape[1] // d
    base = (1 << LIMB_BITS) % p
    for c in range(d):
        r = 0
        for j in range(n_limbs - 1, -1, -1):
            r = (r * base + limbs[arm, c * n_limbs + j]) % p
        out[c] = r
    ceiling = p << 31
    for i in range(size):
        factor = out[pivots[i]] % p
        if factor == 0:
            continue
        factor = p - factor
        for c in range(d):
            s = out[c] + factor * rows[i, c]
            out[c] = s - ceiling if s >= ceiling else s
    first = -1
    for c in range(d):
        out[c] %= p
        if first < 0 and out[c] != 0:
            first = c
    return first


@kernel
def _insert(p, rows, pivots, size, vector, pivot):
    """Append `vector` (a residual whose first nonzero is at `pivot`) to `rows`, keeping the reduced form."""
    d = vector.size
    scale = _inverse(vector[pivot], p)
    for c in range(d):
        rows[size, c] = vector[c] * scale % p
    for i in range(size):
        factor = rows[i, pivot]
        if factor != 0:
            for c in range(d):
                rows[i, c] = (rows[i, c] + (p - factor) * rows[size, c]) % p
    pivots[size] = pivot


def greedy_linear(order: IntArray, limbs: IntArray, d: int, primes: IntArray, rank: int) -> IntArray:
    """Greedy over vectors of d entries, each `limbs.shape[1] / d` signed limbs of 31 bits, least first.

    Greedy runs modulo one prime; its rejections are then put to every other prime. If one contradicts (it
    sees the arm as independent of those picked before), that prime takes over: it agrees with the truth on
    all arms up to this one, so the point of the first error only moves on, and in practice there is none.
    O(m * n * D * d) for m primes and n arms looked at.
    """
    limit = min(rank, order.size)
    picks = np.empty((3, limit), np.int64)
    return picks[0, : _pick_linear(order, limbs, primes, picks, np.empty((limit + 1, d), np.int64))]


@kernel
def _pick_linear(order, limbs, primes, picks, table):
    """Greedy until the first row of `picks` is full; how many. Changes `picks` and `table`.

    Rows of `picks`: the arms picked, where in `order` each stands, and its pivot. `table` holds the echelon form, and
    the vector at hand in its last row.
    """
    picked, place, pivots = picks[0], picks[1], picks[2]
    limit = picked.size
    rows, vector = table[:limit], table[limit]
    lead = 0
    while True:
        p = primes[lead]
        size = 0
        end = 0
        while end < order.size and size < limit:
            pivot = _residual(limbs, order[end], p, rows, pivots, size, vector)
            if pivot >= 0:
                _insert(p, rows, pivots, size, vector, pivot)
                picked[size] = order[end]
                place[size] = end
                size += 1
            end += 1
        if size == end:
            return size
        contradicted_by = -1
        for other in range(primes.size):
            if other == lead:
                continue
            p = primes[other]
            known = 0
            for i in range(end):
                mine = known < size and place[known] == i
                pivot = _residual(limbs, order[i], p, rows, pivots, known, vector)
                if mine and pivot >= 0:
                    _insert(p, rows, pivots, known, vector, pivot)
                    known += 1
                elif mine:
                    break  # the picks are dependent modulo this prime: it has nothing more to say
                elif pivot >= 0:
                    end = i
                    contradicted_by = other
                    break
        if contradicted_by < 0:
            return size
        lead = contradicted_by
