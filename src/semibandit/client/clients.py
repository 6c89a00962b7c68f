"""`Client` and `AsyncClient`: the calls, sent and retried."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Self, TypeVar, overload

from semibandit.client import calls
from semibandit.client.calls import Call, Operation, Result, ServiceError
from semibandit.serve.wire import ArmList, ArmStatistics, Learnt, Made, PolicyAnswer

T = TypeVar("T")


def _options(base: str, token: str | None, timeout: float) -> dict[str, Any]:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return {"base_url": base, "headers": headers, "timeout": timeout}


class Client:
    """Talks to a service, and waits for its answers. Threads may share one.

    Parameters
    ----------
    base
        Its address.
    token
        A bearer token, where the service wants one.
    timeout
        Seconds for one attempt.
    retries
        How often a request is sent again that was not answered, or answered with 429, 502, 503 or 504.
    transport
        One of httpx's, for tests.
    """

    def __init__(
        self,
        base: str = "http://127.0.0.1:8080",
        *,
        token: str | None = None,
        timeout: float = 10.0,
        retries: int = 8,
        transport: Any = None,
    ) -> None:
        httpx = calls.httpx()
        self._retries, self._lost = retries, httpx.TransportError
        self._http = httpx.Client(**_options(base, token, timeout), transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def _send(self, call: Call[T]) -> T:
        pauses = calls.pauses(self._retries)
        request = calls.encoded(call)
        while True:
            try:
                answer = self._http.request(**request)
                if not calls.is_busy(answer.status_code):
                    return calls.decoded(call, answer.status_code, answer.content)
                pause = next(pauses, None)
                if pause is None:
                    return calls.decoded(call, answer.status_code, answer.content)
            except self._lost as error:
                pause = next(pauses, None)
                if pause is None:
                    told = f"{call.method} {call.path}: {type(error).__name__}: {error}"
                    raise ServiceError(told) from error
            time.sleep(pause)

    @overload
    def select(
        self, policy: str = ..., *, exclude: Any = ..., among: Any = ..., count: None = ...
    ) -> Made: ...

    @overload
    def select(
        self, policy: str = ..., *, exclude: Any = ..., among: Any = ..., count: int
    ) -> list[Made]: ...

    def select(
        self,
        policy: str = "default",
        *,
        exclude: Sequence[Any] | None = None,
        among: Sequence[Any] | None = None,
        count: int | None = None,
    ) -> Made | list[Made]:
        """A decision (or `count` of them): its id, its arms and its round."""
        found = self._send(calls.select(policy, exclude, among, count, calls.new_key()))
        return found if count is None else found.decisions  # type: ignore[no-any-return]

    def reward(
        self,
        decision: Made | str,
        rewards: Sequence[float],
        *,
        arms: Sequence[Any] | None = None,
        policy: str = "default",
    ) -> Learnt:
        """Rewards of a decision: one per arm, or of those in `arms`. Counted once, however often it is sent."""
        return self._send(calls.reward(policy, decision, rewards, arms))

    def update(
        self,
        arms: Sequence[Any],
        rewards: Sequence[float],
        *,
        key: str | None = None,
        policy: str = "default",
    ) -> Learnt:
        """Rewards without a decision. `key`: your own, to send them again after this program has ended."""
        return self._send(calls.update(policy, arms, rewards, key or calls.new_key()))

    def batch(self, operations: Sequence[Operation]) -> list[Result]:
        """Several operations at once; each result is what the single call gives, or a `Problem`."""
        keyed = [_with_key(one) for one in operations]
        return calls.batch_results(keyed, self._send(calls.batch(keyed)))

    def create(self, name: str, **spec: Any) -> PolicyAnswer:
        """A new policy: ``create("page", policy="cts", matroid={"kind": "uniform", "arms": 1000, "rank": 10})``."""
        return self._send(calls.create(name, spec))

    def policies(self) -> list[PolicyAnswer]:
        """All policies and how they stand."""
        return self._send(calls.policies()).policies

    def policy(self, name: str = "default") -> PolicyAnswer:
        """One policy and how it stands."""
        return self._send(calls.policy(name))

    def remove(self, name: str) -> None:
        """Delete a policy, with all it learnt."""
        self._send(calls.remove(name))

    def arms(
        self, policy: str = "default", *, order: str = "mean", offset: int = 0, limit: int = 100
    ) -> ArmList:
        """Arms by ``"mean"``, ``"count"`` (largest first) or ``"id"``."""
        return self._send(calls.arms(policy, order, offset, limit))

    def arm(self, arm: Any, *, policy: str = "default") -> ArmStatistics:
        """What is known of one arm."""
        return self._send(calls.arm(policy, arm))

    def delete_arms(self, arms: Sequence[Any], *, policy: str = "default") -> None:
        """These arms are no longer played; labels expire."""
        self._send(calls.change_arms(policy, arms, None, "delete"))

    def insert_arms(
        self, arms: Sequence[Any], attributes: Sequence[Any] | None = None, *, policy: str = "default"
    ) -> None:
        """Deleted arms are back; or labels are new, with what is told of each."""
        self._send(calls.change_arms(policy, arms, attributes, "insert"))

    def snapshot(self) -> int:
        """Write a snapshot now: how many events it covers."""
        return self._send(calls.snapshot()).position

    def is_ready(self) -> bool:
        """Whether the service answers and serves requests. Asks once."""
        try:
            return bool(self._http.request(**calls.encoded(calls.ready())).status_code == 200)
        except self._lost:
            return False


class AsyncClient:
    """`Client` for asyncio: the same methods, to be awaited."""

    def __init__(
        self,
        base: str = "http://127.0.0.1:8080",
        *,
        token: str | None = None,
        timeout: float = 10.0,
        retries: int = 8,
        transport: Any = None,
    ) -> None:
        httpx = calls.httpx()
        self._retries, self._lost = retries, httpx.TransportError
        self._http = httpx.AsyncClient(**_options(base, token, timeout), transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def _send(self, call: Call[T]) -> T:
        pauses = calls.pauses(self._retries)
        request = calls.encoded(call)
        while True:
            try:
                answer = await self._http.request(**request)
                if not calls.is_busy(answer.status_code):
                    return calls.decoded(call, answer.status_code, answer.content)
                pause = next(pauses, None)
                if pause is None:
                    return calls.decoded(call, answer.status_code, answer.content)
            except self._lost as error:
                pause = next(pauses, None)
                if pause is None:
                    told = f"{call.method} {call.path}: {type(error).__name__}: {error}"
                    raise ServiceError(told) from error
            await asyncio.sleep(pause)

    @overload
    async def select(
        self, policy: str = ..., *, exclude: Any = ..., among: Any = ..., count: None = ...
    ) -> Made: ...

    @overload
    async def select(
        self, policy: str = ..., *, exclude: Any = ..., among: Any = ..., count: int
    ) -> list[Made]: ...

    async def select(
        self,
        policy: str = "default",
        *,
        exclude: Sequence[Any] | None = None,
        among: Sequence[Any] | None = None,
        count: int | None = None,
    ) -> Made | list[Made]:
        """As `Client.select`."""
        found = await self._send(calls.select(policy, exclude, among, count, calls.new_key()))
        return found if count is None else found.decisions  # type: ignore[no-any-return]

    async def reward(
        self,
        decision: Made | str,
        rewards: Sequence[float],
        *,
        arms: Sequence[Any] | None = None,
        policy: str = "default",
    ) -> Learnt:
        """As `Client.reward`."""
        return await self._send(calls.reward(policy, decision, rewards, arms))

    async def update(
        self,
        arms: Sequence[Any],
        rewards: Sequence[float],
        *,
        key: str | None = None,
        policy: str = "default",
    ) -> Learnt:
        """As `Client.update`."""
        return await self._send(calls.update(policy, arms, rewards, key or calls.new_key()))

    async def batch(self, operations: Sequence[Operation]) -> list[Result]:
        """As `Client.batch`."""
        keyed = [_with_key(one) for one in operations]
        return calls.batch_results(keyed, await self._send(calls.batch(keyed)))

    async def create(self, name: str, **spec: Any) -> PolicyAnswer:
        """As `Client.create`."""
        return await self._send(calls.create(name, spec))

    async def policies(self) -> list[PolicyAnswer]:
        """As `Client.policies`."""
        return (await self._send(calls.policies())).policies

    async def policy(self, name: str = "default") -> PolicyAnswer:
        """As `Client.policy`."""
        return await self._send(calls.policy(name))

    async def remove(self, name: str) -> None:
        """As `Client.remove`."""
        await self._send(calls.remove(name))

    async def arms(
        self, policy: str = "default", *, order: str = "mean", offset: int = 0, limit: int = 100
    ) -> ArmList:
        """As `Client.arms`."""
        return await self._send(calls.arms(policy, order, offset, limit))

    async def arm(self, arm: Any, *, policy: str = "default") -> ArmStatistics:
        """As `Client.arm`."""
        return await self._send(calls.arm(policy, arm))

    async def delete_arms(self, arms: Sequence[Any], *, policy: str = "default") -> None:
        """As `Client.delete_arms`."""
        await self._send(calls.change_arms(policy, arms, None, "delete"))

    async def insert_arms(
        self, arms: Sequence[Any], attributes: Sequence[Any] | None = None, *, policy: str = "default"
    ) -> None:
        """As `Client.insert_arms`."""
        await self._send(calls.change_arms(policy, arms, attributes, "insert"))

    async def snapshot(self) -> int:
        """As `Client.snapshot`."""
        return (await self._send(calls.snapshot())).position

    async def is_ready(self) -> bool:
        """As `Client.is_ready`."""
        try:
            answer = await self._http.request(**calls.encoded(calls.ready()))
        except self._lost:
            return False
        return bool(answer.status_code == 200)


def _with_key(operation: Operation) -> Operation:
    """A copy of an operation that can be sent twice."""
    import msgspec

    if operation.key is not None or getattr(operation, "decision", None) is not None:
        return operation
    return msgspec.structs.replace(operation, key=calls.new_key())
