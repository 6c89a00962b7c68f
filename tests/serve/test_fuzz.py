"""The HTTP surface against requests of every kind: never a 5xx, no state changed by what was refused or only read.

Three sources: schemathesis from the OpenAPI (valid by it, and broken by it), strategies of our own that know policies,
decisions and arms and so reach deeper, and bytes that are no requests at all. After every request all of the state is
compared with what it was.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import struct
from urllib.parse import quote

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semibandit.policies.files import to_bytes
from semibandit.serve.host import Limits
from semibandit.serve.openapi import openapi
from semibandit.serve.refusals import bad
from semibandit.serve.wire import PolicySpec
from support.service import Server, running

POLICIES = {
    "small": PolicySpec(policy="cts", matroid={"kind": "uniform", "arms": 20, "rank": 3}),
    "tree": PolicySpec(matroid={"kind": "graphic", "arms": 12, "rank": 5}, objective="min"),
    "news": PolicySpec(
        catalog={
            "kind": "partition",
            "quotas": {"news": 1, "sport": 2},
            "labels": [["a", "news"], ["b", "sport"], ["c", "sport"], [7, "sport"]],
        }
    ),
    "clips": PolicySpec(
        matroid={"kind": "uniform", "arms": 9, "rank": 2},
        reward_range=(-1.0, 2.0),
        options={"outside": "clip"},
    ),
}
LIMITS = Limits(policies=8, arms=200, arms_per_request=30, decisions_per_request=5, batch=10, body=20_000)


class Bench:
    """A service in an event loop of its own, asked one request at a time."""

    def __init__(self, folder):
        self._runner = asyncio.Runner()
        self._service = running(folder, POLICIES, limits=LIMITS)
        self.client = self._runner.run(self._service.__aenter__())
        self.service = self.client.service
        #: Policy, id and arms of decisions that were made.
        self.decisions: list[tuple[str, str, list]] = []
        self.seen: dict[int, int] = {}
        self.decide()

    def decide(self):
        """Decisions whose rewards are to come."""
        self.decisions.clear()
        for name in POLICIES:
            for _ in range(12):
                made = self.send("POST", f"/v1/policies/{name}/select", json={}).json()
                self.decisions.append((name, made["decision"], made["arms"]))
        self.before = self.digest()

    def close(self):
        self._runner.run(self._service.__aexit__(None, None, None))
        self._runner.close()

    def send(self, method, path, **given):
        return self._runner.run(self.client.request(method, path, **given))

    def digest(self):
        """All of the state."""
        host, total = self.service.host, hashlib.sha256()
        total.update(msgspec.msgpack.encode(host.state()))
        for seat in host.seats.values():
            total.update(to_bytes(seat.policy))
            if seat.labelled:
                ids = seat.catalog._arms.ids
                total.update(repr((ids.id_of, ids.free, ids.waiting, seat.catalog._n_dropped)).encode())
        return total.digest()

    def ask(self, method, path, **given):
        """Send a request, and hold its answer against what became of the state."""
        answer = self.send(method, path, **given)
        status = answer.status_code
        self.seen[status] = self.seen.get(status, 0) + 1
        assert status < 500 and self.service.down is None, (status, answer.text, self.client.told[-3:])
        after = self.digest()
        if status >= 400 or method in ("GET", "HEAD"):
            assert after == self.before, (method, path, given, status, answer.text)
        if status >= 400 and method != "HEAD":
            body = answer.content
            packed = answer.headers["content-type"] == "application/msgpack"
            told = msgspec.msgpack.decode(body) if packed else msgspec.json.decode(body)
            assert told["status"] == status and told["message"] and told["error"]
            assert told["request_id"] == answer.headers["x-request-id"]
        self.before = after
        for name in POLICIES.keys() - self.service.host.seats.keys():  # deleted: the others need them
            spec = msgspec.to_builtins(POLICIES[name])
            assert self.send("POST", "/v1/policies", json={"name": name, **spec}).status_code == 201
            self.before = self.digest()
        for name in self.service.host.seats.keys() - POLICIES.keys():
            if len(self.service.host.seats) >= LIMITS.policies:
                assert self.send("DELETE", f"/v1/policies/{name}").status_code == 200
                self.before = self.digest()
        return answer


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    one = Bench(tmp_path_factory.mktemp("fuzz"))
    yield one
    one.close()


def examples(n):
    return settings(
        max_examples=n,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.function_scoped_fixture,
            HealthCheck.filter_too_much,
        ],
    )


# -- from the OpenAPI ----------------------------------------------------------------------------------------


def operations():
    return [(method, path) for path, entry in openapi()["paths"].items() for method in entry]


def check_operation(bench, method, path, n):
    schemathesis = pytest.importorskip("schemathesis")
    from schemathesis import checks
    from schemathesis.generation import GenerationMode

    operation = schemathesis.openapi.from_dict(openapi())[path][method.upper()]
    options = {"media_type": "application/json"} if "requestBody" in openapi()["paths"][path][method] else {}
    good = operation.as_strategy(GenerationMode.POSITIVE, **options)
    wrong = operation.as_strategy(GenerationMode.NEGATIVE, **options)
    asked = [
        checks.not_a_server_error,
        schemathesis.specs.openapi.checks.status_code_conformance,
        schemathesis.specs.openapi.checks.content_type_conformance,
        schemathesis.specs.openapi.checks.response_schema_conformance,
    ]

    def run(strategy):
        @examples(n)
        @given(strategy, st.sampled_from([*POLICIES, None]), st.data())
        def test(case, name, data):
            if name is not None and "name" in (case.path_parameters or {}):
                case.path_parameters["name"] = name
            if isinstance(case.body, dict) and "decision" in case.body and data.draw(st.booleans()):
                case.body["decision"] = data.draw(st.sampled_from(bench.decisions))[1]
            sent = case.as_transport_kwargs(base_url="http://127.0.0.1")
            sent = {key: value for key, value in sent.items() if value is not None}
            sent.pop("cookies", None)
            if "data" in sent:
                sent["content"] = sent.pop("data")
            try:
                answer = bench.ask(sent.pop("method"), sent.pop("url"), **sent)
            except (httpx.InvalidURL, UnicodeEncodeError, httpx.LocalProtocolError):
                return  # it cannot be sent
            case.validate_response(answer, checks=asked)

        test()

    run(good)
    told = openapi()["paths"][path][method]
    if "requestBody" in told or any(one["in"] == "query" for one in told.get("parameters", ())):
        run(wrong)  # any text is a name: without a body or a query there is nothing to get wrong


@pytest.mark.thin
@pytest.mark.parametrize(("method", "path"), operations())
def test_requests_from_the_openapi(bench, method, path):
    check_operation(bench, method, path, 4)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), operations())
def test_many_requests_from_the_openapi(bench, method, path):
    check_operation(bench, method, path, 150)


# -- of our own ----------------------------------------------------------------------------------------------

odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 25),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.just([]),
    st.just({}),
    st.lists(st.integers(0, 3), max_size=3),
    st.sampled_from(
        ["a", "b", 2**63, -(2**63), 2**64, 1e308, -0.0, "a" * 300, "\ud800", "\x00", [[]], {"a": [None]}]
    ),
)
arms = st.one_of(
    st.lists(st.integers(0, 8), max_size=4, unique=True),
    st.lists(st.sampled_from(["a", "b", "c", 7]), max_size=4, unique=True),
    st.lists(st.integers(0, 19) | st.sampled_from(["a", "d", "e"]), max_size=6),
)
wrong_arms = st.one_of(
    st.lists(odd, max_size=5),
    st.integers(31, 40).map(lambda n: [1] * n),
    st.just([0, 0]),
    st.just(["a", "a"]),
    odd,
)
good = st.sampled_from([0.0, 1.0, 0.25, 1])
keys = st.sampled_from(["k1", "k2", "k3", "k" * 200])
wrong_keys = st.sampled_from(["", "k" * 201]) | odd


@st.composite
def spoilt(draw, right, wrong):
    """What `right` gives, with none to two of its fields lost, strange, or as in `wrong`."""
    body = dict(draw(right))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2]))):
        field = draw(st.sampled_from(sorted({*body, *wrong})) | st.text(max_size=5))
        if draw(st.integers(0, 5)) == 0:
            body.pop(field, None)
        else:
            body[field] = draw(wrong.get(field, odd))
    return body


selects = spoilt(
    st.fixed_dictionaries(
        {}, optional={"exclude": arms, "among": arms, "count": st.integers(1, 5), "key": keys}
    ),
    {"exclude": wrong_arms, "among": wrong_arms, "count": st.integers(-1, 7) | odd, "key": wrong_keys},
)


def rewards(decisions):
    """Rewards of decisions that were made, of all their arms or of some, and without a decision."""
    size = {"small": 3, "news": 3, "tree": 5, "clips": 2}
    wrong = {"rewards": st.lists(st.floats() | odd, max_size=6) | odd, "arms": wrong_arms, "key": wrong_keys}

    @st.composite
    def make(draw):
        name, decision, played = draw(st.sampled_from(decisions))
        n = size[name]
        whole = st.lists(good, min_size=n, max_size=n)
        if draw(st.booleans()):
            right = st.fixed_dictionaries({"decision": st.just(decision), "rewards": whole})
        elif draw(st.booleans()):
            some = draw(st.lists(st.sampled_from(played), unique=True)) if played else []
            told = st.lists(good, min_size=len(some), max_size=len(some))
            right = st.fixed_dictionaries(
                {"decision": st.just(decision), "arms": st.just(some), "rewards": told}
            )
        else:
            some = draw(arms)
            told = st.lists(good, min_size=len(some), max_size=len(some))
            right = st.fixed_dictionaries({"key": keys, "arms": st.just(some), "rewards": told})
        return name, draw(spoilt(right, wrong))

    return make()


tables = st.lists(st.lists(st.integers(-1, 5), max_size=3), max_size=5) | st.lists(
    st.integers(-2, 4), max_size=6
)
matroids = spoilt(
    st.sampled_from(
        [
            *(
                {"kind": kind, "arms": 12, "rank": 3}
                for kind in ("uniform", "partition", "graphic", "transversal")
            ),
            *({"kind": kind, "arms": 9, "rank": 2} for kind in ("laminar", "linear")),
            {"kind": "partition", "groups": [0, 0, 1], "capacities": [1, 1]},
            {"kind": "graphic", "edges": [[0, 1], [1, 2], [0, 2]]},
        ]
    ),
    {
        "kind": st.sampled_from(["uniform", "partition", "graphic", "transversal", "laminar", "linear", "x"])
        | odd,
        "arms": st.integers(-1, 300) | odd,
        "rank": st.integers(-1, 300) | odd,
        **{
            key: tables | odd
            for key in ("groups", "capacities", "edges", "sets", "matrix", "tasks", "parents")
        },
    },
)
catalogs = spoilt(
    st.sampled_from(
        [
            {"kind": "uniform", "rank": 2, "labels": ["a", "b", 3]},
            {"kind": "partition", "quotas": {"x": 1, "y": 2}, "labels": [["a", "x"], ["b", "y"]]},
            {"kind": "graphic", "labels": [["a", [0, 1]], ["b", ["u", "v"]]]},
            {"kind": "transversal", "tasks": ["x", "y"], "labels": [["a", ["x"]], ["b", ["x", "y"]]]},
        ]
    ),
    {
        "kind": st.sampled_from(["uniform", "partition", "graphic", "transversal"]) | odd,
        "rank": st.integers(-1, 5) | odd,
        "quotas": st.dictionaries(st.sampled_from("xyz"), st.integers(-1, 3) | odd, max_size=3)
        | tables
        | odd,
        "total": st.integers(0, 5) | odd,
        "tasks": st.lists(st.sampled_from("xyz") | odd, max_size=3) | odd,
        "capacity": st.integers(-1, 300) | odd,
        "labels": st.lists(odd | st.tuples(odd, st.sampled_from("xyz") | odd).map(list), max_size=5) | odd,
    },
)
options = st.dictionaries(
    st.sampled_from(
        ["exploration", "engine", "sigma", "seed", "matroid", "prior", "outside", "clip", "window", "x"]
    ),
    odd | st.sampled_from(["auto", "naive", "clip", 5, 0.5]),
    max_size=2,
)
known_policies = ["cucb", "cts", "fpl", "greedy", "random", "kl-osm", "maub", "epsilon-greedy"]
creates = spoilt(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(["n1", "n2", "n3", "small"]),
            "policy": st.sampled_from(known_policies),
            "matroid": matroids,
        }
    )
    | st.fixed_dictionaries({"name": st.sampled_from(["n1", "n2"]), "catalog": catalogs}),
    {
        "name": st.sampled_from(["new", "small", "Bad Name", "x" * 65, ".."]) | odd,
        "policy": st.sampled_from([*known_policies, "oracle", "no"]) | odd,
        "matroid": matroids | odd,
        "catalog": catalogs | odd,
        "options": options | odd,
        "reward_range": st.lists(st.floats() | st.integers(-3, 3), min_size=2, max_size=2) | odd,
        "objective": st.sampled_from(["max", "min"]) | odd,
        "seed": odd,
        "ttl": st.sampled_from([None, 3600, 1e10, 0]) | odd,
        "max_pending": st.integers(1, 1000) | odd,
    },
)
changes = spoilt(
    st.one_of(
        st.fixed_dictionaries({"arms": arms}),
        st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["news", "sport"])), max_size=3).map(
            lambda pairs: {"arms": [a for a, _ in pairs], "attributes": [b for _, b in pairs]}
        ),
    ),
    {"arms": wrong_arms, "attributes": wrong_arms},
)
names = st.sampled_from([*POLICIES] * 4 + ["nobody", "", "..", "a/b", "\u00e9", "%2e", "x" * 300])


@st.composite
def requests(draw, decisions):
    """A request to any of the addresses."""
    what = draw(st.sampled_from(["select", "rewards", "batch", "create", "arms", "change", "read", "remove"]))
    name = quote(draw(names), safe="")
    one = f"/v1/policies/{name}"
    if what == "select":
        return "POST", f"{one}/select", draw(selects)
    if what == "rewards":
        name, body = draw(rewards(decisions))
        return "POST", f"/v1/policies/{name}/rewards", body
    if what == "batch":
        operation = st.one_of(
            st.tuples(names, selects).map(lambda pair: {"op": "select", "policy": pair[0], **pair[1]}),
            rewards(decisions).map(lambda pair: {"op": "rewards", "policy": pair[0], **pair[1]}),
        )
        some = st.lists(operation, max_size=12)
        if draw(st.integers(0, 4)) == 0:
            some = st.lists(operation | odd, max_size=12) | odd
        return "POST", "/v1/batch", {"operations": draw(some)}
    if what == "create":
        return "POST", "/v1/policies", draw(creates)
    if what == "change":
        verb = draw(st.sampled_from(["delete", "insert"]))
        return "POST", f"{one}/arms/{verb}", draw(changes)
    if what == "arms":
        query = draw(
            st.dictionaries(
                st.sampled_from(["order", "offset", "limit", "x"]),
                st.sampled_from(
                    ["id", "mean", "count", "0", "1", "5", "-1", "1e3", "99999999999999999999", "", "\u0663"]
                ),
            )
        )
        return "GET", f"{one}/arms?" + "&".join(f"{k}={quote(v)}" for k, v in query.items()), None
    if what == "read":
        arm = draw(odd.map(lambda v: v if isinstance(v, str) else json.dumps(v)))
        arm = quote(arm.encode("utf-8", "surrogatepass"), safe="")
        tail = draw(st.sampled_from(["", f"/arms/{arm}", "/arms", "/nothing", "/select", "/rewards"]))
        return draw(st.sampled_from(["GET", "HEAD", "PUT", "OPTIONS", "PATCH"])), one + tail, None
    return "DELETE", "/v1/policies/" + draw(st.sampled_from(["n1", "n2", "n3", "nobody", "..%2fsmall"])), None


def packed(body, kind):
    """The body in a format, or None if that cannot hold it."""
    try:
        if kind == "application/msgpack":
            return msgspec.msgpack.encode(body)
        return json.dumps(body).encode("utf-8", "surrogatepass")
    except (OverflowError, UnicodeEncodeError, msgspec.MsgspecError):
        return None


def check_own(bench, n):
    bench.decide()
    bench.seen.clear()

    @examples(n)
    @given(requests(bench.decisions), st.sampled_from(["application/json", "application/msgpack"]))
    def test(request, kind):
        method, path, body = request
        if body is None:
            bench.ask(method, path)
            return
        content = packed(body, kind)
        if content is not None:
            bench.ask(method, path, content=content, headers={"content-type": kind})

    test()


def test_requests_that_are_nearly_right(bench):
    check_own(bench, 120)
    assert {200, 404, 422} <= bench.seen.keys() and bench.seen[200] > 15, bench.seen


@pytest.mark.slow
def test_many_requests_that_are_nearly_right(bench):
    check_own(bench, 6_000)
    assert {200, 201, 400, 404, 405, 409, 413, 422} <= bench.seen.keys(), bench.seen


# -- bytes ---------------------------------------------------------------------------------------------------

ADDRESSES = [
    "/v1/policies/small/select",
    "/v1/policies/small/rewards",
    "/v1/batch",
    "/v1/policies",
    "/v1/policies/news/arms/insert",
    "/v1/policies/small/arms/delete",
    "/v1/snapshot",
    "/",
    "/v1/watch/",
    "/openapi.json",
]


SEEDS = [
    b'{"count": 1e999}',
    b'{"count": 18446744073709551616}',
    b"[" * 5000,
    b'{"a":' * 3000,
    b"\xff\xfe",
    b"nul",
    b'"',
    b"{}" * 9,
    b'{"rewards": [NaN]}',
    b'{"rewards": [1e400, -1e400], "key": "z", "arms": [0, 1]}',
    b"\xc1",
    b"\xdf\xff\xff\xff\xff",
    b"\x91" * 4000,
    b'{"operations": [{"op": "select", "policy": "small"}, 1]}',
    b'{"key": "\\ud800"}',
    b'{"exclude": ["\\u0000"]}',
    b"0" * 30_000,
]


def check_bytes(bench, n):
    kinds = st.sampled_from(
        [
            "application/json",
            "application/msgpack",
            "application/json; charset=utf-7",
            "text/plain",
            "",
            "application/x-msgpack",
        ]
    )
    header = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20)

    @examples(n)
    @given(
        st.sampled_from(ADDRESSES), st.binary(max_size=200) | st.sampled_from(SEEDS), kinds, header, header
    )
    def test(path, content, kind, accept, request_id):
        headers = {"content-type": kind, "accept": accept, "x-request-id": request_id}
        bench.ask("POST", path, content=content, headers=headers)

    test()


def test_bytes_that_are_no_requests(bench):
    check_bytes(bench, 60)


@pytest.mark.slow
def test_many_bytes_that_are_no_requests(bench):
    check_bytes(bench, 4_000)


def test_a_server_outlives_what_is_not_http(tmp_path):
    raw = [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/batch HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: -5\r\n\r\n",
        b"POST /v1/batch HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 99999999999999999999\r\n\r\n{}",
        b"POST /v1/batch HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        b"POST /v1/batch HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        b"POST /v1/policies/default/select HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\r\n",
        b"GET /%ff%fe/%00 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
        b"GET http://elsewhere/ HTTP/1.1\r\nhost: elsewhere\r\n\r\n",
        b"GET /v1/policies/%f0%9f HTTP/1.1\r\nhost: 127.0.0.1\r\nx-request-id: \xff\xfe\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
        b"GET /v1/policies/default/arms/" + b"9" * 60_000 + b" HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
        b"POST /v1/policies/default/select HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
        b"content-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
    ]
    with Server(tmp_path, "--arms", 30, "--rank", 3) as server:
        port = int(server.address.rsplit(":", 1)[1])
        for one in raw:
            with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
                line.sendall(one)
                line.shutdown(socket.SHUT_WR)
                answer = b""
                while part := line.recv(65536):
                    answer += part
            assert not answer.startswith(b"HTTP/1.1 5"), (one[:80], answer[:300])
        reset = socket.create_connection(("127.0.0.1", port), timeout=20)
        reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        reset.sendall(b"POST /v1/batch HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000\r\n\r\n{")
        reset.close()
        about = httpx.get(f"{server.address}/v1/policies/default").json()
        assert about["round"] <= 2, "those that were whole requests decided, no other did"
        assert httpx.get(f"{server.address}/readyz").status_code == 200
        assert server.stop() == 0
        assert not any("Traceback" in line or "exception" in line.lower() for line in server.lines), (
            server.lines
        )


def test_a_refusal_that_changes_something_would_be_noticed(tmp_path):
    bench = Bench(tmp_path)
    host = bench.service.host

    def spoil(at, name, *_):
        host.seats[name].expired += 1
        raise bad("count", 1, "refused, but not without a trace")

    host.select = spoil
    with pytest.raises(AssertionError, match="not without a trace"):
        bench.ask("POST", "/v1/policies/small/select", json={})
    host.select = None  # what is called then is an error of the program's
    with pytest.raises(AssertionError, match="503"):
        bench.ask("POST", "/v1/policies/small/select", json={})
    bench.close()
