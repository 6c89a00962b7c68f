"""A policy over arm records: counts, feedback, and rounds played by kernels."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np

from semibandit.arms import ALPHA, COUNT, INT64, TOTAL, FloatArray, IntArray, flat, new_records
from semibandit.checks import explain, one_of
from semibandit.engines.kernels import any_engine
from semibandit.errors import FileError
from semibandit.matroids import Matroid
from semibandit.policies.base import Policy
from semibandit.policies.decisions import Account, Ends, Tell
from semibandit.policies.many import Kept, keeps_at_once, keeps_learning, play_course, play_rounds
from semibandit.policies.prior import Prior, as_prior
from semibandit.policies.rounds import ASK, CompiledRounds, NoEngine, new_touches
from semibandit.policies.state import array_of, whole_of
from semibandit.policies.straight import Straight, Turn, no_turn
from semibandit.policies.ties import (
    FIRST,
    TIES,
    Words,
    draw_first,
    hair,
    spread,
    tie_generator,
    write_first,
)


def _means(rows: FloatArray) -> FloatArray:
    """Means of arms by their records, NaN where nothing was seen. O(n)."""
    means = np.full(len(rows), np.nan)
    np.divide(rows[:, TOTAL], rows[:, COUNT], out=means, where=rows[:, COUNT] > 0.0)
    return means


def _nothing_likely(mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    nothing = np.full(len(mean), np.nan)
    return nothing, nothing


class RecordPolicy(Policy):
    """A policy that counts in `records` and whose rounds are played by kernels (`policies.rounds`).

    A subclass gives `_make_own`, the state of its kernels, and calls `_open` when it and the engine are there, and
    again whenever one of their arrays was replaced.
    """

    _own: Any
    # The records, and the same as a matrix.
    _columns: tuple[Any, Any] = (None, None)
    # What was believed as it was told, and as it is counted (`policies.ties`).
    _believed: Prior | None = None
    _prior: Prior | None = None
    ties: str = "id"
    # Straight calls for the arrays that are there now, None until they are made.
    _straight: Straight | None = None
    _turn: Turn = staticmethod(no_turn)
    #: Weights of arms never seen where ties are broken at random, else empty.
    _first: FloatArray = np.zeros(0)
    _tie_rng: Words

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: Any = (0.0, 1.0),
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        self.records = new_records(self.n_arms)

    def _believe(self, prior: Any) -> None:
        """Let the records be those of arms of which `prior` is believed. Before there is an engine. O(K)."""
        self._prior = self._believed = as_prior(prior, self.n_arms, self.reward_range)
        if self._prior is not None:
            self._prior.write(self._recs)

    def _break_ties(self, ties: Any) -> None:
        """Let arms never seen come in the order of their ids, or in a random one. After `_believe`. O(K)."""
        self.ties = one_of(ties, "ties", TIES)
        if self.ties == "random":
            self._tie_rng = tie_generator(self.seed)
            self._first = draw_first(self._tie_rng, self.n_arms)
            self._spread_prior()
            self._write_unseen(np.arange(self.n_arms))

    def _spread_prior(self) -> None:
        """Make the prior that is counted from the one that was told. O(K)."""
        if self._believed is not None and self._first.size:
            low, high = self.reward_range
            self._prior = spread(self._believed, self._first, high - low)

    def _write_unseen(self, ids: IntArray) -> None:
        """Let the records of these arms, which are new, be those of arms never seen. O(n)."""
        if self._prior is not None:
            self._prior.write_some(self._recs, ids)
        elif self._first.size:
            write_first(self._recs, ids, self._first)

    @property
    def _recs(self) -> FloatArray:
        if self._columns[0] is not self.records:
            self._columns = (self.records, flat(self.records).reshape(-1, 4))
        return self._columns[1]

    # -- rounds ------------------------------------------------------------------------------------------

    def _make_own(self) -> Any:
        """The state of this policy's kernels."""
        raise NotImplementedError(f"{type(self).__name__} gives no _make_own")

    def _engine_state(self) -> Any:
        """The state of the engine for kernels, None if it runs in Python."""
        return NoEngine(self._recs)

    def _open(self) -> None:
        """Play with the arrays that are there now. O(1)."""
        self._end_straight()
        self._own = self._make_own()
        for name in ("_whole", "_aside"):
            self.__dict__.pop(name, None)

    def _end_straight(self) -> None:
        if self._straight is not None:
            self._straight.end()
            for name in ("_straight", "_turn", "_feed"):
                self.__dict__.pop(name, None)

    @cached_property
    def _whole(self) -> CompiledRounds | None:
        """The kernels of policy and engine together."""
        engine = self._engine_state()
        return None if engine is None else CompiledRounds(self._own, engine)

    @cached_property
    def _aside(self) -> CompiledRounds:
        """The kernels of the policy alone; what they touch must be handed on to the engine."""
        if not hasattr(self, "_engine"):
            assert self._whole is not None
            return self._whole
        touches = new_touches(self._engine._recs)
        return CompiledRounds(self._own, any_engine(touches), touches)

    def compiled_rounds(self) -> CompiledRounds | None:
        mro = type(self).__mro__
        mine = next(cls for cls in mro if "_make_own" in vars(cls))
        for method in ("select", "update", "_update"):
            changed = next(cls for cls in mro if method in vars(cls))
            if not issubclass(mine, changed):
                return None
        return self._whole

    def _play(self, t: int) -> IntArray:
        """Round t by the kernels of policy and engine together, asked once more if they must ask."""
        rank = self.matroid.rank
        out: IntArray = np.empty(rank, INT64)
        whole: Any = self._whole
        # Straight in: every call in between costs more than it does once the caches are full.
        n = whole._enter_select(whole.own_handle, whole.engine_handle, t, out)
        if n == rank:
            return out
        if n == ASK:
            self._ask(1)
            whole = self._whole
            n = whole.select(t, out)
            if n == ASK:
                raise RuntimeError(f"{self!r} asks to be asked and then asks again")
        return out[:n].copy()

    def _select_many(self, n: int) -> tuple[IntArray, IntArray]:
        made: list[tuple[IntArray, IntArray]] = []
        with self._lock:
            while n > 0:
                waiting = self._at_once() if n > 1 and keeps_at_once(type(self)) else None
                if waiting is None:
                    made.append(super()._select_many(n))
                    break
                assert self._whole is not None
                rank, high = self.matroid.rank, self.reward_range[1]
                made.append(play_rounds(self._whole, self._t + 1, rank, n, waiting, high))
                done = len(made[-1][1])
                if done:
                    self._played_until(self._t + done)
                if done < n:  # the next round is one that only Python can begin
                    made.append(super()._select_many(1))
                    done += 1
                n -= done
        if len(made) == 1:
            return made[0]
        arms, sizes = zip(*made, strict=True)
        return np.concatenate(arms), np.concatenate(sizes)

    def _replay_many(
        self, asked: IntArray, counts: IntArray, rewards: FloatArray, kept: Kept
    ) -> tuple[int, IntArray, IntArray]:
        with self._lock:
            waiting, unplaced = self._at_once(), self._learns_at_once()
            assert waiting is not None and unplaced is not None and self._whole is not None
            rank, ends = self.matroid.rank, self.reward_range
            done = play_course(
                self._whole, self._t + 1, rank, asked, counts, rewards, ends, kept, waiting, unplaced
            )
            if len(done[2]):
                self._played_until(self._t + len(done[2]))
            if done[0] < len(asked) or unplaced[0] < unplaced[1]:
                self._ask(1)
            return done

    def _can_replay(self) -> bool:
        if not keeps_learning(type(self)) or self.outside != "error":
            return False
        return self._at_once() is not None and self._learns_at_once() is not None

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        code = self._aside.learn(arms, rewards, *self.reward_range)
        if code:
            raise explain(code, arms, rewards, self.n_arms, self.reward_range)

    # -- what is known -----------------------------------------------------------------------------------

    @property
    def prior(self) -> tuple[Any, Any] | None:
        """Mean and strength of what was believed of arms before they were played, None if nothing was."""
        return None if self._believed is None else self._believed.as_argument()

    @property
    def counts(self) -> IntArray:
        count = self.records["count"]
        return np.rint(count if self._prior is None else count - self._prior.strength).astype(np.int64)

    @property
    def means(self) -> FloatArray:
        count, total = self.records["count"], self.records["total"]
        if self._prior is not None:
            count = np.rint(count - self._prior.strength)
            total = total - self._prior.mean * self._prior.strength
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(count > 0, total / count, np.nan)

    def _scores(self, arms: IntArray) -> FloatArray:
        # As `means`, without going through all arms.
        return _means(self._recs[arms])

    def _account(self, arms: IntArray, scores: FloatArray) -> Tell:
        rows, ends, prior = self._recs[arms], self._likely(arms, scores), self._prior

        def tell() -> Account:
            mean, plays = _means(rows), rows[:, COUNT]
            if prior is not None:
                plays = plays - (prior.strength if prior.strength.ndim == 0 else prior.strength[arms])
            return Account(mean, *ends(mean), np.rint(plays).astype(np.int64))

        return tell

    def _likely(self, arms: IntArray, scores: FloatArray) -> Ends:
        """Both ends of what is likely for the means of these arms: holds on to what it needs, tells when asked."""
        return _nothing_likely

    def _reset(self, ids: IntArray) -> None:
        self.records[ids] = new_records(1)
        if self._first.size:
            self._first[ids] = draw_first(self._tie_rng, len(ids))
            if self._believed is not None and self._prior is not None:
                low, high = self.reward_range
                mean = self._believed.mean if self._believed.mean.ndim == 0 else self._believed.mean[ids]
                self._prior.mean[ids] = mean + hair(self._first[ids], high - low)
        self._write_unseen(ids)

    def _arguments(self) -> dict[str, Any]:
        moved = {} if self.outside == "error" else {"outside": self.outside}
        return {"reward_range": self.reward_range, **moved, "seed": self.seed}

    def _grown_arguments(self, n_arms: int) -> dict[str, Any]:
        arguments = self._arguments()
        if arguments.get("prior") is not None:
            prior = as_prior(arguments["prior"], self.n_arms, self.reward_range)
            assert prior is not None
            arguments["prior"] = prior.grown(n_arms).as_argument()
        return arguments

    def _state(self) -> dict[str, Any]:
        ties = {"first": self._first, "tie_rng": self._tie_rng} if self._first.size else {}
        moved = {} if self.outside == "error" else {"clipped": self.clipped}
        return {"t": self._t, "records": flat(self.records), **ties, **moved}

    def _grown_state(self, old: Self) -> dict[str, Any]:
        state = super()._grown_state(old)
        if self._first.size:
            rng = old._tie_rng.copy()
            first = np.concatenate((old._first, draw_first(rng, self.n_arms - old.n_arms)))
            state |= {"first": first, "tie_rng": rng}
            state["records"][4 * old.n_arms + ALPHA :: 4] = first[old.n_arms :]
        return state

    def _set_state(self, state: dict[str, Any]) -> None:
        known = array_of(state, "records", np.float64, 4 * self.n_arms)
        if np.isnan(known).any() or (known[COUNT::4] < 0.0).any() or not np.isfinite(known[TOTAL::4]).all():
            raise FileError("the records hold what no arm can have")
        clipped = 0 if self.outside == "error" else whole_of(state, "clipped")
        flat(self.records)[:] = known
        if self._first.size:
            first = array_of(state, "first", np.float64, self.n_arms)
            if not ((first >= FIRST) & (first <= 2.0 * FIRST)).all():
                raise FileError("the weights of arms never seen make no sense")
            self._first[:] = first
            self._tie_rng[:] = array_of(state, "tie_rng", np.uint64, 1)
            self._spread_prior()
        self._clipped[0] = clipped
        self._t = whole_of(state, "t")
