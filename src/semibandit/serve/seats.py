"""One policy of the service: its decisions, what they wait for, and what it learns.

A seat does what an event says and answers; whatever it refuses, it refuses before anything is changed. `Seat` knows
arms by number, `LabelledSeat` (`labelled`) by the labels of a `Catalog`. Plays that wait count in the policy's
confidence width (see `policies.decisions`), arm by arm, until their reward comes or the decision is past its time.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import LARGEST, as_arms
from semibandit.distributed import Sharded
from semibandit.distributed.files import manifest
from semibandit.errors import ArmError
from semibandit.matroids import Uniform
from semibandit.policies.base import Policy
from semibandit.policies.files import _snapshot as snapshot_of_policy
from semibandit.serve.keys import Keys
from semibandit.serve.ledger import COUNTED, DROPPED, WAITS, Ledger
from semibandit.serve.refusals import Refusal, bad
from semibandit.serve.values import places_of
from semibandit.serve.wire import PolicySpec

_NOTHING: dict[str, Any] = {}


class Seat:
    """A policy over arms 0 .. K - 1, its ledger and its idempotency keys. `serial`: which of all ever made it is."""

    labelled = False

    def __init__(self, name: str, serial: int, spec: PolicySpec, policy: Any) -> None:
        self.name, self.serial, self.spec = name, serial, spec
        self._policy: Policy = policy
        #: Whether plays that wait are anything to the policy: those that draw at random take no notice of them.
        inner = getattr(policy, "inner", policy)
        self.heeds_waiting = type(inner)._wait is not Policy._wait
        #: Whether rewards are weighed by what the policy knew when it decided (`Policy._noted`).
        self._remembers = type(inner)._noted is not Policy._noted
        ttl = spec.ttl_microseconds()
        self.ledger = Ledger(ttl, spec.max_pending, spec.most_arms(), policy.matroid.rank)
        self.keys = Keys(ttl, spec.max_keys)
        #: Rewards counted so far, and their sum; decisions that left with arms waiting, of them before their time.
        self.rewards = self.expired = self.evicted = 0
        self.total = 0.0
        self._here: int | None = None
        #: Whether the policy plays arms with probabilities that can be told.
        self.knows_chances = spec.policy == "random" and type(policy.matroid) is Uniform

        #: Whether answers are arm numbers and nothing else.
        self.plain = not self.labelled and not self.knows_chances

    @property
    def policy(self) -> Policy:
        """The policy, which knows arms by number."""
        return self._policy

    # -- decisions ---------------------------------------------------------------------------------------

    def tick(self, now: int) -> None:
        """What is past its time leaves. O(1) if nothing is."""
        due = self.ledger.due(now)
        if due:
            self._let_go(due)
        if self.keys:
            self.keys.expire(now)

    def _let_go(self, n: int) -> None:
        """The n oldest decisions leave. Their plays no longer wait, all at once: weights depend on how many do."""
        if self._remembers:
            for number in range(self.ledger.oldest, self.ledger.oldest + n):
                self._policy._settled(number)
        pending, waited = self.ledger.drop(n, named=self.heeds_waiting)
        self.expired += pending
        if waited.size:
            self._policy._wait(waited, -1)

    def decide(
        self, exclude: list[Any] | None, among: list[Any] | None, count: int, at: int
    ) -> tuple[int, IntArray, IntArray]:
        """`count` new decisions: the number of the first, the arms of all, and how many each has."""
        policy = self._policy
        asked = {} if exclude is None and among is None else self._asked(exclude, among)
        if not (asked or count == 1 or self._remembers or self.heeds_waiting):
            arms, sizes = policy._select_many(count)
            self._make_room(count)
            return self.ledger.add_many(arms, sizes, at), arms, sizes
        first, arms = self._decide(asked, count, at)
        if count == 1:
            return first, arms, np.array([len(arms)], dtype=np.int64)
        if not asked and not self._remembers:
            rest, sizes = policy._select_many(count - 1)
        else:
            made = []
            for number in range(first + 1, first + count):
                made.append(policy.select(**asked))
                self._note(number, made[-1])
            rest, sizes = np.concatenate(made), np.array([len(one) for one in made], dtype=np.int64)
        self.ledger.add_many(rest, sizes, at)
        return first, np.concatenate((arms, rest)), np.concatenate(([len(arms)], sizes))

    def _decide(self, asked: dict[str, Any], count: int, at: int) -> tuple[int, IntArray]:
        """The first of `count` decisions, and room for all of them: its number, and its arms."""
        policy = self._policy
        arms = policy.select(**asked) if asked else policy.select()
        # Not before: a policy that refuses has changed nothing, and neither have we.
        self._make_room(count)
        first = self.ledger.add(arms, at)
        self._note(first, arms)
        return first, arms

    def _make_room(self, count: int) -> None:
        """The oldest decisions leave if there are too many for `count` more. O(1) if none must."""
        surplus = self.ledger.surplus(count, count * self._policy.matroid.rank)
        if surplus:
            self.evicted += surplus
            self._let_go(surplus)

    def _note(self, number: int, arms: IntArray) -> None:
        """Decision `number` was just made: its plays wait, and the policy keeps what their rewards will need."""
        if self.heeds_waiting:
            self._policy._wait(arms, 1)
        if self._remembers:
            self._policy._noted(number, arms)

    def decide_one(self, at: int) -> tuple[int, IntArray]:
        """A decision among all arms, by number: its own number, and its arms."""
        return self._decide(_NOTHING, 1, at)

    def learns_together(self) -> bool:
        """Whether `replay` can learn rewards of many decisions in one go. O(1)."""
        return not self.labelled and self._policy._can_replay()

    def replays(self) -> int:
        """How many decisions `replay` can make now at most; 0 where all must be done one by one. O(1)."""
        rank, ledger = self._policy.matroid.rank, self.ledger
        if rank * ledger.most > ledger.most_arms or not self.learns_together():
            return 0
        # While plays that wait count, a decision that leaves makes another one of the next.
        return ledger.room(one_for_one=not self.heeds_waiting)

    def replay(
        self, asked: IntArray, counts: IntArray, rewards: FloatArray, at: IntArray
    ) -> tuple[int, int, IntArray, IntArray]:
        """Decisions among all arms (-1 in `asked`) and whole rewards of kept ones (their number), as one by one.

        `at`: when each decision was made. Nothing may be past its time meanwhile. Returns how many of `asked` were
        done, perhaps none, and the first number, the arms and the sizes of the decisions.
        """
        policy, ledger = self._policy, self.ledger
        done, arms, sizes = policy._replay_many(asked, counts, rewards, ledger.kept())
        first = ledger.add_many(arms, sizes, at[: len(sizes)]) if len(sizes) else ledger.next
        told = asked[:done] >= 0
        ledger.settle_many(asked[:done][told])
        end = 0
        values = rewards[: int(counts[:done][told].sum())].tolist()
        for n in counts[:done][told].tolist():
            self.total += sum(values[end : end + n])
            end += n
        self.rewards += end
        surplus = ledger.surplus(0, 0)
        if surplus:
            self.evicted += surplus
            self._let_go(surplus)
        return done, first, arms, sizes

    def _asked(self, exclude: list[Any] | None, among: list[Any] | None) -> dict[str, Any]:
        asked = {}
        if exclude is not None:
            asked["exclude"] = self._ids(exclude, "exclude")
        if among is not None:
            asked["among"] = self._ids(among, "among")
            if len(set(asked["among"].tolist())) < len(asked["among"]):
                raise bad("among", among, "among names an arm twice")
        return asked

    def _ids(self, arms: list[Any], field: str) -> IntArray:
        """Valid arm ids, or a `Refusal`."""
        try:
            return as_arms(arms, self._policy.n_arms, field)
        except (ArmError, OverflowError) as error:
            for place, arm in enumerate(arms):
                if type(arm) is not int or not 0 <= arm < self._policy.n_arms:
                    where = f"{field}[{place}]"
                    told = f"{where} = {arm!r} is not an arm: ids are 0 .. {self._policy.n_arms - 1}"
                    raise bad(where, arm, told) from None
            raise bad(field, None, str(error)) from None

    def chances(self, arms: IntArray) -> FloatArray:
        """With which probability each arm was played, if `knows_chances`: any base is as likely. O(D)."""
        return np.full(len(arms), min(1.0, self._policy.matroid.rank / max(1, self._present())))

    def _present(self) -> int:
        """How many arms are there. O(1), but O(K) after one went or came."""
        if self._here is None:
            inner = getattr(self._policy, "inner", self._policy)
            self._here = self._policy.n_arms - len(inner._state()["deleted"])
        return self._here

    # -- rewards -----------------------------------------------------------------------------------------

    def places(self, number: int, arms: list[Any]) -> list[int]:
        """Where these arms stand in a kept decision, or a `Refusal`."""
        played = self.ledger.arms_of(number).tolist()
        return places_of(played, arms)

    def sort_out(self, number: int, places: list[int] | None) -> tuple[list[int] | None, int]:
        """Those places of a kept decision that have not been told yet (None: all of it), and how many have been."""
        ledger = self.ledger
        if places is None and ledger.left_of(number) == ledger.size_of(number):
            return None, 0
        flags = ledger.flags_of(number)
        if places is None:
            places = list(range(len(flags)))
        fresh = [place for place in places if flags[place] not in (COUNTED, DROPPED)]
        return fresh, len(places) - len(fresh)

    def learn(self, number: int, places: list[int] | None, rewards: FloatArray) -> tuple[int, int]:
        """Rewards of places that were not told yet: how many count, and how many come too late for their label."""
        ledger, policy = self.ledger, self._policy
        if places is None:
            arms = ledger.arms_of(number)
        else:
            flags = ledger.flags_of(number)
            waits = [i for i, place in enumerate(places) if flags[place] == WAITS]
            arms = ledger.arms_of(number)[[places[i] for i in waits]]
            if len(waits) < len(places):
                self.check_values(rewards)
                rewards = rewards[waits]
        n = len(arms)
        if n:
            if self._remembers:
                with policy._recalled(number, arms):
                    policy.update(arms, rewards)
            else:
                policy.update(arms, rewards)
            if self.heeds_waiting:
                policy._wait(arms, -1)
            self._count(rewards)
        ledger.settle(number, places)
        if self._remembers and not ledger.left_of(number):
            policy._settled(number)
        return n, 0 if places is None else len(places) - n

    def check_values(self, rewards: FloatArray) -> None:
        """A `Refusal` for the first reward that the policy could not take."""
        low, high = (-LARGEST, LARGEST) if self._policy.outside == "clip" else self._policy.reward_range
        for place, value in enumerate(rewards.tolist()):
            if not (np.isfinite(value) and low <= value <= high):
                where = f"rewards[{place}]"
                raise bad(where, value, f"{where} = {value} is outside reward_range = ({low}, {high})")

    def update(self, arms: list[Any], rewards: FloatArray) -> int:
        """Rewards that belong to no decision: how many came too late for their label."""
        ids = self._ids(arms, "arms")
        self._policy.update(ids, rewards)
        self._count(rewards)
        return 0

    def _count(self, rewards: FloatArray) -> None:
        self.rewards += len(rewards)
        self.total += sum(rewards.tolist())

    # -- arms --------------------------------------------------------------------------------------------

    def delete(self, arms: list[Any]) -> None:
        """These arms are no longer played; what is known of them is kept."""
        ids = self._ids(arms, "arms")
        self._able("delete")(ids)
        self._here = None

    def insert(self, arms: list[Any], attributes: list[Any]) -> None:
        """Deleted arms are back."""
        if attributes:
            raise bad("attributes", attributes, "arms by number have no attributes")
        self._able("insert")(self._ids(arms, "arms"))
        self._here = None

    def _able(self, method: str) -> Any:
        found = getattr(self._policy, method, None)
        if found is None:
            told = f"policy {self.spec.policy!r} cannot {method} arms"
            raise Refusal(409, "not_able", told, field="policy", value=self.name)
        return found

    def names_of(self, number: int, arms: IntArray) -> list[Any]:
        """The arms of a kept decision as clients call them."""
        return arms.tolist()

    def labels_of(self, arms: IntArray) -> list[Any]:
        """What these arms are called now."""
        return arms.tolist()

    def arm_of(self, name: Any) -> int:
        """The number of an arm, or a 404."""
        if type(name) is not int or not 0 <= name < self._policy.n_arms:
            told = f"arm {name!r} is not known: ids are 0 .. {self._policy.n_arms - 1}"
            raise Refusal(404, "no_arm", told, field="arm", value=name)
        return name

    def name_of(self, arm: int) -> Any:
        """What clients call an arm."""
        return arm

    # -- files -------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All but the policy, as MessagePack can hold it. O(arms kept)."""
        return {
            "name": self.name,
            "serial": self.serial,
            "ledger": self.ledger.state(),
            "keys": self.keys.state(),
            "rewards": self.rewards,
            "total": self.total,
            "expired": self.expired,
            "evicted": self.evicted,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` gave, with the policy that `save` wrote."""
        self.ledger.restore(state["ledger"])
        self.keys.restore(state["keys"])
        self.rewards, self.total = state["rewards"], state["total"]
        self.expired, self.evicted = state["expired"], state["evicted"]
        # The file holds the decisions that wait; here the ledger does.
        self._policy._decisions._arms.clear()

    def save(self, path: Any) -> None:
        """Write the policy with its decisions that wait to a file that `semibandit.load` reads too.

        Only in a process of its own (or while nobody decides): the policy's own book of decisions is used for that.
        """
        self._lend_decisions()
        self._policy.save(path)
        self._policy._decisions._arms.clear()

    def check_that_it_can_be_saved(self) -> None:
        """Raises whatever would keep the policy from being saved later. O(K)."""
        policy = self._policy
        about = manifest(policy) if isinstance(policy, Sharded) else snapshot_of_policy(policy)
        json.dumps(about[0], allow_nan=False)

    def close(self) -> None:
        """The policy goes: its shards end."""
        if isinstance(self._policy, Sharded):
            self._policy.close()

    def _lend_decisions(self) -> None:
        book, ledger = self._policy._decisions, self.ledger
        book._next = ledger.next
        book._arms.clear()
        for number in range(ledger.oldest, ledger.next):
            if ledger.left_of(number):
                book._arms[number] = ledger.waiting_of(number)
