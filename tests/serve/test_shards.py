"""Policies whose arms are spread over shards, behind the service: in its process, and on a cluster."""

from __future__ import annotations

import asyncio
import json
import os
import random

import numpy as np
import pytest

import semibandit as sb
from semibandit.distributed import Sharded
from semibandit.errors import ShardError
from semibandit.serve.wire import PolicySpec
from support.service import running
from support.sharded_service import kill_a_sharded_service

SPEC = PolicySpec(policy="cucb", matroid={"kind": "graphic", "arms": 60, "rank": 14}, shards=3)
PLAIN = PolicySpec(policy="cucb", matroid=SPEC.matroid)


async def play(clients, names, rounds, seed):
    """Decide and learn, the same at each of these; decisions that wait and such that never hear anything among them."""
    rng, late = random.Random(seed), []
    for _ in range(rounds):
        body = {"exclude": rng.sample(range(60), 3)} if rng.random() < 0.3 else {}
        if rng.random() < 0.2:
            body["among"] = rng.sample(range(60), 25)
        made = [
            (await client.post(f"/v1/policies/{name}/select", json=body)).json()
            for client, name in zip(clients, names, strict=True)
        ]
        assert all(one["arms"] == made[0]["arms"] for one in made)
        late.append((made, [rng.random() for _ in made[0]["arms"]]))
        while late and rng.random() < 0.6:
            told, rewards = late.pop(rng.randrange(len(late)))
            for client, name, one in zip(clients, names, told, strict=True):
                answer = await client.post(
                    f"/v1/policies/{name}/rewards", json={"decision": one["decision"], "rewards": rewards}
                )
                assert answer.status_code == 200, answer.text


def test_a_sharded_policy_decides_what_one_of_one_process_does_also_after_restarts(tmp_path):
    asyncio.run(_restarted(tmp_path))
    names = sorted(path.name for path in (tmp_path / "snapshots").glob("*/0.semibandit*"))
    assert {"0.semibandit", "0.semibandit.1-0", "0.semibandit.1-1", "0.semibandit.1-2"} == set(names)


async def _restarted(tmp_path):
    both = {"many": SPEC, "one": PLAIN}
    for part in range(3):
        async with running(tmp_path, both) as client:
            await play([client, client], ["many", "one"], 40, part)
            if part == 1:
                assert (await client.post("/v1/snapshot")).status_code == 200
                await play([client, client], ["many", "one"], 20, 10)
                client.service.keeper.position = client.service.host.position  # the last part is replayed
            about = (await client.get("/v1/policies/many")).json()
            assert about["spec"]["shards"] == 3
            arms = [(await client.get(f"/v1/policies/{name}/arms?limit=60")).json() for name in both]
            assert arms[0] == arms[1]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"shards": 0}, "shards"),
        ({"on": "ray"}, "on"),
        ({"shards": 2, "on": "elsewhere"}, "on"),
        ({"shards": 2, "on": "10.1.2.3:6379"}, "on"),
        ({"shards": 2, "objective": "min"}, "shards"),
        ({"shards": 2, "policy": "random"}, "policy"),
        ({"shards": 2, "policy": "comb-lin-ts"}, "policy"),
        ({"shards": 2, "options": {"snapshots": "/tmp"}}, "options.snapshots"),
        ({"shards": 61}, "matroid"),
        ({"shards": 2, "matroid": None, "catalog": {"kind": "uniform", "rank": 2}}, "shards"),
    ],
)
def test_what_cannot_be_served_is_told(tmp_path, change, field):
    asyncio.run(_refused(tmp_path, change, field))


async def _refused(tmp_path, change, field):
    body = {"name": "x", "policy": "cucb", "matroid": {"arms": 60, "rank": 4}, **change}
    async with running(tmp_path, {}) as client:
        answer = await client.post("/v1/policies", json=body)
        assert answer.status_code in (400, 422), answer.text
        assert answer.json()["field"] == field, answer.text
        body = {"name": "x", "policy": "cts", "matroid": {"arms": 60, "rank": 4}, "shards": 2}
        assert (await client.post("/v1/policies", json=body)).status_code == 201
        assert (await client.delete("/v1/policies/x")).status_code == 200


def test_killed_again_and_again_it_goes_on_bit_for_bit(tmp_path):
    kill_a_sharded_service(tmp_path, "local", kills=2, spell=30)


def test_settings_and_the_command_line(tmp_path):
    from semibandit.errors import ParameterError
    from semibandit.serve.settings import read_settings

    file = tmp_path / "service.toml"
    table = "[policies.x]\nshards = 8\nmatroid = { arms = 600, rank = 4 }\n"
    file.write_text(table + 'on = "10.0.0.7:6379"\n')
    assert read_settings(file).policies["x"].on == "10.0.0.7:6379"
    file.write_text(table + 'on = "here"\n')
    with pytest.raises(ParameterError, match="on = 'here'"):
        read_settings(file)


class Lossy:
    """Shards as on a cluster, in this process: they could be lost."""

    name, can_lose = "a test", True

    def __init__(self):
        from semibandit.distributed.here import Here

        self._here = Here()
        self.start, self.ask, self.close = self._here.start, self._here.ask, self._here.close

    def another(self):
        return Lossy()


def test_a_fork_writes_without_talking_to_shards(tmp_path):
    matroid = sb.Uniform(200, 5)
    policy = Sharded(matroid, shards=3, on=Lossy())
    policy._crew.kept = 40
    rng = np.random.default_rng(0)

    def spell(rounds):
        for _ in range(rounds):
            arms = policy.select()
            policy.update(arms, rng.random(len(arms)))
        policy.delete([int(arms[0])])

    for _ in range(3):
        spell(13)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                policy._crew._transport.ask = None  # it would not be there
                policy.save(tmp_path / "x")
                try:
                    policy.select()
                except ShardError as error:
                    assert "fork" in str(error)
                    status = 0
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
        same = Sharded.load(tmp_path / "x")
        assert json.dumps(same._crew.told) == json.dumps(policy._crew.told)
        for _ in range(9):
            arms, rewards = policy.select(), rng.random(5)
            assert np.array_equal(arms, same.select())
            policy.update(arms, rewards)
            same.update(arms, rewards)
        assert np.array_equal(policy.counts, same.counts)
