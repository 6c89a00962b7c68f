"""Every member of a fleet decides as a CUCB of its own that is told its feedback."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semibandit as sb
from semibandit.errors import ArmError, FileError, ParameterError, RewardError


def matroids():
    rng = np.random.default_rng(5)
    return {
        "one arm": sb.Uniform(1, 1),
        "all arms": sb.Uniform(4, 4),
        "uniform": sb.Uniform(23, 4),
        "groups": sb.Partition(rng.integers(0, 5, size=40), 2),
        "single arms": sb.Partition(np.arange(6), 1),
        "a group that may not be played": sb.Partition([0, 0, 1, 1, 1, 2], [1, 0, 2]),
        "a group without arms": sb.Partition([0, 0, 3, 3], [1, 1, 1, 2]),
    }


OPTIONS = {
    "theorem": {},
    "practical": {"exploration": "practical", "prior": (0.3, 5.0)},
    "prior by arm": {"prior": "by arm", "exploration": 0.4, "step": 0.3},
    "wide": {"reward_range": (-2.0, 3.0), "exploration": 0.1},
    "greedy": {"exploration": 0.0},
}


def make(matroid, options, size):
    options = dict(options)
    if options.get("prior") == "by arm":
        rng = np.random.default_rng(1)
        options["prior"] = (rng.choice([0.25, 0.5], matroid.n_arms), rng.choice([0.1, 3.0], matroid.n_arms))
    alone = [sb.CUCB(matroid, clock="staircase", engine="resolve", **options) for _ in range(size)]
    return sb.Fleet(matroid, size, **options), alone


@pytest.mark.thin
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("matroid", matroids().values(), ids=matroids())
@given(data=st.data())
@settings(deadline=None, max_examples=12)
def test_members_decide_as_policies_of_their_own(matroid, options, data):
    """Rewards on a coarse grid, so that ties abound; members in any order; late, partial and repeated feedback."""
    size = 3
    fleet, alone = make(matroid, options, size)
    low, high = fleet.reward_range
    for _ in range(data.draw(st.integers(1, 25))):
        members = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=4))
        rows = fleet.select(members)
        for u, row in zip(members, rows, strict=True):
            assert row.tolist() == alone[u].select().tolist()
        who = data.draw(st.lists(st.integers(0, size - 1), min_size=0, max_size=6))
        arms = [data.draw(st.integers(0, matroid.n_arms - 1)) for _ in who]
        gained = [low + (high - low) * data.draw(st.integers(0, 2)) / 2 for _ in who]
        fleet.update(np.array(who, dtype=np.int64), np.array(arms, dtype=np.int64), gained)
        for u, arm, reward in zip(who, arms, gained, strict=True):
            alone[u].update([arm], [reward])
        fleet._check()
    for u in range(size):
        assert fleet.counts(u).tolist() == alone[u].counts.tolist() and fleet.t[u] == alone[u].t
        assert fleet.member(u).records.tolist() == alone[u].records.tolist()


@pytest.mark.parametrize("matroid", matroids().values(), ids=matroids())
def test_long_runs_in_step(matroid):
    fleet, alone = make(matroid, {"exploration": 0.3, "step": 0.05}, 4)
    rng = np.random.default_rng(0)
    means = rng.random(matroid.n_arms)
    for _ in range(150):
        rows = fleet.select([0, 1, 2, 3])
        gained = np.round(np.clip(means[rows] + rng.uniform(-0.2, 0.2, rows.shape), 0, 1), 1)
        assert [row.tolist() for row in rows] == [policy.select().tolist() for policy in alone]
        fleet.update([0, 1, 2, 3], rows, gained)
        for policy, row, got in zip(alone, rows, gained, strict=True):
            policy.update(row, got)
    fleet._check()
    one = fleet.member(2)
    for _ in range(30):
        assert one.select().tolist() == fleet.select([2])[0].tolist() == alone[2].select().tolist()


@pytest.mark.parametrize("matroid", matroids().values(), ids=matroids())
def test_what_is_left_out_is_backfilled(matroid):
    fleet, alone = make(matroid, {"exploration": 0.3}, 2)
    rng = np.random.default_rng(2)
    for t in range(60):
        without = rng.integers(-1, matroid.n_arms, size=(2, rng.integers(0, 6)))
        rows = fleet.select([0, 1], exclude=without)
        for u in range(2):
            left_out = without[u][without[u] >= 0]
            wanted = alone[u].select(exclude=left_out) if len(left_out) else alone[u].select()
            assert rows[u][rows[u] >= 0].tolist() == wanted.tolist(), t
        gained = rng.integers(0, 3, rows.shape) / 2
        fleet.update([0, 1], rows, gained)
        for u in range(2):
            there = rows[u] >= 0
            alone[u].update(rows[u][there], gained[u][there])


def test_saved_loaded_and_cloned(tmp_path):
    fleet, _ = make(sb.Partition(np.arange(12) % 3, 2), {"exploration": 0.2, "prior": (0.5, 2.0)}, 5)
    rng = np.random.default_rng(1)
    for _ in range(20):
        members = rng.integers(0, 5, size=3)
        fleet.update(members, fleet.select(members), rng.random((3, 6)))
    fleet.save(tmp_path / "f")
    others = [sb.Fleet.load(tmp_path / "f"), fleet.clone()]
    for other in others:
        other._check()
        assert other.describe() == fleet.describe()
    for _ in range(20):
        members = rng.integers(0, 5, size=3)
        rows, gained = fleet.select(members), rng.random((3, 6))
        fleet.update(members, rows, gained)
        for other in others:
            assert np.array_equal(other.select(members), rows)
            other.update(members, rows, gained)
    with pytest.raises(FileError, match=r"Fleet\.load"):
        sb.load(tmp_path / "f")
    sb.CUCB(sb.Uniform(3, 1)).save(tmp_path / "p")
    with pytest.raises(FileError, match=r"semibandit\.load"):
        sb.Fleet.load(tmp_path / "p")
    raw = bytearray((tmp_path / "f").read_bytes())
    raw[len(raw) // 2] ^= 1
    (tmp_path / "bad").write_bytes(raw)
    with pytest.raises(FileError, match="checksum"):
        sb.Fleet.load(tmp_path / "bad")
    with pytest.raises(FileError, match="cannot be read"):
        sb.Fleet.load(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda f: f.select([3]), ArmError, r"members\[0\] = 3 is not a member"),
        (lambda f: f.select([0.5]), ArmError, "members must be integers"),
        (lambda f: f.select([0], exclude=[3]), ArmError, "a row of arm ids for each of 1 members"),
        (lambda f: f.select([0], exclude=[[7]]), ArmError, r"exclude\[0\]\[0\] = 7"),
        (
            lambda f: f.update([0, 1], [[0, 1], [0, 9]], [[0.5, 0.5], [0.5, 0.5]]),
            ArmError,
            "arm 9 of member 1",
        ),
        (lambda f: f.update([0, 3], [0, 1], [0.5, 0.5]), ArmError, r"members\[1\] = 3"),
        (lambda f: f.update([0], [0.5], [0.5]), ArmError, "integers"),
        (lambda f: f.update([0, 0], [0, 1], [0.5, 1.5]), RewardError, "reward 1.5 for arm 1 of member 0"),
        (lambda f: f.update([0, 0], [0, 1], [0.5, np.nan]), RewardError, "nan"),
        (lambda f: f.update([0, 0], [0, 1], [0.5]), RewardError, "shapes"),
        (lambda f: f.update([0], [[[0]]], [[[0.5]]]), RewardError, "shapes"),
        (lambda f: f.member(-1), ArmError, "not a member"),
        (lambda f: sb.Fleet(sb.Uniform(3, 1), 0), ParameterError, "size"),
        (lambda f: sb.Fleet(sb.Graphic([(0, 1)]), 2), ParameterError, "Uniform or a Partition"),
        (lambda f: sb.Fleet(sb.Uniform(3, 1), 2, prior=(2.0, 1.0)), ParameterError, "prior"),
    ],
)
def test_bad_calls_are_refused_and_change_nothing(call, error, words):
    fleet = sb.Fleet(sb.Uniform(5, 2), 3)
    fleet.update([0, 1], [[0, 1], [2, 3]], [[0.5, 1.0], [0.0, 1.0]])
    before = {name: array.copy() for name, array in fleet._state().items()}
    with pytest.raises(error, match=words):
        call(fleet)
    assert all(np.array_equal(before[name], array) for name, array in fleet._state().items())


def test_threads_share_a_fleet():
    fleet = sb.Fleet(sb.Uniform(50, 3), 8)

    def play(u):
        for _ in range(200):
            members = [u, (u + 1) % 8]
            fleet.update(members, fleet.select(members), np.full((2, 3), 0.5))

    threads = [threading.Thread(target=play, args=(u,)) for u in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fleet.t.tolist() == [400] * 8 and all(fleet.counts(u).sum() == 1200 for u in range(8))
    fleet._check()


def test_memory_is_at_most_40_bytes_per_member_and_arm():
    for matroid in (
        sb.Uniform(1000, 5),
        sb.Partition(np.arange(1000), 1),
        sb.Partition(np.arange(1000) % 40, 3),
    ):
        assert sb.Fleet(matroid, 200).describe()["bytes_per_member_and_arm"] <= 41.0
