"""A batch: operations done in order, each for itself; selects that follow each other are made in one go."""

from __future__ import annotations

from typing import Any

from semibandit.serve.events import Event
from semibandit.serve.refusals import Refusal, bad
from semibandit.serve.service import Service
from semibandit.serve.several import Several
from semibandit.serve.wire import (
    BatchAnswer,
    Decisions,
    Learnt,
    Made,
    Problem,
    RewardsOperation,
    RewardsRequest,
    SelectOperation,
    encode_json,
    encode_msgpack,
    problem,
)

Operation = SelectOperation | RewardsOperation
#: What one operation led to, or several that followed each other.
Result = Made | Decisions | Learnt | Problem | Several


def do_all(service: Service, operations: list[Operation], events: list[Event]) -> list[Result]:
    """Do the operations; what happened is added to `events`, also if a 503 ends it half way."""
    results: list[Result] = []
    at = 0
    while at < len(operations):
        end = _end_of_selects(operations, at)
        done = service.decide_several(operations[at].policy, end - at) if end - at > 1 else None
        if done is None:
            results.append(_do(service, operations[at], events))
            at += 1
        else:
            events.append(done[0])
            results.append(done[1])
            at = end
    return results


def _end_of_selects(operations: list[Operation], at: int) -> int:
    """Where those selects end that begin at `at`, ask the same policy, and ask for one decision among all its arms."""
    policy, end = operations[at].policy, at
    while end < len(operations):
        one = operations[end]
        if type(one) is not SelectOperation or one.policy != policy or one.key is not None:
            break
        if one.exclude is not None or one.among is not None or one.count is not None:
            break
        end += 1
    return end


def _do(service: Service, one: Operation, events: list[Event]) -> Result:
    """Do one operation: its result, or why not."""
    result: Made | Decisions | Learnt
    event: Event | None
    try:
        if type(one) is SelectOperation:
            event, made = service.decide(one.policy, one.exclude, one.among, one.count, one.key)
            result = made[0] if one.count is None else Decisions(made)
        else:
            event, result = learn(service, one.policy, one)  # type: ignore[arg-type]
    except Refusal as error:
        if error.status == 503:
            raise
        return problem(error, None)
    if event is not None:
        events.append(event)
    return result


def learn(service: Service, name: str, told: RewardsRequest) -> tuple[Event | None, Learnt]:
    """Rewards of a decision, or of arms with a key; the event is the caller's to log."""
    if told.decision is not None:
        if told.key is not None:
            raise bad("key", told.key, "rewards of a decision count once by themselves: leave out key")
        return service.learn(name, told.decision, told.arms, told.rewards)
    if told.key is None or told.arms is None:
        missing = "key" if told.key is None else "arms"
        raise bad(missing, None, f"rewards without a decision need arms and a key: {missing} is missing")
    return service.count(name, told.key, told.arms, told.rewards)


def encode_results(results: list[Result], as_json: bool) -> bytes:
    """A `BatchAnswer`. O(size)."""
    if as_json:
        parts = [one.json() if type(one) is Several else encode_json(one) for one in results]
        return b"".join((b'{"results":[', b",".join(parts), b"]}"))
    plain: list[Any] = []
    for one in results:
        plain.extend(one.made() if type(one) is Several else [one])
    return encode_msgpack(BatchAnswer(plain))
