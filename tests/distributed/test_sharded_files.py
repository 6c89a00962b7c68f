"""Sharded policies in files: one a shard and a manifest, whole after any crash."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semibandit as sb
from semibandit.distributed import Sharded
from semibandit.errors import (
    FileError,
)
from semibandit.policies.index.cucb import CUCB
from support.sharded import Careless

SHARDABLE = ("cucb", "kl-osm", "cts")


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
