"""Settings, tokens, the command, and clients that try again."""

from __future__ import annotations

import socket

import httpx
import msgspec
import pytest
from click.testing import CliRunner

from semibandit.cli.main import main
from semibandit.client import Client, ServiceError
from semibandit.errors import FileError, ParameterError
from semibandit.serve.pulse import BUCKETS, Histogram
from semibandit.serve.run import listen
from semibandit.serve.settings import ServerSettings, Settings, is_loopback, read_settings
from semibandit.serve.tokens import ROLES, Tokens, new_token
from semibandit.serve.wire import Learnt, Made

GOOD = """
[server]
port = 9000
[limits]
batch = 7
[upkeep]
snapshot_events = 10
[policies.page]
policy = "cts"
matroid = { kind = "uniform", arms = 10, rank = 2 }
ttl = 5.0
"""


def test_a_file_of_settings(tmp_path):
    path = tmp_path / "service.toml"
    path.write_text(GOOD)
    found = read_settings(path)
    assert (found.server.port, found.limits.batch, found.upkeep.snapshot_events) == (9000, 7, 10)
    assert found.policies["page"].ttl == 5.0 and found.server.host == "127.0.0.1"


@pytest.mark.parametrize(
    "text, told",
    [
        ("[server]\nprot = 1", "unknown field `prot`"),
        ("[server]\nport = 70000", "port = 70000"),
        ('[server]\nhost = "0.0.0.0"', "can be reached from other machines: give tokens"),
        ("[upkeep]\nsnapshots = 0", "at least 1"),
        ("[policies.A]\nmatroid = { arms = 3, rank = 1 }", "name = 'A'"),
        ('[policies.a]\npolicy = "cuck"\nmatroid = { arms = 3, rank = 1 }', "did you mean 'cucb'"),
        ("[server\n", "Expected"),
    ],
)
def test_mistakes_in_a_file_are_named(text, told, tmp_path):
    path = tmp_path / "service.toml"
    path.write_text(text)
    with pytest.raises(ParameterError, match=told):
        read_settings(path)
    with pytest.raises(ParameterError, match="No such file"):
        read_settings(tmp_path / "nowhere.toml")


def test_what_only_this_machine_can_reach():
    assert [is_loopback(one) for one in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "10.0.0.1", "x")] == [
        *[True] * 3,
        *[False] * 3,
    ]


def test_a_place_that_is_taken_is_told():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        settings = Settings(server=ServerSettings(port=other.getsockname()[1]))
        with pytest.raises(ParameterError, match="cannot be listened on: Address already in use"):
            listen(settings)


def test_the_command_without_serving(tmp_path):
    call = CliRunner().invoke
    (tmp_path / "s.toml").write_text(GOOD)
    done = call(main, ["serve", str(tmp_path / "s.toml"), "--check", "--port", "9001"])
    assert done.exit_code == 0 and "right: 1 policies, 127.0.0.1:9001" in done.output
    for options, told in (
        ([], "give --arms"),
        ([str(tmp_path / "s.toml"), "--arms", "3"], "--arms does not go with a file"),
        (["--arms", "3", "--rank", "2", "--host", "0.0.0.0"], "give tokens"),
        (["--arms", "3", "--policy", "cuck"], "did you mean 'cucb'"),
        (["--new-token", "king"], "one of read, play, admin"),
    ):
        done = call(main, ["serve", *options, "--check"])
        assert done.exit_code == 2 and told in done.output, done.output
    shown = call(main, ["serve", "--new-token", "play"]).output.split()
    assert shown[-2] == "play" and len(shown[-1]) == 64


def test_tokens_of_a_file(tmp_path):
    path = tmp_path / "tokens"
    token, line = new_token("play")
    path.write_text(f"# ours\n{line} web\n")
    tokens = Tokens.read(path)
    assert ROLES[tokens.level(f"Bearer {token}".encode())] == "play"
    for wrong in (b"", b"Bearer", b"Bearer x", f"Basic {token}".encode()):
        assert tokens.level(wrong) == -1
    for text, told in (
        ("", "holds no token"),
        ("king " + 64 * "0", "line 1"),
        ("\nread 00", "line 2"),
        ("read", "line 1"),
        (f"{line} a b", "line 1"),
    ):
        path.write_text(text)
        with pytest.raises(FileError, match=told):
            Tokens.read(path)
    with pytest.raises(FileError, match="No such file"):
        Tokens.read(tmp_path / "nowhere")


class Shaky:
    """A service that fails a few times before it answers."""

    def __init__(self, *answers):
        self.answers, self.bodies = list(answers), []

    def __call__(self, request):
        self.bodies.append(msgspec.msgpack.decode(request.content) if request.content else None)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        status, value = answer
        return httpx.Response(status, content=msgspec.msgpack.encode(value))


def test_the_client_tries_again_with_the_same_key(monkeypatch):
    pauses = []
    monkeypatch.setattr("semibandit.client.clients.time.sleep", pauses.append)
    busy = (503, {"status": 503, "error": "unavailable", "message": "not now"})
    shaky = Shaky(httpx.ConnectError("x"), busy, httpx.ReadTimeout("y"), (200, Made("t-0-0", [1, 2], 1)))
    with Client(transport=httpx.MockTransport(shaky), retries=5) as client:
        assert client.select(exclude=[3]).arms == [1, 2]
    assert len({body["key"] for body in shaky.bodies}) == 1 and len(shaky.bodies) == 4
    assert (len(pauses) == 3 and pauses == sorted(pauses)) or max(pauses) < 1.0
    shaky = Shaky(busy, busy)
    with Client(transport=httpx.MockTransport(shaky), retries=1) as client:
        with pytest.raises(ServiceError, match="not now") as refused:
            client.reward("t-0-0", [1.0])
        assert refused.value.status == 503
    shaky = Shaky(httpx.ConnectError("nobody there"))
    with Client(transport=httpx.MockTransport(shaky), retries=0) as client:
        with pytest.raises(ServiceError, match="nobody there") as refused:
            client.policies()
        assert refused.value.status == 0 and refused.value.problem is None
        assert not Client(transport=httpx.MockTransport(Shaky(httpx.ConnectError("x")))).is_ready()
    shaky = Shaky(
        (404, {"status": 404, "error": "no_policy", "message": "none", "field": "policy", "value": "x"})
    )
    with Client(transport=httpx.MockTransport(shaky)) as client:
        with pytest.raises(ServiceError) as refused:
            client.policy("x")
        assert refused.value.problem.value == "x", "what is wrong is not sent again"
    shaky = Shaky((200, Learnt(1, 0, 0, 0)), (500, "no problem at all"))
    with Client(transport=httpx.MockTransport(shaky)) as client:
        assert client.update([1], [0.5]).counted == 1 and shaky.bodies[0]["key"]
        with pytest.raises(ServiceError, match="status 500"):
            client.snapshot()


def test_histograms_know_their_quantiles():
    histogram = Histogram()
    assert histogram.quantiles(0.5) == [None]
    for i in range(100):
        histogram.observe(0.001 if i < 90 else 0.1)
    assert histogram.count == 100 and histogram.sum == pytest.approx(1.09)
    assert histogram.quantiles(0.5, 0.9, 0.99) == [
        pytest.approx(0.001),
        pytest.approx(0.001),
        pytest.approx(0.1),
    ]
    before = histogram.counts[:]
    histogram.observe(50.0)
    assert histogram.quantiles(0.5, since=before) == [BUCKETS[-1]]
