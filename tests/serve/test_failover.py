"""Servers on PostgreSQL as processes: killed, paused, cut off from the database, and the standby that takes over."""

from __future__ import annotations

import http.client
import random
import signal
import time

import pytest

from semibandit.client import Client
from semibandit.errors import ParameterError
from semibandit.serve.settings import ServerSettings, Settings
from support.load import OPTIONS, check, direct, kill_again_and_again, loaded
from support.postgres import PASSWORD
from support.service import Server, until

pytest.importorskip("psycopg", reason="psycopg is missing: pip install 'semibandit[postgres]'")

from semibandit.serve.postgres_link import Link
from semibandit.serve.postgres_shelf import PostgresShelf
from semibandit.serve.postgres_store import PostgresStore


@pytest.fixture
def kept(address):
    """The log and the snapshots in the database."""
    store = PostgresStore(Link(address))
    return store, PostgresShelf(store)


@pytest.fixture
def serve(address, tmp_path):
    """Starts servers on the database; what is left of them afterwards is killed."""
    made = []

    def start(*options):
        made.append(
            Server(tmp_path / f"data{len(made)}", *OPTIONS, *options, env={"SEMIBANDIT_STORE": address})
        )
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            one.process.send_signal(signal.SIGCONT)
            one.kill()
        shown = "\n".join(one.lines)
        assert PASSWORD not in shown and PASSWORD.replace("&", "%26") not in shown
    assert not list(tmp_path.glob("data*/*")), "nothing is kept on the host"


def stands_by(server):
    """Wait until it follows; its address."""
    until(lambda: server.told("standing_by") and server.told("listening"), 60.0)
    return server.told("listening")["address"]


def acknowledged(loads):
    return sum(len(load.acknowledged) for load in loads)


def busy(loads, more=30):
    """Wait for some more acknowledged rewards; how long it took to the first."""
    began, before = time.monotonic(), acknowledged(loads)
    until(lambda: acknowledged(loads) > before, 60.0)
    first = time.monotonic() - began
    until(lambda: acknowledged(loads) > before + more, 60.0)
    return first


def finish(loads, server, kept):
    """Stop clients and server in order, and look at the log."""
    for load in loads:
        load.ended = True
    for load in loads:
        load.join(30)
    assert server.stop() == 0
    return check(kept, loads)


def test_killed_under_load_nothing_acknowledged_is_lost(tmp_path, address, kept):
    env = {"SEMIBANDIT_STORE": address}
    count, _ = kill_again_and_again(tmp_path, kept, kills=2, clients=3, seed=1, env=env)
    assert count > 10


@pytest.mark.slow
def test_killed_fifty_times(tmp_path, address, kept):
    env = {"SEMIBANDIT_STORE": address}
    count, _ = kill_again_and_again(tmp_path, kept, kills=50, clients=6, seed=2, env=env)
    assert count > 500


def restart_again_and_again(postgres, serve, kept, times, seed):
    rng = random.Random(seed)
    with loaded(3, seed) as loads:
        server = serve().wait()
        direct(loads, server.address)
        busy(loads)
        for i in range(times):
            postgres.stop((signal.SIGINT, signal.SIGQUIT)[i % 2])
            time.sleep(rng.random() * 0.5)
            with Client(server.address, retries=0) as client:
                with pytest.raises(Exception, match=r"not done|not serving"):
                    client.select()
                assert not client.is_ready()
            postgres.start()
            busy(loads)
        finish(loads, server, kept)
    assert server.told("recovered")


def test_a_database_that_restarts_loses_nothing(postgres, serve, kept):
    restart_again_and_again(postgres, serve, kept, times=2, seed=3)


@pytest.mark.slow
def test_a_database_that_restarts_fifteen_times(postgres, serve, kept):
    restart_again_and_again(postgres, serve, kept, times=15, seed=4)


def take_over_again_and_again(serve, kept, kills, seed):
    """Kill the leader, its standby leads, a new standby comes. Seconds until the next acknowledged reward."""
    took, rng = [], random.Random(seed)
    with loaded(3, seed) as loads:
        leader = serve("--standby").wait()
        direct(loads, leader.address)
        for _ in range(kills):
            standby = serve("--standby")
            address = stands_by(standby)
            busy(loads)
            with Client(address, retries=0) as client:
                assert not client.is_ready()
                with pytest.raises(Exception, match="not serving now: standby of postgresql://learner@"):
                    client.select()
            time.sleep(rng.random() * 0.3)
            leader.kill()
            direct(loads, address)
            took.append(busy(loads))
            assert standby.told("took_over")
            leader = standby
        finish(loads, leader, kept)
    return took


def test_a_standby_takes_over(serve, kept):
    assert max(take_over_again_and_again(serve, kept, kills=1, seed=5)) < 5.0


@pytest.mark.slow
def test_a_standby_takes_over_each_time(serve, kept):
    took = take_over_again_and_again(serve, kept, kills=15, seed=6)
    print(f"seconds from kill to the next acknowledged reward: {sorted(round(one, 2) for one in took)}")
    assert max(took) < 5.0


def ask(address):
    """A connection to `address` on which a decision is asked for, and not yet answered."""
    connection = http.client.HTTPConnection(*address.removeprefix("http://").split(":"), timeout=30)
    connection.request("POST", "/v1/policies/default/select", "{}", {"content-type": "application/json"})
    return connection


def pause_again_and_again(serve, kept, times, seed):
    """Stop the leader as a debugger would, in the middle of anything; wake it when another leads."""
    took = []
    with loaded(3, seed) as loads:
        leader = serve("--standby").wait()
        standby = serve("--standby")
        addresses = {leader: leader.address, standby: stands_by(standby)}
        direct(loads, leader.address)
        for _ in range(times):
            busy(loads)
            leader.process.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            late = ask(addresses[leader])
            direct(loads, None)
            with Client(addresses[standby], retries=0) as client:
                until(client.is_ready, 20.0)
                took.append(time.monotonic() - began)
                mark = client.select().round
            leader.process.send_signal(signal.SIGCONT)
            answer = late.getresponse()
            assert answer.status == 503 and answer.headers["retry-after"] and b"decision" not in answer.read()
            # Those whose requests hang at the old leader get no other answer than "try again", and go on.
            direct(loads, addresses[standby])
            busy(loads)
            with Client(addresses[standby], retries=0) as client:
                assert client.select().round > mark
            until(lambda old=leader: old.told("stepped_down"), 20.0)
            leader, standby = standby, leader
        # The one that stepped down follows: it can lead again.
        assert standby.process.poll() is None
        leader.kill()
        with Client(addresses[standby], retries=0) as client:
            until(client.is_ready, 5.0)
        direct(loads, addresses[standby])
        busy(loads)
        finish(loads, standby, kept)
    return took


def test_a_paused_leader_writes_nothing_when_it_wakes(serve, kept):
    assert max(pause_again_and_again(serve, kept, times=1, seed=7)) < 5.0


@pytest.mark.slow
def test_a_paused_leader_each_time(serve, kept):
    took = pause_again_and_again(serve, kept, times=8, seed=8)
    print(f"seconds from SIGSTOP to the standby being ready: {sorted(round(one, 2) for one in took)}")
    assert max(took) < 5.0


def test_without_standby_who_lost_the_lead_ends_and_says_why(serve, kept):
    first = serve().wait()
    with Client(first.address) as client:
        made = client.select()
    refused = serve()
    assert refused.process.wait(60) == 2
    until(lambda: "is served already, by process" in "".join(refused.lines))
    second = serve("--standby")
    address = stands_by(second)
    first.process.send_signal(signal.SIGSTOP)
    with Client(address) as client:
        until(client.is_ready, 20.0)
        first.process.send_signal(signal.SIGCONT)
        assert client.reward(made, [1.0] * 4).counted == 4
    assert first.process.wait(60) == 2
    first._reader.join(10)
    assert "is served already" in first.lines[-1] and "--standby" in first.lines[-1]
    assert second.stop() == 0
    assert check(kept, []) == (0, 1)


def test_a_standby_needs_a_shared_store():
    for told, given in (
        ("standby needs a store that two machines reach", {"standby": True}),
        ('must be "sqlite" or begin with "postgresql://"', {"store": f"postgres//u:{PASSWORD}@h/d"}),
        ("lease = 0.5 must be in 1 .. 3600", {"store": "postgresql://h/d", "lease": 0.5}),
    ):
        with pytest.raises(ParameterError, match=told) as caught:
            Settings(server=ServerSettings(**given)).check()
        assert PASSWORD not in str(caught.value)
    Settings(server=ServerSettings(store="postgresql://h/d", standby=True)).check()
