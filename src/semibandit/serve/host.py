"""Several named policies and one order of events: the state of the service, without clock, disk or network.

The host is deterministic. Each method that changes something takes the time as an argument, does all its checks first,
then changes the state and returns the event to be logged with the answer; `apply` takes such an event from the log and
does the same again. So a host that was fed the log equals the one that wrote it, bit for bit.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from semibandit.arms import IntArray
from semibandit.errors import ArmError, ParameterError, SemibanditError
from semibandit.serve.events import (
    AnyEvent,
    Created,
    Deleted,
    Inserted,
    Opened,
    Removed,
    Rewarded,
    Selected,
    Updated,
    pack_arms,
    pack_numbers,
)
from semibandit.serve.keys import Known, digest_of
from semibandit.serve.labelled import make_seat
from semibandit.serve.limits import Limits, check_name
from semibandit.serve.openings import Openings
from semibandit.serve.refusals import Refusal, bad, no_decision, no_policy, too_late
from semibandit.serve.replaying import apply_all
from semibandit.serve.seats import Seat
from semibandit.serve.several import Several
from semibandit.serve.specs import build, check_spec
from semibandit.serve.together import reward_together
from semibandit.serve.values import as_values, blame
from semibandit.serve.wire import Learnt, Made, PolicySpec, RewardsOperation


class Host:
    """The policies and all that belongs to them. `position`: events applied; `time`: that of the last one."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.seats: dict[str, Seat] = {}
        self.position = 0
        self.time = 0
        self.serial = 0
        self.openings = Openings()

    def seat(self, name: str) -> Seat:
        """The seat of a policy, or a 404."""
        seat = self.seats.get(name)
        if seat is None:
            raise no_policy(name)
        return seat

    def _advance(self, at: int) -> None:
        self.position += 1
        if at > self.time:
            self.time = at

    def now(self, at: int) -> int:
        """The time of an event that comes at `at`: never before that of the last one."""
        return at if at > self.time else self.time

    def number_of(self, seat: Seat, decision: str, now: int) -> int:
        """The number of a kept decision, or a `Refusal`."""
        ledger = seat.ledger
        number = self.openings.number_of(seat.serial, decision)
        if not 0 <= number < ledger.next:
            raise no_decision(decision, seat.name)
        if number < ledger.oldest or ledger.is_late(number, now):
            raise too_late(decision)
        return number

    # -- what changes the state --------------------------------------------------------------------------

    def open(self, at: int, tag: str) -> Opened:
        """A server takes over."""
        at = self.now(at)
        self.openings.add(tag, {seat.serial: seat.ledger.next for seat in self.seats.values()})
        self._advance(at)
        return Opened(at, tag)

    def create(self, at: int, name: str, spec: PolicySpec) -> Created | None:
        """A new policy; no event if it is there already and was asked for in the same words. O(K)."""
        at = self.now(at)
        check_name(name)
        if name in self.seats:
            if self.seats[name].spec == spec:
                return None
            raise Refusal(
                409,
                "exists",
                f"policy {name!r} is there already, and is another one",
                field="name",
                value=name,
            )
        if len(self.seats) >= self.limits.policies:
            raise Refusal(409, "too_many_policies", f"at most {self.limits.policies} policies are served")
        check_spec(spec, self.limits.arms)
        seat = make_seat(name, self.serial, spec, build(spec))
        if seat.policy.n_arms > self.limits.arms:
            told = f"{seat.policy.n_arms} arms: at most {self.limits.arms} are served"
            raise Refusal(413, "too_many_arms", told, field="arms", value=seat.policy.n_arms)
        try:
            packed = msgspec.msgpack.encode(spec)
            seat.check_that_it_can_be_saved()
        except (SemibanditError, TypeError, ValueError, OverflowError) as error:
            raise bad("options", None, f"a policy like that has no place in a file: {error}") from None
        self._seat_in(seat)
        self._advance(at)
        return Created(at, name, msgspec.Raw(packed))

    def _seat_in(self, seat: Seat) -> None:
        self.seats[seat.name] = seat
        self.serial = seat.serial + 1

    def remove(self, at: int, name: str) -> Removed:
        """A policy goes, and all that waited for it."""
        at = self.now(at)
        self.seat(name).close()
        del self.seats[name]
        self._advance(at)
        return Removed(at, name)

    def select(
        self,
        at: int,
        name: str,
        exclude: list[Any] | None = None,
        among: list[Any] | None = None,
        count: int | None = None,
        key: str | None = None,
    ) -> tuple[Selected | None, list[Made]]:
        """New decisions; or, for a key that was served before, the same ones again (and no event)."""
        at = self.now(at)
        seat = self.seats.get(name)
        if seat is None:
            raise no_policy(name)
        if count is None and exclude is None and among is None and key is None and seat.plain:
            return self._select_one(at, seat)
        limits = self.limits
        n = 1 if count is None else count
        if n != 1 and not 1 <= n <= min(limits.decisions_per_request, seat.spec.max_pending):
            most = min(limits.decisions_per_request, seat.spec.max_pending)
            raise bad("count", n, f"count = {n} must be in 1 .. {most}")
        if exclude is not None:
            self._few(exclude, "exclude")
        if among is not None:
            self._few(among, "among")
        seat.tick(at)
        if key is not None:
            known = self._known(seat, key, digest_of("select", exclude, among, n))
            if known is not None:
                return None, self._again(seat, known)
        first, arms, sizes = self._select(at, seat, exclude, among, n, key)
        event = Selected(at, name, first, pack_arms(arms), [], exclude, among, key)
        if n > 1:
            event.sizes = sizes.tolist()
        if seat.labelled:
            event.labels = seat.labels_of(arms)
        if seat.knows_chances and exclude is None and among is None:
            event.chances = pack_numbers(seat.chances(arms))
        return event, self._told(seat, first, arms, sizes)

    def _told(self, seat: Seat, first: int, arms: IntArray, sizes: IntArray) -> list[Made]:
        """Decisions `first` and so on, just made, as clients see them. O(arms)."""
        several = self._several(seat, first, arms, sizes)
        if not seat.labelled:
            return several.made()
        numbers = range(first, first + len(sizes))
        ids = [f"{several.start}{number}" for number in numbers]
        names = [seat.names_of(number, arms) for number in numbers]
        return [Made(ids[i], names[i], several.t + i) for i in range(len(sizes))]

    def _several(self, seat: Seat, first: int, arms: IntArray, sizes: IntArray) -> Several:
        start = f"{self.openings.tag}-{seat.serial}-"
        return Several(start, first, seat.policy.t - len(sizes) + 1, arms, sizes)

    def most_at_once(self, name: str) -> int:
        """How many decisions `select_several` makes at most; 0 if that is not for this policy, or it is unknown."""
        seat = self.seats.get(name)
        if seat is None or not seat.plain:
            return 0
        return min(self.limits.decisions_per_request, seat.spec.max_pending)

    def select_several(self, at: int, name: str, n: int) -> tuple[Selected, Several]:
        """`select` of n decisions, 1 .. `most_at_once`, among all arms; one event for all of them."""
        at = self.now(at)
        seat = self.seat(name)
        seat.tick(at)
        first, arms, sizes = self._select(at, seat, None, None, n, None)
        event = Selected(at, name, first, pack_arms(arms), sizes.tolist() if n > 1 else [])
        return event, self._several(seat, first, arms, sizes)

    def _select_one(self, at: int, seat: Seat) -> tuple[Selected, list[Made]]:
        """`select` as it is asked most often: one decision among all arms, by number."""
        seat.tick(at)
        number, arms = seat.decide_one(at)
        self._advance(at)
        decision = f"{self.openings.tag}-{seat.serial}-{number}"
        event = Selected(at, seat.name, number, arms.astype("<i4").tobytes())
        return event, [Made(decision, arms.tolist(), seat.policy.t)]

    def _select(
        self, at: int, seat: Seat, exclude: Any, among: Any, count: int, key: str | None
    ) -> tuple[int, IntArray, IntArray]:
        try:
            made = seat.decide(exclude, among, count, at)
        except (ArmError, ParameterError) as error:
            raise bad("among" if among is not None else "exclude", None, str(error)) from None
        if key is not None:
            digest = digest_of("select", exclude, among, count)
            seat.keys.add(key, Known(at, digest, made[0], count, seat.policy.t - count + 1))
        self._advance(at)
        return made

    def _again(self, seat: Seat, known: Known) -> list[Made]:
        """The answer that a request got when it came first."""
        made = []
        for i in range(known.made):
            number = known.first + i
            if number < seat.ledger.oldest:
                raise too_late(self.openings.id_of(seat.serial, number))
            names = seat.names_of(number, seat.ledger.arms_of(number))
            made.append(Made(self.openings.id_of(seat.serial, number), names, known.round + i))
        return made

    def reward(
        self, at: int, name: str, decision: str, arms: list[Any] | None, rewards: list[Any]
    ) -> tuple[Rewarded | None, Learnt]:
        """Rewards of a decision; no event if all of them were told before."""
        at = self.now(at)
        seat = self.seats.get(name)
        if seat is None:
            raise no_policy(name)
        number = self.number_of(seat, decision, at)
        ledger = seat.ledger
        if arms is None:
            places, n = None, ledger.size_of(number)
        else:
            places = seat.places(number, arms)
            n = len(places)
        values = as_values(rewards, n)
        fresh, duplicates = seat.sort_out(number, places)
        if duplicates:
            where = list(range(n)) if places is None else places
            assert fresh is not None
            kept = {place: i for i, place in enumerate(where)}
            positions = [kept[place] for place in fresh]
            seat.check_values(values)
            values = values[positions]
        if not (n if fresh is None else fresh):  # nothing is new: nothing to log
            return None, Learnt(0, duplicates, 0, ledger.left_of(number))
        seat.tick(at)
        counted, dropped = self._reward(at, seat, number, fresh, values)
        packed = b"" if fresh is None else np.array(fresh, dtype="<u4").tobytes()
        event = Rewarded(at, name, number, pack_numbers(values), packed)
        return event, Learnt(counted, duplicates, dropped, ledger.left_of(number))

    def reward_together(
        self, at: int, name: str, told: list[RewardsOperation]
    ) -> tuple[list[Rewarded], list[Learnt]]:
        """`reward` of as many of these as can be learnt in one go, from the first on: their events and answers."""
        return reward_together(self, at, name, told)

    def _reward(
        self, at: int, seat: Seat, number: int, places: list[int] | None, values: Any
    ) -> tuple[int, int]:
        try:
            done = seat.learn(number, places, values)
        except SemibanditError as error:
            raise blame(error, values, list(range(len(values)))) from None
        self._advance(at)
        return done

    def update(
        self, at: int, name: str, key: str, arms: list[Any], rewards: list[Any]
    ) -> tuple[Updated | None, Learnt]:
        """Rewards without a decision; no event if the key was served before."""
        at = self.now(at)
        seat = self.seat(name)
        self._few(arms, "arms")
        values = as_values(rewards, len(arms))
        seat.tick(at)
        if self._known(seat, key, digest_of("update", arms, values.tobytes())) is not None:
            return None, Learnt(0, len(arms), 0, 0)
        dropped = self._update(at, seat, key, arms, values)
        event = Updated(at, name, key, arms, pack_numbers(values))
        return event, Learnt(len(arms) - dropped, 0, dropped, 0)

    def _update(self, at: int, seat: Seat, key: str, arms: list[Any], values: Any) -> int:
        try:
            dropped = seat.update(arms, values)
        except Refusal:
            raise
        except SemibanditError as error:
            raise blame(error, values, list(range(len(values)))) from None
        seat.keys.add(key, Known(at, digest_of("update", arms, values.tobytes()), 0, 0, 0))
        self._advance(at)
        return dropped

    def delete(self, at: int, name: str, arms: list[Any]) -> Deleted:
        """Arms, or labels, go."""
        at = self.now(at)
        self._few(arms, "arms")
        self._arms(at, self.seat(name), arms, None)
        return Deleted(at, name, arms)

    def insert(self, at: int, name: str, arms: list[Any], attributes: list[Any] | None = None) -> Inserted:
        """Arms are back, or labels are new."""
        at = self.now(at)
        self._few(arms, "arms")
        self._arms(at, self.seat(name), arms, attributes or [])
        return Inserted(at, name, arms, attributes or [])

    def _arms(self, at: int, seat: Seat, arms: list[Any], attributes: list[Any] | None) -> None:
        seat.tick(at)
        try:
            if attributes is None:
                seat.delete(arms)
            else:
                seat.insert(arms, attributes)
        except Refusal:
            raise
        except ArmError as error:
            raise Refusal(409, "present", str(error), field="arms", value=arms) from None
        except SemibanditError as error:
            raise bad("arms", arms, str(error)) from None
        self._advance(at)

    def _known(self, seat: Seat, key: str, digest: int) -> Known | None:
        if not 1 <= len(key) <= 200:
            raise bad("key", key, "key must have 1 to 200 characters")
        return seat.keys.find(key, digest)

    def _few(self, arms: list[Any], field: str) -> None:
        if len(arms) > self.limits.arms_per_request:
            told = f"{field} names {len(arms)} arms: at most {self.limits.arms_per_request} per request"
            raise Refusal(413, "too_many_arms", told, field=field, value=len(arms))

    # -- the log -----------------------------------------------------------------------------------------

    def apply(self, event: AnyEvent) -> None:
        """Do what an event of the log says; a `ReplayError` if it does not lead where it led before."""
        apply_all(self, [event])

    def apply_all(self, events: list[AnyEvent]) -> None:
        """`apply` for events that follow each other, in less time than one by one."""
        apply_all(self, events)

    # -- files -------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All but the policies themselves, as MessagePack can hold it."""
        return {
            "position": self.position,
            "time": self.time,
            "serial": self.serial,
            "openings": self.openings.state(),
            "seats": [{**seat.state(), "spec": seat.spec} for seat in self.seats.values()],
        }

    def restore(self, state: dict[str, Any], load: Any) -> None:
        """Take over a state; ``load(i, spec)`` gives the i-th policy (or catalog)."""
        self.position, self.time, self.serial = state["position"], state["time"], state["serial"]
        self.openings.restore(state["openings"])
        for i, told in enumerate(state["seats"]):
            spec = msgspec.convert(told["spec"], PolicySpec)
            seat = make_seat(told["name"], told["serial"], spec, load(i, spec))
            seat.restore(told)
            self.seats[seat.name] = seat
