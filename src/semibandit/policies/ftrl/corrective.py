"""Newton's method over the weights of a mixture: the best mixture of given bases in a few steps.

With atoms as columns of a matrix M, the objective as a function of their weights w is f(M w); its Hessian is
``M' diag(h) M``, h being the second derivatives of a separable f. A step solves for the direction in which weights sum
to 0, and goes along it until the objective rises or an atom has no weight left, which then goes.
"""

from __future__ import annotations

import math

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.policies.ftrl.estimates import N_STEPS
from semibandit.policies.ftrl.mixture_state import N_ATOMS, SIZE, slope_at
from semibandit.policies.ftrl.regularisers import fall_of

_LINE_STEPS = 40
# A pivot smaller than this share of the largest one belongs to an atom that the others before it span.
_DEPENDENT = 1e-11


@kernel
def _fill_hessian(own, n):
    """``matrix[:n, :n]`` (lower half) becomes the Hessian by weights. O(atoms^2 D). `change` is 0 before and after."""
    est, atoms = own.est, own.atoms
    matrix, members, change, size = atoms.matrix, atoms.members, atoms.change, atoms.count[SIZE]
    for k in range(n):
        for j in range(size):
            arm = members[k, j]
            fall = fall_of(est.phi, est.gamma, est.x[arm], est.rest[arm])
            # An arm in all bases has no second derivative, and needs none: it does not move.
            change[arm] = est.scale[arm] / fall if fall > 0.0 else 0.0
        for i in range(k, n):
            total = 0.0
            for j in range(size):
                total += change[members[i, j]]
            matrix[i, k] = total
        for j in range(size):
            change[members[k, j]] = 0.0


@kernel
def _factorise(matrix, n):
    """Cholesky in place, lower half. Where a pivot vanishes it becomes infinite: that weight stays. O(n^3)."""
    largest = 0.0
    for k in range(n):
        largest = max(largest, matrix[k, k])
    for k in range(n):
        pivot = matrix[k, k]
        for i in range(k):
            pivot -= matrix[k, i] * matrix[k, i]
        if not pivot > _DEPENDENT * largest:
            matrix[k, k] = math.inf
            for i in range(k + 1, n):
                matrix[i, k] = 0.0
            continue
        root = math.sqrt(pivot)
        matrix[k, k] = root
        for i in range(k + 1, n):
            total = matrix[i, k]
            for j in range(k):
                total -= matrix[i, j] * matrix[k, j]
            matrix[i, k] = total / root


@inline_kernel
def _substitute(matrix, n, vector):
    """Solve for `vector`, in place, by the factor in `matrix`. O(n^2)."""
    for k in range(n):
        total = vector[k]
        for i in range(k):
            total -= matrix[k, i] * vector[i]
        vector[k] = total / matrix[k, k]
    for k in range(n - 1, -1, -1):
        total = vector[k]
        for i in range(k + 1, n):
            total -= matrix[i, k] * vector[i]
        vector[k] = total / matrix[k, k]


@inline_kernel
def _along(own, step):
    """First and second derivative of the objective after a step along `change`. O(K)."""
    est, change = own.est, own.atoms.change
    first = second = 0.0
    for arm in range(change.shape[0]):
        d = change[arm]
        if d != 0.0:
            x = est.x[arm] + d * step
            rest = max(est.rest[arm] - d * step, 0.0)
            first += d * slope_at(est, arm, x, rest)
            fall = fall_of(est.phi, est.gamma, x, rest) if x > 0.0 else 0.0
            second += d * d * est.scale[arm] / fall if fall > 0.0 else 1e300
    return first, second


@inline_kernel
def search(own, most):
    """How far to go along `change`, at most `most`. O(K) a try."""
    first, second = _along(own, most)
    if first <= 0.0:
        return most
    low, high, step = 0.0, most, 0.5 * most
    for _ in range(_LINE_STEPS):
        first, second = _along(own, step)
        if first > 0.0:
            high = step
        else:
            low = step
        new = step - first / second
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - step) <= 1e-3 * step:
            return new if new < high else low
        step = new
    return low


@kernel
def move(own, step):
    """Go so far along `change`, which is 0 after. Changes chances and slopes. O(K)."""
    est, change = own.est, own.atoms.change
    for arm in range(change.shape[0]):
        if change[arm] != 0.0:
            est.x[arm] = min(max(est.x[arm] + step * change[arm], 0.0), 1.0)
            est.rest[arm] = max(est.rest[arm] - step * change[arm], 0.0)
            own.atoms.slope[arm] = slope_at(est, arm, est.x[arm], est.rest[arm])
            change[arm] = 0.0


@kernel
def drop_empty(atoms):
    """Atoms without weight go; the last ones take their places. O(atoms + D for each)."""
    k = 0
    while k < atoms.count[N_ATOMS]:
        if atoms.weight[k] > 0.0:
            k += 1
            continue
        atoms.count[N_ATOMS] -= 1
        last = atoms.count[N_ATOMS]
        atoms.weight[k] = atoms.weight[last]
        for j in range(atoms.count[SIZE]):
            atoms.members[k, j] = atoms.members[last, j]


@kernel
def newton_step(own):
    """One step over the weights of all atoms, whose scores are known; whether the objective fell.

    O(atoms^2 (D + atoms)). Changes atoms, chances and slopes.
    """
    est, atoms = own.est, own.atoms
    n, size = atoms.count[N_ATOMS], atoms.count[SIZE]
    matrix, way, ones, members, change = atoms.matrix, atoms.way, atoms.ones, atoms.members, atoms.change
    _fill_hessian(own, n)
    _factorise(matrix, n)
    for k in range(n):
        way[k] = atoms.score[k]
        ones[k] = 1.0
    _substitute(matrix, n, way)
    _substitute(matrix, n, ones)
    total = weight = 0.0
    for k in range(n):
        total += way[k]
        weight += ones[k]
    most, gain, first = 1.0, 0.0, -1
    for k in range(n):
        way[k] = total / weight * ones[k] - way[k]
        gain += way[k] * atoms.score[k]
        if way[k] < 0.0 and atoms.weight[k] < -most * way[k]:
            most = atoms.weight[k] / -way[k]
            first = k
    if not gain < 0.0:
        return False
    for k in range(n):
        for j in range(size):
            change[members[k, j]] += way[k]
    step = search(own, most)
    move(own, step)
    for k in range(n):
        atoms.weight[k] = max(atoms.weight[k] + step * way[k], 0.0)
    if first >= 0 and step == most:
        atoms.weight[first] = 0.0
    drop_empty(atoms)
    est.about[N_STEPS] += 1.0
    return step > 0.0
