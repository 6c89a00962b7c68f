"""A point of the base polytope as a mixture of bases."""

from __future__ import annotations

from typing import NamedTuple

from semibandit.compiled.handle import Floats1, Floats2, Ints1, Ints2, Number
from semibandit.compiled.jit import inline_kernel
from semibandit.policies.ftrl.estimates import RATE, Estimates
from semibandit.policies.ftrl.regularisers import price_of

#: What `Atoms.count` holds: how many atoms there are, how many arms each has, how often the oracle was asked.
N_ATOMS, SIZE, CALLS, N_COUNT = range(4)


class Atoms(NamedTuple):
    """Atom k is the base ``members[k, :count[SIZE]]``, ascending, with weight ``weight[k]``; weights sum to 1.

    `slope`: gradient of the objective by arm, 0 for arms in no atom. `score`: sum of slopes of each atom. The
    rest, but for `count`, is scratch; `change` is 0 before and after every step.
    """

    tolerance: Number
    members: Ints2
    weight: Floats1
    score: Floats1
    slope: Floats1
    answer: Ints1
    change: Floats1
    way: Floats1
    ones: Floats1
    matrix: Floats2
    count: Ints1


class AtomRounds(NamedTuple):
    """Estimates and atoms."""

    est: Estimates
    atoms: Atoms


@inline_kernel
def slope_at(est, arm, x, rest):
    """The gradient of the objective at an arm if its chance were x = 1 - rest. O(1)."""
    scale = est.scale[arm]
    return est.about[RATE] * est.cost[arm] - scale * price_of(est.phi, est.gamma, x, rest)
