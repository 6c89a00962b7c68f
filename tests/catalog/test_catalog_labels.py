"""Labels that come and expire: ids used again, room that grows, refusals that change nothing, tables."""

from __future__ import annotations

import json
import math

import pytest

import semibandit as sb
from oracles.catalog import KINDS, TASKS, TREE
from semibandit.errors import ArmError, MatroidError, ParameterError, RewardError


def test_capacity_doubles_and_growing_is_rare():
    page = sb.Catalog.uniform(2, capacity=4)
    for i in range(1000):
        page.add(i)
        page.decide()
    about = page.describe()
    assert about["labels"] == 1000 and about["capacity"] <= 2048
    assert about["grown"] <= 10


def test_categories_have_arms_in_reserve():
    page = sb.Catalog.partition(dict.fromkeys(range(10), 2))
    for i in range(2000):
        page.add(i, i % 10)
        page.decide()
    assert page.describe()["grown"] <= 12
    small = sb.Catalog.partition({"small": 1, "large": 1})
    for i in range(1000):
        small.add(i, "large")
    small.decide()
    before = small.describe()["grown"]
    for i in range(1000, 1200):
        small.add(i, "small")
        small.decide()
    assert small.describe()["grown"] == before, "a category that was empty has room for a while"


def test_a_recycled_arm_starts_anew():
    page = sb.Catalog.uniform(1, capacity=1)
    page.add("old")
    for _ in range(50):
        page.learn(page.decide(), [1.0])
    page.expire("old")
    page.add("new")
    assert page.rows() == [
        {"label": "new", "attribute": None, "count": 0, "mean": pytest.approx(math.nan, nan_ok=True)}
    ]
    assert page.select() == ["new"]
    page.expire("new")
    page.add("old")
    assert page.rows(["old"])[0]["count"] == 0


def test_an_empty_catalog_decides_nothing_and_can_be_saved(tmp_path):
    for make, attributes, _ in KINDS.values():
        catalog = make()
        assert (
            catalog.select() == []
            and catalog.decide().labels == []
            and len(catalog) == 0
            and catalog.rows() == []
        )
        catalog.update([], [])
        catalog.learn(0, [])
        catalog.save(tmp_path / "empty")
        again = sb.Catalog.load(tmp_path / "empty")
        again.add("one", attributes[0])
        assert again.decide().labels == ["one"]
        again.expire("one")
        assert again.decide().labels == []


def test_refused_calls_change_nothing():
    page = sb.Catalog.partition({"news": 1, "sport": 2})
    page.add("vote", "news")
    page.add("derby", "sport")
    page.update(["vote"], [0.5])
    page.add("old", "news")
    page.expire("old")

    def state():
        return page.rows(), {k: v for k, v in page.describe().items() if k not in ("bytes", "bytes_per_arm")}

    before = json.dumps(state())
    refused = [
        (ArmError, lambda: page.add("vote", "news")),
        (ArmError, lambda: page.add(["a list"], "news")),
        (ArmError, lambda: page.add((1, []), "news")),
        (ArmError, lambda: page.add(math.nan, "news")),
        (MatroidError, lambda: page.add("new", "weather")),
        (MatroidError, lambda: page.add("new")),
        (MatroidError, lambda: page.add("new", [])),
        (ArmError, lambda: page.expire("never")),
        (ArmError, lambda: page.expire("old")),
        (ArmError, lambda: page.expire([])),
        (ArmError, lambda: page.update(["vote", "never"], [0.5, 0.5])),
        (ArmError, lambda: page.update("vote", [0.5])),
        (ArmError, lambda: page.update([["vote"]], [0.5])),
        (ArmError, lambda: page.update(3, [0.5])),
        (RewardError, lambda: page.update(["vote", "derby"], [0.5])),
        (RewardError, lambda: page.update(["vote", "derby"], [0.5, 1.5])),
        (RewardError, lambda: page.update(["old"], [math.nan])),
        (RewardError, lambda: page.update(["vote"], ["much"])),
        (ArmError, lambda: page.decide(exclude=["never"])),
        (ArmError, lambda: page.decide(exclude="vote")),
        (ArmError, lambda: page.rows(["old"])),
        (ArmError, lambda: page.attribute("never")),
        (ParameterError, lambda: page.matching(["vote"])),
    ]
    for error, call in refused:
        with pytest.raises(error):
            call()
        assert json.dumps(state()) == before
    page.update(["old", "vote", "old"], [1.0, 1.0, 0.0])
    assert page.describe()["dropped"] == 2 and page.rows(["vote"])[0]["count"] == 2


def test_messages_name_what_would_be_right():
    with pytest.raises(MatroidError, match="'weather' is not known: quotas are given for 'news', 'sport'"):
        sb.Catalog.partition({"news": 1, "sport": 2}).add("rain", "weather")
    with pytest.raises(MatroidError, match="task 'sing' is not known: one of 'paint'"):
        sb.Catalog.transversal(TASKS).add("ann", ["sing"])
    with pytest.raises(MatroidError, match="pair of its two ends"):
        sb.Catalog.graphic().add("link", "ab")
    with pytest.raises(MatroidError, match="have none"):
        sb.Catalog.uniform(2).add("item", "news")
    with pytest.raises(ParameterError, match="FPL has no reset"):
        sb.Catalog.uniform(2, sb.FPL)
    with pytest.raises(ParameterError, match="has no reset"):
        sb.Catalog.uniform(2, lambda m: sb.minimize(sb.FPL(m)))
    with pytest.raises(ParameterError, match=r"made by Catalog\.uniform"):
        sb.Catalog(sb.Uniform(3, 2))
    for bad in ({}, {"news": 0}, {"news": -1}, {"news": 1.5}, ["news"], {"news": None}):
        with pytest.raises(MatroidError, match="quotas"):
            sb.Catalog.partition(bad)
    with pytest.raises(MatroidError, match="tasks"):
        sb.Catalog.transversal([])
    with pytest.raises(MatroidError, match="distinct"):
        sb.Catalog.transversal(["a", "a"])
    with pytest.raises(MatroidError, match="cannot start from"):
        sb.Catalog.from_matroid(sb.Linear([[1, 0], [0, 1]]))


def test_only_the_last_expired_labels_are_remembered(tmp_path):
    page = sb.Catalog.uniform(1, remember=2)
    for label in "abc":
        page.add(label)
        page.expire(label)
    page.save(tmp_path / "page")
    for one in (page, sb.Catalog.load(tmp_path / "page")):
        one.update(["b", "c"], [1.0, 1.0])
        assert one.describe()["dropped"] == 2 and one.describe()["expired"] == 3
        with pytest.raises(ArmError, match=r"labels\[0\] = 'a' is not known"):
            one.update(["a"], [1.0])


def test_costs_and_other_policies_that_grow():
    net = sb.Catalog.graphic(
        lambda m, **o: sb.minimize(sb.CUCB(m, reward_range=(0, 30), **o)), exploration=0.01
    )
    latency = {("a", "b"): 3.0, ("b", "c"): 20.0, ("c", "a"): 5.0}
    for link in latency:
        net.add(link)
    for _ in range(200):
        tree = net.decide()
        net.learn(tree, [latency[link] for link in tree])
    assert set(net.decide()) == {("a", "b"), ("c", "a")}
    assert {row["label"]: row["mean"] for row in net.rows()} == pytest.approx(latency)
    net._check()
    for policy in (
        sb.KLOSM,
        lambda m: sb.FasterCUCB(m, horizon=300),
        sb.SlidingWindowCUCB,
        sb.DiscountedCUCB,
    ):
        page = sb.Catalog.uniform(2, policy, capacity=1)
        worth = {i: i / 10 for i in range(10)}
        for i in worth:
            page.add(i)
            page.update(page.select(), [worth[j] for j in page.select()])
        for _ in range(200):
            shown = page.decide()
            page.learn(shown, [worth[i] for i in shown])
        page.expire(9)
        page.add(10)
        worth[10] = 0.0
        assert 10 in page.decide() and 9 not in page.decide()
        page._check()


def test_a_table_to_print():
    staff = sb.Catalog.transversal(TASKS)
    staff.add("ann", ["paint", "weld"])
    staff.add("bob", "paint")
    staff.update(["ann", "ann", "bob"], [1.0, 0.5, 0.25])
    assert staff.table(["bob", "ann"]).splitlines() == [
        "label  tasks        count   mean",
        "-----  -----------  -----  -----",
        "bob    paint            1  0.250",
        "ann    paint, weld      2  0.750",
    ]
    assert staff.matching(staff.decide()) == {"ann": "weld", "bob": "paint"}
    with pytest.raises(ArmError, match="cannot all be matched"):
        staff.add("cid", "paint")
        staff.matching(["bob", "cid"])
    assert sb.Catalog.uniform(1).table() == "label  count  mean\n-----  -----  ----"


def test_starts_from_labelled_matroids(tmp_path):
    column = ["news", "news", "sport", "news"]
    page = sb.Catalog.from_matroid(sb.Partition.from_column(column, {"news": 2, "sport": 2}, list("abcd")))
    assert sorted(page.decide()) == ["a", "b", "c"]
    page.add("e", "sport")  # the quota is that which was given, not that of the one arm there was
    assert sorted(page.decide(exclude=["a", "b", "d"])) == ["c", "e"]

    nested = sb.Catalog.from_matroid(sb.Laminar.from_nested(TREE, {"news": 1, "music": 2}))
    for label, family in (("s1", "sport"), ("w1", ("news", "world")), ("m1", "music"), ("m2", "music")):
        nested.add(label, family)
    assert sorted(label[0] for label in nested.decide()) == ["m", "m", "s"]
    assert nested.attribute("w1") == "news / world"
    with pytest.raises(MatroidError, match="'news' is not known"):
        nested.add("n", "news")
    nested.save(tmp_path / "nested")
    assert sb.Catalog.load(tmp_path / "nested").select() == nested.select()

    staff = sb.Catalog.from_matroid(
        sb.Transversal.from_frame({"worker": list("aab"), "task": ["p", "q", "p"]})
    )
    assert staff.matching(["a", "b"]) == {"a": "q", "b": "p"}
    plain = sb.Catalog.from_matroid(sb.Uniform(5, 2))
    assert plain.decide().labels == [0, 1]
    for matroid in (
        sb.Partition([0, 1, 1], [1, 1]),
        sb.Graphic([(0, 1), (1, 1)]),
        sb.Transversal([[0], [], [1]]),
    ):
        started = sb.Catalog.from_matroid(matroid)
        assert len(started) == matroid.n_arms and len(started.decide()) == matroid.rank
        started._check()
