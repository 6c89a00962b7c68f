"""Sharded policies without Ray: the decisions of one process, whatever gets lost on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semibandit as sb
from semibandit.distributed import Sharded
from semibandit.distributed.split import split
from semibandit.errors import (
    ArmError,
    MissingExtraError,
    ParameterError,
    RewardError,
    ShardError,
)
from semibandit.policies.index.cucb import CUCB
from semibandit.testing import check_policy
from support.random_matroids import RANDOM
from support.sharded import Careless, Case, Life

FAST, ALL = 84, 420
SHARDABLE = ("cucb", "kl-osm", "cts")


def lockstep(seed: int, rounds: int = 25, on: Any = None) -> Life:
    case = Case(seed)
    life = Life(case, case.one(), Sharded(case.matroid, on=on, **case.arguments()))
    life.live(rounds)
    life.many._check()
    return life


@pytest.mark.thin
@pytest.mark.parametrize("first", range(0, FAST, 21))
def test_decides_what_one_process_decides(first: int) -> None:
    for seed in range(first, first + 21):
        lockstep(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FAST, ALL, 21))
def test_decides_what_one_process_decides_in_many_instances(first: int) -> None:
    for seed in range(first, first + 21):
        lockstep(seed, rounds=60)


@pytest.mark.parametrize("first", range(0, 42, 21))
def test_shards_that_are_lost_change_nothing(first: int) -> None:
    lost = 0
    for seed in range(first, first + 21):
        on = Careless(0.1, seed)
        life = lockstep(seed, on=on)
        lost += on.lost
        assert life.many.describe()["revived"] >= on.lost > 0 or life.case.shards < 5
    assert lost > 100


def test_the_instances_are_of_all_kinds() -> None:
    cases = [Case(seed) for seed in range(FAST)]
    assert {case.kind for case in cases} == set(RANDOM)
    assert {(case.policy, case.shards) for case in cases} >= {
        (one, n) for one in SHARDABLE for n in (1, 2, 5)
    }
    parted = [split(case.matroid, case.shards) for case in cases if case.shards > 1]
    assert any(one.owner.size for one in parted) and any(one.apart for one in parted)
    assert any(not one.apart and not one.owner.size for one in parted)


@pytest.mark.parametrize("policy", SHARDABLE)
@pytest.mark.parametrize("kind", [*RANDOM])
def test_keeps_the_contract(kind: str, policy: str) -> None:
    matroid = RANDOM[kind](np.random.default_rng(4), 13)[0]
    check_policy(lambda: Sharded(matroid, policy=policy, shards=3))
    if kind in ("partition", "graphic"):
        check_policy(lambda: sb.minimize(Sharded(matroid, policy=policy, shards=2, reward_range=(-1.0, 3.0))))


@pytest.mark.parametrize("policy", SHARDABLE)
def test_rewards_outside_are_clipped_and_counted_as_in_one_process(policy: str) -> None:
    matroid = sb.Uniform(n_arms=6, rank=2)
    keyed = {"sampler": "keyed"} if policy == "cts" else {}
    one = sb.policies.catalogue.build_policy(policy, {"outside": "clip", **keyed}, matroid)
    many = Sharded(matroid, policy=policy, shards=3, outside="clip")
    for each in (one, many):
        each.update([0, 3, 5, 3], [1.5, -2.0, 0.5, 0.25])
        assert each.clipped == 2 and each.means[3] == 0.125
    assert np.array_equal(one.select(), many.select())


def test_many_rounds_in_one_message_are_those_of_many_messages() -> None:
    matroid = sb.Graphic(np.random.default_rng(0).integers(0, 8, (30, 2)))
    for policy in SHARDABLE:
        on = Careless()
        at_once, one_by_one = (
            Sharded(matroid, policy=policy, shards=4, on=on),
            Sharded(matroid, policy=policy),
        )
        for each in (at_once, one_by_one):
            each.update(np.arange(30), np.arange(30) % 7 / 7)
        asked = count_messages(on)
        found = at_once.select(exclude=[3, 9], count=5)
        assert asked() == 4
        assert [arms.tolist() for arms in found] == [one_by_one.select([3, 9]).tolist() for _ in range(5)]
        assert at_once.t == 5
    with pytest.raises(ParameterError, match="count goes with neither"):
        at_once.select(among=[1], count=2)
    with pytest.raises(ParameterError, match="count"):
        at_once.select(count=0)


def count_messages(on: Careless) -> Any:
    """A function that tells how many messages were sent since."""
    inside, sent = on.ask, []

    def ask(messages: Any) -> Any:
        sent.extend(messages)
        return inside(messages)

    on.ask = ask  # type: ignore[method-assign]
    return lambda: len(sent)


def test_a_round_is_one_message_to_each_shard_whatever_was_told_before() -> None:
    on = Careless()
    policy = Sharded(sb.Uniform(n_arms=40, rank=5), shards=4, on=on)
    asked = count_messages(on)
    for rounds in range(1, 11):
        decision = policy.decide()
        policy.learn(decision, np.full(5, 0.5))
        policy.update([1, 39, 20], [0.1, 0.2, 0.3])
        policy.reset([7])
        assert asked() == 4 * rounds


# -- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"policy": "fpl"}, "'fpl' cannot be sharded: 'cucb', 'kl-osm', 'cts', 'comb-lin-ts'"),
        ({"policy": "cucbb"}, "not known"),
        ({"policy": 3}, "a name or a class"),
        ({"ties": "random"}, "ties = 'random' cannot be sharded"),
        ({"schedule": lambda t: 1.0}, "a schedule of your own"),
        ({"policy": "cts", "sampler": "grouped"}, "sampler = 'grouped' cannot be sharded"),
        ({"policy": "cts", "posterior": "gaussian", "prior": (0.5, 2.0)}, "prior is for"),
        ({"shards": 0}, "shards must be"),
        ({"shards": 13}, r"between 1 and the number of arms \(12\)"),
        ({"on": "mars"}, "on = 'mars' is not known"),
        ({"on": 4}, "on must be"),
        ({"timeout": 0}, "timeout must be"),
        ({"colour": 1}, "no option 'colour'"),
        ({"exploration": -1.0}, "exploration must be"),
        ({"engine": "nothing"}, "engine = 'nothing' is not known"),
        ({"prior": ([0.5] * 3, 1.0)}, "one for each of 12 arms"),
        ({"reward_range": (1, 0)}, "reward_range must be"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        Sharded(sb.Uniform(n_arms=12, rank=3), **wrong)


def test_a_matroid_that_cannot_be_cut_is_refused() -> None:
    class Pairs(sb.Matroid):
        def _is_independent(self, arms: Any) -> bool:
            return len(arms) <= 2

    with pytest.raises(ParameterError, match="a Pairs cannot be sharded: Uniform, Partition"):
        Sharded(Pairs(5))


def test_refused_calls_change_nothing() -> None:
    policy, twin = (Sharded(sb.Uniform(n_arms=9, rank=2), shards=3) for _ in range(2))
    policy.delete([4])
    twin.delete([4])
    for method, args, error in (
        ("update", ([1, 9], [0.5, 0.5]), ArmError),
        ("update", ([1, 8], [0.5, 1.5]), RewardError),
        ("delete", ([1, 4],), ArmError),
        ("delete", ([1, 1],), ArmError),
        ("insert", ([4, 5],), ArmError),
        ("reset", ([-1],), ArmError),
        ("select", ([12],), ArmError),
        ("scores", ([9],), ArmError),
        ("learn", (3, [1.0]), ArmError),
        ("reseed", (-1,), ParameterError),
    ):
        with pytest.raises(error):
            getattr(policy, method)(*args)
    for _ in range(8):
        arms = policy.select()
        assert np.array_equal(arms, twin.select())
        policy.update(arms, arms / 10)
        twin.update(arms, arms / 10)
    assert np.array_equal(policy.counts, twin.counts)


# -- faults --------------------------------------------------------------------------------------------------------


def test_a_shard_that_does_not_answer_is_an_error_after_which_all_goes_on() -> None:
    for policy in SHARDABLE:
        on = Careless()
        matroid = sb.Partition(np.arange(20) % 4, [1, 2, 1, 1])
        many, one = (
            Sharded(matroid, policy=policy, shards=3, on=on),
            Sharded(matroid, policy=policy, shards=1),
        )
        for t in range(30):
            if t % 3 == 1:
                on.late = 1 + t % 2
                while on.late:
                    with pytest.raises(ShardError, match="shard 0 of 3 did not answer in time"):
                        many.select()
                assert many.t == one.t
            arms = many.select()
            assert np.array_equal(arms, one.select())
            for each in (many, one):
                each.update(arms, arms % 3 / 2)
        assert np.array_equal(many.counts, one.counts)


def test_a_shard_that_is_always_lost_is_an_error() -> None:
    on = Careless()
    policy = Sharded(sb.Uniform(n_arms=9, rank=2), shards=3, on=on)
    policy.update([1, 2], [0.5, 0.5])
    on.chance = 1.0
    with pytest.raises(ShardError, match="lost 5 times in a row"):
        policy.select()
    on.chance = 0.0
    assert policy.t == 0 and policy.select().tolist() == [0, 3] and policy.counts.sum() == 2


@pytest.mark.parametrize("folder", [None, "snapshots"])
def test_ledgers_are_cut_by_snapshots(tmp_path: Path, folder: str | None) -> None:
    on = Careless(0.1, 3)
    where = None if folder is None else tmp_path / folder
    matroid = sb.Uniform(n_arms=30, rank=3)
    many, one = Sharded(matroid, shards=3, on=on, snapshots=where), CUCB(matroid)
    many._crew.kept = 20
    for t in range(150):
        decisions = [each.decide() for each in (many, one)]
        assert np.array_equal(decisions[0].arms, decisions[1].arms)
        if t % 5:
            for each, decision in zip((many, one), decisions, strict=True):
                each.learn(decision, decision.arms % 5 / 4)
        assert all(ledger.rows < 20 + 60 for ledger in many._crew._ledgers.values())
    assert on.lost > 20
    if where is not None:
        assert len(list(where.iterdir())) == 3
        many.close()
        assert not list(where.iterdir())


def test_feedback_without_rounds_does_not_pile_up() -> None:
    on = Careless()
    policy = Sharded(sb.Uniform(n_arms=10, rank=2), shards=2, on=on)
    policy._crew.kept = 1 << 15
    rows = 0
    for _ in range(40):
        policy.update(np.arange(10).repeat(400), np.full(4000, 0.5))
        rows = max(rows, *(ledger.rows for ledger in policy._crew._ledgers.values()))
        assert all(ledger.behind <= 1 << 14 for ledger in policy._crew._ledgers.values())
    assert rows < 60_000 and policy.counts.tolist() == [16_000] * 10


# -- beside others -------------------------------------------------------------------------------------------------


def test_says_what_to_install_where_ray_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"a cluster needs ray: install it with .*semibandit\[ray\]"):
        Sharded(sb.Uniform(n_arms=4, rank=1), on="ray")


def test_threads_share_a_sharded_policy() -> None:
    from threading import Thread

    policy = Sharded(sb.Partition(np.arange(40) % 8), shards=4, on=Careless(0.02))
    errors: list[BaseException] = []

    def play(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for _ in range(30):
                decision = policy.decide()
                policy.learn(decision, rng.integers(0, 2, len(decision.arms)).astype(float))
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=play, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors and policy.t == 120 and policy.counts.sum() == 120 * 8 and policy.waiting == 0


def test_simulations_and_comparisons_take_it_as_any_policy() -> None:
    matroid = sb.Uniform(n_arms=20, rank=3)
    env = sb.Bernoulli(matroid, np.linspace(0.1, 0.9, 20), seed=1)
    alone = sb.simulate(CUCB(matroid), env.clone(), rounds=80, record_arms=True)
    apart = sb.simulate(Sharded(matroid, shards=3), env.clone(), rounds=80, record_arms=True)
    assert apart.path == "stepwise" and np.array_equal(alone.arms, apart.arms)
    found = sb.compare({"one": CUCB(matroid), "many": Sharded(matroid, shards=2)}, env, rounds=60, repeats=2)
    # The compiled loop of the one adds up regrets in another order.
    assert np.allclose(found.regret("one"), found.regret("many"), rtol=1e-12)
