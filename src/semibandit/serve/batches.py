"""A batch: operations done in order, each for itself; those of one sort that follow each other are done in one go."""

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

# Rewards that are looked at in one go at most: where they must be learnt one by one, the look was for nothing.
_TOGETHER = 256

Operation = SelectOperation | RewardsOperation
#: What one operation led to, or several that followed each other.
Result = Made | Decisions | Learnt | Problem | Several


def do_all(service: Service, operations: list[Operation], events: list[Event]) -> list[Result]:
    """Do the operations; what happened is added to `events`, also if a 503 ends it half way."""
    results: list[Result] = []
    at = alone = 0
    while at < len(operations):
        one = operations[at]
        end = at + 1 if at < alone else _end_of_run(operations, at)
        if end - at > 1 and type(one) is SelectOperation:
            done = service.decide_several(one.policy, end - at)
            if done is not None:
                events.append(done[0])
                results.append(done[1])
                at = end
                continue
            alone = end
        elif end - at > 1:
            some: list[Any] = operations[at : min(end, at + _TOGETHER)]
            told, learnt = service.learn_together(one.policy, some)
            events += told
            results += learnt
            at += len(learnt)
            if not learnt:  # it is refused, or a duplicate: it and what follows it, each for itself
                alone = end
            continue
        results.append(_do(service, one, events))
        at += 1
    return results


def _end_of_run(operations: list[Operation], at: int) -> int:
    """Where those end that begin at `at`, are of the same policy and sort, and are what is sent most often.

    That is one decision among all arms, or all rewards of a decision. At least one.
    """
    first, end = operations[at], at
    if type(first) is SelectOperation:
        if first == SelectOperation(policy=first.policy):  # nothing is asked but a decision
            while end < len(operations) and operations[end] == first:
                end += 1
        return max(end, at + 1)
    while end < len(operations) and _is_whole(operations[end]) and operations[end].policy == first.policy:
        end += 1
    return max(end, at + 1)


def _is_whole(one: Any) -> bool:
    if type(one) is not RewardsOperation or one.decision is None:
        return False
    return one.arms is None and one.key is None


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
