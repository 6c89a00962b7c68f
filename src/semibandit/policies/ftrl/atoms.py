"""The regularised leader of any matroid by Frank-Wolfe steps: a mixture of bases, from which a base is drawn at once.

The point x is kept as a convex combination of bases (atoms). Weight is moved between atoms, by Newton's method over all
of them (`corrective`) or between two of them by exact line search, until no pair gains more than a share of the gap.
Then the matroid's greedy is asked for the base that gains most (a linear oracle), which bounds how far x is from the
optimum: ``f(x) - min f <= <grad f(x), x - base>``, the duality gap. It goes on until that is below the tolerance.
Lacoste-Julien and Jaggi 2015 (pairwise steps), Tsuji, Tanaka and Pokutta 2022 (local steps first). Atoms are kept from
round to round, in which little changes.
"""

from __future__ import annotations

from semibandit.arms import ALPHA
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.random import next_uniform
from semibandit.engines.kernels import engine_select, engine_touch
from semibandit.policies.ftrl.corrective import drop_empty, move, newton_step, search
from semibandit.policies.ftrl.estimates import (
    GAP,
    N_STEPS,
    WORST_GAP,
    begin_round,
    learn_all,
    note_play,
)
from semibandit.policies.ftrl.mixture_state import CALLS, N_ATOMS, SIZE, AtomRounds, slope_at
from semibandit.policies.rounds import ASK, implement_rounds

# Local steps between two questions to the oracle, and questions in one round.
_LOCAL_STEPS = 400
_MOST_CALLS = 2_000


@kernel
def refresh(own):
    """Compute chances and slopes anew from the atoms, whose weights are made to sum to 1. O(K + atoms D)."""
    est, atoms = own.est, own.atoms
    total = 0.0
    for k in range(atoms.count[N_ATOMS]):
        total += atoms.weight[k]
    for arm in range(est.x.shape[0]):
        if est.present[arm]:
            est.x[arm] = 0.0
        atoms.slope[arm] = 0.0
    for k in range(atoms.count[N_ATOMS]):
        atoms.weight[k] /= total
        for j in range(atoms.count[SIZE]):
            est.x[atoms.members[k, j]] += atoms.weight[k]
    for arm in range(est.x.shape[0]):
        if est.present[arm] and est.x[arm] > 0.0:
            est.x[arm] = min(est.x[arm], 1.0)
            est.rest[arm] = 1.0 - est.x[arm]
            atoms.slope[arm] = slope_at(est, arm, est.x[arm], est.rest[arm])


@kernel
def _shift(own, one, other):
    """Move the best amount of weight from atom `one` to atom `other`; an atom without weight goes. O(K).

    Changes the atoms, and x, rest and slope of the arms in which they differ.
    """
    atoms = own.atoms
    for j in range(atoms.count[SIZE]):
        atoms.change[atoms.members[other, j]] += 1.0
        atoms.change[atoms.members[one, j]] -= 1.0
    step = search(own, atoms.weight[one])
    move(own, step)
    atoms.weight[other] += step
    atoms.weight[one] -= step
    own.est.about[N_STEPS] += 1.0
    drop_empty(atoms)


@kernel
def _score(atoms):
    """Sum of slopes of each atom; (the atom with the largest, with the smallest, the mean by weight). O(atoms D)."""
    worst = best = 0
    mean = 0.0
    for k in range(atoms.count[N_ATOMS]):
        score = 0.0
        for j in range(atoms.count[SIZE]):
            score += atoms.slope[atoms.members[k, j]]
        atoms.score[k] = score
        mean += atoms.weight[k] * score
        if score > atoms.score[worst]:
            worst = k
        if score < atoms.score[best]:
            best = k
    return worst, best, mean


@kernel
def walk(own, goal):
    """Move weight between atoms until no pair gains more than `goal` per weight moved. O(atoms D) a step."""
    for _ in range(_LOCAL_STEPS):
        worst, best, _mean = _score(own.atoms)
        if own.atoms.score[worst] - own.atoms.score[best] <= goal:
            break
        if not newton_step(own):
            _shift(own, worst, best)


@kernel
def absorb(own, base, n, calls):
    """The oracle answers ``base[:n]``: note the gap, and move weight to that base unless the gap is small enough.

    Returns whether the search is over: the gap is below the tolerance, or there is no more room, or `calls`, the number
    of questions so far, is too large. O(atoms D).
    """
    est, atoms = own.est, own.atoms
    worst, _best, mean = _score(atoms)
    gap = mean
    for j in range(n):
        gap -= atoms.slope[base[j]]
    gap = max(gap, 0.0)
    est.about[GAP] = gap
    atoms.count[CALLS] += 1
    last = atoms.count[N_ATOMS]
    if gap <= atoms.tolerance or last == atoms.weight.shape[0] or calls >= _MOST_CALLS:
        est.about[WORST_GAP] = max(est.about[WORST_GAP], gap)
        return True
    for j in range(n):
        atoms.members[last, j] = base[j]
    atoms.weight[last] = 0.0
    atoms.count[N_ATOMS] += 1
    _shift(own, worst, last)
    return False


@kernel
def pick(own, out):
    """Draw an atom by its weight: its arms into `out`; how many. O(atoms + D)."""
    est, atoms = own.est, own.atoms
    mark = next_uniform(est.rng)
    k = 0
    along = atoms.weight[0]
    while along < mark and k + 1 < atoms.count[N_ATOMS]:
        k += 1
        along += atoms.weight[k]
    n = atoms.count[SIZE]
    for j in range(n):
        out[j] = atoms.members[k, j]
    note_play(est, out, n)
    return n


@inline_kernel
def _goal(own):
    """No use in being much more precise than the last gap was, nor than the tolerance."""
    return max(0.5 * own.atoms.tolerance, 0.25 * own.est.about[GAP])


@inline_kernel
def crowded(own):
    """Whether there may soon be no room for another atom."""
    return 4 * own.atoms.count[N_ATOMS] > 3 * own.atoms.weight.shape[0]


@kernel
def begin_search(own):
    """What comes before the first question to the oracle. O(K + atoms D) and local steps."""
    refresh(own)
    walk(own, 0.5 * own.atoms.tolerance)


@kernel
def go_on(own, base, n, calls):
    """`absorb` an answer, and prepare the next question unless the search is over. Returns whether it is."""
    if absorb(own, base, n, calls):
        return True
    walk(own, _goal(own))
    return False


@kernel
def draw_from_atoms(own, engine, out):
    """Play a round that has begun; how many arms. The oracle is the engine at lam = 0. Changes its records."""
    begin_search(own)
    for calls in range(_MOST_CALLS + 1):
        for arm in range(engine.recs.shape[0]):
            weight = -own.atoms.slope[arm]
            if engine.recs[arm, ALPHA] != weight:
                engine.recs[arm, ALPHA] = weight
                engine_touch(engine, arm)
        n = engine_select(engine, 0.0, own.atoms.answer)
        if go_on(own, own.atoms.answer, n, calls):
            break
    return pick(own, out)


@inline_kernel
def _atom_select(own, engine, t, out):
    if crowded(own):
        return ASK
    begin_round(own.est, t)
    return draw_from_atoms(own, engine, out)


implement_rounds(AtomRounds, select=_atom_select, learn=learn_all, touches="nothing")
