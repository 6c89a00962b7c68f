"""Sharded policies with features: the decisions, the posterior and the files of one process."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semibandit as sb
from semibandit.distributed import Sharded
from semibandit.distributed.featured import ShardedFeatures
from semibandit.errors import ParameterError, ShardError
from semibandit.matroids import codec
from semibandit.policies.catalogue import POLICIES
from semibandit.policies.linear.shortlist import SHORTLIST_FROM
from semibandit.testing import check_policy
from support.random_matroids import RANDOM
from support.sharded import Careless, FeaturedCase, Life

FAST, ALL = 42, 420
FEATURED = ("comb-lin-ts", "comb-lin-ucb")


def lockstep(seed: int, rounds: int = 25, on: Any = None) -> Life:
    case = FeaturedCase(seed)
    life = Life(case, case.one(), Sharded(case.matroid, on=on, **case.arguments()))
    life.live(rounds)
    life.many._check()
    life.one._check()
    assert np.array_equal(life.one.theta, life.many.theta), case
    assert np.array_equal(life.one.covariance, life.many.covariance), case
    return life


@pytest.mark.parametrize("first", range(0, FAST, 21))
def test_decides_what_one_process_decides(first: int) -> None:
    for seed in range(first, first + 21):
        lockstep(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FAST, ALL, 21))
def test_decides_what_one_process_decides_in_many_instances(first: int) -> None:
    for seed in range(first, first + 21):
        lockstep(seed, rounds=60)


@pytest.mark.parametrize("first", [0])
def test_shards_that_are_lost_change_nothing(first: int) -> None:
    lost = 0
    for seed in range(first, first + 21):
        on = Careless(0.1, seed)
        lockstep(seed, on=on)
        lost += on.lost
    assert lost > 50


def test_the_instances_are_of_all_kinds() -> None:
    cases = [FeaturedCase(seed) for seed in range(ALL)]
    assert {case.kind for case in cases} == set(RANDOM)
    found = {(case.policy, case.kind_of_features, case.whole) for case in cases}
    assert found == {(p, k, w) for p in FEATURED for k in ("fixed", "one", "call") for w in (False, True)}


@pytest.mark.parametrize("policy", FEATURED)
@pytest.mark.parametrize("kind", [*RANDOM])
def test_keeps_the_contract(kind: str, policy: str) -> None:
    rng = np.random.default_rng(4)
    matroid, rows = RANDOM[kind](rng, 13)[0], rng.normal(size=(13, 3))
    check_policy(lambda: Sharded(matroid, policy=policy, shards=3, features=rows))


LARGE = SHORTLIST_FROM // 2
BOTH = (sb.Uniform(LARGE, 3), sb.Partition(np.arange(LARGE) % 3, [1, 2, 1]))


def far_along(policy: str, matroid: sb.Matroid, rounds: int) -> None:
    """So many features that a BLAS and short lists of arms are at work, in one process and in the shards."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(LARGE, 4))
    one = POLICIES[policy].factory(matroid, features=rows, seed=2)
    on = Careless(0.01, 5)
    many = Sharded(matroid, policy=policy, shards=2, features=rows, seed=2, on=on)
    truth = rng.normal(size=4) / 4
    for t in range(rounds):
        arms = one.select()
        assert np.array_equal(arms, many.select()), t
        rewards = np.clip(rows[arms] @ truth + 0.5, 0.0, 1.0)
        for each in (one, many):
            each.update(arms, rewards)
    assert one.describe()["short_rounds"] > 10
    held = [shard.policy.describe() for shard in on.shards.values()]
    assert sum(about.get("short_rounds", 0) for about in held) > 10 and on.lost > 0, held


@pytest.mark.parametrize(("policy", "matroid"), [*zip(FEATURED, BOTH, strict=True)])
def test_short_lists_decide_alike(policy: str, matroid: sb.Matroid) -> None:
    far_along(policy, matroid, 90)


@pytest.mark.slow
@pytest.mark.parametrize("policy", FEATURED)
@pytest.mark.parametrize("matroid", BOTH)
def test_short_lists_decide_alike_for_long(policy: str, matroid: sb.Matroid) -> None:
    far_along(policy, matroid, 300)


def test_a_round_and_its_feedback_are_one_message_to_each_shard() -> None:
    on = Careless()
    rng = np.random.default_rng(0)
    for policy in FEATURED:
        many = Sharded(
            sb.Uniform(n_arms=40, rank=5), policy=policy, shards=4, features=rng.normal(size=(40, 3)), on=on
        )
        inside, sent = on.ask, []

        def ask(messages: Any, inside: Any = inside, sent: Any = sent) -> Any:
            sent.extend(messages)
            return inside(messages)

        on.ask = ask  # type: ignore[method-assign]
        for rounds in range(1, 6):
            decision = many.decide()
            many.learn(decision, np.full(5, 0.5))
            many.update(decision.arms, np.full(5, 0.5))
            assert len(sent) == 4 * rounds
        bases = many.select(count=3)
        assert len(sent) == 24
        many.update(bases[0], np.zeros(5))
        assert len(sent) == 24
        on.ask = inside  # type: ignore[method-assign]


@pytest.mark.parametrize("policy", FEATURED)
@pytest.mark.parametrize("kind", [*RANDOM])
def test_parts_bring_their_features(kind: str, policy: str) -> None:
    case = FeaturedCase(1)
    case.policy, case.options, case.kind_of_features = policy, {}, "fixed"
    rng = np.random.default_rng(0)
    case.matroid = RANDOM[kind](rng, 15)[0]
    row: Any = codec.row_of(type(case.matroid))
    whole, ends, rows = row.to_parts(case.matroid), (0, 4, 10, 15), rng.normal(size=(15, 3))
    parts = [{**row.parting.take(whole, np.arange(a, b)), "features": rows[a:b]} for a, b in pairwise(ends)]
    try:
        for part in parts:
            own = {key: value for key, value in part.items() if key != "features"}
            row.from_parts(**row.parting.join([own]))
    except sb.errors.MatroidError:
        pytest.skip("a part of loops alone")
    many = Sharded.from_parts(row.name, parts, policy=policy, seed=1, on=Careless(0.05, 1))
    assert isinstance(many, ShardedFeatures) and many.dimension == 3
    case.options = {"features": rows}
    Life(case, case.one(), many).live(20)
    parts[1]["features"] = rows[4:10, :2]
    with pytest.raises(ParameterError, match="different lengths"):
        Sharded.from_parts(row.name, parts, policy=policy)


@pytest.mark.parametrize("policy", FEATURED)
@pytest.mark.parametrize("how", ["fixed", "call", "one"])
def test_goes_on_from_files_pickles_and_copies(tmp_path: Path, policy: str, how: str) -> None:
    rng = np.random.default_rng(1)
    matroid = sb.Graphic(rng.integers(0, 7, (25, 2)))
    rows = rng.normal(size=(25, 3))
    options: dict[str, Any] = {"fixed": {"features": rows}, "call": {"dimension": 3}, "one": {}}[how]
    made = Sharded(matroid, policy=policy, shards=3, seed=5, outside="clip", noise=0.3, **options)
    now = {"features": rows} if how == "call" else {}

    def learn(each: Any, arms: Any) -> None:
        each.update(arms, arms % 5 / 4, rows[arms] if how == "call" else None)

    for t in range(12):
        arms = made.select(**now)
        learn(made, arms[t % 2 :])
    made.delete([1, 20])
    decisions = [made.decide(**now) for _ in range(3)]
    made.drop(decisions.pop())
    decision = decisions[0]
    path = tmp_path / "policy.semibandit"
    made.save(path)
    others: list[Any] = [
        Sharded.load(path, on=Careless(0.05)),
        pickle.loads(pickle.dumps(made)),
        made.clone(),
    ]
    for each in (made, *others):
        assert each.t == made.t and each.waiting == 2
        each.learn(decision.id, np.full(len(decision.arms), 0.5))
    for _ in range(15):
        arms = made.select(**now)
        for each in (made, *others):
            assert each is made or np.array_equal(each.select(**now), arms)
            learn(each, arms)
    for each in others:
        assert np.array_equal(each.theta, made.theta) and np.array_equal(each.covariance, made.covariance)
        assert np.array_equal(each.counts, made.counts)
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("policy", FEATURED)
def test_grows_and_gives_ids_to_others_as_one_process(policy: str) -> None:
    rng = np.random.default_rng(2)
    rows, groups = rng.normal(size=(16, 3)), np.array([0, 0, 1, 1, 2, 2, 2, 3, 4, 4, 0, 5, 5, 3, 6, 6])

    def matroid(n: int) -> sb.Partition:
        return sb.Partition(groups[:n], 1)

    on = Careless(0.1, 1)
    one = POLICIES[policy].factory(matroid(6), features=rows[:6])
    many = Sharded(matroid(6), policy=policy, shards=3, features=rows[:6], on=on)
    for before, n in pairwise((6, 6, 9, 10, 16)):
        for each in (one, many):
            if n > before:
                each.grow(matroid(n), rows[before:n])
            each.reset([2, 4], rows[[n - 1, n - 2]])
            each.reset([3])
        for t in range(12):
            arms = one.select()
            assert np.array_equal(arms, many.select()), (n, t)
            for each in (one, many):
                each.update(arms, arms % 3 / 2)
    assert np.array_equal(one.counts, many.counts) and on.lost > 0
    with pytest.raises(ParameterError, match="features must be given: one row for each of the 4"):
        many.grow(sb.Partition(np.arange(20) % 4, 1))


def test_a_call_that_fails_draws_nothing() -> None:
    rows = np.random.default_rng(0).normal(size=(12, 2))
    on = Careless()
    many, one = (
        Sharded(sb.Uniform(12, 2), policy="comb-lin-ts", shards=3, features=rows, on=on),
        sb.CombLinTS(sb.Uniform(12, 2), features=rows),
    )
    for t in range(20):
        if t % 3 == 1:
            on.late = 1
            with pytest.raises(ShardError):
                many.select()
        arms = one.select()
        assert np.array_equal(arms, many.select())
        for each in (one, many):
            each.update(arms, arms % 3 / 2)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"features": [[1.0]]}, r"one row per arm \(12\)"),
        ({"features": [[1.0]] * 12, "dimension": 1}, "give one of them"),
        ({"features": [[np.nan]] * 12}, "finite"),
        ({"dimension": 0}, "dimension must be"),
        ({"noise": 0.0}, "noise must be"),
        ({"width": 1.0}, "no option 'width'"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        Sharded(sb.Uniform(n_arms=12, rank=3), policy="comb-lin-ts", **wrong)


def test_refused_calls_change_nothing() -> None:
    rows = np.random.default_rng(0).normal(size=(9, 2))
    given = Sharded(sb.Uniform(9, 2), policy="comb-lin-ucb", shards=2, dimension=2)
    for call, told in (
        (lambda: given.select(), "features must be given"),
        (lambda: given.select(features=rows[:3]), "one row per arm"),
        (lambda: given.select(features=rows * np.inf), "finite"),
        (lambda: given.update([1], [0.5]), "features must be given"),
        (lambda: given.reset([1], rows[:1]), "no fixed ones"),
        (lambda: sb.minimize(given), "learns rewards"),
        (lambda: Sharded(sb.Uniform(900, 2), policy="comb-lin-ts"), "at most 512"),
    ):
        with pytest.raises(ParameterError, match=told):
            call()  # type: ignore[no-untyped-call]
    assert given.t == 0 and given.counts.sum() == 0
    fixed = Sharded(sb.Uniform(9, 2), policy="comb-lin-ucb", shards=2, features=rows)
    for call, told in (
        (lambda: fixed.select(features=rows), "are fixed"),
        (lambda: fixed.reset([1, 1], rows[:2]), "named twice"),
        (lambda: fixed.grow(sb.Uniform(10, 2)), "features must be given"),
    ):
        with pytest.raises(ParameterError, match=told):
            call()  # type: ignore[no-untyped-call]
    assert fixed.describe()["features"] == "fixed" and fixed.confidence_width == 1.0
