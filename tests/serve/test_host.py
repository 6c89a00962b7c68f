"""The state of the service without disk or network: what counts, what is refused, what replay ends in."""

from __future__ import annotations

import random

import numpy as np
import pytest

import semibandit as sb
from oracles.service import tally
from semibandit.policies.catalogue import build_policy
from semibandit.policies.files import to_bytes
from semibandit.serve.events import (
    Rewarded,
    Selected,
    decode_group,
    encode_group,
    unpack_arms,
    unpack_numbers,
)
from semibandit.serve.host import Host
from semibandit.serve.limits import Limits
from semibandit.serve.refusals import Refusal, ReplayError
from semibandit.serve.snapshots import FolderShelf, read_snapshot, write_snapshot
from semibandit.serve.wire import PolicySpec
from support.hosts import PLAYED, SECOND, content, player


@pytest.mark.thin
@pytest.mark.parametrize("policy", PLAYED)
def test_snapshot_and_replay_give_the_policy_that_never_stopped(policy, tmp_path):
    one = player(policy)
    for _ in range(120):
        one.step()
    shelf = FolderShelf(tmp_path)
    place = shelf.room()
    write_snapshot(one.host, place)
    shelf.publish(place, one.host.position)
    at = one.host.position
    one.keep(one.host.open(one.now, "bbbb"))
    for _ in range(120):
        one.step()
    events = decode_group(encode_group(one.log))
    assert len(events) == one.host.position
    restored, replayed = read_snapshot(shelf, at), Host()
    for event in events[at:]:
        restored.apply(event)
    for event in events:
        replayed.apply(event)
    for seat in one.host.seats.values():
        seat.ledger._check()
    expected = content(one.host, tmp_path / "a")
    assert content(restored, tmp_path / "b") == expected
    assert content(replayed, tmp_path / "c") == expected


@pytest.mark.parametrize("policy", ["comb-lin-ts", "comb-lin-ucb"])
def test_policies_over_features_are_refused(policy):
    host = Host()
    host.open(0, "aaaa")
    spec = PolicySpec(policy=policy, matroid={"kind": "uniform", "arms": 5, "rank": 2})
    with pytest.raises(Refusal, match="no room for features") as refused:
        host.create(0, "p", spec)
    assert refused.value.status == 422 and not host.seats


def test_what_counts_is_what_a_naive_account_says():
    one = player("cucb", seed=3)
    for _ in range(600):
        one.step()
    events = decode_group(encode_group(one.log))
    for name in ("plain", "costs"):
        told, number = [], 0
        for event in events:
            if type(event) is Selected and event.policy == name:
                arms, start = unpack_arms(event.arms).tolist(), 0
                for size in event.sizes or [len(arms)]:
                    told.append((number, arms[start : start + size]))
                    start, number = start + size, number + 1
            elif type(event) is Rewarded and event.policy == name:
                places = np.frombuffer(event.places, dtype="<u4").tolist() if event.places else None
                told.append((event.number, places, unpack_numbers(event.rewards).tolist()))
        _, seen, counts, sums = tally(told)
        updates = [e for e in events if type(e).__name__ == "Updated" and e.policy == name]
        for event in updates:
            for arm, reward in zip(event.arms, unpack_numbers(event.rewards).tolist(), strict=True):
                counts[arm] = counts.get(arm, 0) + 1
                sums[arm] = sums.get(arm, 0.0) + reward
        seat = one.host.seats[name]
        assert len(seen) + 2 * len(updates) == seat.rewards > 100
        assert seat.policy.counts.tolist() == [counts.get(arm, 0) for arm in range(30)]
        means = [sums[arm] / counts[arm] for arm in sorted(counts)]
        assert np.allclose(seat.policy.means[sorted(counts)], means, rtol=1e-12)


@pytest.mark.parametrize("policy", ["cucb", "cts", "ftrl", "kl-osm"])
def test_the_policy_is_the_one_that_decide_and_learn_make(policy):
    """Whole decisions in the service are `decide` and `learn` of the library, what waits included."""
    host, twin = Host(), build_policy(policy, {}, sb.Uniform(n_arms=12, rank=3))
    host.open(0, "aaaa")
    host.create(0, "p", PolicySpec(policy=policy, matroid={"arms": 12, "rank": 3}))
    rng, waiting = random.Random(5), []
    for t in range(200):
        if rng.random() < 0.6 or not waiting:
            n = rng.choice([1, 1, 3])
            _, made = host.select(t, "p", count=n)
            for one, decision in zip(made, twin.decide(count=n), strict=True):
                assert one.arms == decision.arms.tolist()
                waiting.append((one.decision, decision.id))
            assert made[-1].round == twin.t
        else:
            mine, theirs = waiting.pop(rng.randrange(len(waiting)))
            rewards = [rng.random() for _ in range(3)]
            host.reward(t, "p", mine, None, rewards)
            twin.learn(theirs, rewards)
    seat = host.seats["p"]
    for _, theirs in waiting:
        twin.drop(theirs)
    seat._let_go(len(seat.ledger))
    seat.policy._decisions._next = twin._decisions._next
    assert to_bytes(seat.policy) == to_bytes(twin)


def small(**options):
    host = Host(options.pop("limits", None))
    host.open(0, "aaaa")
    host.create(0, "p", PolicySpec(matroid={"arms": 12, "rank": 3}, **options))
    return host


def refusal(call, *given):
    with pytest.raises(Refusal) as caught:
        call(*given)
    return caught.value


def test_each_arm_of_a_decision_counts_once(tmp_path):
    host = small()
    _, (made,) = host.select(0, "p")
    _, learnt = host.reward(1, "p", made.decision, made.arms[1:2], [0.5])
    assert (learnt.counted, learnt.duplicates, learnt.waiting) == (1, 0, 2)
    event, learnt = host.reward(2, "p", made.decision, made.arms[1:2], [0.9])
    assert event is None and (learnt.counted, learnt.duplicates, learnt.waiting) == (0, 1, 2)
    event, learnt = host.reward(3, "p", made.decision, None, [0.1, 0.2, 0.3])
    assert (learnt.counted, learnt.duplicates, learnt.waiting) == (2, 1, 0)
    policy = host.seats["p"].policy
    assert policy.counts[made.arms].tolist() == [1, 1, 1]
    assert policy.means[made.arms].tolist() == [0.1, 0.5, 0.3]
    assert host.seats["p"].ledger.pending == 0


@pytest.mark.parametrize(
    "given, status, field, value",
    [
        (("nobody", "x", None, [1.0]), 404, "policy", "nobody"),
        (("p", "bbbb-0-0", None, [1.0, 1.0, 1.0]), 404, "decision", "bbbb-0-0"),
        (("p", "aaaa-0-7", None, [1.0, 1.0, 1.0]), 404, "decision", "aaaa-0-7"),
        (("p", "aaaa-0-٣", None, [1.0, 1.0, 1.0]), 404, "decision", "aaaa-0-٣"),
        (("p", "aaaa-0-0", None, [1.0]), 422, "rewards", 1),
        (("p", "aaaa-0-0", None, [0.1, 7.0, 0.2]), 422, "rewards[1]", 7.0),
        (("p", "aaaa-0-0", [0, 99], [0.1, 0.2]), 422, "arms[1]", 99),
        (("p", "aaaa-0-0", [0, 0], [0.1, 0.2]), 422, "arms[1]", 0),
        (("p", "aaaa-0-0", [1, 2, 0], [0.1, 0.2, float("nan")]), 422, "rewards[2]", None),
        (("p", "aaaa-0-0", [[0]], [0.1]), 422, "arms[0]", [0]),
    ],
)
def test_what_is_refused_changes_nothing(given, status, field, value, tmp_path):
    host = small()
    host.select(0, "p")
    before = content(host, tmp_path / "a")
    found = refusal(host.reward, 5, *given)
    assert (found.status, found.field) == (status, field)
    assert found.value == value or value is None
    assert content(host, tmp_path / "b") == before


def test_a_bad_reward_is_named_by_its_place_in_the_request_also_among_duplicates():
    host = small()
    _, (made,) = host.select(0, "p")
    host.reward(1, "p", made.decision, made.arms[:1], [0.5])
    found = refusal(host.reward, 2, "p", made.decision, None, [0.1, 0.2, -3.0])
    assert (found.status, found.field, found.value) == (422, "rewards[2]", -3.0)


@pytest.mark.parametrize(
    "exclude, among, count, field",
    [
        ([1, "x"], None, None, "exclude[1]"),
        (None, [0, 1, 12], None, "among[2]"),
        (None, [3, 3], None, "among"),
        (None, None, 0, "count"),
        (None, None, 10**6, "count"),
        ([2**70], None, None, "exclude[0]"),
        ([True], None, None, "exclude[0]"),
    ],
)
def test_what_cannot_be_asked_changes_nothing(exclude, among, count, field, tmp_path):
    host = small()
    before = content(host, tmp_path / "a")
    found = refusal(host.select, 5, "p", exclude, among, count)
    assert (found.status, found.field) == (422, field)
    assert content(host, tmp_path / "b") == before


def test_a_decision_past_its_time_is_gone_and_its_plays_wait_no_longer():
    host = small(ttl=10.0)
    _, (first,) = host.select(0, "p")
    _, (second,) = host.select(6 * SECOND, "p")
    host.reward(9 * SECOND, "p", first.decision, first.arms[:1], [1.0])
    found = refusal(host.reward, 10 * SECOND, "p", first.decision, first.arms[1:], [1.0, 1.0])
    assert (found.status, found.field) == (410, "decision")
    assert refusal(host.reward, 11 * SECOND, "p", first.decision, None, [1.0] * 3).status == 410
    host.reward(12 * SECOND, "p", second.decision, None, [1.0] * 3)
    seat = host.seats["p"]
    assert seat.expired == 1 and seat.ledger.pending == 0
    assert not seat.policy._plays_waiting.any()


def test_a_clock_that_goes_back_expires_nothing_and_replays_the_same(tmp_path):
    host, log = small(ttl=10.0), []
    _, (made,) = host.select(100 * SECOND, "p")
    event, (later,) = host.select(50 * SECOND, "p")
    assert event.at == 100 * SECOND
    host.reward(0, "p", made.decision, None, [1.0] * 3)
    event, learnt = host.reward(109 * SECOND, "p", later.decision, None, [1.0] * 3)
    assert learnt.counted == 3 and event.at == 109 * SECOND and not log


def test_too_many_decisions_push_the_oldest_out():
    host = small(max_pending=5)
    ids = [host.select(i, "p")[1][0] for i in range(8)]
    assert [refusal(host.reward, 9, "p", one.decision, None, [1.0] * 3).status for one in ids[:3]] == [
        410
    ] * 3
    for one in ids[3:]:
        host.reward(9, "p", one.decision, None, [1.0] * 3)
    assert host.seats["p"].evicted == host.seats["p"].expired == 3


def test_a_key_gives_the_same_decisions_again():
    host = small()
    event, made = host.select(0, "p", [1], None, 2, "mine")
    host.open(1, "bbbb")
    again, same = host.select(2, "p", [1], None, 2, "mine")
    assert event is not None and again is None and same == made
    assert refusal(host.select, 3, "p", [2], None, 2, "mine").status == 409
    assert host.seats["p"].policy.t == 2
    assert refusal(host.select, 3, "p", None, None, None, "").status == 422


def test_rewards_without_a_decision_count_once_by_their_key():
    host = small()
    _, learnt = host.update(0, "p", "a", [3, 3], [0.5, 1.0])
    assert learnt.counted == 2
    event, learnt = host.update(1, "p", "a", [3, 3], [0.5, 1.0])
    assert event is None and learnt.duplicates == 2
    assert refusal(host.update, 2, "p", "a", [3], [0.5]).status == 409
    found = refusal(host.update, 2, "p", "b", [3, 12], [0.5, 0.5])
    assert (found.status, found.field, found.value) == (422, "arms[1]", 12)
    found = refusal(host.update, 2, "p", "b", [3, 4], [0.5, 1.5])
    assert (found.status, found.field, found.value) == (422, "rewards[1]", 1.5)
    assert host.seats["p"].policy.counts.sum() == 2


def test_decisions_of_a_lost_future_are_unknown():
    """A state that was copied away and goes on twice gives ids that do not meet."""
    host, other = small(), small()
    host.open(1, "left"), other.open(1, "right")
    _, (mine,) = host.select(2, "p")
    _, (theirs,) = other.select(2, "p")
    assert mine.arms == theirs.arms and mine.decision != theirs.decision
    assert refusal(other.reward, 3, "p", mine.decision, None, [1.0] * 3).status == 404
    host.open(4, "again")
    host.select(5, "p")
    host.reward(6, "p", mine.decision, None, [1.0] * 3)
    assert refusal(host.reward, 6, "p", "again-0-0", None, [1.0] * 3).status == 404
    assert refusal(host.reward, 6, "p", "left-0-1", None, [1.0] * 3).status == 404


def test_a_policy_made_again_does_not_know_decisions_of_the_old_one():
    host = small()
    _, (made,) = host.select(0, "p")
    host.remove(1, "p")
    host.create(2, "p", PolicySpec(matroid={"arms": 12, "rank": 3}))
    host.select(3, "p")
    assert refusal(host.reward, 4, "p", made.decision, None, [1.0] * 3).status == 404


def test_labels_that_expire_while_their_rewards_are_on_the_way():
    host = Host()
    host.open(0, "aaaa")
    host.create(0, "page", PolicySpec(catalog={"kind": "uniform", "rank": 2, "labels": ["a", "b", "c"]}))
    _, (made,) = host.select(1, "page")
    assert made.arms == ["a", "b"]
    host.delete(2, "page", ["b"])
    host.insert(3, "page", ["b"])
    _, learnt = host.reward(4, "page", made.decision, ["a", "b"], [1.0, 1.0])
    assert (learnt.counted, learnt.dropped, learnt.waiting) == (1, 1, 0)
    _, learnt = host.reward(5, "page", made.decision, ["b"], [1.0])
    assert (learnt.counted, learnt.duplicates) == (0, 1)
    rows = {row["label"]: row["count"] for row in host.seats["page"].catalog.rows()}
    assert rows == {"a": 1, "b": 0, "c": 0}
    for bad, field in (([["a"]], "arms[0]"), (["zzz"], "arms[0]"), (["a", "a"], "arms")):
        assert refusal(host.delete, 6, "page", bad).field == field
    assert refusal(host.insert, 6, "page", ["a"]).status == 409
    assert refusal(host.insert, 6, "page", ["n"], ["category"]).field == "attributes[0]"


def test_a_log_that_leads_elsewhere_is_refused():
    host = small()
    event, _ = host.select(0, "p")
    again = small()
    event.arms = event.arms[:-4] + b"\x0b\0\0\0"
    with pytest.raises(ReplayError, match="chose other arms"):
        again.apply(event)
    with pytest.raises(ReplayError, match="not known here"):
        again.apply(Rewarded(0, "q", 0, b""))
    with pytest.raises(ReplayError, match="not kept"):
        again.apply(Rewarded(0, "p", 7, b""))


@pytest.mark.parametrize(
    "spec, field",
    [
        ({"policy": "nope", "matroid": {"arms": 3, "rank": 1}}, "policy"),
        ({}, "matroid"),
        ({"matroid": {"arms": 3, "rank": 1}, "catalog": {"rank": 1}}, "matroid"),
        ({"matroid": {"kind": "moon", "arms": 3, "rank": 1}}, "matroid.kind"),
        ({"matroid": {"arms": 3, "rank": 4}}, "matroid.rank"),
        ({"matroid": {"arms": "3", "rank": 1}}, "matroid.arms"),
        ({"matroid": {"arms": 10**9, "rank": 1}}, "arms"),
        ({"matroid": {"arms": 3, "rank": 1, "path": "/etc/passwd"}}, "matroid.path"),
        ({"catalog": {"kind": "__init__"}}, "catalog.kind"),
        ({"catalog": {"kind": "uniform", "rank": 0}}, "catalog"),
        ({"catalog": {"kind": "partition", "quotas": {"a": 1}, "labels": [["x", "b"]]}}, "catalog"),
        ({"matroid": {"arms": 3, "rank": 1}, "options": {"exploration": "x"}}, "matroid"),
        ({"matroid": {"arms": 3, "rank": 1}, "ttl": 0.0}, "ttl"),
        ({"matroid": {"kind": "partition", "groups": "abc"}}, "matroid"),
    ],
)
def test_policies_that_cannot_be(spec, field):
    host = small()
    found = refusal(host.create, 1, "new", PolicySpec(**spec))
    assert found.field == field and found.status in (413, 422)
    assert list(host.seats) == ["p"] and host.position == 2


def test_limits_and_names():
    host = small(limits=Limits(policies=2, arms_per_request=3))
    spec = PolicySpec(matroid={"arms": 12, "rank": 3})
    for name in ("", "A", "a/b", "-a", "x" * 65):
        assert refusal(host.create, 0, name, spec).field == "name"
    assert host.create(0, "p", spec) is None, "asked for in the same words"
    assert refusal(host.create, 0, "p", PolicySpec(matroid={"arms": 13, "rank": 3})).status == 409
    host.create(0, "q", spec)
    assert refusal(host.create, 0, "r", spec).code == "too_many_policies"
    for call in (
        lambda: host.select(0, "p", [1, 2, 3, 4]),
        lambda: host.update(0, "p", "k", [1, 2, 3, 4], [1.0] * 4),
        lambda: host.delete(0, "p", [1, 2, 3, 4]),
    ):
        assert refusal(call).status == 413
