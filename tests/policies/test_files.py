"""Saved policies go on exactly; damaged, foreign and hostile files are refused."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import time
from fractions import Fraction

import numpy as np
import pytest

import semibandit as sb
from semibandit.errors import FileError, ParameterError
from semibandit.policies.catalogue import POLICIES, make_policy, policy_class
from support.random_matroids import RANDOM

# Catalogue names that differ in what they save.
SPECS = [
    "cucb",
    "cucb:clock=staircase",
    "cucb:clock=auto",
    "cucb:clip=true,clock=staircase",
    "cucb:index=ucb-v",
    "faster-cucb:horizon=500",
    "faster-cucb:horizon=40",
    "faster-cucb:horizon=500,method=directions",
    "kl-osm",
    "kl-osm:clock=staircase",
    "sliding-window-cucb:window=20",
    "discounted-cucb:discount=0.9",
]


def play(policy, rng, rounds):
    """Rounds with late, partial and missing feedback; the bases played."""
    bases = []
    for t in range(rounds):
        arms = policy.select(exclude=[0]) if t % 13 == 12 else policy.select()
        bases.append(arms.tolist())
        if t % 5:
            policy.update(arms, rng.random(len(arms)))
    return bases


def same(policy, other, rng_seed=9, rounds=60):
    assert type(policy) is type(other) and policy.matroid == other.matroid and policy.t == other.t
    assert np.array_equal(policy.counts, other.counts)
    assert np.array_equal(policy.means, other.means, equal_nan=True)
    one = play(policy, np.random.default_rng(rng_seed), rounds)
    assert one == play(other, np.random.default_rng(rng_seed), rounds)


def make(spec, matroid):
    context = {"horizon": 300, "means": np.linspace(0.1, 0.9, matroid.n_arms)}
    return make_policy(spec, matroid, seed=4, context=context)


@pytest.mark.thin
@pytest.mark.parametrize("kind", RANDOM)
@pytest.mark.parametrize("spec", [*SPECS, *(name for name in POLICIES if name not in SPECS)])
def test_a_saved_policy_goes_on_exactly(kind, spec, tmp_path):
    rng = np.random.default_rng(7)
    for trial in range(2):
        matroid, _ = RANDOM[kind](rng, int(rng.integers(2, 12)))
        try:
            policy = make(spec, matroid)
        except ParameterError as error:
            pytest.skip(f"not for {kind}: {error}")
        path = tmp_path / f"p{trial}.semibandit"
        policy.save(path)  # at its start
        same(policy.clone(), sb.load(path), rounds=30)
        play(policy, rng, 45)
        policy.save(path)
        same(policy.clone(), sb.load(path))
        if hasattr(policy, "delete") and matroid.rank < matroid.n_arms:
            policy.delete([matroid.n_arms - 1])
            policy.save(path)
            other = sb.load(path)
            same(policy.clone(), other, rounds=20)
            other.insert([matroid.n_arms - 1])
        assert sorted(os.listdir(tmp_path)) == [f"p{i}.semibandit" for i in range(trial + 1)]


def test_every_policy_of_the_catalogue_can_be_saved():
    for name in POLICIES:
        policy = make(name, sb.Uniform(6, 2))
        assert policy_class(type(policy).__name__) is type(policy)


def test_large_integers_and_fractions_survive(tmp_path):
    vectors = [[10**40, -3], [Fraction(1, 3), 7], [-(10**20), 10**21], [0, 0]]
    for field in (None, 7):
        rows = vectors if field is None else [[int(x * 3) for x in row] for row in vectors]
        policy = sb.CUCB(sb.Linear(rows, field))
        policy.save(tmp_path / "p")
        assert sb.load(tmp_path / "p").matroid == policy.matroid


def test_a_million_arms_take_well_under_a_second(tmp_path, capsys):
    policy = sb.CUCB(sb.Uniform(10**6, 10))
    policy.update(np.arange(10**6), np.random.default_rng(0).random(10**6))
    policy.select()
    policy.save(tmp_path / "p")
    sb.load(tmp_path / "p")
    begin = time.perf_counter()
    policy.save(tmp_path / "p")
    saved = time.perf_counter()
    other = sb.load(tmp_path / "p")
    loaded = time.perf_counter()
    with capsys.disabled():
        print(f"\nK = 10^6: saved in {saved - begin:.2f} s, loaded in {loaded - saved:.2f} s")
    assert np.array_equal(policy.select(), other.select())


def test_what_cannot_be_saved_says_so_and_leaves_the_old_file(tmp_path):
    class Free(sb.Matroid):
        def _is_independent(self, arms):
            return True

    path = tmp_path / "p"
    path.write_text("old")
    with pytest.raises(ParameterError, match="Free cannot be saved"):
        sb.CUCB(Free(3)).save(path)
    with pytest.raises(ParameterError, match="schedule"):
        sb.CUCB(sb.Uniform(3, 1), schedule=float).save(path)

    class Mine(sb.CUCB):
        pass

    with pytest.raises(ParameterError, match="Mine cannot be saved"):
        Mine(sb.Uniform(3, 1)).save(path)
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["p"]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    policy = sb.CUCB(sb.Uniform(3, 1))
    path = tmp_path / "p"
    policy.save(path)
    before = path.read_bytes()
    policy.update(policy.select(), [1.0])

    def full(_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        policy.save(path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["p"]


# Damage


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "p"
    policy = sb.SlidingWindowCUCB(sb.Graphic([(0, 1), (1, 2), (2, 0), (2, 3)]), window=20)
    play(policy, np.random.default_rng(1), 30)
    policy.save(path)
    return path.read_bytes()


def test_a_thousand_damaged_files_are_refused(saved, tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "p"
    for trial in range(1000):
        data = bytearray(saved)
        what = trial % 4
        if what == 0:  # bits flipped
            for _ in range(int(rng.integers(1, 4))):
                data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        elif what == 1:  # cut short
            data = data[: int(rng.integers(len(data)))]
        elif what == 2:  # another version
            data[16:20] = struct.pack("<I", int(rng.integers(2, 2**32)))
        else:  # a stretch overwritten, or bytes added
            at = int(rng.integers(len(data)))
            data[at : at + 20] = rng.bytes(int(rng.integers(21, 60)))
        if bytes(data) == saved:
            continue
        path.write_bytes(data)
        with pytest.raises(FileError) as caught:
            sb.load(path)
        assert str(path) in str(caught.value) and len(str(caught.value)) < 300 + len(str(path))


def forged(saved, change):
    """A file with a fitting checksum whose JSON was changed."""
    head, length = saved[:24], struct.unpack("<Q", saved[24:32])[0]
    about = json.loads(saved[32 : 32 + length])
    change(about)
    text = json.dumps(about).encode()
    text += b" " * (-(32 + len(text)) % 64)
    body = head + struct.pack("<Q", len(text)) + text + saved[32 + length : -32]
    return body + hashlib.blake2b(body, digest_size=32).digest()


def set_path(*keys, value):
    def change(about):
        for key in keys[:-1]:
            about = about[key]
        about[keys[-1]] = value

    return change


def array(about, name):
    return next(item for item in about["arrays"] if item["name"] == name)


HOSTILE = {
    "another class": set_path("policy", value="Popen"),
    "a class of another module": set_path("policy", value="os.system"),
    "another matroid": set_path("matroid", "class", value="Exec"),
    "no policy": lambda about: about.pop("policy"),
    "unknown argument": set_path("arguments", "map", "cmd", value="rm"),
    "bad argument": set_path("arguments", "map", "window", value=-3),
    "a negative round": set_path("state", "map", "t", value=-1),
    "a round that is no number": set_path("state", "map", "t", value="soon"),
    "a missing array": set_path("state", "map", "records", value={"array": "nowhere"}),
    "an array for a number": set_path("state", "map", "lam", value=[1]),
    "arms that are not there": lambda about: array(about, "state.ring_arms").update(
        offset=array(about, "state.records")["offset"]
    ),
    "an array beyond the end": set_path("arrays", 0, "offset", value=10**12),
    "a negative array": set_path("arrays", 0, "shape", value=[-1]),
    "an object array": set_path("arrays", 0, "type", value="|O"),
    "a huge array": set_path("arrays", 0, "shape", value=[2**62, 2**62]),
    "text for a list": set_path("arrays", value="none"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_files_with_a_fitting_checksum_and_nonsense_inside(saved, name, tmp_path):
    path = tmp_path / "p"
    path.write_bytes(forged(saved, lambda about: None))
    sb.load(path)  # the forger can forge
    path.write_bytes(forged(saved, HOSTILE[name]))
    with pytest.raises(FileError):
        sb.load(path)


@pytest.mark.parametrize(("column", "value"), [(0, -1.0), (1, np.inf), (2, np.nan), (3, np.nan)])
def test_records_that_no_arm_can_have_are_refused(column, value):
    policy = sb.CUCB(sb.Uniform(3, 1))
    state = {
        key: value.copy() if isinstance(value, np.ndarray) else value
        for key, value in policy._state().items()
    }
    state["records"][4 + column] = value
    with pytest.raises(FileError, match="records"):
        sb.CUCB(sb.Uniform(3, 1))._set_state(state)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "p"
    for content in (b"", b"hello", b"\x89PNG\r\n\x1a\n" + bytes(200), b"\x80\x04cos\nsystem\n(S'true'\ntR."):
        path.write_bytes(content)
        with pytest.raises(FileError, match="not a saved policy"):
            sb.load(path)
    with pytest.raises(FileError, match="cannot be read"):
        sb.load(tmp_path / "nowhere")
    with pytest.raises(FileError, match="cannot be read"):
        sb.load(tmp_path)
