"""How a round is played on a matroid without families: Frank-Wolfe steps over a mixture of bases."""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.arms import ALPHA, FloatArray, IntArray
from semibandit.compiled.handle import by_handle, make_handle
from semibandit.engines.base import bytes_of
from semibandit.engines.resolve.oracle import resolve_engine
from semibandit.errors import FileError
from semibandit.matroids import Matroid
from semibandit.policies.ftrl.atoms import begin_search, crowded, draw_from_atoms, go_on, pick
from semibandit.policies.ftrl.estimates import GAP, N_STEPS, RATE, WORST_GAP, Estimates
from semibandit.policies.ftrl.mixture_state import CALLS, N_ATOMS, N_COUNT, SIZE, AtomRounds, Atoms
from semibandit.policies.ftrl.regularisers import price_of
from semibandit.policies.state import array_of

_LEAST_ROOM = 64


class MixtureWay:
    """Any matroid: a mixture of bases whose duality gap is below `tolerance`.

    `engine` answers for the linear oracle: at lam = 0, its weights being the gradient. Atoms are started anew when arms
    come or go.
    """

    name = "frank-wolfe"
    why = "no exact projection is known for this class; the duality gap is driven below the tolerance"

    def __init__(self, matroid: Matroid, est: Estimates, tolerance: float) -> None:
        self.matroid, self.est, self.tolerance = matroid, est, tolerance
        self.engine = resolve_engine(matroid)
        self.engine._recs[:, ALPHA] = 0.0
        self.engine.touch_all()
        self._out = np.zeros(len(est.cost), dtype=np.bool_)
        self._make_room(_LEAST_ROOM)
        self._start()

    def _make_room(self, room: int, before: Atoms | None = None) -> None:
        """Atoms for `room` bases, those of `before` among them. O(room D)."""
        n, rank = len(self.est.cost), self.matroid.rank
        self.atoms = Atoms(
            tolerance=self.tolerance,
            members=np.zeros((room, rank), dtype=np.int64),
            weight=np.zeros(room),
            score=np.zeros(room),
            slope=np.zeros(n),
            answer=np.zeros(rank, dtype=np.int64),
            change=np.zeros(n),
            way=np.zeros(room),
            ones=np.zeros(room),
            matrix=np.zeros((room, room)),
            count=np.zeros(N_COUNT, dtype=np.int64),
        )
        if before is not None:
            kept = int(before.count[N_ATOMS])
            self.atoms.members[:kept], self.atoms.weight[:kept] = before.members[:kept], before.weight[:kept]
            self.atoms.count[:] = before.count
        self.own = AtomRounds(self.est, self.atoms)
        self._handle = make_handle(self.own)

    def widen(self) -> bool:
        """Make room for more atoms if there is little; whether the state is another one now."""
        if not by_handle(crowded, AtomRounds).entry(self._handle):
            return False
        self._make_room(2 * len(self.atoms.weight), self.atoms)
        return True

    def _start(self) -> None:
        """Begin with equal weights of bases that cover all present arms but loops. One greedy for each of them."""
        covered = np.zeros(len(self.est.cost), dtype=np.bool_)
        bases: list[IntArray] = []
        while True:
            base = self._best(np.where(covered, 0.0, 1.0))
            if bases and covered[base].all():
                break
            covered[base] = True
            bases.append(base)
        if 2 * len(bases) > len(self.atoms.weight):
            self._make_room(4 * len(bases))
        atoms = self.atoms
        size = len(bases[0])
        atoms.count[N_ATOMS], atoms.count[SIZE] = len(bases), size
        atoms.weight[: len(bases)] = 1.0 / len(bases)
        atoms.members[: len(bases), :size] = bases

    def _best(self, weights: FloatArray) -> IntArray:
        """The base of largest weight among the present arms. One greedy."""
        changed = np.flatnonzero(self.engine._recs[:, ALPHA] != weights)
        self.engine._recs[changed, ALPHA] = weights[changed]
        self.engine.touch(changed)
        return self.engine._select(0.0)

    # -- arms that come and go ---------------------------------------------------------------------------

    def settle(self) -> None:
        """``est.present`` was changed for good. O(K) and one greedy for each atom of the start."""
        gone = ~self.est.present
        leave, enter = np.flatnonzero(gone & ~self._out), np.flatnonzero(self._out & ~gone)
        self._out[:] = gone
        if len(leave):
            self.engine.delete(leave)
        if len(enter):
            self.engine.insert(enter)
        self._start()

    def restrict(self) -> None:
        """``est.present`` was changed for a while. Cost of `settle`."""
        self._aside = np.flatnonzero(~self.est.present & ~self._out), self.atoms
        self._make_room(len(self.atoms.weight))
        self.atoms.count[CALLS] = self._aside[1].count[CALLS]
        self.engine._remove(self._aside[0])
        self._start()

    def release(self) -> None:
        """Back to what was before `restrict`."""
        ids, atoms = self._aside
        self.engine._restore(ids)
        atoms.count[CALLS] = self.atoms.count[CALLS]
        self.atoms = atoms
        self.own = AtomRounds(self.est, atoms)
        self._handle = make_handle(self.own)

    # -- rounds ------------------------------------------------------------------------------------------

    def draw(self) -> IntArray:
        """Play a round that has begun among the arms that are present."""
        out = np.empty(self.matroid.rank, dtype=np.int64)
        engine = getattr(self.engine, "any", None)
        if engine is not None:
            entry = by_handle(draw_from_atoms, AtomRounds, type(engine)).entry
            n = entry(self._handle, make_handle(engine), out)
        else:
            by_handle(begin_search, AtomRounds).entry(self._handle)
            over, calls = False, 0
            while not over:
                base = self._best(-self.atoms.slope)
                over = by_handle(go_on, AtomRounds).entry(self._handle, base, len(base), calls)
                calls += 1
            n = by_handle(pick, AtomRounds).entry(self._handle, out)
        return out[:n].copy()

    def prices(self, ids: IntArray) -> FloatArray:
        """What a place costs: the mean over all arms, as it is not known by arm here. O(K)."""
        est = self.est
        rate = float(est.about[RATE])
        between = np.flatnonzero(est.present & (est.x > 0.0) & (est.rest > 0.0))
        if rate == 0.0 or not len(between):
            return np.zeros(len(ids))
        price = [price_of.py_func(est.phi, est.gamma, est.x[k], est.rest[k]) for k in between.tolist()]
        mean = float(np.mean(est.scale[between] * np.array(price) / rate - est.cost[between]))
        return np.full(len(ids), mean)

    def shares(self, ids: IntArray) -> FloatArray:
        """The chance of an arm like all others. O(K)."""
        return np.full(len(ids), self.atoms.count[SIZE] / max(int(self.est.present.sum()), 1))

    # -- copying and saving ------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """What changed since the start."""
        n, size = int(self.atoms.count[N_ATOMS]), int(self.atoms.count[SIZE])
        return {
            "atoms": self.atoms.members[:n, :size].ravel(),
            "weights": self.atoms.weight[:n],
            "calls": self.atoms.count[[CALLS]],
            "room": np.array([len(self.atoms.weight)]),
        }

    def set_state(self, state: Any) -> None:
        """Go on as told. O(atoms) independence tests."""
        weight = array_of(state, "weights", np.float64)
        room, calls = (int(array_of(state, name, np.int64, 1)[0]) for name in ("room", "calls"))
        if not len(weight):
            return
        size = int(self.atoms.count[SIZE])
        members = array_of(state, "atoms", np.int64, len(weight) * size).reshape(-1, size)
        good = (
            (weight >= 0.0).all()
            and 0.0 < weight.sum() < 2.0
            and len(weight) <= room <= 2**32 // max(size, 1)
        )
        inside = ((members >= 0) & (members < self.matroid.n_arms)).all()
        if not (good and inside and self.est.present[members].all() and (np.diff(members) > 0).all()):
            raise FileError("the mixture of bases makes no sense")
        if not all(self.matroid._is_independent(base.copy()) for base in members):
            raise FileError("the mixture holds what is no base")
        self._make_room(room)
        self.atoms.count[:] = 0
        self.atoms.count[N_ATOMS], self.atoms.count[SIZE], self.atoms.count[CALLS] = len(weight), size, calls
        self.atoms.members[: len(weight), :size], self.atoms.weight[: len(weight)] = members, weight

    def grown(self, old: MixtureWay) -> dict[str, Any]:
        """A state that says to start anew: old bases cover no new arms. O(1)."""
        return {**self.state(), "atoms": np.empty(0, dtype=np.int64), "weights": np.empty(0)}

    def about(self) -> dict[str, Any]:
        """For `describe`: `gap` of the last round and the largest so far, in units of the objective."""
        about = self.est.about
        return {
            "tolerance": self.tolerance,
            "gap": float(about[GAP]),
            "largest_gap": float(about[WORST_GAP]),
            "atoms": int(self.atoms.count[N_ATOMS]),
            "oracle_calls": int(self.atoms.count[CALLS]),
            "steps": int(about[N_STEPS]),
        }

    def memory(self) -> int:
        """Bytes held."""
        return bytes_of(self.atoms) + self.engine.memory()
