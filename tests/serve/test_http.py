"""The service over HTTP: what is asked, answered and refused, in both formats."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from semibandit.client import AsyncClient, ServiceError
from semibandit.serve.limits import Limits
from semibandit.serve.metrics import Metrics
from semibandit.serve.openapi import openapi
from semibandit.serve.tokens import Tokens, new_token
from semibandit.serve.wire import PolicySpec, RewardsOperation, SelectOperation
from support.service import SMALL, running

CATALOG = PolicySpec(
    catalog={
        "kind": "partition",
        "quotas": {"news": 1, "sport": 1},
        "labels": [["vote", "news"], ["derby", "sport"], ["final", "sport"]],
    }
)


def play(body, tmp_path, policies=None, **options):
    """Run ``await body(client)`` against a service."""

    async def main():
        async with running(tmp_path, policies, **options) as client:
            return await body(client)

    return asyncio.run(main())


def test_decide_and_learn(tmp_path):
    async def body(client):
        made = (await client.post("/v1/policies/small/select", json={})).json()
        assert set(made) == {"decision", "arms", "round"} and len(made["arms"]) == 4 and made["round"] == 1
        told = {"decision": made["decision"], "rewards": [1, 0.5, 0, 1]}
        first = await client.post("/v1/policies/small/rewards", json=told)
        assert first.json() == {"counted": 4, "duplicates": 0, "dropped": 0, "waiting": 0}
        second = await client.post("/v1/policies/small/rewards", json=told)
        assert second.json() == {"counted": 0, "duplicates": 4, "dropped": 0, "waiting": 0}
        many = await client.post("/v1/policies/small/select", json={"count": 3, "among": [1, 2, 3]})
        assert [one["arms"] for one in many.json()["decisions"]] == [[1, 2, 3]] * 3
        arm = (await client.get(f"/v1/policies/small/arms/{made['arms'][1]}")).json()
        assert (arm["count"], arm["mean"], arm["present"]) == (1, 0.5, True)
        about = (await client.get("/v1/policies/small")).json()
        assert (about["round"], about["rewards"], about["reward_sum"], about["pending"]) == (4, 4, 2.5, 3)
        return client.service.lag

    assert play(body, tmp_path) == 0


def test_messagepack_in_and_out(tmp_path):
    async def body(client):
        headers = {"content-type": "application/msgpack"}
        raw = msgspec.msgpack.encode({"count": 2})
        answer = await client.post("/v1/policies/small/select", content=raw, headers=headers)
        assert answer.headers["content-type"] == "application/msgpack"
        made = msgspec.msgpack.decode(answer.content)["decisions"]
        json = {**headers, "accept": "application/json"}
        told = msgspec.msgpack.encode(
            {"decision": made[0]["decision"], "rewards": [1.0, float("nan"), 0.0, 0.0]}
        )
        answer = await client.post("/v1/policies/small/rewards", content=told, headers=json)
        assert answer.status_code == 422 and answer.json()["field"] == "rewards[1]"
        answer = await client.get("/v1/policies", headers={"accept": "application/msgpack"})
        assert msgspec.msgpack.decode(answer.content)["policies"][0]["name"] == "small"

    play(body, tmp_path)


def test_a_batch_does_each_operation_for_itself(tmp_path):
    async def body(client):
        made = (await client.post("/v1/policies/small/select", json={})).json()
        operations = [
            {"op": "select", "policy": "small", "count": 2},
            {"op": "rewards", "policy": "small", "decision": made["decision"], "rewards": [0, 0, 0, 9]},
            {"op": "rewards", "policy": "nobody", "decision": "x", "rewards": []},
            {"op": "rewards", "policy": "small", "decision": made["decision"], "rewards": [0, 0, 0, 1]},
            {"op": "select", "policy": "small"},
        ]
        answer = (await client.post("/v1/batch", json={"operations": operations})).json()["results"]
        assert len(answer[0]["decisions"]) == 2
        assert (answer[1]["status"], answer[1]["field"], answer[1]["value"]) == (422, "rewards[3]", 9.0)
        assert answer[2]["status"] == 404
        assert answer[3]["counted"] == 4 and answer[4]["round"] == 4

    play(body, tmp_path)


@pytest.mark.parametrize(
    "path, body, status, field, value",
    [
        ("select", {"count": "x"}, 422, "count", "x"),
        ("select", {"count": 0}, 422, "count", 0),
        ("select", {"weights": []}, 422, "body", None),
        ("select", {"exclude": [40]}, 422, "exclude[0]", 40),
        ("rewards", {}, 422, "body", None),
        ("rewards", {"rewards": [1, "x"], "decision": "a"}, 422, "rewards[1]", "x"),
        ("rewards", {"rewards": [1]}, 422, "key", None),
        ("rewards", {"rewards": [1], "key": "k"}, 422, "arms", None),
        ("rewards", {"rewards": [1], "key": "k", "decision": "d"}, 422, "key", "k"),
        ("rewards", {"rewards": [1], "key": "k", "arms": [99]}, 422, "arms[0]", 99),
        ("rewards", {"rewards": [1], "decision": "nope"}, 404, "decision", "nope"),
        ("arms/delete", {"arms": [99]}, 422, "arms[0]", 99),
        ("arms/insert", {"arms": [3]}, 409, "arms", None),
        ("arms/insert", {"arms": 3}, 422, "arms", 3),
    ],
)
def test_mistakes_name_field_and_value_and_change_nothing(path, body, status, field, value, tmp_path):
    async def ask(client):
        before = client.service.host.position
        answer = await client.post(f"/v1/policies/small/{path}", json=body)
        problem = answer.json()
        assert (answer.status_code, problem["status"]) == (status, status), problem
        assert problem["field"] == field
        assert problem.get("value") == value or (value is None and field in ("body", "arms"))
        assert problem["request_id"] == answer.headers["x-request-id"]
        assert client.service.host.position == before and client.service.refused == 1

    play(ask, tmp_path)


def test_what_is_not_there_or_not_allowed(tmp_path):
    async def ask(client):
        assert (await client.get("/nix")).status_code == 404
        assert (await client.get("/v1/policies/small/select")).status_code == 405
        assert (await client.put("/v1/policies")).status_code == 405
        assert (await client.post("/v1/policies/no/select", json={})).status_code == 404
        assert (await client.get("/v1/policies/no")).status_code == 404
        for arm in ("40", "x", "-1", "1e0"):
            assert (await client.get(f"/v1/policies/small/arms/{arm}")).status_code == 404
        text = await client.post(
            "/v1/policies/small/select", content=b"{}", headers={"content-type": "text/plain"}
        )
        assert text.status_code == 415
        broken = await client.post(
            "/v1/policies/small/select", content=b'{"a', headers={"content-type": "application/json"}
        )
        assert broken.status_code == 400 and broken.json()["error"] == "malformed"
        for query, field in (("order=x", "order"), ("limit=0", "limit"), ("offset=-1", "offset")):
            answer = await client.get(f"/v1/policies/small/arms?{query}")
            assert (answer.status_code, answer.json()["field"]) == (422, field)
        large = await client.post("/v1/policies/small/select", json={"key": "x" * 3000})
        assert (large.status_code, large.json()["field"]) == (413, "body")

        async def parts():
            for _ in range(30):
                yield b" " * 100

        headers = {"content-type": "application/json"}
        slow = await client.post("/v1/policies/small/select", content=parts(), headers=headers)
        assert slow.status_code == 413
        many = [{"op": "select", "policy": "small"}] * 6
        assert (await client.post("/v1/batch", json={"operations": many})).status_code == 413

    play(ask, tmp_path, limits=Limits(body=2000, batch=5))


def test_policies_come_and_go(tmp_path):
    async def ask(client):
        body = {
            "name": "page",
            "policy": "cucb",
            "matroid": {"kind": "uniform", "arms": 9, "rank": 2},
            "ttl": None,
        }
        made = await client.post("/v1/policies", json=body)
        assert made.status_code == 201 and made.json()["n_arms"] == 9
        assert (await client.post("/v1/policies", json=body)).status_code == 201, (
            "asked again in the same words"
        )
        assert (await client.post("/v1/policies", json={**body, "seed": 3})).status_code == 409
        listed = (await client.get("/v1/policies")).json()["policies"]
        assert [one["name"] for one in listed] == ["small", "page"]
        assert (await client.delete("/v1/policies/page")).status_code == 200
        assert (await client.delete("/v1/policies/page")).status_code == 404
        wrong = await client.post("/v1/policies", json={**body, "policy": "os.system"})
        assert (wrong.status_code, wrong.json()["field"]) == (422, "policy")

    play(ask, tmp_path)


def test_labels_by_http(tmp_path):
    async def ask(client):
        made = (await client.post("/v1/policies/page/select", json={})).json()
        assert made["arms"] == ["vote", "derby"]
        gone = await client.post("/v1/policies/page/arms/delete", json={"arms": ["derby"]})
        assert gone.status_code == 200
        told = {"decision": made["decision"], "arms": ["derby", "vote"], "rewards": [1, 1]}
        learnt = (await client.post("/v1/policies/page/rewards", json=told)).json()
        assert (learnt["counted"], learnt["dropped"]) == (1, 1)
        new = {"arms": ["storm", ["a", 1]], "attributes": ["news", "sport"]}
        assert (await client.post("/v1/policies/page/arms/insert", json=new)).status_code == 200
        listed = (await client.get("/v1/policies/page/arms?order=count")).json()
        assert (
            listed["total"] == 4 and listed["arms"][0]["arm"] == "vote" and listed["arms"][0]["mean"] == 1.0
        )
        assert (await client.get('/v1/policies/page/arms/["a",1]')).json()["count"] == 0
        assert (await client.get("/v1/policies/page/arms/derby")).status_code == 404

    play(ask, tmp_path, {"page": CATALOG})


def test_labels_that_no_file_can_hold_are_refused(tmp_path):
    async def ask(client):
        headers = {"content-type": "application/msgpack"}
        before = client.service.host.position
        for label in (
            b"bytes",
            {"a": 1},
            float("inf"),
            [b"x"],
            [float("nan")],
            msgspec.Raw(b"\xc7\x01\x05\x00"),
        ):
            body = msgspec.msgpack.encode({"arms": [label], "attributes": ["news"]})
            answer = await client.post("/v1/policies/page/arms/insert", content=body, headers=headers)
            assert answer.status_code == 422, label
        large = f'{{"arms": [{10**30}], "attributes": ["news"]}}'
        answer = await client.post(
            "/v1/policies/page/arms/insert", content=large, headers={"content-type": "application/json"}
        )
        assert answer.status_code in (200, 422) and client.service.down is None
        assert client.service.host.position - before <= 1
        assert (await client.post("/v1/snapshot")).status_code == 200

    play(ask, tmp_path, {"page": CATALOG})


def test_arms_in_order(tmp_path):
    async def ask(client):
        told = {"key": "k", "arms": [5, 7, 7, 9], "rewards": [0.5, 1, 1, 0.5]}
        await client.post("/v1/policies/small/rewards", json=told)
        for query, expected in (
            ("order=mean&limit=3", [7, 5, 9]),
            ("order=count&limit=2", [7, 5]),
            ("order=mean&offset=1&limit=3", [5, 9, 0]),
            ("offset=38", [38, 39]),
        ):
            found = (await client.get(f"/v1/policies/small/arms?{query}")).json()
            assert found["total"] == 40 and [one["arm"] for one in found["arms"]] == expected
        await client.post("/v1/policies/small/arms/delete", json={"arms": [7]})
        assert (await client.get("/v1/policies/small/arms/7")).json()["present"] is False

    play(ask, tmp_path)


def test_health_metrics_and_the_description(tmp_path):
    async def ask(client):
        assert (await client.get("/healthz")).json() == {"ok": True}
        assert (await client.get("/readyz")).json() == {"ok": True}
        await client.post("/v1/policies/small/select", json={})
        text = (await client.get("/metrics")).text
        assert 'semibandit_decisions_total{policy="small"} 1.0' in text
        assert 'semibandit_request_seconds_count{operation="select"} 1.0' in text
        assert "semibandit_log_lag_events 0.0" in text and "semibandit_up 1.0" in text
        found = (await client.get("/openapi.json")).json()
        assert found == msgspec.json.decode(msgspec.json.encode(openapi()))
        assert set(found["paths"]["/v1/policies/{name}/select"]["post"]["responses"]) >= {
            "200",
            "404",
            "422",
            "503",
        }
        assert found["components"]["schemas"]["SelectRequest"]["additionalProperties"] is False
        given = await client.get("/healthz", headers={"x-request-id": "mine-1"})
        assert given.headers["x-request-id"] == "mine-1"
        client.service.down = "testing"
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.json()["reason"]) == (503, "testing")
        refused = await client.post("/v1/policies/small/select", json={})
        assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
        client.service.down = None
        assert b"semibandit_refused_total 1.0" in Metrics(client.service).text()

    play(ask, tmp_path)


def test_every_request_is_told_of_if_asked_for(tmp_path):
    async def ask(client):
        headers = {"x-request-id": "mine"}
        await client.post("/v1/policies/small/select", json={}, headers=headers)
        await client.post("/v1/policies/small/select", json={"count": 0}, headers=headers)
        await client.get("/v1/policies", headers=headers)
        await client.get("/nix", headers=headers)
        return [
            (facts["path"], facts["status"], facts["id"])
            for event, facts in client.told
            if event == "request"
        ]

    assert play(ask, tmp_path, log_requests=True) == [
        ("/v1/policies/small/select", 200, "mine"),
        ("/v1/policies/small/select", 422, "mine"),
        ("/v1/policies", 200, "mine"),
        ("/nix", 404, "mine"),
    ]


def test_tokens_and_roles(tmp_path):
    tokens, lines = {}, ["# who may do what", ""]
    for role in ("read", "play", "admin"):
        tokens[role], line = new_token(role)
        lines.append(f"{line} {role}-name")
    path = tmp_path / "tokens"
    path.write_text("\n".join(lines))

    async def ask(client):
        async def status(role, method, where, **more):
            headers = {} if role is None else {"authorization": f"Bearer {tokens.get(role, role)}"}
            return (await client.request(method, where, headers=headers, **more)).status_code

        select = ("POST", "/v1/policies/small/select")
        for role, codes in (
            (None, (401, 401, 401)),
            ("wrong", (401, 401, 401)),
            ("read", (200, 403, 403)),
            ("play", (200, 200, 403)),
            ("admin", (200, 200, 200)),
        ):
            found = (
                await status(role, "GET", "/v1/policies"),
                await status(role, *select, json={}),
                await status(role, "POST", "/v1/snapshot"),
            )
            assert found == codes, role
        assert await status(None, "GET", "/readyz") == 200
        assert await status(None, "GET", "/metrics") == 401

    play(ask, tmp_path / "data", tokens=Tokens.read(path), host="far.example")


def test_without_tokens_a_page_from_elsewhere_is_refused(tmp_path):
    async def ask(client):
        answer = await client.post(
            "/v1/policies/small/select", json={}, headers={"host": "evil.example:8080"}
        )
        assert (answer.status_code, answer.json()["error"]) == (403, "host")
        fine = await client.post("/v1/policies/small/select", json={}, headers={"host": "localhost:8080"})
        assert fine.status_code == 200

    play(ask, tmp_path)


def test_the_client_speaks_all_of_it(tmp_path):
    async def ask(http):
        async with AsyncClient("http://127.0.0.1", transport=http._transport, retries=0) as service:
            assert await service.is_ready()
            await service.create("page", **msgspec.to_builtins(CATALOG))
            decision = await service.select("page")
            assert decision.arms == ["vote", "derby"]
            learnt = await service.reward(decision, [1.0], arms=["vote"], policy="page")
            assert (learnt.counted, learnt.waiting) == (1, 1)
            learnt = await service.update(["final"], [0.5], key="mine", policy="page")
            again = await service.update(["final"], [0.5], key="mine", policy="page")
            assert (learnt.counted, again.duplicates) == (1, 1)
            many = await service.select("page", count=2, exclude=["vote"])
            assert [one.arms for one in many] == [["final"], ["derby"]] or len(many) == 2
            results = await service.batch(
                [
                    SelectOperation(policy="small", count=2),
                    SelectOperation(policy="small"),
                    RewardsOperation(
                        policy="page", decision=many[0].decision, rewards=[1.0] * len(many[0].arms)
                    ),
                    RewardsOperation(policy="small", arms=[1], rewards=[7.0]),
                ]
            )
            assert len(results[0]) == 2 and results[1].round == 3
            assert results[2].counted == len(many[0].arms) and results[3].field == "rewards[0]"
            await service.insert_arms(["storm"], ["news"], policy="page")
            await service.delete_arms(["vote"], policy="page")
            assert {one.arm for one in (await service.arms("page")).arms} == {"derby", "final", "storm"}
            assert (await service.arm("final", policy="page")).count >= 1
            assert (await service.arm(3, policy="small")).count == 0
            assert (await service.policy("page")).about["kind"] == "partition"
            assert await service.snapshot() == http.service.host.position
            await service.remove("page")
            assert [one.name for one in await service.policies()] == ["small"]
            with pytest.raises(ServiceError) as refused:
                await service.select("page")
            assert refused.value.status == 404 and refused.value.problem.field == "policy"

    play(ask, tmp_path, {"small": SMALL})
