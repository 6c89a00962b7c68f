"""What is asked now and then: policies, arms, snapshots, health, metrics, the description of all this."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from semibandit.distributed.cluster import RAY
from semibandit.errors import FileError
from semibandit.serve.answers import about_policy, list_arms, statistics
from semibandit.serve.app import Door, decode, durable, encode
from semibandit.serve.metrics import CONTENT_TYPE_LATEST, Metrics
from semibandit.serve.openapi import openapi
from semibandit.serve.page import PAGES
from semibandit.serve.refusals import Refusal, bad
from semibandit.serve.service import Service
from semibandit.serve.specs import LOCAL
from semibandit.serve.watch import Watch
from semibandit.serve.wire import (
    ArmsRequest,
    Codec,
    CreateRequest,
    Done,
    Health,
    PolicyList,
    PolicySpec,
    SnapshotAnswer,
    problem,
)

_CREATE, _ARMS = Codec(CreateRequest), Codec(ArmsRequest)


class Routes:
    """The handlers; `application` is what serves them."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.metrics, self.watching = Metrics(service), Watch(service)
        one, arms = "/v1/policies/{name}", "/v1/policies/{name}/arms"
        self.application = Starlette(
            routes=[
                Route("/healthz", self.healthz),
                Route("/readyz", self.readyz),
                Route("/metrics", self.show_metrics),
                Route("/openapi.json", self.describe),
                Route("/v1/policies", self.list_policies, methods=["GET"]),
                Route("/v1/policies", self.create_policy, methods=["POST"]),
                Route(one, self.show_policy, methods=["GET"]),
                Route(one, self.remove_policy, methods=["DELETE"]),
                Route(arms, self.show_arms, methods=["GET"]),
                Route(f"{arms}/delete", self.delete_arms, methods=["POST"]),
                Route(f"{arms}/insert", self.insert_arms, methods=["POST"]),
                Route(f"{arms}/{{arm:path}}", self.show_arm, methods=["GET"]),
                Route("/v1/snapshot", self.snapshot, methods=["POST"]),
                Route("/v1/watch", self.watch, methods=["GET"]),
                *PAGES,
            ],
            exception_handlers={Refusal: self.refused, HTTPException: self.lost},
        )

    # -- health ------------------------------------------------------------------------------------------

    async def healthz(self, request: Request) -> Response:
        """The process is alive."""
        return _answer(request, Health(True))

    async def readyz(self, request: Request) -> Response:
        """Requests are served; 503 while the log is replayed, or cannot be written."""
        down = self.service.down
        return _answer(request, Health(down is None, down), 200 if down is None else 503)

    async def show_metrics(self, request: Request) -> Response:
        """For Prometheus."""
        return Response(self.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    async def describe(self, request: Request) -> Response:
        """OpenAPI."""
        return Response(msgspec.json.encode(openapi()), media_type="application/json")

    # -- policies ----------------------------------------------------------------------------------------

    async def list_policies(self, request: Request) -> Response:
        """All policies."""
        seats = self.service.ready().seats.values()
        return _answer(request, PolicyList([about_policy(seat) for seat in seats]))

    async def create_policy(self, request: Request) -> Response:
        """A new policy. O(K), during which no decision is made."""
        told: CreateRequest = decode(_CREATE, _door(request), await self._body(request))
        fields = {name: getattr(told, name) for name in PolicySpec.__struct_fields__}
        if told.on not in (LOCAL, RAY):
            # To which machines this one goes is for those to say who run it.
            raise bad(
                "on", told.on, f"on = {told.on!r}: 'local' or 'ray' in a request; addresses go into the file"
            )
        await durable(self.service.create(told.name, PolicySpec(**fields)))
        self.service.tell("created", policy=told.name, id=_door(request).request_id)
        return _answer(request, about_policy(self.service.host.seat(told.name)), 201)

    async def show_policy(self, request: Request) -> Response:
        """One policy."""
        return _answer(request, about_policy(self._seat(request)))

    async def remove_policy(self, request: Request) -> Response:
        """A policy goes, with all it learnt."""
        name = request.path_params["name"]
        await durable(self.service.remove(name))
        self.service.tell("removed", policy=name, id=_door(request).request_id)
        return _answer(request, Done())

    # -- arms --------------------------------------------------------------------------------------------

    async def show_arms(self, request: Request) -> Response:
        """Arms in order of id, mean or count."""
        asked = request.query_params
        numbers = {
            name: _whole(asked.get(name, default), name)
            for name, default in (("offset", "0"), ("limit", "100"))
        }
        seat, most = self._seat(request), self.service.limits.arms_per_request
        if seat.labelled or seat.policy.n_arms <= 10_000:
            found = list_arms(seat, asked.get("order", "id"), most=most, **numbers)
        else:
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(
                None, lambda: list_arms(seat, asked.get("order", "id"), most=most, **numbers)
            )
        return _answer(request, found)

    async def show_arm(self, request: Request) -> Response:
        """What is known of one arm."""
        seat, text = self._seat(request), request.path_params["arm"]
        arm = seat.arm_of(_named(text, seat.labelled))
        return _answer(request, statistics(seat, np.array([arm], dtype=np.int64))[0])

    async def delete_arms(self, request: Request) -> Response:
        """Arms are no longer played; labels expire."""
        return await self._change(request, insert=False)

    async def insert_arms(self, request: Request) -> Response:
        """Arms are back; labels are new."""
        return await self._change(request, insert=True)

    async def _change(self, request: Request, insert: bool) -> Response:
        told: ArmsRequest = decode(_ARMS, _door(request), await self._body(request))
        if told.attributes is not None and not insert:
            raise bad("attributes", None, "attributes are for labels that are inserted")
        name = request.path_params["name"]
        await durable(self.service.change_arms(name, told.arms, told.attributes, insert))
        return _answer(request, Done())

    async def snapshot(self, request: Request) -> Response:
        """Write a snapshot now."""
        try:
            return _answer(request, SnapshotAnswer(await self.service.snapshot()))
        except (FileError, OSError) as error:
            raise Refusal(503, "snapshot", f"no snapshot could be written: {error}") from None

    async def watch(self, request: Request) -> Response:
        """Second by second, for the page: also while nothing else is served."""
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return self.watching.open(request.query_params.get("policy"))

    # -- what they share ---------------------------------------------------------------------------------

    def _seat(self, request: Request) -> Any:
        return self.service.ready().seat(request.path_params["name"])

    async def _body(self, request: Request) -> bytes:
        parts, size = [], 0
        try:
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                if size > self.service.limits.body:
                    told = f"the body has more than {self.service.limits.body} bytes"
                    raise Refusal(413, "body", told, field="body", value=size)
        except ClientDisconnect:
            raise Refusal(400, "gone", "the client has gone") from None
        return b"".join(parts)

    async def refused(self, request: Request, error: Any) -> Response:
        """A `Refusal` of a handler."""
        self.service.refused += 1
        door = _door(request)
        if error.status >= 500:
            self.service.tell("refused", id=door.request_id, status=error.status, error=error.message)
        return _answer(request, problem(error, door.request_id), error.status)

    async def lost(self, request: Request, error: Any) -> Response:
        """No such address, or not with this method."""
        told = {404: "there is nothing at this address", 405: f"{request.method} is not for this address"}
        code = {404: "no_address", 405: "method"}.get(error.status_code, "http")
        said = Refusal(error.status_code, code, told.get(error.status_code, str(error.detail)))
        answer = await self.refused(request, said)
        answer.headers.update(error.headers or {})
        return answer


def _door(request: Request) -> Door:
    door: Door = request.scope["state"]["door"]
    return door


def _answer(request: Request, value: Any, status: int = 200) -> Response:
    door = _door(request)
    headers = {"x-request-id": door.request_id}
    if status == 503:
        headers["retry-after"] = "1"
    return Response(encode(value, door), status, headers, door.answer)


def _whole(text: str, field: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise bad(field, text, f"{field} = {text!r} must be a whole number")
    return int(text)


def _named(text: str, labelled: bool) -> Any:
    """An arm as it stands in an address: a number, a text, or a label in JSON."""
    try:
        value = msgspec.json.decode(text.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text
    return value if not labelled or isinstance(value, (int, float, list, bool, str)) else text
