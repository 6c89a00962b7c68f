"""Membership one arm at a time: the slow tests of all classes, in any order of asking."""

from __future__ import annotations

import numpy as np
import pytest

import semibandit as sb
from semibandit.arms import flat, new_records
from semibandit.compiled.handle import by_handle, make_handle
from semibandit.engines.resolve.one_by_one import (
    CLOSED,
    REFUSED,
    TAKEN,
    UNKNOWN,
    Rule,
    begin,
    classes_of,
    rule_of,
    take,
)
from semibandit.matroids import codec
from support.outside_matroid import Deadlines
from support.random_matroids import RANDOM

# Importing it registers it, for all tests of this process; here it is a class like any other.
codec._rows.pop("deadlines", None)


def records_of(n_arms):
    return flat(new_records(n_arms)).reshape(-1, 4)


def asked(rule, arms):
    """What `take` says of each arm in turn, nothing being taken before."""
    handle = make_handle(rule)
    by_handle(begin, Rule).entry(handle)
    enter = by_handle(take, Rule).entry
    return [int(enter(handle, arm)) for arm in arms]


@pytest.mark.parametrize("kind", RANDOM)
def test_every_class_says_what_the_slow_test_says(kind):
    rng = np.random.default_rng(5)
    for _ in range(60):
        n = int(rng.integers(1, 11))
        matroid, independent = RANDOM[kind](rng, n)
        rule = rule_of(matroid, records_of(n))
        classes, _ = classes_of(matroid)
        for _ in range(2):  # a rule begins anew
            taken, closed = [], set()
            order = rng.permutation(n).tolist()
            for arm, answer in zip(order, asked(rule, order), strict=True):
                if len(taken) == matroid.rank:
                    break  # whoever takes stops at the rank
                assert (answer == TAKEN) == independent([*taken, arm])
                if answer == TAKEN:
                    assert classes[arm] not in closed
                    taken.append(arm)
                elif answer == CLOSED:
                    closed.add(classes[arm])


@pytest.mark.parametrize("kind", ["uniform", "partition", "laminar"])
def test_arms_of_a_class_stand_for_each_other(kind):
    rng = np.random.default_rng(6)
    for _ in range(30):
        matroid, independent = RANDOM[kind](rng, 8)
        classes, n_classes = classes_of(matroid)
        assert classes.max() < n_classes
        for _ in range(20):
            some = rng.permutation(8)[: rng.integers(1, 8)].tolist()
            others = [arm for arm in range(8) if arm not in some and classes[arm] == classes[some[0]]]
            for arm in others:
                assert independent(some) == independent([arm, *some[1:]])


def test_where_no_classes_are_known_there_is_one_and_no_number():
    classes, n_classes = classes_of(sb.Graphic([(0, 1), (1, 2)]))
    assert classes.tolist() == [0, 0] and n_classes == 0


@pytest.mark.parametrize("primes", [[2, 3], [3, 2], [2, 2, 3, 5]])
def test_a_prime_that_sees_a_false_dependence_has_no_say_any_more(primes):
    """(1, 1) and (1, -1) are dependent modulo 2, and independent."""
    matroid = sb.Linear([[1, 1, 0], [1, -1, 0], [0, 0, 1], [1, 3, 4], [2, 0, 0]])
    rule = rule_of(matroid, records_of(5))
    m = len(primes)
    rule = rule._replace(
        first=np.array(primes, dtype=np.int64),
        rows=np.zeros((m * 4, 3), dtype=np.int64),
        pivots=np.zeros((m, 3), dtype=np.int64),
        scratch=np.zeros((1, m), dtype=np.int64),
    )
    assert asked(rule, [0, 1, 4, 2, 3]) == [TAKEN, TAKEN, REFUSED, TAKEN, REFUSED]


def test_of_a_class_of_the_users_only_python_can_tell():
    assert rule_of(Deadlines([1, 2, 2]), records_of(3)).kind == UNKNOWN
