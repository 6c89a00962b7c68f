"""Clients that keep a service busy and remember what was acknowledged, and what must then be in its log."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import threading
import time

import numpy as np
import pytest

import semibandit as sb
from oracles.service import tally
from semibandit.client import Client
from semibandit.policies.files import _parse, to_bytes
from semibandit.serve.events import Rewarded, Selected, decode_group, unpack_arms, unpack_numbers
from semibandit.serve.snapshots import newest_whole
from support.service import Server

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
        path = "/v1/batch" if verb == "batch" else f"/v1/policies/default/{verb}"
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        content = json.loads(answer.read())
        if answer.status == 503 and answer.headers["retry-after"]:
            time.sleep(0.01)
        elif answer.status != 200:
            self.strange.append((answer.status, content))
        return content if answer.status == 200 else None

    def run(self):
        connection = address = None
        while not self.ended:
            if connection is None or self.address not in (None, address):
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
        if self.rng.random() < 0.2:
            self.play_many(connection)
            return
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
            self.settle(decision, learnt)

    def play_many(self, connection):
        """Decisions in a batch, and all their rewards in another one, with some that were cut off before."""
        operation = {"op": "select", "policy": "default"}
        made = self.ask(connection, "batch", {"operations": [operation] * self.rng.randint(2, 5)})
        if made is None:
            return
        for one in made["results"]:
            self.sent[one["decision"]] = {arm: self.rng.random() for arm in one["arms"]}
        again = self.rng.sample(list(self.sent.items()), min(2, len(self.sent)))
        some = [(one["decision"], None, self.sent[one["decision"]]) for one in made["results"]]
        some += [(decision, list(rewards), rewards) for decision, rewards in again]
        operations = [
            {"op": "rewards", "policy": "default", "decision": decision, "rewards": list(rewards.values())}
            | ({} if arms is None else {"arms": arms})
            for decision, arms, rewards in some
        ]
        learnt = self.ask(connection, "batch", {"operations": operations})
        if learnt is not None:
            for (decision, _, _), one in zip(some, learnt["results"], strict=True):
                if decision in self.sent:
                    self.settle(decision, one)

    def settle(self, decision, learnt):
        """All rewards of a decision are acknowledged."""
        rewards = self.sent.pop(decision)
        assert learnt["counted"] + learnt["duplicates"] == len(rewards)
        self.acknowledged.update({(decision, arm): reward for arm, reward in rewards.items()})


def account(events):
    """What the log says: a policy of the library that was fed it by `select` and `update`, the naive tally, rewards."""
    policy = sb.CTS(sb.Uniform(n_arms=60, rank=4), seed=5)
    told, number = [], 0
    arms_of, values = {}, {}
    for event in events:
        if type(event) is Selected:
            for arms in np.split(unpack_arms(event.arms), np.cumsum(event.sizes)[:-1].astype(int)):
                assert policy.select().tolist() == arms.tolist()
                arms_of[number] = arms
                told.append((number, arms.tolist()))
                number += 1
        elif type(event) is Rewarded:
            places = np.frombuffer(event.places, dtype="<u4").tolist() if event.places else None
            rewards = unpack_numbers(event.rewards)
            policy.update(arms_of[event.number][slice(None) if places is None else places], rewards)
            told.append((event.number, places, rewards.tolist()))
            for place, reward in zip(places or range(4), rewards.tolist(), strict=True):
                values[event.number, place] = reward
    return policy, tally(told), values


def check(kept, loads):
    """Every acknowledged reward is in the log once, and the service's policy is the one that was fed the log.

    `kept`: the store and the shelf of a service that has stopped in order, so its snapshot covers the whole log.
    """
    store, shelf = kept
    store.open()
    try:
        events = [event for group in store.read(0) for event in decode_group(group.payload)]
    finally:
        store.close()
    position, host = newest_whole(shelf, None, pytest.fail)
    assert position == len(events)
    policy, (decisions, seen, counts, _), values = account(events)
    acknowledged = {key: value for load in loads for key, value in load.acknowledged.items()}
    assert not [load.strange for load in loads if load.strange]
    assert seen == set(values)
    for (decision, arm), reward in acknowledged.items():
        number = int(decision.rsplit("-", 1)[1])
        assert values[number, decisions[number].index(arm)] == reward
    assert policy.counts.tolist() == [counts.get(arm, 0) for arm in range(60)]
    mine, theirs = (_parse(to_bytes(one), "x") for one in (host.seats["default"].policy, policy))
    assert mine[0]["state"] == theirs[0]["state"]
    for name, array in theirs[1].items():
        if not name.startswith("decisions"):
            assert mine[1][name].tobytes() == array.tobytes(), name
    return len(acknowledged), len(decisions)


@contextlib.contextmanager
def loaded(clients, seed):
    """Clients that begin when they are told an address, and have ended afterwards."""
    loads = [Load(seed * 100 + i) for i in range(clients)]
    for load in loads:
        load.start()
    try:
        yield loads
    finally:
        for load in loads:
            load.ended = True
        for load in loads:
            load.join(30)


def direct(loads, address):
    """From now on they talk to this server."""
    for load in loads:
        load.address = address


def kill_again_and_again(folder, kept, kills, clients, seed, env=None):
    """Kill servers under load, let the last one stop in order, and `check`."""
    rng = random.Random(seed)
    with loaded(clients, seed) as loads:
        for i in range(kills):
            with Server(folder, *OPTIONS, env=env) as server:
                direct(loads, server.address)
                if i % 3 == 1:
                    with contextlib.suppress(Exception), Client(server.address, retries=0) as client:
                        threading.Timer(rng.random() * 0.05, server.process.kill).start()
                        client.snapshot()
                time.sleep(rng.random() * 0.4)
                server.kill()
        with Server(folder, *OPTIONS, env=env) as server:
            direct(loads, server.address)
            time.sleep(0.3)
            for load in loads:
                load.ended = True
            for load in loads:
                load.join(30)
            assert server.stop() == 0
    return check(kept, loads)
