"""Several decisions in one request: written as objects would be, and the decisions that would be made one by one."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from semibandit.serve.batches import do_all, encode_results
from semibandit.serve.events import encode_event
from semibandit.serve.host import Host
from semibandit.serve.several import Several
from semibandit.serve.wire import (
    BatchAnswer,
    Decisions,
    PolicySpec,
    RewardsOperation,
    SelectOperation,
    encode_json,
)
from support.hosts import content


@pytest.mark.parametrize("seed", range(30))
def test_json_is_that_of_the_objects(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 12, size=rng.integers(1, 40))
    arms = rng.integers(0, [10, 10**7, 2**62][seed % 3], size=sizes.sum())
    arms[: len(arms) // 3] = rng.choice([0, 9, 10, 99, 100, 2**63 - 1], size=len(arms) // 3)
    one = Several(f"tag{seed}-{seed}-", int(rng.integers(0, 2**40)), int(rng.integers(1, 2**40)), arms, sizes)
    assert b'{"decisions":[' + one.json() + b"]}" == encode_json(Decisions(one.made()))


def make(policy, **more):
    host = Host()
    host.open(0, "aaaa")
    host.create(0, "p", PolicySpec(policy=policy, matroid={"arms": 50, "rank": 4}, **more))
    return host


@pytest.mark.parametrize("policy", ["cucb", "cts", "kl-osm", "random"])
@pytest.mark.parametrize("more", [{}, {"max_pending": 20}, {"ttl": 1e-3}])
def test_at_once_is_as_with_a_count_and_as_one_by_one(policy, more, tmp_path):
    several, counted, singles = make(policy, **more), make(policy, **more), make(policy, **more)
    for step in range(1, 60):
        n, at = 1 + step % 17, 300 * step
        event, made = counted.select(at, "p", count=n)
        assert several.most_at_once("p") == (
            0 if policy == "random" else min(1000, more.get("max_pending", 1000))
        )
        if policy != "random":
            mine, found = several.select_several(at, "p", n)
            assert encode_event(mine) == encode_event(event)
            assert found.made() == made
        # While nothing is pushed out, one by one is the same too.
        if "max_pending" not in more:
            assert [singles.select(at, "p")[1][0] for _ in range(n)] == made
        for one in made[::3]:
            for host in (counted,) if policy == "random" else (several, counted):
                host.reward(at, "p", one.decision, None, [0.25] * len(one.arms))
            if "max_pending" not in more:
                singles.reward(at, "p", one.decision, None, [0.25] * len(one.arms))
    assert policy == "random" or content(several, tmp_path / "a") == content(counted, tmp_path / "b")


class Served:
    """What a batch needs of a service."""

    def __init__(self, host):
        self.host, self.at = host, 0

    def decide_several(self, name, n):
        return self.host.select_several(self.at, name, n) if n <= self.host.most_at_once(name) else None

    def decide(self, *given):
        return self.host.select(self.at, *given)

    def learn(self, *given):
        return self.host.reward(self.at, *given)

    def learn_together(self, *given):
        return self.host.reward_together(self.at, *given)


class OneByOne(Served):
    """The same without what does many in one go."""

    def decide_several(self, name, n):
        return None

    def learn_together(self, name, told):
        return [], []


def test_selects_of_a_batch_are_made_at_once_and_answered_each():
    served, twin = Served(make("cucb")), make("cucb")
    first = [SelectOperation(policy="p") for _ in range(5)]
    events = []
    results = do_all(served, first, events)
    assert len(events) == len(results) == 1
    made = [twin.select(0, "p")[1][0] for _ in range(5)]
    answer = msgspec.json.decode(encode_results(results, True))
    assert answer == {"results": msgspec.to_builtins(made)}
    assert msgspec.msgpack.decode(encode_results(results, False)) == answer
    mixed = [
        SelectOperation(policy="p"),
        SelectOperation(policy="p", exclude=[1]),
        SelectOperation(policy="nobody"),
        SelectOperation(policy="nobody"),
        RewardsOperation(policy="p", decision=made[0].decision, rewards=[1.0, 0.0, 0.5, 1.0]),
        SelectOperation(policy="p", count=2),
        SelectOperation(policy="p"),
        SelectOperation(policy="p"),
    ]
    found = msgspec.json.decode(encode_results(do_all(served, mixed, events), True))["results"]
    assert len(found) == len(mixed) and len(events) == 1 + 5
    assert [one.get("status") for one in found] == [None, None, 404, 404, None, None, None, None]
    expected = [
        twin.select(0, "p")[1][0],
        twin.select(0, "p", exclude=[1])[1][0],
        None,
        None,
        twin.reward(0, "p", made[0].decision, None, [1.0, 0.0, 0.5, 1.0])[1],
        Decisions(twin.select(0, "p", count=2)[1]),
        twin.select(0, "p")[1][0],
        twin.select(0, "p")[1][0],
    ]
    for mine, theirs in zip(found, expected, strict=True):
        assert theirs is None or mine == msgspec.to_builtins(theirs)
    assert encode_results([], True) == encode_json(BatchAnswer([]))


def _operations(rng, made, n):
    """Rewards of decisions, most of them plain; some of what a client may also send in between."""
    told = []
    for _ in range(n):
        one = made[int(rng.integers(max(0, len(made) - 40), len(made)))]
        rewards = rng.random(len(one.arms)).round(3).tolist()
        operation = RewardsOperation(policy="p", decision=one.decision, rewards=rewards)
        odd = int(rng.integers(40))
        if odd == 0:
            rewards[int(rng.integers(len(rewards)))] = [1.5, float("nan"), float("inf"), -0.1][
                rng.integers(4)
            ]
        elif odd == 1:
            rewards.pop()
        elif odd == 2:
            operation.decision = ["aaaa-0-99999", "bbbb-0-1", "", "aaaa-0-x"][rng.integers(4)]
        elif odd == 3:
            operation.arms, operation.rewards = one.arms[:2], rewards[:2]
        elif odd == 4:
            operation.policy = "nobody"
        told.append(operation)
        if odd == 5:
            told.append(SelectOperation(policy="p"))
    return told


@pytest.mark.thin(1)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("policy", ["cucb", "cts", "kl-osm", "random", "ftrl"])
def test_rewards_of_a_batch_are_learnt_as_one_by_one(policy, seed, tmp_path):
    more = [{}, {"max_pending": 30}, {"ttl": 5e-3}, {"options": {"outside": "clip"}}][seed % 4]
    rng = np.random.default_rng(seed)
    hosts = make(policy, **more), make(policy, **more)
    mine, theirs = Served(hosts[0]), OneByOne(hosts[1])
    made = []
    for step in range(25):
        mine.at = theirs.at = 400 * step
        new = hosts[0].select(mine.at, "p", count=9)[1]
        assert hosts[1].select(mine.at, "p", count=9)[1] == new
        made += new
        told = _operations(rng, made, int(rng.integers(1, 30)))
        events, expected = [], []
        results = do_all(mine, told, events)
        assert encode_results(results, True) == encode_results(do_all(theirs, told, expected), True)
        assert [encode_event(one) for one in events] == [encode_event(one) for one in expected]
        assert hosts[0].position == hosts[1].position and hosts[0].time == hosts[1].time
    assert content(hosts[0], tmp_path / "a") == content(hosts[1], tmp_path / "b")


def test_that_rewards_of_a_batch_are_learnt_in_one_go():
    host = make("cts")
    made = host.select(0, "p", count=8)[1]
    told = [RewardsOperation(policy="p", decision=one.decision, rewards=[0.5] * 4) for one in made]
    told[5].rewards = [0.5, 0.5, 7.0, 0.5]
    events, learnt = host.reward_together(1, "p", told)
    assert len(events) == len(learnt) == 5 and host.position == 2 + 1 + 5
    before = host.position, host.time, host.seats["p"].rewards
    assert host.reward_together(2, "p", told[5:]) == ([], [])  # the first is bad
    assert host.reward_together(2, "p", told[:2]) == ([], [])  # told already
    assert host.reward_together(2, "nobody", told[6:]) == ([], [])
    assert (host.position, host.time, host.seats["p"].rewards) == before
    assert host.seats["p"].ledger.pending == 3
    assert len(host.reward_together(2, "p", told[6:])[0]) == 2
