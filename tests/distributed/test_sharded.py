"""Sharded policies without Ray: the decisions of one process, whatever gets lost on the way."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semibandit as sb
from semibandit.distributed import Sharded
from semibandit.distributed.split import split
from semibandit.errors import (
    ArmError,
    FileError,
    MatroidError,
    MissingExtraError,
    ParameterError,
    RewardError,
    ShardError,
)
from semibandit.matroids import codec
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
        ({"policy": "fpl"}, "'fpl' cannot be sharded: 'cucb', 'kl-osm', 'cts' can"),
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


# -- parts ---------------------------------------------------------------------------------------------------------


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


# -- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", SHARDABLE)
def test_goes_on_from_files_pickles_and_copies(tmp_path: Path, policy: str) -> None:
    matroid = sb.Graphic(np.random.default_rng(1).integers(0, 7, (25, 2)))
    whole = Sharded(matroid, policy=policy, shards=3, seed=5, outside="clip")
    parts = [
        {"edges": np.stack([matroid._tail, matroid._head], 1)[a:b], "n_vertices": 7}
        for a, b in ((0, 9), (9, 25))
    ]
    for made in (whole, Sharded.from_parts("graphic", parts, policy=policy, seed=5)):
        for t in range(12):
            arms = made.select()
            made.update(arms[t % 2 :], arms[t % 2 :] % 5 / 4)
        made.delete([1, 20])
        decision = made.decide()
        if made.outside == "clip":
            made.update([0], [3.0])
        path = tmp_path / "policy.semibandit"
        made.save(path)
        on = Careless(0.05)
        others = [Sharded.load(path, on=on), pickle.loads(pickle.dumps(made)), made.clone()]
        for each in others:
            assert each.t == made.t and each.waiting == 1 and each.clipped == made.clipped
            each.learn(decision.id, np.full(len(decision.arms), 0.5))
        made.learn(decision, np.full(len(decision.arms), 0.5))
        for _ in range(15):
            arms = made.select()
            for each in (made, *others):
                assert each is made or np.array_equal(each.select(), arms)
                each.update(arms, arms % 3 / 2)
        assert path.exists() and len(list(tmp_path.iterdir())) == 1 + made._split.shards
        with pytest.raises(FileError, match=r"to be read by semibandit\.distributed\.Sharded\.load"):
            sb.load(path)


def test_what_is_saved_is_the_clock_that_auto_stood_for(tmp_path: Path) -> None:
    policy = Sharded(sb.Graphic(np.random.default_rng(0).integers(0, 60, (400, 2))), clock="auto", shards=2)
    policy.save(tmp_path / "p")
    again = Sharded.load(tmp_path / "p")
    assert again._guide.asked["clock"] == policy._guide.options["clock"] != "auto"


class Crash(Exception):
    """The machine stops here."""


@pytest.mark.parametrize("writes", range(8))
def test_a_crash_leaves_the_old_set_of_files_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """Stop after so many files are in place, and after so many are taken away."""
    import os

    policy, path = Sharded(sb.Uniform(n_arms=12, rank=2), shards=3), tmp_path / "p"
    policy.select()
    policy.save(path)
    policy.update(policy.select(), [1.0, 0.5])
    left, replace, unlink = [writes], os.replace, Path.unlink

    def count() -> None:
        if left[0] == 0:
            raise Crash
        left[0] -= 1

    def replacing(*args: Any) -> None:
        count()
        replace(*args)

    def unlinking(self: Path, missing_ok: bool = False) -> None:
        count()
        unlink(self, missing_ok)

    monkeypatch.setattr(os, "replace", replacing)
    monkeypatch.setattr(Path, "unlink", unlinking)
    if writes < 7:
        with pytest.raises(Crash):
            policy.save(path)
    else:
        policy.save(path)
    monkeypatch.undo()
    # Three shards, then the manifest: before that the old set counts.
    found = Sharded.load(path)
    assert found.t == (1 if writes < 4 else 2)
    assert found.counts.sum() == (0 if writes < 4 else 2)
    policy.save(path)
    assert Sharded.load(path).t == 2 and len(list(tmp_path.glob("p*"))) == 4


def test_files_that_are_damaged_or_mixed_are_refused(tmp_path: Path) -> None:
    policy, path = Sharded(sb.Uniform(n_arms=12, rank=2), shards=2), tmp_path / "p"
    policy.save(path)
    first = (tmp_path / "p.1-0").read_bytes()
    policy.update([0], [1.0])
    policy.save(path)
    second = (tmp_path / "p.2-0").read_bytes()
    (tmp_path / "p.2-0").write_bytes(first)
    with pytest.raises(FileError, match="is not the file that was written there"):
        Sharded.load(path)
    (tmp_path / "p.2-0").write_bytes(second[:100] + b"x" + second[101:])
    with pytest.raises(FileError, match="damaged"):
        Sharded.load(path)
    (tmp_path / "p.2-0").unlink()
    with pytest.raises(FileError, match="cannot be read"):
        Sharded.load(path)
    (tmp_path / "p.2-0").write_bytes(second)
    assert Sharded.load(path).counts[0] == 1
    CUCB(sb.Uniform(3, 1)).save(tmp_path / "q")
    with pytest.raises(FileError, match=r"holds no sharded policy: semibandit\.load reads it"):
        Sharded.load(tmp_path / "q")
    # The file of a shard is a policy over its own arms.
    assert sb.load(tmp_path / "p.2-0").counts.tolist() == [1, 0, 0, 0, 0, 0]


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
