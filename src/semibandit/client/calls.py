"""What can be asked of the service: each call as a request and the type of its answer, whoever sends it."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from semibandit.errors import MissingExtraError, SemibanditError
from semibandit.serve.wire import (
    MSGPACK,
    ArmList,
    ArmsRequest,
    ArmStatistics,
    BatchRequest,
    CreateRequest,
    Decisions,
    Done,
    Health,
    Learnt,
    Made,
    PolicyAnswer,
    PolicyList,
    Problem,
    RewardsOperation,
    RewardsRequest,
    SelectOperation,
    SelectRequest,
    SnapshotAnswer,
)
from semibandit.text import needs

T = TypeVar("T")

Decision = Made
Operation = SelectOperation | RewardsOperation
Result = Made | list[Made] | Learnt | Problem

#: What to say where httpx is missing.
NEEDS_HTTPX = needs("semibandit.client", "httpx")


class ServiceError(SemibanditError):
    """The service refused a request, or could not be reached. `status`: as in HTTP, 0 if there was no answer."""

    def __init__(self, message: str, status: int = 0, problem: Problem | None = None) -> None:
        super().__init__(message)
        self.status, self.problem = status, problem


def httpx() -> Any:
    """The package, or what to install."""
    try:
        import httpx as found
    except ImportError:
        raise MissingExtraError(NEEDS_HTTPX) from None
    return found


class Call(NamedTuple, Generic[T]):
    """A request: what to send, and the type of what comes back."""

    method: str
    path: str
    body: Any
    answer: type[T]


def _policy(name: str) -> str:
    return f"/v1/policies/{quote(name, safe='')}"


def new_key() -> str:
    """An idempotency key that nobody else has."""
    return uuid.uuid4().hex


def select(
    policy: str,
    exclude: Sequence[Any] | None,
    among: Sequence[Any] | None,
    count: int | None,
    key: str | None,
) -> Call[Any]:
    """One decision, or `count` of them."""
    body = SelectRequest(_list(exclude), _list(among), count, key)
    return Call("POST", f"{_policy(policy)}/select", body, Made if count is None else Decisions)


def reward(policy: str, decision: Made | str, rewards: Sequence[float], arms: Any) -> Call[Learnt]:
    """Rewards of a decision."""
    number = decision.decision if isinstance(decision, Made) else decision
    body = RewardsRequest(rewards=_floats(rewards), decision=number, arms=_list(arms))
    return Call("POST", f"{_policy(policy)}/rewards", body, Learnt)


def update(policy: str, arms: Sequence[Any], rewards: Sequence[float], key: str) -> Call[Learnt]:
    """Rewards without a decision."""
    body = RewardsRequest(rewards=_floats(rewards), arms=_list(arms), key=key)
    return Call("POST", f"{_policy(policy)}/rewards", body, Learnt)


def batch(operations: Sequence[Operation]) -> Call[Any]:
    """Several operations."""
    return Call("POST", "/v1/batch", BatchRequest(list(operations)), _RawBatch)


class _RawBatch(msgspec.Struct):
    results: list[msgspec.Raw]


def batch_results(operations: Sequence[Operation], raw: Any) -> list[Result]:
    """The results of a batch, each as its type."""
    found: list[Result] = []
    for operation, one in zip(operations, raw.results, strict=True):
        plain = msgspec.msgpack.decode(one)
        if "error" in plain:
            found.append(msgspec.convert(plain, Problem))
        elif isinstance(operation, RewardsOperation):
            found.append(msgspec.convert(plain, Learnt))
        elif operation.count is None:
            found.append(msgspec.convert(plain, Made))
        else:
            found.append(msgspec.convert(plain, Decisions).decisions)
    return found


def create(name: str, given: dict[str, Any]) -> Call[PolicyAnswer]:
    """A new policy."""
    return Call("POST", "/v1/policies", msgspec.convert({"name": name, **given}, CreateRequest), PolicyAnswer)


def policies() -> Call[PolicyList]:
    """All policies."""
    return Call("GET", "/v1/policies", None, PolicyList)


def policy(name: str) -> Call[PolicyAnswer]:
    """One policy."""
    return Call("GET", _policy(name), None, PolicyAnswer)


def remove(name: str) -> Call[Done]:
    """A policy goes."""
    return Call("DELETE", _policy(name), None, Done)


def arms(name: str, order: str, offset: int, limit: int) -> Call[ArmList]:
    """Arms in order."""
    return Call(
        "GET", f"{_policy(name)}/arms?order={quote(order)}&offset={offset}&limit={limit}", None, ArmList
    )


def arm(name: str, which: Any) -> Call[ArmStatistics]:
    """One arm."""
    text = which if isinstance(which, str) else msgspec.json.encode(which).decode()
    return Call("GET", f"{_policy(name)}/arms/{quote(text, safe='')}", None, ArmStatistics)


def change_arms(name: str, which: Sequence[Any], attributes: Any, verb: str) -> Call[Done]:
    """Arms are deleted or inserted."""
    return Call("POST", f"{_policy(name)}/arms/{verb}", ArmsRequest(list(which), _list(attributes)), Done)


def snapshot() -> Call[SnapshotAnswer]:
    """A snapshot now."""
    return Call("POST", "/v1/snapshot", None, SnapshotAnswer)


def ready() -> Call[Health]:
    """Whether requests are served."""
    return Call("GET", "/readyz", None, Health)


def _list(values: Any) -> list[Any] | None:
    if values is None:
        return None
    return [value.item() if hasattr(value, "item") else value for value in values]


def _floats(values: Any) -> list[float]:
    return [float(value) for value in values]


# -- sending -----------------------------------------------------------------------------------------------------


def encoded(call: Call[Any]) -> dict[str, Any]:
    """A call as httpx sends it."""
    headers = {"accept": MSGPACK}
    if call.body is None:
        return {"method": call.method, "url": call.path, "headers": headers}
    headers["content-type"] = MSGPACK
    content = msgspec.msgpack.encode(call.body)
    return {"method": call.method, "url": call.path, "headers": headers, "content": content}


def decoded(call: Call[T], status: int, content: bytes) -> T:
    """The answer, or a `ServiceError`."""
    if 200 <= status < 300:
        return msgspec.msgpack.decode(content, type=call.answer)
    try:
        problem = msgspec.msgpack.decode(content, type=Problem)
    except msgspec.MsgspecError:
        raise ServiceError(f"{call.method} {call.path}: status {status}", status) from None
    raise ServiceError(problem.message, status, problem)


def is_busy(status: int) -> bool:
    """Whether an answer says that the request was not done, and may be sent again."""
    return status in (429, 502, 503, 504)


def pauses(retries: int) -> Iterator[float]:
    """Seconds to wait before each retry: twice as long each time, within 5 s, and never all clients at once."""
    for attempt in range(retries):
        yield min(5.0, 0.05 * 2**attempt) * (0.5 + random.random())
