"""The ledger against a naive one of dictionaries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.service import NaiveLedger
from semibandit.serve.keys import Keys, Known, digest_of
from semibandit.serve.ledger import COUNTED, DROPPED, GONE, WAITS, Ledger
from semibandit.serve.refusals import Refusal


def same(ledger, naive):
    ledger._check()
    assert ledger.next == naive.next
    assert list(range(ledger.oldest, ledger.next)) == sorted(naive.made)
    assert ledger.pending == naive.pending()
    for number, (_, arms, told) in naive.made.items():
        assert ledger.arms_of(number).tolist() == arms
        assert ledger.waiting_of(number).tolist() == naive.waiting(number)
        assert ledger.left_of(number) == len(arms) - len(told)


actions = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 9)),
        st.tuples(st.just("reward"), st.integers(0, 10**6), st.integers(0, 2**9)),
        st.tuples(st.just("tick"), st.integers(1, 40)),
        st.tuples(st.just("reload"), st.none()),
    ),
    max_size=120,
)


@settings(max_examples=60)
@given(actions, st.sampled_from([None, 5, 60]), st.sampled_from([1, 3, 40]), st.sampled_from([1, 12, 200]))
def test_as_a_naive_one(steps, ttl, most, most_arms):
    usual = 1 + most_arms % 7
    ledger, naive = Ledger(ttl, most, most_arms, usual), NaiveLedger(ttl, most, most_arms)
    now, arm = 0, 0
    for what, *rest in steps:
        if what == "add":
            arms = np.arange(arm, arm + rest[0])
            arm += rest[0]
            surplus = ledger.surplus(1, len(arms))
            if surplus:
                ledger.drop(surplus)
            assert ledger.add(arms, now) == naive.add(arms.tolist(), now)
        elif what == "reward" and naive.made:
            number = sorted(naive.made)[rest[0] % len(naive.made)]
            places = [p for p in range(len(naive.made[number][1])) if rest[1] >> p & 1]
            flags = ledger.flags_of(number)
            fresh = naive.reward(number, places)
            assert [p for p in places if flags[p] == WAITS] == fresh
            ledger.settle(number, places)
        elif what == "tick":
            now += rest[0]
            naive.tick(now)
            due = ledger.due(now)
            if due:
                ledger.drop(due)
        elif what == "reload":
            again = Ledger(ttl, most, most_arms)
            again.restore(ledger.state())
            assert again.state() == ledger.state()
            ledger = again
        same(ledger, naive)


def test_many_decisions_make_room():
    ledger = Ledger(None, 5000, 10**9)
    for i in range(20_000):
        if ledger.surplus(1, 3):
            number = ledger.oldest
            pending, waited = ledger.drop(1)
            assert number == i - 5000 and pending == 1
            assert waited.tolist() == [number, number + 1, number + 2]
        ledger.add(np.array([i, i + 1, i + 2]), i)
    ledger._check()
    assert len(ledger) == ledger.pending == 5000


def test_arms_that_become_something_new_are_withdrawn():
    ledger = Ledger(None, 10, 100)
    for arms in ([1, 2], [2, 3], [4]):
        ledger.add(np.array(arms), 0)
    ledger.settle(1, [1])
    assert ledger.withdraw(np.array([2, 3])).tolist() == [2, 2]
    assert [bytes(ledger.flags_of(n)) for n in range(3)] == [
        bytes([WAITS, GONE]),
        bytes([GONE, COUNTED]),
        bytes([WAITS]),
    ]
    assert ledger.pending == 2
    ledger.settle(1, [0])
    assert ledger.flags_of(1)[0] == DROPPED
    assert ledger.withdraw(np.array([9])).size == 0
    ledger._check()


def test_a_damaged_state_is_refused():
    ledger = Ledger(None, 10, 100)
    ledger.add(np.array([1, 2]), 0)
    state = ledger.state()
    with pytest.raises(ValueError, match="makes no sense"):
        Ledger(None, 10, 100).restore({**state, "flags": b"\x01"})


def test_keys_are_known_until_they_expire():
    keys = Keys(10, 2)
    one, two = digest_of("select", [1]), digest_of("select", [2])
    assert one != two
    keys.add("a", Known(0, one, 5, 1, 1))
    assert keys.find("a", one).first == 5
    with pytest.raises(Refusal) as refused:
        keys.find("a", two)
    assert (refused.value.status, refused.value.field, refused.value.value) == (409, "key", "a")
    keys.add("b", Known(5, one, 6, 1, 2))
    again = Keys(10, 2)
    again.restore(keys.state())
    for book in (keys, again):
        book.expire(9)
        assert len(book) == 2
        book.expire(10)
        assert book.find("a", one) is None and book.find("b", one).first == 6
        book.add("c", Known(6, one, 7, 1, 3))
        book.add("d", Known(7, one, 8, 1, 4))
        assert book.find("b", one) is None, "the oldest makes room"


@pytest.mark.parametrize("seed", range(20))
def test_many_at_once_is_as_one_by_one(seed):
    rng = np.random.default_rng(seed)
    most, ttl = int(rng.choice([3, 64, 200])), [None, 40][seed % 2]
    at_once, singly = Ledger(ttl, most, 16 * most, 4), Ledger(ttl, most, 16 * most, 4)
    room, now = len(at_once._arms), 0
    for _ in range(60):
        now += int(rng.integers(0, 9))
        due = at_once.due(now)
        found = at_once.drop(due) if due else (0, np.empty(0))
        dropped = [singly.drop(1) for _ in range(due)]
        assert singly.due(now) == 0
        assert found[0] == sum(one[0] for one in dropped)
        assert found[1].tolist() == [arm for one in dropped for arm in one[1].tolist()]
        n = int(rng.integers(0, at_once.room(one_for_one=True) + 1))
        sizes = rng.integers(0, 5, size=n)
        arms, times = rng.integers(0, 99, size=sizes.sum()), now + np.sort(rng.integers(0, 3, size=n))
        now = int(times[-1]) if n else now
        if n:
            at_once.add_many(arms, sizes, times)
        end = 0
        for size, at in zip(sizes.tolist(), times.tolist(), strict=True):
            singly.add(arms[end : end + size], at)
            end += size
        kept = np.arange(at_once.oldest, at_once.next)
        told = rng.permutation(kept)[: len(kept) // 3]
        at_once.settle_many(told)
        for number in told.tolist():
            singly.settle(number, None)
        surplus = at_once.surplus(0, 0)
        assert surplus == singly.surplus(0, 0) == max(0, len(at_once) - most)
        if surplus:
            at_once.drop(surplus)
            singly.drop(surplus)
        at_once._check()
        assert at_once.state() == singly.state()
        assert len(at_once._arms) == room, "it was large enough from the start"


@pytest.mark.parametrize("seed", range(20))
def test_decisions_leave_in_the_same_way_if_nobody_asks_for_their_arms(seed):
    rng = np.random.default_rng(seed)
    asked, silent = (Ledger(None, 40, 400, 3) for _ in range(2))
    for _ in range(200):
        arms = rng.integers(0, 50, size=rng.integers(0, 6))
        for one in (asked, silent):
            one.add(arms, 0)
        if len(asked) > 30:
            n = int(rng.integers(1, 12))
            told = asked.drop(n)[0]
            pending, nothing = silent.drop(n, named=False)
            assert pending == told and nothing.size == 0
        elif len(arms):
            for one in (asked, silent):
                one.settle(one.next - 1, None if len(arms) % 2 else [0])
        assert asked.state() == silent.state()
        assert (asked.pending, asked.kept_arms) == (silent.pending, silent.kept_arms)
