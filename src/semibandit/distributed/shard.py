"""A shard: an ordinary policy over its own arms, which answers with its own base.

What is inside is a policy of the catalogue over the matroid restricted to the shard's arms. A shard takes *deeds*
(feedback, plays that wait, arms deleted, inserted, reset, new) and answers one *question*; both come in one message.
Deeds are numbered, and a shard that is told one twice passes over it: whoever talks to it may repeat a message of which
nothing was heard. All that is said is arrays, numbers and tuples of these, whatever carries it.

Rounds leave no trace in a shard: the number of the round and the state of the clock come with the question. So a
shard that was lost is made anew from a snapshot and the deeds since, without its rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.distributed.split import NONE, Ids
from semibandit.errors import FileError, MatroidError, ShardError
from semibandit.matroids import Matroid, Uniform, codec
from semibandit.policies.base import Policy
from semibandit.policies.catalogue import policy_class
from semibandit.policies.choosing import best_base
from semibandit.policies.files import _chunks, _parse, _plain, _policy_of, _rich, _snapshot, _write

#: What is asked: the name of a method of `Shard` and its arguments.
Question = tuple[Any, ...]
#: What is to be done: ("update", arms, rewards), ("wait", arms, change), ("delete", arms), ...
Deed = tuple[Any, ...]
#: What `engines.clock` keeps, as plain numbers, which are lighter in a message; empty if a policy has no clock. For
#: policies with features what is known of theta in its place (`features.tell`).
Clock = tuple[Any, ...]
#: All that a shard has learnt: itself, or the name of the file that holds it and the checksum at the end of that.
Snapshot = bytes | tuple[str, bytes]


@dataclass(frozen=True)
class Spec:
    """All that a shard is made of.

    Attributes
    ----------
    matroid
        Name of the row of its class in `matroids.codec`.
    parts
        The parts of its arms (`matroids.parting`), or a function that gives them, called where the shard lives.
    ids
        Its arms; None as long as nobody knows how many come before them.
    policy, options
        Name of the class of policies, and the keywords to make one with.
    loops
        Whether a part of which no arm can be played is all right.
    """

    matroid: str
    parts: Any
    ids: Ids | None
    policy: str
    options: dict[str, Any]
    loops: bool = True


class Shard:
    """The policy of one part of the arms. See the module for how it is talked to; O(n) to make, for its n arms.

    >>> from semibandit.distributed.split import Ids, NONE
    >>> parts = {"n_arms": 3, "rank": 2}
    >>> shard = Shard(Spec("uniform", parts, Ids(100, 3, NONE), "CUCB", {}))
    >>> deeds = [("update", np.array([101]), np.array([1.0]))]
    >>> question = ("play", 1, (tuple(shard.policy._clock),), None, False, False)
    >>> done, [(arms, weights, *_)] = shard.handle(1, deeds, question)
    >>> done, arms.tolist(), weights.tolist()
    (1, [100, 102], [inf, inf])
    """

    policy: Policy
    _common: dict[str, Any]

    def __init__(self, spec: Spec, snapshot: Snapshot | None = None) -> None:
        self.spec = spec
        self.row: Any = codec.row(spec.matroid)
        self.applied = 0
        self._waiting: dict[int, int] = {}
        self._facts: dict[str, Any] | None = None
        if snapshot is None:
            self._make(spec.parts() if callable(spec.parts) else spec.parts)
        else:
            self._restore(snapshot)
        self.place(spec.ids or Ids(0, self.policy.n_arms, NONE))

    # -- making ------------------------------------------------------------------------------------------

    def _restricted(self, parts: Any) -> Matroid:
        """The matroid of these parts; where nothing can be played, one that is never asked for a base."""
        joined = self.row.parting.join([parts])
        try:
            self.plays = True
            return self.row.from_parts(**joined)  # type: ignore[no-any-return]
        except MatroidError as error:
            if not self.spec.loops or "every arm is a loop" not in str(error):
                raise
            self.plays = False
            return Uniform(self.row.parting.size(joined), 1)

    def _make(self, parts: Any) -> None:
        cls: Any = policy_class(self.spec.policy)
        matroid = self._restricted(parts)
        self._common = self.row.parting.common(parts)
        options = dict(self.spec.options)
        if not self.plays and "engine" in options:
            options["engine"] = "resolve"
        self.policy = cls(matroid, **options)

    def place(self, ids: Ids) -> int:
        """Let these be the names of the shard's arms; how many there are."""
        self.ids = ids = Ids(*ids)  # a message holds no more than a tuple
        if hasattr(self.policy, "_call_arms"):
            self.policy._call_arms(ids.first, ids.listed)
        return self.policy.n_arms

    # -- messages ----------------------------------------------------------------------------------------

    def handle(self, first: int, deeds: list[Deed], question: Question) -> tuple[int, Any]:
        """Do what was not done yet of `deeds`, whose first has this number, and answer: (last deed done, answer)."""
        if first > self.applied + 1:
            raise ShardError(
                f"deeds from {first} on were told, but those from {self.applied + 1} on are missing"
            )
        for deed in deeds[self.applied + 1 - first :]:
            getattr(self, f"_do_{deed[0]}")(*deed[1:])
            self.applied += 1
        return self.applied, getattr(self, question[0])(*question[1:])

    # -- deeds -------------------------------------------------------------------------------------------

    def _own(self, arms: IntArray) -> IntArray:
        # Arrays that came in a message cannot be written to, and kernels are compiled for those that can.
        return np.array(self.ids.places(arms), dtype=np.int64)

    def _do_update(self, arms: IntArray, rewards: FloatArray) -> None:
        self.policy._update(self._own(arms), np.array(rewards))

    def _do_wait(self, arms: IntArray, change: int) -> None:
        places = self._own(arms)
        for place in places.tolist():
            plays = self._waiting.pop(place, 0) + change
            if plays:
                self._waiting[place] = plays
        self.policy._wait(places, change)

    def _do_delete(self, arms: IntArray) -> None:
        self.policy.delete(self._own(arms))  # type: ignore[attr-defined]

    def _do_insert(self, arms: IntArray) -> None:
        self.policy.insert(self._own(arms))  # type: ignore[attr-defined]

    def _do_reset(self, arms: IntArray) -> None:
        self.policy._reset(self._own(arms))

    def _do_reseed(self, seed: int) -> None:
        self.policy.reseed(seed)

    def _do_grow(self, parts: Any, ids: Ids) -> None:
        ids = Ids(*ids)
        if ids.size < self.policy.n_arms:
            return  # made anew after the ground set grew once more, so all these arms are there
        matroid = self._restricted(parts)
        # What stood in for a part of loops may be of another class than what the part has become.
        self.policy.matroid = (
            matroid if type(matroid) is not type(self.policy.matroid) else self.policy.matroid
        )
        self._become(matroid)
        self._facts = None
        self.place(ids)

    def _become(self, matroid: Matroid) -> None:
        self.policy.grow(matroid)

    # -- rounds ------------------------------------------------------------------------------------------

    def _begin(self, t: int, clock: Clock) -> None:
        """Stand in round t, which has begun, with the clock of all shards."""
        if t == 0 or (t == self.policy._t and len(clock) == 0):
            return
        self._hear(clock)
        self.policy._begin_round(t)
        self.policy._t = t

    def _hear(self, clock: Clock) -> None:
        """Let this be the clock."""
        if clock:
            self.policy._clock[:] = clock  # type: ignore[attr-defined]

    def play(
        self, t: int, clocks: tuple[Clock, ...], exclude: IntArray | None, facts: bool, account: bool
    ) -> list[tuple[Any, ...]]:
        """The shard's bases of the rounds from t on, one for each of `clocks`, as `_answer` tells them."""
        policy, answers = self.policy, []
        without = None if exclude is None else self._own(exclude)
        for now, clock in enumerate(clocks, start=t):
            policy._t = now - 1
            self._hear(clock)
            if self.plays:
                places = policy.select() if without is None else policy.select(without)
            else:
                policy._begin_round(now)
                policy._t, places = now, NONE
            answers.append(self._answer(places, policy._indices_of(places, now), facts, account))
        return answers

    def among(
        self,
        t: int,
        clock: Clock,
        arms: IntArray,
        weights: FloatArray | None,
        facts: bool,
        account: bool,
    ) -> tuple[Any, ...]:
        """The best base of those of these arms that are there, by the index of round t or by `weights`."""
        self._begin(t, clock)
        places = self._own(arms)
        here = ~self.policy._is_gone(places)
        places = places[here] if self.plays else NONE
        chosen = self.policy._indices_of(places, t) if weights is None else np.array(weights)[here]
        if not self.plays:
            return self._answer(NONE, np.zeros(0), facts, account)
        base = self.policy.matroid._best_among(places, chosen)
        return self._answer(base, chosen[np.searchsorted(places, base)], facts, account)

    def weigh(
        self, t: int, clock: Clock, weights: FloatArray, exclude: IntArray, facts: bool, account: bool
    ) -> tuple[Any, ...]:
        """The best base by one weight for each arm of the shard."""
        self._begin(t, clock)
        if not self.plays:
            return self._answer(NONE, np.zeros(0), facts, account)
        given = np.array(weights)
        here = ~self.policy._is_gone(np.arange(self.policy.n_arms))
        here[self._own(exclude)] = False
        base = best_base(self.policy.matroid, given, here)
        return self._answer(base, given[base], facts, account)

    def _answer(self, places: IntArray, weights: FloatArray, facts: bool, account: bool) -> tuple[Any, ...]:
        """(arms, weights, facts of the arms or None, account of the arms or None)."""
        about = self._facts_at(places) if facts else None
        return self.ids.names(places), weights, about, self._account_at(places) if account else None

    def _facts_at(self, places: IntArray) -> dict[str, Any]:
        parting = self.row.parting
        if self._facts is None:
            self._facts = self.row.to_parts(self.policy.matroid)
        return parting.own(parting.take(self._facts, places))  # type: ignore[no-any-return]

    def _account_at(self, places: IntArray) -> tuple[Any, ...]:
        scores = self.policy._scores(places)
        told = self.policy._account(places, scores)
        return scores, *(told() if callable(told) else told)

    # -- other questions ---------------------------------------------------------------------------------

    def about(self) -> dict[str, Any]:
        """How large the shard is, and what runs inside."""
        return {"n_arms": self.policy.n_arms, "rank": self.policy.matroid.rank, **self.policy.describe()}

    def nothing(self) -> None:
        """For deeds that need no answer."""

    def size(self) -> int:
        """The number of arms."""
        return self.policy.n_arms

    def common(self) -> dict[str, Any]:
        """What was said of all arms when this shard was made."""
        return self._common

    def some_base(self) -> tuple[Any, ...]:
        """Any base of the shard's arms, and what they are."""
        places = self.policy.matroid._max_weight_base(np.zeros(self.policy.n_arms)) if self.plays else NONE
        return self._answer(places, np.zeros(len(places)), True, False)

    def facts(self, arms: IntArray) -> dict[str, Any]:
        """What these arms are."""
        return self._facts_at(self._own(arms))

    def account(self, t: int, clock: Clock, arms: IntArray) -> tuple[Any, ...]:
        """Scores, means, ends of what is likely, and plays of these arms as of round t."""
        self._begin(t, clock)
        return self._account_at(self._own(arms))

    def gone(self, arms: IntArray) -> Any:
        """Which of these arms are deleted."""
        return self.policy._is_gone(self._own(arms))

    def counts(self) -> IntArray:
        """Of all arms of the shard. O(n)."""
        return self.policy.counts

    def means(self) -> FloatArray:
        """Of all arms of the shard. O(n)."""
        return self.policy.means

    def check(self) -> None:
        """Assert what the policy inside promises. O(n)."""
        parts: list[Any] = [getattr(self.policy, "_engine", None), self.policy]
        for part in parts:
            if hasattr(part, "_check"):
                part._check()

    # -- snapshots ---------------------------------------------------------------------------------------

    def _whole(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The file of the policy, in which the rest of the shard stands as well."""
        about, arrays = _snapshot(self.policy)
        rest = {
            "applied": self.applied,
            "plays": self.plays,
            "waiting": np.array(list(self._waiting.items()), dtype=np.int64).reshape(-1),
        }
        about["shard"] = _plain(rest, "shard", arrays)
        return about, arrays

    def snapshot(self) -> bytes:
        """All that the shard has learnt. O(n)."""
        return b"".join(_chunks(*self._whole()))

    def save(self, path: str) -> tuple[str, bytes]:
        """`snapshot` into a file, and the checksum at the end of it. O(n)."""
        _write(Path(path), *self._whole())
        with open(path, "rb") as file:
            file.seek(-32, 2)
            return path, file.read()

    def _restore(self, snapshot: Snapshot) -> None:
        raw, where = snapshot, "this snapshot"
        if isinstance(snapshot, tuple):
            where, checksum = snapshot
            try:
                raw = Path(where).read_bytes()
            except OSError as error:
                raise FileError(f"{where} cannot be read: {error.strerror or error}") from None
            if raw[-len(checksum) :] != checksum:
                raise FileError(f"{where} is not the file that was written there")
        about, arrays = _parse(raw, where)  # type: ignore[arg-type]
        if "shard" not in about:
            raise FileError(f"{where} holds a policy, but no shard of one")
        self.policy = _policy_of(where, about, arrays)
        rest = _rich(about["shard"], arrays)
        self.applied, self.plays = int(rest["applied"]), bool(rest["plays"])
        for place, plays in rest["waiting"].reshape(-1, 2).tolist():
            self._waiting[place] = plays
        if self._waiting:
            places = np.array(list(self._waiting), dtype=np.int64)
            plays = np.array(list(self._waiting.values()), dtype=np.int64)
            self.policy._wait(np.repeat(places, plays), 1)


def placed(spec: Spec, ids: Ids) -> Spec:
    """The spec of a shard whose arms have these names."""
    return replace(spec, ids=ids)
