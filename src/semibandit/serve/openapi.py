"""The description of the service in OpenAPI 3.1, from the types that decode its requests."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

import msgspec

from semibandit import __version__
from semibandit.serve import wire
from semibandit.serve.wire import Learnt, Made


class Row(NamedTuple):
    """One operation. `answers`: what it may answer; `refusals`: statuses besides those that all share."""

    method: str
    path: str
    what: str
    body: Any
    answers: tuple[Any, ...]
    refusals: tuple[int, ...] = ()
    status: int = 200


_ONE = "/v1/policies/{name}"
_BODY = (400, 415, 422)
_ROWS = [
    Row(
        "post",
        f"{_ONE}/select",
        "Decide.",
        wire.SelectRequest,
        (Made, wire.Decisions),
        (*_BODY, 404, 409, 410),
    ),
    Row("post", f"{_ONE}/rewards", "Tell rewards.", wire.RewardsRequest, (Learnt,), (*_BODY, 404, 409, 410)),
    Row("post", "/v1/batch", "Several selects and rewards.", wire.BatchRequest, (wire.BatchAnswer,), _BODY),
    Row("get", "/v1/policies", "All policies.", None, (wire.PolicyList,)),
    Row(
        "post",
        "/v1/policies",
        "Create a policy.",
        wire.CreateRequest,
        (wire.PolicyAnswer,),
        (*_BODY, 409),
        201,
    ),
    Row("get", _ONE, "One policy.", None, (wire.PolicyAnswer,), (404,)),
    Row("delete", _ONE, "Delete a policy.", None, (wire.Done,), (404,)),
    Row("get", f"{_ONE}/arms", "Arms in order.", None, (wire.ArmList,), (404, 422)),
    Row("get", f"{_ONE}/arms/{{arm}}", "One arm.", None, (wire.ArmStatistics,), (404,)),
    Row("post", f"{_ONE}/arms/delete", "Delete arms.", wire.ArmsRequest, (wire.Done,), (*_BODY, 404, 409)),
    Row("post", f"{_ONE}/arms/insert", "Insert arms.", wire.ArmsRequest, (wire.Done,), (*_BODY, 404, 409)),
    Row("post", "/v1/snapshot", "Write a snapshot now.", None, (wire.SnapshotAnswer,)),
    Row("get", "/healthz", "The process is alive.", None, (wire.Health,)),
    Row("get", "/readyz", "Requests are served.", None, (wire.Health,)),
]

_QUERY: dict[str, Any] = {
    "/v1/policies/{name}/arms": (
        ("order", {"type": "string", "enum": ["id", "mean", "count"]}),
        ("offset", {"type": "integer", "minimum": 0}),
        ("limit", {"type": "integer", "minimum": 1, "maximum": 10_000}),
    )
}


@cache
def openapi() -> dict[str, Any]:
    """The document."""
    bodies = [row.body for row in _ROWS if row.body is not None]
    types = [*bodies, *(kind for row in _ROWS for kind in row.answers), wire.Problem]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    schema_of = dict(zip(types, schemas, strict=True))
    results = [schema_of[kind] for kind in (Made, wire.Decisions, Learnt, wire.Problem)]
    components["BatchAnswer"]["properties"]["results"]["items"] = {"anyOf": results}
    paths: dict[str, Any] = {}
    for row in _ROWS:
        health = row.path in ("/healthz", "/readyz")
        answers = [schema_of[kind] for kind in row.answers]
        entry: dict[str, Any] = {
            "summary": row.what,
            "operationId": row.method + "_" + re.sub(r"\W+", "_", row.path).strip("_"),
            "responses": {
                str(row.status): _content(row.what, answers[0] if len(answers) == 1 else {"anyOf": answers})
            },
        }
        if health:
            entry["responses"]["503"] = _content("Not now; why.", schema_of[wire.Health])
        else:
            for code in sorted({*row.refusals, 401, 403, 413, 503}):
                refusal = _content("Refused: nothing was changed.", schema_of[wire.Problem])
                entry["responses"][str(code)] = refusal
        if row.body is not None:
            entry["requestBody"] = {"required": True, "content": _content("", schema_of[row.body])["content"]}
        parameters = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in ("name", "arm")
            if f"{{{name}}}" in row.path
        ]
        parameters += [
            {"name": name, "in": "query", "required": False, "schema": schema}
            for name, schema in _QUERY.get(row.path, ())
        ]
        if parameters:
            entry["parameters"] = parameters
        paths.setdefault(row.path, {})[row.method] = entry
    return {
        "openapi": "3.1.0",
        "info": {"title": "semibandit", "version": __version__, "description": __doc__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _content(what: str, schema: Any) -> dict[str, Any]:
    return {"description": what, "content": {kind: {"schema": schema} for kind in (wire.JSON, wire.MSGPACK)}}
