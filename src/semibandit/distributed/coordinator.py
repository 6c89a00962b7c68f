"""The rounds of a policy whose arms are spread over shards: what is asked of them, and what becomes of the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_distinct_arms, as_seed, as_whole, explain
from semibandit.distributed.crew import Crew
from semibandit.distributed.kinds import Guide
from semibandit.distributed.merge import Ground, Merged, merge
from semibandit.distributed.shard import Clock
from semibandit.distributed.split import NONE, Split
from semibandit.engines.kernels import check_feedback
from semibandit.errors import ArmError, ParameterError
from semibandit.policies.base import Policy
from semibandit.policies.choosing import as_wish, left_out
from semibandit.policies.decisions import Account, Decision


class Coordinator(Policy):
    """A policy that asks its shards. How it comes to have some is for `Sharded` to say.

    `_split`: which shard has an arm. `_ground`: what is known of the matroid here. `_guide`: options and clock of
    the policy. `_crew`: the shards.
    """

    _split: Split
    _ground: Ground
    _guide: Guide
    _crew: Crew

    @property
    def name(self) -> str:  # type: ignore[override]
        """That of the policy in the shards."""
        return self._guide.entry.name

    # -- rounds ------------------------------------------------------------------------------------------

    def select(  # type: ignore[override]
        self, exclude: Any = None, *, among: Any = None, weights: Any = None, count: int | None = None
    ) -> Any:
        """The base to play, as in `Policy.select`; with `count` a list of the bases of so many rounds.

        `count` rounds take one message to and from each shard; nothing is learnt in between.
        """
        if count is None:
            return self._play(exclude, among, weights, 1, False)[0].arms
        if among is not None or weights is not None:
            raise ParameterError("count goes with neither among nor weights: those rounds are all the same")
        n = as_whole(count, "count", 1, "a number of rounds")
        return [one.arms for one in self._play(exclude, None, None, n, False)]

    def _play(self, exclude: Any, among: Any, weights: Any, count: int, account: bool) -> list[Merged]:
        """So many rounds; what is known of their arms too, if `account`. A call that fails changes nothing."""
        without, arms, scores = as_wish(self.n_arms, exclude, among, weights)
        before, t = self._guide.mark(), self._t + 1
        try:
            clocks = self._guide.clocks(t, count, scores is not None)
            how = (self._ground.facts, account)
            if arms is not None:
                answers = [self._ask_among(t, clocks[0], arms, scores, without, how)]
            elif scores is not None:
                answers = [self._ask_weighed(t, clocks[0], scores, without, how)]
            else:
                answers = self._ask_played(t, clocks, without, how)
        except BaseException:
            self._guide.go_back(before)
            raise
        self._t += count
        self._heard(answers)
        return [merge(one, self._ground) for one in answers]

    def _besides(self, shard: int, arms: IntArray | None = None) -> tuple[Any, ...]:
        """What a shard is told of a round besides, or of these arms of its own."""
        return ()

    def _heard(self, answers: Sequence[Sequence[Any]]) -> None:
        """What shards answered in each of some rounds."""

    def _ask_played(self, t: int, clocks: tuple[Clock, ...], without: IntArray, how: Any) -> Any:
        apart = {i: without[at] for i, at in self._split.parted(without)}
        told = {
            i: ("play", t, clocks, apart.get(i), *how, *self._besides(i)) for i in range(self._split.shards)
        }
        replies = self._crew.ask(told)
        return list(zip(*(replies[i] for i in sorted(replies)), strict=True))

    def _ask_among(self, t: int, clock: Clock, arms: Any, scores: Any, without: Any, how: Any) -> Any:
        here = ~left_out(arms, without)
        arms, scores = arms[here], None if scores is None else scores[here]
        parted = self._split.parted(arms)
        told: Any = {
            i: ("among", t, clock, arms[at], own, *how, *self._besides(i, arms[at]))
            for i, at in parted
            for own in (None if scores is None else scores[at],)
        }
        for i in range(self._split.shards):
            told.setdefault(i, ("among", t, clock, NONE, None, *how, *self._besides(i, NONE)))
        replies = self._crew.ask(told)
        return [replies[i] for i in sorted(replies)]

    def _ask_weighed(self, t: int, clock: Clock, scores: Any, without: Any, how: Any) -> Any:
        apart = {i: without[at] for i, at in self._split.parted(without)}
        told = {
            i: (
                "weigh",
                t,
                clock,
                scores[self._split.ids(i).all()],
                apart.get(i, NONE),
                *how,
                *self._besides(i),
            )
            for i in range(self._split.shards)
        }
        replies = self._crew.ask(told)
        return [replies[i] for i in sorted(replies)]

    def _select_some(self, exclude: Any, among: Any, weights: Any) -> IntArray:
        return self._play(exclude, among, weights, 1, False)[0].arms

    def _update(self, arms: IntArray, rewards: FloatArray) -> None:
        low, high = self.reward_range
        code = int(check_feedback(self.n_arms, arms, rewards, low, high))
        if code:
            raise explain(code, arms, rewards, self.n_arms, self.reward_range)
        self._crew.catch_up(len(arms))
        for i, at in self._split.parted(arms):
            self._crew.tell(i, ("update", arms[at], rewards[at]), len(at))

    def _tell(self, deed: str, arms: IntArray, *more: Any) -> None:
        self._crew.catch_up(len(arms))
        for i, at in self._split.parted(arms):
            self._crew.tell(i, (deed, arms[at], *more), len(at))

    # -- decisions ---------------------------------------------------------------------------------------

    def _decide(self, exclude: Any, among: Any, weights: Any) -> Decision:
        # What is known of the arms comes with the answers, which saves a second message.
        (found,) = self._play(exclude, among, weights, 1, True)
        assert found.account is not None
        scores, *known = found.account
        self._wait(found.arms, 1)
        number = self._decisions.add(found.arms.copy())
        self._noted(number, found.arms)
        return Decision(number, found.arms, scores, Account(*known), self.objective)

    def _known_of(self, arms: IntArray) -> list[Any]:
        """Scores, means, ends of what is likely, and plays of these arms, in their order."""
        parted = self._split.parted(arms)
        told = {i: ("account", self._t, self._guide.clock, arms[at]) for i, at in parted}
        replies = self._crew.ask(told)
        if not parted:
            return [np.zeros(0)] * 4 + [np.zeros(0, dtype=np.int64)]
        places = np.argsort(np.concatenate([at for _, at in parted]))
        return [
            np.concatenate(column)[places] for column in zip(*(replies[i] for i, _ in parted), strict=True)
        ]

    def _scores(self, arms: IntArray) -> FloatArray:
        return np.asarray(self._known_of(arms)[0])

    def _account(self, arms: IntArray, scores: FloatArray) -> Account:
        return Account(*self._known_of(arms)[1:])

    def _wait(self, arms: IntArray, change: int) -> None:
        # Without waiting for shards that are behind, which could fail half way through a call: the feedback that this
        # is part of, or the next round, waits for them.
        for i, at in self._split.parted(arms):
            self._crew.tell(i, ("wait", arms[at], change), len(at))

    def _wait_again(self, arms: IntArray) -> None:
        """Shards know of the decisions that waited when their snapshots were made."""

    # -- arms that come and go ---------------------------------------------------------------------------

    def _is_gone(self, arms: IntArray) -> Any:
        gone = np.zeros(len(arms), dtype=np.bool_)
        parted = self._split.parted(arms)
        replies = self._crew.ask({i: ("gone", arms[at]) for i, at in parted})
        for i, at in parted:
            gone[at] = replies[i]
        return gone

    def delete(self, arms: Any) -> None:
        """Take arms out of play; what is known of them is kept. A message to the shards that hold them."""
        ids = as_distinct_arms(arms, self.n_arms)
        gone = self._is_gone(ids)
        if gone.any():
            raise ArmError(f"arm {ids[np.argmax(gone)]} is deleted already")
        self._tell("delete", ids)

    def insert(self, arms: Any) -> None:
        """Bring deleted arms back with what is known of them. A message to the shards that hold them."""
        ids = as_distinct_arms(arms, self.n_arms)
        here = ~self._is_gone(ids)
        if here.any():
            raise ArmError(
                f"arm {ids[np.argmax(here)]} is present already: only deleted arms can be inserted"
            )
        self._tell("insert", ids)

    def _reset(self, ids: IntArray) -> None:
        self._tell("reset", ids)

    def reseed(self, seed: int) -> None:
        """Start the draws anew in all shards."""
        word = as_seed(seed, none_is_zero=True)
        for i in range(self._split.shards):
            self._crew.tell(i, ("reseed", word), 1)

    # -- the rest ----------------------------------------------------------------------------------------

    def _gathered(self, what: str, dtype: Any) -> Any:
        out = np.empty(self.n_arms, dtype=dtype)
        for i, found in enumerate(self._crew.ask_all((what,))):
            out[self._split.ids(i).all()] = found
        return out

    @property
    def counts(self) -> IntArray:
        return self._gathered("counts", np.int64)

    @property
    def means(self) -> FloatArray:
        return self._gathered("means", np.float64)

    @property
    def confidence_width(self) -> float:
        """That of the policy in the last round."""
        return float(self._guide.policy.confidence_width)

    def flush(self) -> None:
        """Tell the shards what they were not told yet, and wait until they have taken it."""
        self._crew.ask_all(("nothing",))

    def close(self) -> None:
        """End the shards; nothing can be asked afterwards. Done by itself when the policy is no longer used."""
        self._crew.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: object) -> None:
        self.close()

    def describe(self) -> dict[str, Any]:
        """What runs inside: the engine of each shard, bytes of all, where they are."""
        found = self._crew.ask_all(("about",))
        held = sum(int(one.get("bytes", 0)) for one in found)
        return {
            "policy": self._guide.entry.name,
            **self._about_outside(),
            "matroid": repr(self.matroid),
            "engine": ", ".join(dict.fromkeys(str(one["engine"]) for one in found)),
            "why": str(found[0].get("why", "")),
            **({"clock": found[0]["clock"]} if "clock" in found[0] else {}),
            "shards": self._split.shards,
            "on": self._crew.name,
            "merge": "none: no rule concerns two shards" if self._split.apart else "greedy over their bases",
            "arms_per_shard": [int(one["n_arms"]) for one in found],
            "bytes": held,
            "bytes_per_arm": held / self.n_arms,
            **self._crew.state(),
        }

    def _check(self) -> None:
        """Assert what the shards promise. O(K)."""
        self._crew.ask_all(("check",))

    def __repr__(self) -> str:
        about = f"policy={self._guide.entry.name!r}, shards={self._split.shards}, on={self._crew.name!r}"
        return f"Sharded({self.matroid!r}, {about}, t={self._t})"
