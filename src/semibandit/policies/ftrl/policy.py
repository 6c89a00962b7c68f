"""FTRL: follow the regularised leader, nearly optimal whether rewards are random or chosen by an adversary."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Self

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_number, as_whole, one_of
from semibandit.compiled.handle import by_handle, make_handle
from semibandit.engines.base import bytes_of
from semibandit.errors import FileError
from semibandit.matroids import Matroid
from semibandit.policies.catalogue import register
from semibandit.policies.ftrl.estimates import N_ABOUT, RATE, Estimates, begin_round
from semibandit.policies.ftrl.families import serves
from semibandit.policies.ftrl.mixtures import MixtureWay
from semibandit.policies.ftrl.plays import Plays, are_chances
from semibandit.policies.ftrl.regularisers import CHOICES, HYBRID, LBINF, price_of
from semibandit.policies.ftrl.ways import FamilyWay
from semibandit.policies.records import CountingPolicy, Randomness
from semibandit.policies.rounds import NoEngine
from semibandit.policies.state import array_of

#: Scale of LBINF's regulariser before anything is seen: 1 + epsilon with the epsilon = 0.2 of the experiments of
#: Tsuchiya, Ito and Honda 2023.
_FLOOR = 1.2

#: The horizon that LBINF assumes if none is given; only its logarithm plays a part.
_ASSUMED = 1_000_000

#: What `Estimates` holds by arm and files hold too.
_SAVED = ("cost", "spread", "predicted", "x", "rest", "place", "chance", "guess")


def weight_of_rest(kind: int, n_arms: int, rank: int, horizon: int) -> float:
    """gamma, the weight of the part of phi that keeps chances away from 1. O(1)."""
    if kind == LBINF:
        return max(1.0, math.log(horizon))
    if kind != HYBRID or 2 * rank <= n_arms or rank == n_arms:
        return 1.0
    return min(1.0, 1.0 / math.sqrt(math.log(n_arms / (n_arms - rank))))


@register(
    cost="O(K) a round: all chances move",
    guarantee="HYBRID: O(log T) if rewards are random, O(sqrt(D K T)) if an adversary chooses them",
    reference="Zimmert, Luo and Wei 2019; Tsuchiya, Ito and Honda 2023",
    take="where rewards may be chosen by an adversary, or drift in no known way, and up to some 10,000 arms",
)
class FTRL(Randomness, CountingPolicy):
    """Follow the regularised leader: nearly optimal whether rewards are random or chosen by an adversary.

    Each round finds the point x of the base polytope that minimises ``rate <estimated losses, x> + Psi(x)``, and draws
    a base in which arm i is with chance x_i. What is then seen of an arm is weighted by 1 / x_i, which makes the
    estimates unbiased whatever the rewards are.

    Parameters
    ----------
    matroid
        What may be played together.
    reward_range
        Bounds (a, b) of every reward; the loss of a reward is (b - reward) / (b - a).
    regulariser
        Psi, and with it the learning rate. ``"hybrid"``: square roots and the entropy of 1 - x (Zimmert, Luo and Wei
        2019). ``"lbinfv"``: a logarithmic barrier whose scale follows the variance of each arm, with losses predicted
        by their means; ``"lbinfv-gd"``: by gradient steps (Tsuchiya, Ito and Honda 2023); ``"lbinf"``: not predicted.
        ``"exp2"``: entropy; ``"log-barrier"``: both as in the experiments of Zimmert, Luo and Wei.
    horizon
        T, which the LBINF family wants for its logarithm; 1,000,000 is assumed unless given. The others need none.
    tolerance
        For matroids without families: the largest duality gap, in units of the objective, at which a round is content.
    seed
        Of the draws.

    Notes
    -----
    Regret, on uniform matroids: HYBRID O(sum of log T / gap) where rewards are random, also if an adversary shifts all
    arms together, and O(sqrt(D K T)) always. LBINFV has the variance in place of the range.

    Uniform, partition and laminar matroids: the projection is exact (`ftrl.projection`), sampling too
    (`ftrl.sampling`). Any other class: a mixture of bases found by Frank-Wolfe steps (`ftrl.atoms`), from which the
    base is drawn; chances are exactly those of the mixture, which is within `tolerance` of the leader. `describe` tells
    the gap.

    Late feedback: `learn` weighs it by the chance of the decision it belongs to, `update` by the chance of the round
    in which the arm was last played (1 if it never was, for a warm start). Feedback that never comes counts as the
    smallest loss (hybrid, exp2, log-barrier) or as predicted (the LBINF family).

    A deleted arm keeps its standing among the others until it is inserted again; one that is reset, or new, starts with
    an even share of chances. Feedback of rounds with `weights` counts once, as the arms were certain to be played.

    Cost: O(K) a round, as every chance moves: a few logarithms for each arm; with nested families that bind, O(K) for
    each level. `among` and `exclude` cost the same. Frank-Wolfe takes some tens of greedy bases a round, and a linear
    system as large as the mixture (up to K) for each: milliseconds for 60 arms, and a matter of hundreds of arms.

    Example
    -------
    >>> import semibandit as sb
    >>> matroid = sb.Partition([0, 0, 0, 1, 1], capacities=[1, 1])
    >>> policy = sb.FTRL(matroid, seed=1)
    >>> arms = policy.select()
    >>> policy.chances.round(3).tolist()
    [0.333, 0.333, 0.333, 0.5, 0.5]
    >>> policy.update(arms, [1.0, 0.0])
    """

    name = "ftrl"

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: Any = (0.0, 1.0),
        regulariser: str = "hybrid",
        horizon: int | None = None,
        tolerance: float = 0.01,
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        self.regulariser = one_of(regulariser, "regulariser", tuple(CHOICES))
        self.horizon = None if horizon is None else as_whole(horizon, "horizon", 1, "rounds")
        self.tolerance = as_number(tolerance, "tolerance", 0.0, closed=False)
        self._made = Plays()
        self._est = self._new_estimates()
        self._est_handle = make_handle(self._est)
        self._way: Any = (
            FamilyWay(matroid, self._est)
            if serves(matroid)
            else MixtureWay(matroid, self._est, self.tolerance)
        )
        if isinstance(self._way, MixtureWay):
            self._engine = self._way.engine
        self._open()

    def _new_estimates(self) -> Estimates:
        n, (low, high) = self.n_arms, self.reward_range
        phi, guesses = CHOICES[self.regulariser]
        floor = _FLOOR if phi == LBINF else 1.0
        return Estimates(
            phi=phi,
            guesses=guesses,
            gamma=weight_of_rest(phi, n, self.matroid.rank, self.horizon or _ASSUMED),
            floor=floor,
            low=low,
            high=high,
            recs=self._recs,
            cost=np.zeros(n),
            scale=np.full(n, floor),
            spread=np.zeros(n),
            predicted=np.full(n, 0.5),
            x=np.zeros(n),
            rest=np.ones(n),
            place=np.zeros(n),
            chance=np.ones(n),
            guess=np.full(n, 0.5),
            here=np.ones(n, dtype=np.bool_),
            present=np.ones(n, dtype=np.bool_),
            rng=self._rng,
            about=np.zeros(N_ABOUT),
        )

    def _make_own(self) -> Any:
        return self._way.own

    def _engine_state(self) -> Any:
        return getattr(self._engine, "any", None) if hasattr(self, "_engine") else NoEngine(self._recs)

    def _ask(self, rounds: int) -> int:
        if isinstance(self._way, MixtureWay) and self._way.widen():
            self._open()
        return rounds

    @property
    def gamma(self) -> float:
        """Weight of the part of the regulariser that keeps chances away from 1."""
        return float(self._est.gamma)

    @property
    def losses(self) -> FloatArray:
        """Estimated sum of losses of each arm, up to a number that is the same for all. O(K) copy."""
        return self._est.cost.copy()

    @property
    def chances(self) -> FloatArray:
        """The chance with which each arm was played in the last round; 0 for arms that were out of play. O(K) copy."""
        return self._est.x.copy()

    # -- rounds ------------------------------------------------------------------------------------------

    def select(self, exclude: Any = None, *, among: Any = None, weights: Any = None) -> IntArray:
        """A base drawn with the chances of the regularised leader, ascending ids; avoids the arms in `exclude`."""
        if among is not None or weights is not None:
            return self._select_some(exclude, among, weights)
        t = self._t + 1
        if exclude is None and self._whole is not None:
            arms = self._play(t)
        else:
            mask = np.ones(self.n_arms, dtype=np.bool_)
            if exclude is not None:
                mask[self._presence.among(exclude)] = False
            self._begin_round(t)
            arms = self._draw_among(mask)
        self._t = t
        return arms

    def _draw_among(self, mask: Any) -> IntArray:
        """Play a round that has begun among the arms of this mask that are there. O(K)."""
        self._ask(1)
        if mask.all():
            return self._way.draw()  # type: ignore[no-any-return]
        with self._only(mask):
            return self._way.draw()  # type: ignore[no-any-return]

    @contextmanager
    def _only(self, mask: Any) -> Iterator[None]:
        """Let only arms of this mask, of those that are there, be played for a while. O(K)."""
        est = self._est
        np.logical_and(est.here, mask, out=est.present)
        est.x[~est.present], est.rest[~est.present] = 0.0, 1.0
        self._way.restrict()
        try:
            yield
        finally:
            est.present[:] = est.here
            self._way.release()

    def _begin_round(self, t: int) -> None:
        by_handle(begin_round, Estimates).entry(self._est_handle, t)

    def _choose_among(self, arms: IntArray, t: int) -> IntArray:
        mask = np.zeros(self.n_arms, dtype=np.bool_)
        mask[arms] = True
        return self._draw_among(mask)

    def _select_some(self, exclude: Any, among: Any, weights: Any) -> IntArray:
        arms = super()._select_some(exclude, among, weights)
        if weights is not None:
            self._est.chance[arms] = 1.0  # they were certain to be played
            self._est.guess[arms] = self._est.predicted[arms]
        return arms

    # -- decisions ---------------------------------------------------------------------------------------

    def _noted(self, number: int, arms: IntArray) -> None:
        self._made.note(number, arms, self._est)

    def _recalled(self, number: int, arms: IntArray) -> AbstractContextManager[None]:
        return self._made.recalled(number, self._est)

    def _settled(self, number: int) -> None:
        self._made.forget(number)

    # -- arms that come and go ---------------------------------------------------------------------------

    def _leave(self, ids: IntArray) -> None:
        # What counts is a cost beside the price of a place, which moves on while an arm is away.
        self._est.cost[ids] += self._way.prices(ids)
        self._be_here(ids, False)

    def _enter(self, ids: IntArray) -> None:
        self._be_here(ids, True)
        self._est.cost[ids] -= self._way.prices(ids)

    def _be_here(self, ids: IntArray, here: bool) -> None:
        self._est.here[ids] = here
        self._est.x[ids], self._est.rest[ids] = 0.0, 1.0
        self._est.present[:] = self._est.here
        self._way.settle()
        if self._way.own is not self._own:
            self._open()

    def _reset(self, ids: IntArray) -> None:
        super()._reset(ids)
        est = self._est
        est.spread[ids], est.scale[ids] = 0.0, est.floor
        est.predicted[ids] = est.guess[ids] = 0.5
        est.chance[ids] = 1.0
        est.x[ids], est.rest[ids], est.place[ids] = 0.0, 1.0, 0.0
        self._place(ids)

    def _place(self, ids: IntArray) -> None:
        """Let arms of which nothing is known cost what an arm does that has its even share of chances. O(n)."""
        est = self._est
        est.cost[ids] = 0.0
        rate = float(est.about[RATE])
        if rate == 0.0:
            return
        for arm, share in zip(
            ids.tolist(), np.clip(self._way.shares(ids), 1e-9, 0.999).tolist(), strict=True
        ):
            price = price_of.py_func(est.phi, est.gamma, share, 1.0 - share)
            est.cost[arm] = est.scale[arm] * price / rate
        self._est.cost[ids] -= np.where(est.here[ids], self._way.prices(ids), 0.0)

    def _grow_from(self, old: Self) -> None:
        super()._grow_from(old)
        self._place(np.arange(old.n_arms, self.n_arms))

    def _grown_state(self, old: Self) -> dict[str, Any]:
        return {**super()._grown_state(old), **self._way.grown(old._way)}

    # -- copying and saving ------------------------------------------------------------------------------

    def _arguments(self) -> dict[str, Any]:
        own = {"regulariser": self.regulariser, "horizon": self.horizon, "tolerance": self.tolerance}
        return {**super()._arguments(), **own}

    def _state(self) -> dict[str, Any]:
        arrays = {name: getattr(self._est, name) for name in _SAVED}
        own = {"about": self._est.about, "plays": self._made.state(), "rng": self._rng}
        return {**super()._state(), **arrays, **own, **self._way.state()}

    def _set_state(self, state: dict[str, Any]) -> None:
        est = self._est
        known = {name: array_of(state, name, np.float64, self.n_arms) for name in _SAVED}
        about = array_of(state, "about", np.float64, N_ABOUT)
        good = all(np.isfinite(values).all() for values in (*known.values(), about))
        if not (good and are_chances(known["chance"]) and (known["spread"] >= 0.0).all()):
            raise FileError("the estimates make no sense")
        plays = Plays.from_state(state["plays"], self.n_arms)
        super()._set_state(state)
        for name, values in known.items():
            getattr(est, name)[:] = values
        est.about[:] = about
        if est.phi == LBINF:
            est.scale[:] = np.sqrt(est.floor * est.floor + est.spread / est.gamma)
        self._made = plays
        self._way.set_state(state)
        self._open()
        self._set_rng(state)

    def describe(self) -> dict[str, Any]:
        """What runs inside."""
        held = bytes_of(self._est) + self._way.memory()
        return {
            "policy": self.name,
            **self._about_outside(),
            "matroid": repr(self.matroid),
            "engine": self._way.name,
            "why": self._way.why,
            "regulariser": self.regulariser,
            "rate": float(self._est.about[RATE]),
            **self._way.about(),
            "bytes": held,
            "bytes_per_arm": held / self.n_arms,
        }

    def __repr__(self) -> str:
        return f"FTRL({self.matroid!r}, regulariser={self.regulariser!r}, t={self._t})"
