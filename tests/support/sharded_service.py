"""A service with a sharded policy that is killed again and again."""

from __future__ import annotations

import random

import numpy as np
import pytest

import semibandit as sb
from semibandit.client import Client
from semibandit.distributed import Sharded
from semibandit.serve.snapshots import FolderShelf, newest_whole
from support.service import Server


def kill_a_sharded_service(folder, on, kills, spell, env=None):
    """A server that is killed again and again; what it decides is what one process does that is never killed."""
    twin = sb.CUCB(sb.Uniform(60, 4), seed=5)
    options = ("--arms", 60, "--rank", 4, "--seed", 5, "--shards", 3, "--on", on)
    rng = random.Random(3)
    for kill in range(kills + 1):
        with Server(folder, *options, env=env) as server, Client(server.address) as client:
            for i in range(spell):
                made, arms = client.select(), twin.select()
                assert made.arms == arms.tolist()
                twin._wait(arms, 1)
                rewards = [rng.random() for _ in arms]
                client.reward(made, rewards)
                twin.update(arms, rewards)
                twin._wait(arms, -1)
                if kill % 2 == 1 and i == spell // 2:
                    client.snapshot()
            if kill < kills:
                server.kill()
            else:
                assert server.stop() == 0
    _, host = newest_whole(FolderShelf(folder / "snapshots"), None, pytest.fail)
    policy = host.seats["default"].policy
    assert isinstance(policy, Sharded)
    assert np.array_equal(policy.counts, twin.counts)
    assert np.array_equal(policy.means, twin.means, equal_nan=True)
    return policy
