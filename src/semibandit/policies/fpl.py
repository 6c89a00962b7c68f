"""FPL: follow the perturbed leader with geometric resampling (Neu and Bartok 2013)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from semibandit.arms import ALPHA, FloatArray, IntArray
from semibandit.checks import as_number, as_whole
from semibandit.compiled.handle import Flags1, Floats1, Floats2, Ints1, Number, Whole, Words1, by_handle
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.random import next_exponential
from semibandit.compiled.sorting import sort_ids_in_place
from semibandit.engines.kernels import add_reward, engine_select, engine_touch_all
from semibandit.engines.resolve.one_by_one import UNKNOWN, Rule, rule_of
from semibandit.engines.resolve.oracle import resolve_engine
from semibandit.errors import FileError, ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.catalogue import register
from semibandit.policies.loss_bands import (
    ASIDE,
    LossBands,
    change_loss,
    check_bands,
    draw_base,
    new_bands,
    set_bands,
)
from semibandit.policies.records import CountingPolicy, Randomness
from semibandit.policies.rounds import hand_on, implement_rounds
from semibandit.policies.state import array_of, whole_of

RESAMPLES = 0

# Losses are kept in bands from this many arms on; below, perturbing all of them costs less.
_BANDS_FROM = 512


class PerturbedRounds(NamedTuple):
    """`losses`: estimated losses; `weights`: what feedback of each arm counts; both by arm. Zero for an option means
    that it was not given. `waiting` and `again` (as long as the rank) are scratch. `bands`: of no arms where every
    draw perturbs all of them; else drawn from by `rule`."""

    low: Number
    high: Number
    horizon: Number
    eta: Number
    cap: Whole
    recs: Floats2
    losses: Floats1
    weights: Floats1
    waiting: Flags1
    again: Ints1
    rng: Words1
    meta: Ints1
    bands: LossBands
    rule: Rule


@inline_kernel
def _rounds_planned(own, t):
    return own.recs.shape[0] * (own.horizon if own.horizon > 0.0 else float(max(t, 1)))


@kernel
def learning_rate(own, t):
    """eta in round t. O(1)."""
    if own.eta > 0.0:
        return own.eta
    return math.sqrt((math.log(float(own.recs.shape[0])) + 1.0) / _rounds_planned(own, t))


@kernel
def most_draws(own, t):
    """The most draws for the weights of round t. O(1)."""
    if own.cap > 0:
        return own.cap
    root = math.e * own.again.shape[0] * math.sqrt(math.log(float(own.recs.shape[0])) + 1.0)
    return max(1, math.ceil(math.sqrt(_rounds_planned(own, t)) / root))


@kernel
def perturb(own, engine, eta):
    """Let the weight of each arm be a fresh exponential number less eta times its losses. O(K)."""
    for arm in range(engine.recs.shape[0]):
        engine.recs[arm, ALPHA] = next_exponential(own.rng) - eta * own.losses[arm]
    engine_touch_all(engine)


@kernel
def _wait_for(own, arms, n, cap):
    """Wait for ``arms[:n]`` to be drawn again; until then their feedback counts `cap` times. O(n)."""
    for j in range(n):
        own.weights[arms[j]] = cap
        own.waiting[arms[j]] = True
    return n


@kernel
def _drawn_again(own, arms, n, draw):
    """``arms[:n]`` came up in the draw of this number; how many of them were waited for. O(n)."""
    own.meta[RESAMPLES] += 1
    found = 0
    for j in range(n):
        if own.waiting[arms[j]]:
            own.waiting[arms[j]] = False
            own.weights[arms[j]] = draw
            found += 1
    return found


@kernel
def _perturbed_select(own, engine, t, out):
    """The best base of perturbed weights, and the weights of its feedback by drawing until all arms came up again."""
    eta, cap = learning_rate(own, t), most_draws(own, t)
    played = left = 0
    bands = own.bands
    for draw in range(cap + 1):
        if bands.order.shape[0] and bands.meta[ASIDE] == 0:
            n = draw_base(bands, own.rule, own.losses, eta, own.again)
            if draw == 0:
                sort_ids_in_place(own.again, n)
        else:
            bands.meta[ASIDE] = max(0, bands.meta[ASIDE] - 1)
            perturb(own, engine, eta)
            # In one place, so that the engine is compiled into it once.
            n = engine_select(engine, 0.0, own.again)
        if draw > 0:
            left -= _drawn_again(own, own.again, n, draw)
        else:
            for j in range(n):
                out[j] = own.again[j]
            played = left = _wait_for(own, out, n, cap)
        if left == 0:
            break
    for j in range(played):
        own.waiting[out[j]] = False
    return played


@inline_kernel
def _perturbed_learn(own, engine, arms, rewards, n):
    for j in range(n):
        arm = arms[j]
        add_reward(own.recs, arm, rewards[j])
        old = own.losses[arm]
        own.losses[arm] = old + own.weights[arm] * ((own.high - rewards[j]) / (own.high - own.low))
        if own.bands.order.shape[0]:
            change_loss(own.bands, arm, old, own.losses[arm])


implement_rounds(PerturbedRounds, select=_perturbed_select, learn=_perturbed_learn, touches="nothing")


@register(
    cost="a draw perturbs the arms that greedy looks at, at most all K; up to 1 + cap draws a round",
    guarantee="regret O(D sqrt(K T log K)), rewards chosen by an adversary",
    reference="Neu and Bartok 2013",
    take="when rewards may be chosen against you, at any cost in time",
)
class FPL(Randomness, CountingPolicy):
    """Follow the perturbed leader, for rewards that an adversary may choose.

    Each round plays the best base of ``Z - eta L``: Z exponential, fresh for every arm, and L the estimated losses so
    far (a loss is (b - reward) / (b - a)). What was seen of an arm must be weighted by one over the probability of
    playing it, which has no formula; the number of fresh draws until the arm is played again has that mean. Draws
    end when all played arms came up again, at `cap` at the latest.

    Parameters
    ----------
    matroid
        What may be played together.
    reward_range
        Bounds (a, b) of every reward.
    horizon
        T, from which eta and cap follow; if not given they follow from the current round (anytime).
    eta
        Learning rate; sqrt((log K + 1) / (K T)) unless given.
    cap
        Most draws a round for the weights; sqrt(K T) / (e D sqrt(log K + 1)), rounded up, unless given.
    seed
        Of the perturbations.

    Notes
    -----
    Expected regret against any fixed base: O(D sqrt(K T log K)), also where rewards are not random (Neu and Bartok
    2013).

    Feedback of an arm is weighted by the count drawn when it was last played; by 1 if it never was (a warm start).

    Cost: at most 1 + cap draws a round. From 512 arms on a draw tells arms in the order of their perturbed losses
    without perturbing all of them (`semibandit.policies.loss_bands`, exact in law) until greedy has a base: a few
    times D arms for uniform matroids, however many there are, and as many as greedy looks at for the others. Where
    that is more than one in 64, all K are perturbed.

    Example
    -------
    >>> import semibandit as sb
    >>> policy = sb.FPL(sb.Uniform(n_arms=5, rank=2), horizon=1000, seed=1)
    >>> arms = policy.select()
    >>> policy.update(arms, [1.0, 0.0])
    >>> policy.cap
    9
    """

    name = "fpl"

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: Any = (0.0, 1.0),
        horizon: int | None = None,
        eta: float | None = None,
        cap: int | None = None,
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        self.horizon = None if horizon is None else as_whole(horizon, "horizon", 1, "rounds")
        self._asked = (
            None if eta is None else as_number(eta, "eta", 0.0, closed=False),
            None if cap is None else as_whole(cap, "cap", 1, "draws"),
        )
        self._losses = np.zeros(self.n_arms)
        self._weights = np.ones(self.n_arms)
        self._meta = np.zeros(1, dtype=np.int64)
        self._engine = resolve_engine(matroid)
        self._rule = rule_of(matroid, self._recs)
        banded = (
            self.n_arms >= _BANDS_FROM and self._rule.kind != UNKNOWN and self._engine_state() is not None
        )
        self._bands = new_bands(self.n_arms if banded else 0, self._rng)
        self._open()

    def _make_own(self) -> Any:
        low, high = self.reward_range
        eta, cap = self._asked
        return PerturbedRounds(
            low=low,
            high=high,
            horizon=float(self.horizon or 0),
            eta=eta or 0.0,
            cap=cap or 0,
            recs=self._recs,
            losses=self._losses,
            weights=self._weights,
            waiting=np.zeros(self.n_arms, dtype=np.bool_),
            again=np.zeros(self.matroid.rank, dtype=np.int64),
            rng=self._rng,
            meta=self._meta,
            bands=self._bands,
            rule=self._rule,
        )

    def _engine_state(self) -> Any:
        return getattr(self._engine, "any", None)

    def _call(self, kernel: Any, *rest: Any) -> Any:
        """A kernel of the policy alone."""
        return by_handle(kernel, PerturbedRounds).entry(self._aside.own_handle, *rest)

    @property
    def eta(self) -> float:
        """The learning rate now."""
        return float(self._call(learning_rate, self._t))

    @property
    def cap(self) -> int:
        """The most draws for the weights of a round, now."""
        return int(self._call(most_draws, self._t))

    @property
    def losses(self) -> FloatArray:
        """Estimated sum of losses of each arm. O(K) copy."""
        return self._losses.copy()

    def select(self, exclude: Any = None, *, among: Any = None, weights: Any = None) -> IntArray:
        """A base of the perturbed leader, ascending ids; avoids the arms in `exclude`."""
        if among is not None or weights is not None:
            return self._select_some(exclude, among, weights)
        ids = None if exclude is None else self._presence.among(exclude)
        if ids is not None:
            self._engine._remove(ids)
            self._take_out(ids, True)
        try:
            arms = self._draw_rounds(self._t + 1) if self._whole is None else self._play(self._t + 1)
        finally:
            if ids is not None:
                self._engine._restore(ids)
                self._take_out(ids, False)
        self._t += 1
        return arms

    def _select_some(self, exclude: Any, among: Any, weights: Any) -> IntArray:
        arms = super()._select_some(exclude, among, weights)
        if weights is not None:
            self._weights[arms] = 1.0  # they were certain to be played
        return arms

    def _choose_among(self, arms: IntArray, t: int) -> IntArray:
        """As a round of all arms, with draws for these alone."""
        eta, cap = float(self._call(learning_rate, t)), int(self._call(most_draws, t))
        drift = eta * self._losses[arms]

        def draw() -> IntArray:
            return self.matroid._best_among(arms, -np.log(self._uniforms(len(arms))) - drift)

        played = draw()
        weight = np.zeros(len(played))
        for number in range(1, cap + 1):
            missing = weight == 0.0
            if not missing.any():
                break
            self._meta[RESAMPLES] += 1
            weight[missing & np.isin(played, draw())] = number
        self._weights[played] = np.where(weight > 0.0, weight, cap)
        return played

    def _draw_rounds(self, t: int) -> IntArray:
        """`_perturbed_select` where the engine runs in Python."""
        aside = self._aside
        eta, cap = float(self._call(learning_rate, t)), int(self._call(most_draws, t))

        def draw() -> IntArray:
            by_handle(perturb, *aside.kinds).entry(aside.own_handle, aside.engine_handle, eta)
            hand_on(aside.touches, self._engine)
            return self._engine._select(0.0)

        arms = draw()
        left = self._call(_wait_for, arms, len(arms), cap)
        for i in range(1, cap + 1):
            again = draw()
            left -= self._call(_drawn_again, again, len(again), i)
            if left == 0:
                return arms
        self._own.waiting[arms] = False
        return arms

    def _take_out(self, ids: IntArray, out: bool) -> None:
        """Let these arms be absent from the bands, or there again. O(n)."""
        if self._bands.absent.size:
            self._bands.absent[ids] = out

    def _leave(self, ids: IntArray) -> None:
        self._engine.delete(ids)
        self._take_out(ids, True)

    def _enter(self, ids: IntArray) -> None:
        self._engine.insert(ids)
        self._take_out(ids, False)

    def _reset(self, ids: IntArray) -> None:
        raise ParameterError(
            "FPL cannot forget single arms: it compares losses summed up over all rounds, among which an arm that "
            "starts anew would look like the best one; make a new policy"
        )

    def _arguments(self) -> dict[str, Any]:
        eta, cap = self._asked
        return {**super()._arguments(), "horizon": self.horizon, "eta": eta, "cap": cap}

    def _state(self) -> dict[str, Any]:
        own = {"losses": self._losses, "weights": self._weights, "resamples": int(self._meta[RESAMPLES])}
        # Which arm a draw tells depends on the order of equals.
        bands = {"order": self._bands.order, "bands": self._bands.ref, "told": self._bands.meta}
        return {**super()._state(), **own, **bands, "rng": self._rng}

    def _set_state(self, state: dict[str, Any]) -> None:
        losses = array_of(state, "losses", np.float64, self.n_arms)
        weights = array_of(state, "weights", np.float64, self.n_arms)
        if not (np.isfinite(losses).all() and np.isfinite(weights).all()):
            raise FileError("the estimated losses must be finite")
        super()._set_state(state)
        self._losses[:], self._weights[:] = losses, weights
        self._meta[RESAMPLES] = whole_of(state, "resamples")
        self._set_rng(state)
        self._bands.meta[:] = 0
        if "order" in state and self._bands.order.size:  # not in files of earlier versions
            told = array_of(state, "told", np.int64, self._bands.meta.size)
            order = array_of(state, "order", np.int32, self.n_arms)
            ref = array_of(state, "bands", np.float64, self._bands.ref.size)
            if not set_bands(self._bands, self._losses, order, ref, told):
                raise FileError("the arms must be in the order of their losses")

    def _check(self) -> None:
        """Assert all invariants. O(K)."""
        if self._bands.order.size:
            check_bands(self._bands, self._losses)
            assert np.array_equal(self._bands.absent, ~self._presence.mask)

    def describe(self) -> dict[str, Any]:
        """What runs inside; ``resamples`` counts the draws for weights."""
        return {
            "policy": self.name,
            **self._about_outside(),
            "matroid": repr(self.matroid),
            "engine": self._engine.name,
            "why": "losses in bands" if self._bands.order.size else "every draw perturbs all arms",
            "eta": self.eta,
            "cap": self.cap,
            "resamples": int(self._meta[RESAMPLES]),
        }

    def __repr__(self) -> str:
        return f"FPL({self.matroid!r}, horizon={self.horizon}, t={self._t})"
