"""Ground sets in parts that nobody holds together, and which arms go to which shard."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import semibandit as sb
from semibandit.distributed import Sharded
from semibandit.distributed.split import split
from semibandit.errors import (
    MatroidError,
    ParameterError,
)
from semibandit.matroids import codec
from semibandit.testing import check_policy
from support.random_matroids import RANDOM
from support.sharded import Careless, Case, Life

SHARDABLE = ("cucb", "kl-osm", "cts")


@pytest.mark.thin
@pytest.mark.parametrize("policy", SHARDABLE)
@pytest.mark.parametrize("kind", [*RANDOM])
def test_parts_that_nobody_holds_together_decide_alike(kind: str, policy: str) -> None:
    for seed in range(2):
        case = Case(1)
        case.seed, case.policy, case.options = seed, policy, {}
        case.matroid = RANDOM[kind](np.random.default_rng(seed), 15)[0]
        row: Any = codec.row_of(type(case.matroid))
        whole, ends = row.to_parts(case.matroid), (0, 4, 10, 15)
        parts = [row.parting.take(whole, np.arange(a, b)) for a, b in pairwise(ends)]
        try:
            for part in parts:
                row.from_parts(**row.parting.join([part]))
        except MatroidError:
            with pytest.raises(MatroidError, match="every arm is a loop"):
                Sharded.from_parts(row.name, parts, policy=policy)
            continue
        # Functions are called where the shard is made.
        told = [lambda part=part: part for part in parts] if seed % 2 else parts
        on = Careless(0.05, seed)
        many = Sharded.from_parts(row.name, told, policy=policy, seed=seed, on=on)
        assert many.matroid.n_arms == 15 and many.matroid.rank == case.matroid.rank
        arms = np.random.default_rng(seed).permutation(15)
        assert np.array_equal(many.matroid._greedy(arms), case.matroid._greedy(arms))
        Life(case, case.one(), many).live(20)
        if policy == "cucb":
            check_policy(lambda told=told, row=row: Sharded.from_parts(row.name, told))


def test_parts_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"parts\[1\] has another rank than parts\[0\]"):
        Sharded.from_parts("uniform", [{"n_arms": 4, "rank": 2}, {"n_arms": 4, "rank": 3}])
    with pytest.raises(ParameterError, match="parts is empty"):
        Sharded.from_parts("uniform", [])
    with pytest.raises(ParameterError, match="clock = 'auto' needs the whole matroid"):
        Sharded.from_parts("uniform", [{"n_arms": 4, "rank": 2}], clock="auto")
    with pytest.raises(ParameterError, match="a prior for each arm needs the whole matroid"):
        Sharded.from_parts("uniform", [{"n_arms": 2, "rank": 2}], prior=([0.5, 0.5], 1.0))
    with pytest.raises(ParameterError, match="not known"):
        Sharded.from_parts("uniformm", [{"n_arms": 4, "rank": 2}])
    policy = Sharded.from_parts("uniform", [{"n_arms": 4, "rank": 6}] * 2)
    assert policy.matroid == sb.Uniform(8, 6)
    with pytest.raises(ParameterError, match="cannot grow"):
        policy.grow(sb.Uniform(9, 6))


def test_a_coordinator_of_parts_holds_nothing_that_grows_with_the_arms() -> None:
    policy = Sharded.from_parts("uniform", [{"n_arms": 500_000, "rank": 3}] * 2)
    policy.update(policy.select(), [0.5, 0.2, 0.9])
    policy.select(exclude=[4, 5])
    assert 0 < bytes_held({**vars(policy), "_crew": {**vars(policy._crew), "_transport": None}}) < 2000
    held = vars(policy._crew)["_transport"].shards
    assert bytes_held(held[0].policy.records) == 500_000 * 32


def bytes_held(value: Any, seen: set[int] | None = None) -> int:
    """Of all arrays that can be reached from here."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, (str, bytes, type)):
        return 0
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return value.nbytes
    inside = (
        list(value.values()) if isinstance(value, dict) else list(getattr(value, "__dict__", {}).values())
    )
    inside += list(value) if isinstance(value, (list, tuple)) else []
    return sum(bytes_held(one, seen) for one in inside)


# -- splits --------------------------------------------------------------------------------------------------------


def test_groups_stay_together_where_that_spares_the_merge() -> None:
    blocks = split(sb.Partition(np.arange(120) // 10, 2), 4)
    assert blocks.apart and blocks.bounds.tolist() == [0, 30, 60, 90, 120] and blocks.owner.size == 0
    mixed = split(sb.Partition(np.arange(120) % 12, 2), 4)
    assert mixed.apart and np.array_equal(mixed.owner, np.arange(120) % 12 // 3)
    assert not split(sb.Partition(np.zeros(50, dtype=int), 2), 4).apart
    families = [(range(10), 2), (range(5), 1), (range(10, 20), 3)]
    assert split(sb.Laminar(20, families), 2).apart
    assert not split(sb.Laminar(20, [*families, (range(20), 4)]), 2).apart
    assert not split(sb.Graphic([(0, 1), (1, 2), (2, 3), (3, 0)]), 2).apart


@pytest.mark.parametrize("seed", range(40))
def test_a_split_holds_every_arm_once(seed: int) -> None:
    case = Case(seed)
    parted = split(case.matroid, case.shards)
    n = case.matroid.n_arms
    ids = [parted.ids(i) for i in range(case.shards)]
    assert sorted(np.concatenate([one.all() for one in ids]).tolist()) == list(range(n))
    for i, one in enumerate(ids):
        arms = one.all()
        assert len(arms) == one.size > 0 and (np.diff(arms) > 0).all() and (parted.owners(arms) == i).all()
        assert np.array_equal(one.places(arms), np.arange(one.size))
        assert np.array_equal(one.names(np.arange(one.size)), arms)
    arms = np.random.default_rng(seed).integers(0, n, 30)
    by_shard = parted.parted(arms)
    assert sorted(np.concatenate([at for _, at in by_shard]).tolist()) == list(range(30))
    assert all((np.diff(at) > 0).all() and (parted.owners(arms[at]) == i).all() for i, at in by_shard)


@pytest.mark.parametrize("policy", SHARDABLE)
def test_grows_as_one_process(policy: str) -> None:
    groups = np.array([0, 0, 1, 1, 2, 2, 2, 3, 4, 4, 0, 5, 5, 3, 6, 6])
    capacities = np.array([1, 1, 2, 1, 0, 2, 1])

    def matroid(n: int) -> sb.Partition:
        return sb.Partition(groups[:n], capacities[: groups[:n].max() + 1])

    keyed = {"sampler": "keyed"} if policy == "cts" else {}
    one = sb.policies.catalogue.build_policy(policy, keyed, matroid(6))
    on = Careless(0.1, 1)
    many = Sharded(matroid(6), policy=policy, shards=3, on=on)
    for n in (6, 9, 10, 16):
        if n > 6:
            for each in (one, many):
                each.grow(matroid(n))
        for t in range(12):
            arms = one.select()
            assert np.array_equal(arms, many.select()), (n, t)
            for each in (one, many):
                each.update(arms, arms % 3 / 2)
    assert np.array_equal(one.counts, many.counts) and on.lost > 0
    with pytest.raises(ParameterError, match="Partition with at least 16 arms"):
        many.grow(sb.Uniform(20, 2))
