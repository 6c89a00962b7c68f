"""HTTP: requests in, answers out when they are on disk.

Deciding and learning come here as plain ASGI, found by one look into a table: no router, no request object. Everything
else is a Starlette application (`routes`). Both share the door: who may do what, ids of requests, the size of bodies,
and how a refusal is told.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import msgspec

from semibandit.serve.batches import do_all, encode_results, learn
from semibandit.serve.events import Event
from semibandit.serve.pulse import Histogram
from semibandit.serve.refusals import Refusal, bad
from semibandit.serve.service import Service
from semibandit.serve.several import Several
from semibandit.serve.store import StoreError
from semibandit.serve.tokens import ROLES, Tokens
from semibandit.serve.wire import (
    JSON,
    MSGPACK,
    BatchRequest,
    Codec,
    Decisions,
    RewardsRequest,
    SelectRequest,
    encode_json,
    encode_msgpack,
    kind_of,
    problem,
    short,
)

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

READ, PLAY, ADMIN = range(3)
_PREFIX = "/v1/policies/"
# Without a token: who asks whether we live, and a page that holds nothing before it was given one.
_OPEN = ("/healthz", "/readyz", "/", "/page.css", "/page.js")
# Answers that last as long as somebody looks: how long says nothing of the service.
_LONG = ("/v1/watch",)
_LOCAL = (b"127.0.0.1", b"localhost", b"[::1]")
_HOT_PATHS = 10_000
_TYPE = {JSON: (b"content-type", b"application/json"), MSGPACK: (b"content-type", b"application/msgpack")}


class Door:
    """What is known of a request before its body is read."""

    __slots__ = ("answer", "content", "length", "request_id")

    def __init__(self, content: str | None, answer: str, length: int, request_id: str) -> None:
        self.content, self.answer, self.length, self.request_id = content, answer, length, request_id


class App:
    """The ASGI application of `service`. `others` serves what is not hot."""

    def __init__(
        self,
        service: Service,
        tokens: Tokens | None,
        others: Any,
        *,
        log_requests: bool = False,
        local_only: bool = True,
    ) -> None:
        self.service, self.tokens, self._others = service, tokens, others
        self._log_requests, self._local_only = log_requests, local_only
        self._hot: dict[str, tuple[Any, str]] = {}
        self._run = f"{time.time_ns() // 1_000_000:x}"
        self._numbers = count()
        self._select_codec, self._rewards_codec = Codec(SelectRequest), Codec(RewardsRequest)
        self._batch_codec = Codec(BatchRequest)
        for name in ("select", "rewards", "batch", "other"):
            service.latencies[name] = Histogram()
        self._select_time, self._rewards_time, self._batch_time, self._other_time = service.latencies.values()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close"})
            return
        began = time.perf_counter()
        path = scope["path"]
        hot = self._hot.get(path) or self._find(path)
        door = None
        status = 200
        self.service.requests += 1
        try:
            door = self._enter(scope, hot)
            if hot is None:
                scope["state"] = {"door": door}
                told: list[int] = []
                await self._others(scope, receive, _noting(send, told) if self._log_requests else send)
                if path not in _LONG:
                    self._other_time.observe(time.perf_counter() - began)
                self._note(scope, door, told[0] if told else 500, began)
                return
            body = await self._body(door, receive)
            answer = await hot[0](hot[1], door, body)
        except Refusal as error:
            status = error.status
            door = door or error.door or Door(None, JSON, 0, self._new_id())
            answer = self.refuse(error, door)
        await _send(send, status, door, answer)
        self._note(scope, door, status, began)

    def _note(self, scope: Any, door: Door, status: int, began: float) -> None:
        """Tell of a request that was answered, if all are to be told of."""
        if self._log_requests:
            took = round((time.perf_counter() - began) * 1e3, 3)
            self.service.tell(
                "request",
                id=door.request_id,
                method=scope["method"],
                path=scope["path"],
                status=status,
                ms=took,
            )

    def _find(self, path: str) -> tuple[Any, str] | None:
        """The hot handler of a path and the policy it names, None if it has none."""
        found: tuple[Any, str] | None = None
        if path.startswith(_PREFIX):
            name, _, verb = path[len(_PREFIX) :].partition("/")
            if verb == "select":
                found = self._select, name
            elif verb == "rewards":
                found = self._rewards, name
        elif path == "/v1/batch":
            found = self._batch, ""
        if found is not None and len(self._hot) < _HOT_PATHS:
            self._hot[path] = found
        return found

    # -- the door ----------------------------------------------------------------------------------------

    def _new_id(self) -> str:
        return f"{self._run}-{next(self._numbers)}"

    def _enter(self, scope: Any, hot: Any) -> Door:
        """Let a request in, or a `Refusal`."""
        content, accept, length, given, authorization, host = b"", b"", -1, b"", b"", b""
        for name, value in scope["headers"]:
            if name == b"content-type":
                content = value
            elif name == b"content-length":
                length = int(value) if value.isdigit() and len(value) < 19 else -1
            elif name == b"accept":
                accept = value
            elif name == b"x-request-id":
                given = value
            elif name == b"authorization":
                authorization = value
            elif name == b"host":
                host = value
        method, path = scope["method"], scope["path"]
        kind = JSON if content == b"application/json" else kind_of(content)
        answer = MSGPACK if b"msgpack" in accept or (kind is MSGPACK and b"json" not in accept) else JSON
        request_id = given.decode("ascii") if 0 < len(given) <= 100 and _is_plain(given) else self._new_id()
        door = Door(kind, answer, length, request_id)
        try:
            self._admit(method, path, hot, authorization, host, length)
            if hot is not None and method != "POST":
                raise Refusal(405, "method", f"{method} is not for this address: POST is")
            if kind is None and method in ("POST", "PUT") and (length > 0 or hot is not None):
                raise _no_type(content)
        except Refusal as error:
            error.door = door
            raise
        return door

    def _admit(
        self, method: str, path: str, hot: Any, authorization: bytes, host: bytes, length: int
    ) -> None:
        if self.tokens is None:
            # Without tokens this is for programs of this machine: a page that a browser was led to is none of them.
            if self._local_only and host and host.rsplit(b":", 1)[0] not in _LOCAL and host not in _LOCAL:
                raise Refusal(
                    403, "host", "without tokens only requests to this machine's own name are served"
                )
        elif path not in _OPEN:
            level = self.tokens.level(authorization)
            needed = role_needed(method, path, hot is not None)
            if level < 0:
                raise Refusal(401, "no_token", "send a token: Authorization: Bearer ...")
            if level < needed:
                raise Refusal(403, "role", f"this needs a token of role {ROLES[needed]}")
        if length > self.service.limits.body:
            raise self._too_large(length)

    def _too_large(self, size: int) -> Refusal:
        most = self.service.limits.body
        return Refusal(413, "body", f"the body has {size} bytes: at most {most}", field="body", value=size)

    async def _body(self, door: Door, receive: Receive) -> bytes:
        """The whole body; what is too large is not read to its end."""
        message = await receive()
        body: bytes = message.get("body", b"")
        if not message.get("more_body", False):
            if message["type"] == "http.disconnect":
                raise Refusal(400, "gone", "the client has gone")
            return body
        parts, size = [body], len(body)
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(400, "gone", "the client has gone")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.service.limits.body:
                raise self._too_large(size)
            if not message.get("more_body", False):
                return b"".join(parts)

    def refuse(self, error: Refusal, door: Door) -> bytes:
        """The body of a refusal."""
        self.service.refused += 1
        if error.status >= 500:
            self.service.tell("refused", id=door.request_id, status=error.status, error=error.message)
        return encode(problem(error, door.request_id), door)

    # -- deciding and learning ---------------------------------------------------------------------------

    async def _select(self, name: str, door: Door, body: bytes) -> bytes:
        began = time.perf_counter()
        asked = decode(self._select_codec, door, body or b"{}")
        several = None
        if asked.count and asked.exclude is None and asked.among is None and asked.key is None:
            several = self.service.decide_several(name, asked.count)
        if several is not None:
            waiter = self.service.log_all([several[0]])
            answer = _encode_several(several[1], door)
        else:
            made, waiter = self.service.select(name, asked.exclude, asked.among, asked.count, asked.key)
            answer = encode(made[0] if asked.count is None else Decisions(made), door)
        await durable(waiter)
        self._select_time.observe(time.perf_counter() - began)
        return answer

    async def _rewards(self, name: str, door: Door, body: bytes) -> bytes:
        began = time.perf_counter()
        event, learnt = learn(self.service, name, decode(self._rewards_codec, door, body))
        waiter = self.service.log_all([] if event is None else [event])
        answer = encode(learnt, door)
        await durable(waiter)
        self._rewards_time.observe(time.perf_counter() - began)
        return answer

    async def _batch(self, name: str, door: Door, body: bytes) -> bytes:
        began = time.perf_counter()
        operations = decode(self._batch_codec, door, body).operations
        most = self.service.limits.batch
        if len(operations) > most:
            told = f"{len(operations)} operations: at most {most} in one batch"
            raise Refusal(413, "batch", told, field="operations", value=len(operations))
        events: list[Event] = []
        try:
            results = do_all(self.service, operations, events)
        finally:
            # What was done is in the state, and must be in the log, whatever became of the rest.
            waiter = self.service.log_all(events)
        answer = encode_results(results, door.answer is JSON)
        await durable(waiter)
        self._batch_time.observe(time.perf_counter() - began)
        return answer


def _noting(send: Send, told: list[int]) -> Send:
    """`send` that writes the status of the answer down."""

    async def noting(message: Any) -> None:
        if message["type"] == "http.response.start":
            told.append(message["status"])
        await send(message)

    return noting


def _no_type(content: bytes) -> Refusal:
    told = "content-type must be application/json or application/msgpack"
    return Refusal(415, "content_type", told, field="content-type", value=content.decode("latin-1"))


def role_needed(method: str, path: str, hot: bool) -> int:
    """The least role for a request."""
    if hot:
        return PLAY
    return READ if method in ("GET", "HEAD") else ADMIN


async def durable(waiter: Any) -> None:
    """Until the event, and all before it, are on disk; a 503 if they cannot be."""
    if waiter is None:
        return
    try:
        await waiter
    except StoreError as error:
        told = f"not done: the log could not be written ({error})"
        raise Refusal(503, "unavailable", told) from None


def decode(codec: Codec, door: Door, body: bytes) -> Any:
    """A request's body as its type; a 422 that names field and value for anything else, a 400 for what is no JSON."""
    if door.content is None:
        raise _no_type(b"")
    try:
        return codec.msgpack.decode(body) if door.content is MSGPACK else codec.json.decode(body)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `")
        field = path.rstrip("`").removeprefix("$").removeprefix(".") or None
        found = _value_at(body, door, field)
        told = f"{field or 'body'} = {short(found)}: {message}" if field else message
        raise bad(field or "body", found, told) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(400, "malformed", f"the body cannot be read: {error}") from None


def _value_at(body: bytes, door: Door, field: str | None) -> Any:
    """What stands at a path such as ``rewards[2]``, None if nothing does."""
    try:
        value = msgspec.msgpack.decode(body) if door.content is MSGPACK else msgspec.json.decode(body)
        for part in (field or "").replace("]", "").replace("[", ".").split("."):
            if part:
                value = value[int(part)] if isinstance(value, list) else value[part]
    except (KeyError, IndexError, ValueError, TypeError, msgspec.MsgspecError, RecursionError):
        return None
    return value


def encode(value: Any, door: Door) -> bytes:
    """An answer in the format that the client reads."""
    return encode_msgpack(value) if door.answer is MSGPACK else encode_json(value)


def _encode_several(several: Several, door: Door) -> bytes:
    """`Decisions` in the format that the client reads."""
    if door.answer is MSGPACK:
        return encode_msgpack(Decisions(several.made()))
    return b"".join((b'{"decisions":[', several.json(), b"]}"))


def _is_plain(text: bytes) -> bool:
    return text.isascii() and all(33 <= letter < 127 for letter in text)


async def _send(send: Send, status: int, door: Door, body: bytes) -> None:
    headers = [
        _TYPE[door.answer],
        (b"content-length", str(len(body)).encode()),
        (b"x-request-id", door.request_id.encode()),
    ]
    if status in (429, 503):
        headers.append((b"retry-after", b"1"))
    elif status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
