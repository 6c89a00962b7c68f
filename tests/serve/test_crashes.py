"""The service as a process: killed at any moment, stopped in order, started twice, on a full disk."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import resource
import threading
import time

import numpy as np
import pytest

import semibandit as sb
from oracles.service import tally
from semibandit.client import Client
from semibandit.policies.files import _parse
from semibandit.serve.events import Rewarded, Selected, unpack_arms, unpack_numbers
from semibandit.serve.snapshots import FolderShelf
from support.service import Server, events_in, until

OPTIONS = ("--arms", 60, "--rank", 4, "--policy", "cts", "--seed", 5)


class Load(threading.Thread):
    """A client that decides and rewards until it is told to stop, and remembers what was acknowledged."""

    def __init__(self, seed):
        super().__init__(daemon=True)
        self.rng, self.address, self.ended = random.Random(seed), None, False
        self.acknowledged = {}  # (decision, arm) -> reward
        self.sent = {}  # decision -> arms that were never acknowledged
        self.strange = []

    def ask(self, connection, verb, body):
        path = f"/v1/policies/default/{verb}"
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        content = json.loads(answer.read())
        if answer.status not in (200, 503):
            self.strange.append((answer.status, content))
        return content if answer.status == 200 else None

    def run(self):
        connection = None
        while not self.ended:
            if connection is None:
                address = self.address
                if address is None:
                    time.sleep(0.005)
                    continue
                host, _, port = address.removeprefix("http://").partition(":")
                connection = http.client.HTTPConnection(host, int(port), timeout=10)
            try:
                self.play(connection)
            except (OSError, http.client.HTTPException, ValueError):
                if self.address == address:
                    self.address = None
                connection = None

    def play(self, connection):
        """A decision, and rewards for some arms of it or of one before; what was cut off is sent again."""
        if self.sent and self.rng.random() < 0.5:
            decision, rewards = self.rng.choice(list(self.sent.items()))
        else:
            made = self.ask(connection, "select", {})
            if made is None:
                return
            decision = made["decision"]
            some = self.rng.sample(made["arms"], self.rng.randint(1, 4))
            rewards = {arm: self.rng.random() for arm in some}
            self.sent[decision] = rewards
        body = {"decision": decision, "arms": list(rewards), "rewards": list(rewards.values())}
        learnt = self.ask(connection, "rewards", body)
        if learnt is not None:
            assert learnt["counted"] + learnt["duplicates"] == len(rewards)
            self.acknowledged.update({(decision, arm): reward for arm, reward in rewards.items()})
            del self.sent[decision]


def account(folder):
    """What the log says: the naive tally, and a policy of the library that was fed it by `select` and `update`."""
    policy = sb.CTS(sb.Uniform(n_arms=60, rank=4), seed=5)
    told, number = [], 0
    arms_of = {}
    for event in events_in(folder):
        if type(event) is Selected:
            arms = unpack_arms(event.arms)
            assert policy.select().tolist() == arms.tolist()
            arms_of[number] = arms
            told.append((number, arms.tolist()))
            number += 1
        elif type(event) is Rewarded:
            places = np.frombuffer(event.places, dtype="<u4").tolist() if event.places else None
            rewards = unpack_numbers(event.rewards)
            policy.update(arms_of[event.number][slice(None) if places is None else places], rewards)
            told.append((event.number, places, rewards.tolist()))
    return policy, tally(told)


def check(folder, loads):
    """Every acknowledged reward is in the log once, and the service's policy is the one that was fed the log."""
    policy, (decisions, seen, counts, _) = account(folder)
    acknowledged = {key: value for load in loads for key, value in load.acknowledged.items()}
    assert not [load.strange for load in loads if load.strange]
    for decision, arm in acknowledged:
        number = int(decision.rsplit("-", 1)[1])
        assert (number, decisions[number].index(arm)) in seen
    assert policy.counts.tolist() == [counts.get(arm, 0) for arm in range(60)]
    shelf = FolderShelf(folder / "snapshots")
    saved = (shelf.fetch(shelf.positions()[0]) / "0.semibandit").read_bytes()
    policy.save(folder / "reference")
    mine, theirs = _parse(saved, "x"), _parse((folder / "reference").read_bytes(), "y")
    assert mine[0]["state"] == theirs[0]["state"]
    for name, array in theirs[1].items():
        if not name.startswith("decisions"):
            assert mine[1][name].tobytes() == array.tobytes(), name
    return len(acknowledged), len(decisions)


def kill_again_and_again(folder, kills, clients, seed):
    rng = random.Random(seed)
    loads = [Load(seed * 100 + i) for i in range(clients)]
    for load in loads:
        load.start()
    try:
        for i in range(kills):
            with Server(folder, *OPTIONS) as server:
                for load in loads:
                    load.address = server.address
                if i % 3 == 1:
                    with contextlib.suppress(Exception), Client(server.address, retries=0) as client:
                        threading.Timer(rng.random() * 0.05, server.process.kill).start()
                        client.snapshot()
                time.sleep(rng.random() * 0.4)
                server.kill()
        with Server(folder, *OPTIONS) as server:
            for load in loads:
                load.address = server.address
            time.sleep(0.3)
            for load in loads:
                load.ended = True
            for load in loads:
                load.join(30)
            assert server.stop() == 0
    finally:
        for load in loads:
            load.ended = True
    return check(folder, loads)


def test_killed_under_load_nothing_acknowledged_is_lost(tmp_path):
    acknowledged, decisions = kill_again_and_again(tmp_path, kills=5, clients=4, seed=1)
    assert acknowledged > 20 and decisions > 20


@pytest.mark.slow
def test_killed_two_hundred_times(tmp_path):
    acknowledged, _ = kill_again_and_again(tmp_path, kills=200, clients=8, seed=2)
    assert acknowledged > 2000


def test_told_to_stop_it_drains_and_exits_with_zero(tmp_path):
    with Server(tmp_path, *OPTIONS) as server:
        loads = [Load(i) for i in range(4)]
        for load in loads:
            load.address = server.address
            load.start()
        until(lambda: sum(len(load.acknowledged) for load in loads) > 50)
        assert server.stop() == 0
        for load in loads:
            load.ended = True
            load.join(30)
    acknowledged, decisions = check(tmp_path, loads)
    assert acknowledged > 50
    assert "60" in server.lines[1] and "no snapshot, 0 events replayed" in server.lines[2]
    # a second one is refused while the first runs, and says why
    with Server(tmp_path, *OPTIONS) as first:
        assert ", 0 events replayed" in first.lines[2] and "the snapshot of event" in first.lines[2]
        second = Server(tmp_path, *OPTIONS)
        assert second.process.wait(60) == 2
        second._reader.join(10)
        assert f"is served already, by process {first.process.pid}" in "\n".join(second.lines)
        with Client(first.address) as client:
            assert client.select().round == decisions + 1


def test_a_full_disk_and_room_again(tmp_path):
    """The process may write no file beyond a size; then it may again."""
    with Server(tmp_path, *OPTIONS) as server, Client(server.address, retries=0) as client:
        decision = client.select()
        client.reward(decision, [1.0] * 4)
        pid = server.process.pid
        size = (tmp_path / "log.sqlite-wal").stat().st_size
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))
        late = client.select  # its event is refused by the disk
        with pytest.raises(Exception, match=r"not done|not serving"):
            for _ in range(50):
                late(count=100)
        assert not client.is_ready()
        with pytest.raises(Exception, match="not serving"):
            client.reward(decision, [1.0] * 4)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        until(client.is_ready)
        assert client.reward(decision, [1.0] * 4).duplicates == 4
        rounds = client.select().round
        assert server.stop() == 0
    made = sum(len(event.sizes) or 1 for event in events_in(tmp_path) if type(event) is Selected)
    assert made == rounds
    assert any('"recovered"' in line for line in server.lines)


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    server = Server(tmp_path / "file" / "data", *OPTIONS)
    assert server.process.wait(60) == 2
    server._reader.join(10)
    assert "Not a directory" in server.lines[-1] and len(server.lines) == 1


def test_slow_clients_are_let_go(tmp_path):
    import socket

    file = tmp_path / "service.toml"
    file.write_text(
        "[server]\nrequest_timeout = 0.5\n"
        '[policies.default]\npolicy = "cts"\nmatroid = { kind = "uniform", arms = 60, rank = 4 }\n'
    )
    with Server(tmp_path / "data", file) as server:
        host, port = server.address.removeprefix("http://").split(":")
        head = b"POST /v1/policies/default/select HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        for part in (b"", head, head + b"content-length: 100\r\n\r\n{"):
            with socket.create_connection((host, int(port)), timeout=10) as slow:
                slow.sendall(part)
                began = time.monotonic()
                with contextlib.suppress(ConnectionResetError):
                    assert slow.recv(1000) == b""
                assert time.monotonic() - began < 5
        with Client(server.address) as client:
            assert client.select().round == 1, "nothing of theirs was done"
