"""What the page is told: samples, the last decisions, the stream; and that looking on changes nothing."""

from __future__ import annotations

import asyncio
import random
import re
import time
import tracemalloc
from collections import Counter

import httpx
import msgspec
import numpy as np
import pytest

from semibandit.policies.catalogue import POLICIES
from semibandit.serve.host import Host
from semibandit.serve.peek import peek
from semibandit.serve.pulse import Course, Histogram, Latencies, PolicySample, Pulse, Sample, Watcher
from semibandit.serve.refusals import Refusal
from semibandit.serve.snapshots import write_snapshot
from semibandit.serve.tokens import Tokens, new_token
from semibandit.serve.watch import Watch
from semibandit.serve.wire import PolicySpec
from support.service import SMALL, Server, running

SECOND = 1_000_000


def sample(at=0.0, **policies):
    return Sample(at, 0.0, 0.0, 0.0, {"all": [None] * 3}, 0, None, policies)


def opened():
    """A host that takes requests."""
    host = Host()
    host.open(0, "tag")
    return host


# -- numbers -------------------------------------------------------------------------------------------------


def test_latencies_are_those_of_the_last_seconds():
    select, other = Histogram(), Histogram()
    seen = Latencies({"select": select, "other": other})
    for _ in range(100):
        select.observe(0.0009)
    other.observe(4.0)
    first = seen.tick()
    assert first["select"] == first["all"] == [0.001] * 3, "the rest is not among those that decide and learn"
    assert first["other"] == [4.0] * 3
    for _ in range(5):
        select.observe(0.09)
    assert seen.tick()["select"] == [0.001, 0.001, 0.1]
    for _ in range(20):
        last = seen.tick()
    assert last["select"] == last["all"] == [None] * 3, "forgotten"


@pytest.mark.parametrize("n", [1, 7, 8, 9, 100, 1001])
def test_a_course_keeps_few_points_and_all_of_the_time(n):
    course = Course(most=8)
    for i in range(n):
        course.add(float(i), PolicySample(i, 2 * i, 0.5 * i, 0, 0))
    points = course.points
    assert len(points) <= 8 and points[0] == (0.0, 0, 0, 0.0)
    gaps = set(np.diff([at for at, *_ in points]).tolist())
    assert len(gaps) <= 1, "evenly spaced"
    assert n - 1 - points[-1][0] <= max(gaps, default=1.0), "up to now"
    assert all(rewards == 2 * at and total == 0.5 * at for at, _, rewards, total in points)
    course.add(float(n), PolicySample(0, 0, 0.0, 0, 0))
    assert course.points[-1][1:] == (0, 0, 0.0) and (n == 1 or len(course.points) == 1), "another policy"


def test_a_slow_watcher_loses_seconds_but_hears_the_end():
    async def main():
        watcher = Watcher(room=3)
        for i in range(5):
            watcher.put(sample(float(i)))
        watcher.put(None)
        watcher.put(sample(99.0))
        found = [await watcher.get() for _ in range(3)]
        return [one and one.at for one in found], watcher.missed

    assert asyncio.run(main()) == ([3.0, 4.0, None], 3)


def test_watchers_are_few_and_counted():
    async def main():
        pulse = Pulse(most=2)
        one, two = pulse.subscribe(), pulse.subscribe()
        with pytest.raises(Refusal, match="2 watch already") as refused:
            pulse.subscribe()
        assert refused.value.status == 429
        for i in range(13):
            pulse.add(sample(float(i)))
        assert (len(pulse), pulse.watched, pulse.missed) == (2, 2, 6)
        pulse.unsubscribe(one)
        pulse.unsubscribe(one)
        assert (len(pulse), pulse.watched, pulse.missed) == (1, 2, 6)
        pulse.close()
        late = pulse.subscribe()
        assert await late.get() is None, "who comes after the end is told so"
        assert [(await two.get()) is None for _ in range(10)] == [False] * 9 + [True]

    asyncio.run(main())


def test_policies_that_are_gone_leave_no_course():
    pulse = Pulse()
    pulse.add(sample(0.0, a=PolicySample(1, 1, 1.0, 0, 0), b=PolicySample(1, 1, 1.0, 0, 0)))
    pulse.add(sample(1.0, b=PolicySample(2, 1, 1.0, 0, 0)))
    assert list(pulse.courses) == ["b"] and len(pulse.courses["b"].points) == 2


# -- the last decisions --------------------------------------------------------------------------------------


def naive_peek(decisions, rewards, best):
    """Base and other arms of (arms) lists and (arm, reward) pairs, with share, count and mean; plain Python."""
    last, seen = decisions[-100:], Counter()
    for arms in last:
        seen.update(arms)
    told = {}
    for arm, reward in rewards:
        told.setdefault(arm, []).append(reward)
    mean = {arm: sum(values) / len(values) for arm, values in told.items()}

    def order(arm):
        return (arm not in mean, best * mean.get(arm, 0.0), arm)

    base = sorted(last[-1], key=order)[:12]
    rows = {arm: (seen[arm] / len(last), len(told.get(arm, ())), mean.get(arm)) for arm in seen}
    return base, [arm for arm in seen if arm not in last[-1]], rows, order


@pytest.mark.parametrize("objective", ["max", "min"])
@pytest.mark.parametrize(("arms", "rank"), [(30, 5), (40, 20), (1, 1), (6, 6)])
def test_peek_equals_a_naive_account(arms, rank, objective):
    rng = random.Random(arms)
    host = opened()
    spec = PolicySpec(
        policy="cts", matroid={"kind": "uniform", "arms": arms, "rank": rank}, objective=objective, ttl=None
    )
    host.create(0, "p", spec)
    seat, decisions, rewards = host.seats["p"], [], []
    assert peek(seat, 0) is None
    for i in range(140):
        _, [made] = host.select(i * SECOND, "p")
        decisions.append(made.arms)
        if rng.random() < 0.6:
            values = [float(rng.random() < 0.3 + 0.02 * arm) for arm in made.arms]
            host.reward(i * SECOND, "p", made.decision, None, values)
            rewards += zip(made.arms, values, strict=True)
        if i % 13 and i < 137:
            continue
        base, others, rows, order = naive_peek(decisions, rewards, -1 if objective == "max" else 1)
        found = peek(seat, (i + 2) * SECOND)
        assert (found.size, found.age, found.back) == (rank, 2.0, min(i + 1, 100))
        mine = [int(row.arm) for row in found.rows if row.base]
        rest = [int(row.arm) for row in found.rows if not row.base]
        assert mine == base and [row.base for row in found.rows] == [True] * len(mine) + [False] * len(rest)
        assert (
            rest == sorted(rest, key=order) and len(rest) == min(8, len(others)) and set(rest) <= set(others)
        )
        if rest:
            unshown = [rows[arm][0] for arm in others if arm not in rest]
            assert min(rows[arm][0] for arm in rest) >= max(unshown, default=0.0), "the most frequent ones"
        for row in found.rows:
            share, count, mean = rows[int(row.arm)]
            assert (row.share, row.count) == (share, count)
            assert row.mean == pytest.approx(mean) if mean is not None else row.mean is None
            if mean is not None:
                assert 0.0 <= row.low < row.high <= 1.0


def test_labels_that_are_gone_are_not_shown():
    host = opened()
    catalog = {"kind": "uniform", "rank": 2, "labels": ["a", "b", "c", "x" * 100]}
    host.create(0, "p", PolicySpec(catalog=catalog))
    seat = host.seats["p"]
    for i in range(12):
        _, [made] = host.select(i, "p")
        host.reward(i, "p", made.decision, None, [0.5] * len(made.arms))
    names = {row.arm for row in peek(seat, 12).rows}
    assert names == {"a", "b", "c", "x" * 59 + "\u2026"}
    host.delete(13, "p", ["a", "b"])
    host.insert(14, "p", ["new"])
    found = peek(seat, 15)
    assert {row.arm for row in found.rows} == {"c", "x" * 59 + "\u2026"}, (
        "an arm's next label was not chosen yet"
    )
    host.delete(16, "p", ["c", "x" * 100, "new"])
    assert peek(seat, 17).rows == []
    _, [made] = host.select(18, "p")
    assert made.arms == [] and peek(seat, 19).size == 0


def content(host, folder):
    """All files of a snapshot."""
    write_snapshot(host, folder)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"oracle", "comb-lin-ts", "comb-lin-ucb"}))
def test_who_looks_on_changes_nothing(tmp_path, name):
    options = {"faster-cucb": {"horizon": 500}, "sliding-window-cucb": {"window": 20}}.get(name, {})
    spec = PolicySpec(
        policy=name, matroid={"kind": "uniform", "arms": 12, "rank": 3}, options=options, seed=5
    )
    hosts = [opened(), opened()]
    for host in hosts:
        host.create(0, "p", spec)

    class Looked:  # what `Watch` needs of a service
        host, pulse, late, lag, down = hosts[1], Pulse(), {}, 0, None
        keeper = type("Keeper", (), {"age": None})
        clock = type("Clock", (), {"now": staticmethod(lambda: 10**6)})

        def sample_of(self, seat):
            return PolicySample(
                seat.ledger.next, seat.rewards, seat.total, seat.ledger.pending, seat.expired, 0
            )

    watch, rng = Watch(Looked()), random.Random(1)
    for i in range(60):
        made = [host.select(i, "p")[1][0] for host in hosts]
        assert made[0].arms == made[1].arms
        watch.service.pulse.beats += 1
        seen = watch.first("p"), watch.now("p"), watch.now(None)
        assert seen[1].startswith(b"event: now\ndata: {") and seen[1] == seen[2]
        if rng.random() < 0.7:
            values = [float(rng.random() < 0.5) for _ in made[0].arms]
            for host, one in zip(hosts, made, strict=True):
                host.reward(i, "p", one.decision, None, values)
    assert content(hosts[0], tmp_path / "a") == content(hosts[1], tmp_path / "b")


@pytest.mark.parametrize("name", ["cts", "cucb"])
def test_a_look_does_not_touch_all_arms(name):
    host = opened()
    arms = 400_000
    host.create(0, "p", PolicySpec(policy=name, matroid={"kind": "uniform", "arms": arms, "rank": 10}))
    seat = host.seats["p"]
    for i in range(30):
        host.select(i, "p")
    peek(seat, 40)
    tracemalloc.start()
    found = peek(seat, 40)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.rows) == 18
    assert most < arms, f"{most} bytes: an array of all arms would have been 8 bytes each"


def test_of_a_very_long_base_a_part_is_looked_at():
    host = opened()
    host.create(0, "p", PolicySpec(matroid={"kind": "uniform", "arms": 20_000, "rank": 9_000}))
    for i in range(3):
        host.select(i, "p")
    found = peek(host.seats["p"], 5)
    assert (found.size, found.back, len(found.rows)) == (9_000, 1, 12)


# -- the stream ----------------------------------------------------------------------------------------------


class Asked:
    """One request straight to the application, whose answer comes piece by piece."""

    def __init__(self, app, path, query=b"", headers=(), method="GET"):
        self.messages, self._go = asyncio.Queue(), asyncio.Event()
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query,
            "root_path": "",
            "headers": [(b"host", b"127.0.0.1"), *headers],
        }
        self._begun = False
        self.task = asyncio.get_running_loop().create_task(app(scope, self._receive, self._send))

    async def _receive(self):
        if not self._begun:
            self._begun = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._go.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message):
        await self.messages.put(message)

    def leave(self):
        self._go.set()

    async def next(self):
        async with asyncio.timeout(10):
            return await self.messages.get()

    async def event(self):
        """The next events: kinds and contents."""
        body = (await self.next())["body"].decode()
        assert body.endswith("\n\n")
        found = [re.fullmatch(r"event: (\w+)\ndata: (.*)", one).groups() for one in body[:-2].split("\n\n")]
        return [(kind, msgspec.json.decode(data)) for kind, data in found]


def play(body, tmp_path, policies=None, **options):
    """Run ``await body(client, app)`` against a service."""

    async def main():
        async with running(tmp_path, policies, **options) as client:
            return await body(client, client._transport.app)

    return asyncio.run(main())


def test_the_stream_tells_each_second(tmp_path):
    async def body(client, app):
        stream = Asked(app, "/v1/watch", b"policy=small")
        start = await stream.next()
        assert start["status"] == 200
        headers = dict(start["headers"])
        assert headers[b"content-type"].startswith(b"text/event-stream")
        assert headers[b"cache-control"] == b"no-store" and b"content-length" not in headers
        (kind, first), (also, now) = await stream.event()
        assert (kind, also) == ("first", "now") and first["version"]
        assert now["policies"] == ["small", "other"] and now["policy"]["decisions"] == 0
        assert now["policy"]["about"]["engine"] and now["policy"]["about"]["rank"] == 4
        assert now["policy"]["about"]["reward_range"] == [0.0, 1.0]
        made = (await client.post("/v1/policies/small/select", json={})).json()
        told = {"decision": made["decision"], "rewards": [1, 0, 1, 1]}
        await client.post("/v1/policies/small/rewards", json=told)
        [(kind, now)] = await stream.event()
        while now["policy"]["rewards"] < 4:
            [(kind, now)] = await stream.event()
        policy = now["policy"]
        assert kind == "now" and (policy["decisions"], policy["reward_sum"], policy["round"]) == (1, 3.0, 1)
        assert sorted(int(row["arm"]) for row in policy["peek"]["rows"]) == sorted(made["arms"])
        assert now["down"] is None and now["watchers"] == 1 and now["latencies"]["select"][0] > 0
        assert len(client.service.pulse) == 1
        stream.leave()
        await asyncio.wait_for(stream.task, 10)
        assert len(client.service.pulse) == 0 and client.service.pulse.watched == 1
        return sum(app._other_time.counts)

    assert play(body, tmp_path, {"small": SMALL, "other": SMALL}) == 0, "the length of a stream is no latency"


def test_the_first_policy_is_shown_unless_asked_otherwise(tmp_path):
    async def body(client, app):
        for query, wanted in ((b"", "a"), (b"policy=b", "b"), (b"policy=%3Cnone%3E", None)):
            stream = Asked(app, "/v1/watch", query)
            await stream.next()
            [_, (_, now)] = await stream.event()
            assert (now["policy"] and now["policy"]["name"]) == wanted
            stream.leave()
            await stream.task

    play(body, tmp_path, {"a": SMALL, "b": SMALL})


def test_the_end_of_the_service_ends_the_stream(tmp_path):
    async def body(client, app):
        stream = Asked(app, "/v1/watch")
        for _ in range(2):
            await stream.next()
        client.service.pulse.close()
        message = await stream.next()
        while message.get("more_body"):
            message = await stream.next()
        assert message["body"] == b"event: bye\ndata: {}\n\n"
        await asyncio.wait_for(stream.task, 10)
        assert len(client.service.pulse) == 0

    play(body, tmp_path)


def test_all_who_watch_a_policy_get_the_same_bytes(tmp_path):
    async def body(client, app):
        streams = [Asked(app, "/v1/watch") for _ in range(3)]
        for stream in streams:
            await stream.next()
            await stream.next()
        bodies = [(await stream.next())["body"] for stream in streams]
        assert bodies[0] is bodies[1] is bodies[2]
        for stream in streams:
            stream.leave()

    play(body, tmp_path)


def test_too_many_watchers_are_refused(tmp_path):
    async def body(client, app):
        client.service.pulse.most = 1
        stream = Asked(app, "/v1/watch")
        await stream.next()
        refused = await client.get("/v1/watch")
        assert refused.status_code == 429 and refused.json()["error"] == "too_many_watchers"
        stream.leave()
        await stream.task
        head = await client.head("/v1/watch")
        assert head.status_code == 200 and len(client.service.pulse) == 0

    play(body, tmp_path)


def test_a_service_that_is_down_says_so_on_the_stream(tmp_path):
    async def body(client, app):
        client.service.down = "starting"
        stream = Asked(app, "/v1/watch")
        await stream.next()
        [_, (_, now)] = await stream.event()
        assert now["down"] == "starting"
        client.service.down = None
        [(_, now)] = await stream.event()
        assert now["down"] is None
        stream.leave()
        await stream.task

    play(body, tmp_path)


def test_late_rewards_are_counted(tmp_path):
    async def body(client, app):
        made = (await client.post("/v1/policies/p/select", json={})).json()
        await asyncio.sleep(0.05)
        told = {"decision": made["decision"], "rewards": [1, 0, 1, 1]}
        late = await client.post("/v1/policies/p/rewards", json=told)
        assert late.status_code == 410
        metrics = (await client.get("/metrics")).text
        assert 'semibandit_late_total{policy="p"} 1.0' in metrics
        assert client.service.sample_of(client.service.host.seats["p"]).late == 1

    spec = PolicySpec(matroid={"kind": "uniform", "arms": 40, "rank": 4}, ttl=0.01)
    play(body, tmp_path, {"p": spec})


def test_the_page_is_open_and_its_numbers_need_a_token(tmp_path):
    (token, line), (player, line2) = new_token("read"), new_token("play")
    path = tmp_path / "tokens"
    path.write_text(f"{line}\n{line2}\n")

    async def body(client, app):
        for address in ("/", "/page.js", "/page.css"):
            assert (await client.get(address)).status_code == 200
        assert (await client.get("/v1/watch")).status_code == 401
        assert (await client.get("/v1/watch?token=" + token)).status_code == 401
        for one in (token, player):
            stream = Asked(app, "/v1/watch", headers=[(b"authorization", f"Bearer {one}".encode())])
            assert (await stream.next())["status"] == 200
            stream.leave()
            await stream.task

    play(body, tmp_path / "data", tokens=Tokens.read(path))


def test_nothing_in_the_page_comes_from_elsewhere(tmp_path):
    async def body(client, app):
        pages = {address: await client.get(address) for address in ("/", "/page.js", "/page.css")}
        return {address: (answer.headers, answer.text) for address, answer in pages.items()}

    pages = play(body, tmp_path)
    for headers, text in pages.values():
        policy = headers["content-security-policy"]
        assert (
            "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        )
        assert headers["x-content-type-options"] == "nosniff"
        assert not re.search(r"(https?:)?//[a-z]", text.replace("http://www.w3.org/2000/svg", ""))
    html, script = pages["/"][1], pages["/page.js"][1]
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script>|javascript:", html)
    assert "innerHTML" not in script and "eval(" not in script and "insertAdjacent" not in script
    used = set(re.findall(r'(?:\$|say|spark)\("([\w-]+)"', script))
    assert used <= set(re.findall(r'id="([\w-]+)"', html)), "the script looks for what is there"
    assert pages["/page.css"][0]["content-type"].startswith("text/css")


def test_a_stopped_server_does_not_wait_for_its_watchers(tmp_path):
    with Server(tmp_path, "--arms", 50, "--rank", 3) as server:
        with httpx.stream("GET", f"{server.address}/v1/watch", timeout=30) as answer:
            lines = answer.iter_lines()
            assert next(lines) == "event: first"
            began = time.monotonic()
            server.process.terminate()
            rest = list(lines)
        assert "event: bye" in rest
        assert server.process.wait(60) == 0
        assert time.monotonic() - began < 8, "the ten seconds for requests under way are not for streams"
