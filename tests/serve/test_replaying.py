"""Replay in one go against one by one: the same state, bit for bit."""

from __future__ import annotations

import random

import numpy as np
import pytest

from semibandit.policies.catalogue import POLICIES
from semibandit.serve.events import Rewarded, Selected, decode_group, encode_group, pack_numbers
from semibandit.serve.host import Host
from semibandit.serve.refusals import ReplayError
from semibandit.serve.seats import Seat
from semibandit.serve.wire import PolicySpec
from support.hosts import PLAYED, SECOND, Player, content

#: Policies whose kernels replay alone.
AT_ONCE = ("cucb", "cts")


class Busy(Player):
    """Mostly single decisions and whole rewards, as a service has them; now and then anything else."""

    def step(self):
        rng = self.rng
        u = rng.random()
        if u > 0.96:
            super().step()
            return
        self.now += rng.randrange(1, SECOND // 50)
        name = rng.choice(list(self.names)) if rng.random() < 0.05 else next(iter(self.names))
        mine = [one for one in self.ids[-30:] if one[0] == name]
        if u < 0.5 or not mine:
            event, made = self.host.select(self.now, name)
            self.ids += [(name, one.decision, one.arms) for one in made]
        else:
            name, decision, played = rng.choice(mine)
            self.ids.remove((name, decision, played))
            if self.host.number_of_or_none(name, decision, self.now) is None:
                return
            event, _ = self.host.reward(self.now, name, decision, None, [rng.random() for _ in played])
        self.keep(event)


class AskedHost(Host):
    def number_of_or_none(self, name, decision, now):
        seat = self.seats[name]
        number = self.openings.number_of(seat.serial, decision)
        gone = number < seat.ledger.oldest or seat.ledger.is_late(number, self.now(now))
        return None if gone else number


def busy(policy, seed, matroid, **more):
    one = Busy(AskedHost(), seed)
    one.keep(one.host.open(0, "aaaa"))
    options = {"horizon": 1000} if "horizon" in POLICIES[policy].options else {}
    spec = PolicySpec(policy=policy, options=options, matroid=matroid, seed=seed, **more)
    arms = list(range(matroid["arms"]))
    one.create("p", spec, arms)
    one.create("q", spec, arms)
    return one


def in_pieces(events, rng):
    at = 0
    while at < len(events):
        n = rng.choice([1, 2, 7, 40, 1000])
        yield events[at : at + n]
        at += n


def same_again(one, folder, rng):
    events = decode_group(encode_group(one.log))
    at_once, one_by_one = Host(), Host()
    for some in in_pieces(events, rng):
        at_once.apply_all(some)
    for event in events:
        one_by_one.apply(event)
    for host in (one.host, at_once):
        for seat in host.seats.values():
            seat.ledger._check()
    expected = content(one.host, folder / "a")
    assert content(at_once, folder / "b") == expected
    assert content(one_by_one, folder / "c") == expected
    assert (at_once.position, at_once.time) == (one.host.position, one.host.time)


MATROIDS = [
    {"kind": "uniform", "arms": 1, "rank": 1},
    {"kind": "uniform", "arms": 6, "rank": 6},
    {"kind": "uniform", "arms": 40, "rank": 3},
    {"kind": "partition", "arms": 30, "rank": 5},
    {"kind": "graphic", "arms": 30, "rank": 9},
]
KEPT = [{"ttl": None}, {"ttl": 0.3}, {"ttl": 2.0, "max_pending": 7}, {"ttl": None, "max_pending": 1}]


def instances(n):
    for i in range(n):
        yield AT_ONCE[i % 2], i, MATROIDS[i // 2 % len(MATROIDS)], KEPT[i // 10 % len(KEPT)]


@pytest.mark.thin
@pytest.mark.parametrize("policy, seed, matroid, kept", list(instances(40)))
def test_in_one_go_is_as_one_by_one(policy, seed, matroid, kept, tmp_path):
    one = busy(policy, seed, matroid, **kept)
    for _ in range(150):
        one.step()
    same_again(one, tmp_path, random.Random(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300))
def test_in_one_go_is_as_one_by_one_many_times(seed, tmp_path):
    policy, _, matroid, kept = list(instances(40))[seed % 40]
    one = busy(policy, 1000 + seed, matroid, **kept)
    for _ in range(400):
        one.step()
    same_again(one, tmp_path, random.Random(seed))


@pytest.mark.parametrize("policy", PLAYED)
def test_every_policy(policy, tmp_path):
    one = busy(policy, 3, MATROIDS[2], ttl=1.0)
    for _ in range(100):
        one.step()
    same_again(one, tmp_path, random.Random(3))


@pytest.mark.parametrize(
    "policy, options",
    [
        ("cucb", {"ties": "random"}),
        ("cucb", {"outside": "clip"}),
        ("cucb", {"prior": [0.5, 2.0]}),
        ("cts", {"sampler": "plain"}),
        ("cts", {"posterior": "gaussian"}),
    ],
)
def test_options(policy, options, tmp_path):
    one = Busy(AskedHost(), 5)
    one.keep(one.host.open(0, "aaaa"))
    one.create("p", PolicySpec(policy=policy, options=options, matroid=MATROIDS[2]), list(range(40)))
    for _ in range(150):
        one.step()
    same_again(one, tmp_path, random.Random(5))


@pytest.mark.parametrize("policy", AT_ONCE)
def test_most_of_a_log_is_replayed_by_kernels(policy, monkeypatch):
    one = busy(policy, 1, MATROIDS[2], ttl=None)
    for _ in range(300):
        one.step()
    done = []
    replay = Seat.replay

    def counted(self, *given):
        found = replay(self, *given)
        done.append(found[0])
        return found

    monkeypatch.setattr(Seat, "replay", counted)
    Host().apply_all(decode_group(encode_group(one.log)))
    assert sum(done) > 0.7 * len(one.log)


def log_of(n):
    host = Host()
    events = [host.open(0, "aaaa"), host.create(0, "p", PolicySpec(policy="cts", matroid=MATROIDS[2]))]
    for i in range(n):
        event, made = host.select(i, "p")
        events += [event, host.reward(i, "p", made[0].decision, None, [0.0, 0.5, 1.0])[0]]
    return events


@pytest.mark.parametrize("which", [2, 20, 41])
def test_a_decision_that_is_another_one_is_found(which):
    events = log_of(20)
    at = which if type(events[which]) is Selected else which - 1
    arms = np.frombuffer(events[at].arms, dtype="<i4").copy()
    arms[0] = (arms[0] + 1) % 40
    events[at].arms = arms.tobytes()
    with pytest.raises(ReplayError, match="chose other arms"):
        Host().apply_all(events)


@pytest.mark.parametrize(
    "bad, told",
    [
        (lambda event: setattr(event, "number", 500), "not kept"),
        (lambda event: setattr(event, "rewards", pack_numbers(np.array([0.0, 7.0, 0.0]))), "is refused now"),
    ],
)
def test_rewards_that_cannot_be_are_found(bad, told):
    events = log_of(20)
    assert type(events[21]) is Rewarded
    bad(events[21])
    with pytest.raises(ReplayError, match=told):
        Host().apply_all(events)
