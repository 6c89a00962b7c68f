"""Catalogs against a dictionary that forgets nothing it should know: labels, quotas, feedback, files, threads."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import textwrap
import threading
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import oracles.matroids as naive
import semibandit as sb
from semibandit.errors import ArmError, FileError, MatroidError, ParameterError, RewardError
from semibandit.policies.files import MAGIC

QUOTAS = {"news": 2, "sport": 1, None: 1, ("a", 1): 3}
TASKS = ["paint", "weld", "drive"]
TREE = {"news": {"sport": ["s0"], "world": ["w0"]}, "music": ["m0"]}

# How a catalog of each kind is made, what its arms may be told, and which sets of what was told are independent.
KINDS = {
    "uniform": (lambda **o: sb.Catalog.uniform(3, **o), [None], lambda told: naive.uniform(3)),
    "partition": (
        lambda **o: sb.Catalog.partition(QUOTAS, **o),
        list(QUOTAS),
        lambda told: naive.partition([list(QUOTAS).index(c) for c in told], list(QUOTAS.values())),
    ),
    "total": (
        lambda **o: sb.Catalog.partition({"x": 2, "y": 1}, total=2, **o),
        ["x", "y"],
        lambda told: naive.laminar(
            [
                (range(len(told)), 2),
                ([k for k, category in enumerate(told) if category == "x"], 2),
                ([k for k, category in enumerate(told) if category == "y"], 1),
            ]
        ),
    ),
    "graphic": (
        lambda **o: sb.Catalog.graphic(**o),
        [("a", "b"), ("b", "a"), ("b", "c"), ("c", "a"), ("c", "c"), (4, "d"), ("d", "a")],
        lambda told: naive.graphic([(_number(u), _number(v)) for u, v in told]),
    ),
    "transversal": (
        lambda **o: sb.Catalog.transversal(TASKS, **o),
        [("paint",), ("weld", "drive"), ("paint", "drive"), (), ("drive",)],
        lambda told: naive.transversal([[TASKS.index(task) for task in one] for one in told]),
    ),
}
POLICIES = {
    "cucb": sb.CUCB,
    "staircase": lambda m, **o: sb.CUCB(m, clock="staircase", engine="auto", **o),
    "clipped": lambda m, **o: sb.CUCB(m, clip=True, **o),
}


def _number(name):
    return ["a", "b", "c", "d", 4].index(name)


class Model:
    """What a catalog should know, in dictionaries."""

    def __init__(self, oracle, clip=False):
        self.oracle, self.clip = oracle, clip
        self.known, self.gone = {}, set()
        self.dropped = self.expired = 0

    def add(self, label, attribute):
        self.known[label] = (attribute, [])
        self.gone.discard(label)

    def expire(self, label):
        del self.known[label]
        self.gone.add(label)
        self.expired += 1

    def learn(self, labels, rewards):
        for label, reward in zip(labels, rewards, strict=True):
            if label in self.known:
                self.known[label][1].append(reward)
            else:
                self.dropped += 1

    def index(self, label, lam):
        rewards = self.known[label][1]
        if not rewards:
            return math.inf
        index = sum(rewards) / len(rewards) + lam * (1.0 / math.sqrt(len(rewards)))
        return min(1.0, index) if self.clip else index

    def judge(self, chosen, lam, without=()):
        """Assert that the labels chosen are a best base: independent, with the weights of a greedy one."""
        assert len(set(chosen)) == len(chosen) and not set(chosen) & set(without)
        labels = [label for label in self.known if label not in without]
        independent = self.oracle([self.known[label][0] for label in labels])
        assert independent([labels.index(label) for label in chosen])
        weights = [self.index(label, lam) for label in labels]
        best = naive.greedy(independent, naive.heaviest_first(weights))
        assert sorted(weights[k] for k in best) == sorted(self.index(label, lam) for label in chosen)

    def compare(self, catalog):
        assert len(catalog) == len(self.known) and set(catalog) == set(self.known)
        about = catalog.describe()
        assert (about["labels"], about["dropped"], about["expired"]) == (
            len(self.known),
            self.dropped,
            self.expired,
        )
        for row in catalog.rows():
            attribute, rewards = self.known[row["label"]]
            assert row["count"] == len(rewards)
            if rewards:
                assert row["mean"] == sum(rewards) / len(rewards)
            if isinstance(attribute, tuple) and catalog.describe()["kind"] == "transversal":
                assert set(row["attribute"]) == set(attribute)
            else:
                assert row["attribute"] == attribute
        catalog._check()


LABELS = [*"abcdefgh", 1, 2.5, ("x", 1), ("x", ("y", None)), None, False]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["add", "add", "add", "expire", "expire", "decide", "decide", "learn", "exclude", "save"]
        ),
        st.integers(0, 10**6),
    ),
    min_size=12,
    max_size=60,
)


def run(kind, policy, steps, tmp_path):
    """Play `steps` on a catalog and on its model."""
    make, attributes, oracle = KINDS[kind]
    catalog = make(policy=POLICIES[policy], capacity=1, metadata={"n": 1})
    model = Model(oracle, clip=policy == "clipped")
    shown, path = [], tmp_path / "catalog"
    for what, number in steps:
        rng = np.random.default_rng(number)
        label = LABELS[number % len(LABELS)]
        if what == "add":
            attribute = attributes[int(rng.integers(len(attributes)))]
            if label in model.known:
                with pytest.raises(ArmError, match="there already"):
                    catalog.add(label, attribute)
            else:
                catalog.add(label, attribute)
                model.add(label, attribute)
        elif what == "expire":
            if label in model.known:
                catalog.expire(label)
                model.expire(label)
            else:
                with pytest.raises(ArmError, match="has expired" if label in model.gone else "not known"):
                    catalog.expire(label)
        elif what == "decide":
            chosen = catalog.decide()
            model.judge(chosen, catalog.policy.confidence_width)
            shown += chosen
        elif what == "exclude":
            without = [
                one for one in LABELS if rng.random() < 0.3 and (one in model.known or one in model.gone)
            ]
            model.judge(catalog.decide(exclude=without), catalog.policy.confidence_width, without)
        elif what == "learn":
            some = [one for one in shown if rng.random() < 0.7 and (one in model.known or one in model.gone)]
            rewards = (rng.integers(0, 3, len(some)) / 2).tolist()  # ties
            catalog.learn(some, rewards)
            model.learn(some, rewards)
            shown = shown[-6:]
        else:
            catalog.save(path)
            twin = catalog
            catalog = sb.Catalog.load(path)
            assert catalog.metadata == {"n": 1}
            assert catalog.decide() == twin.decide()
        assert (label in catalog) == (label in model.known)
    model.compare(catalog)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, derandomize=True, max_examples=25)
@given(steps=STEPS)
def test_any_sequence_is_as_the_dictionary_says(kind, tmp_path_factory, steps):
    run(kind, "cucb", steps, tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("kind", ["partition", "graphic"])
@pytest.mark.parametrize("policy", ["staircase", "clipped"])
@settings(deadline=None, derandomize=True, max_examples=8)
@given(steps=STEPS)
def test_any_sequence_with_other_policies(kind, policy, tmp_path_factory, steps):
    run(kind, policy, steps, tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_churn_recycles_arms(kind, tmp_path):
    make, attributes, oracle = KINDS[kind]
    catalog, model, rng = make(), Model(oracle), np.random.default_rng(1)
    largest = 0
    for i in range(400):
        if len(model.known) > 12 or (model.known and rng.random() < 0.4):
            old = list(model.known)[int(rng.integers(len(model.known)))]
            catalog.expire(old)
            model.expire(old)
        label, attribute = f"item {i}", attributes[int(rng.integers(len(attributes)))]
        catalog.add(label, attribute)
        model.add(label, attribute)
        if i % 5 == 0:
            chosen = catalog.decide()
            model.judge(chosen, catalog.policy.confidence_width)
            rewards = rng.integers(0, 2, len(chosen)).astype(float).tolist()
            catalog.learn(chosen, rewards)
            model.learn(chosen, rewards)
        largest = max(largest, len(model.known))
    model.compare(catalog)
    about = catalog.describe()
    assert about["capacity"] <= max(64, 2 * largest + 2 * len(attributes)), "ids are used again"


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
    assert page.decide() == ["new"]
    page.expire("new")
    page.add("old")
    assert page.rows(["old"])[0]["count"] == 0


def test_an_empty_catalog_decides_nothing_and_can_be_saved(tmp_path):
    for make, attributes, _ in KINDS.values():
        catalog = make()
        assert catalog.decide() == [] and len(catalog) == 0 and catalog.rows() == []
        catalog.learn([], [])
        catalog.save(tmp_path / "empty")
        again = sb.Catalog.load(tmp_path / "empty")
        again.add("one", attributes[0])
        assert again.decide() == ["one"]
        again.expire("one")
        assert again.decide() == []


def test_refused_calls_change_nothing():
    page = sb.Catalog.partition({"news": 1, "sport": 2})
    page.add("vote", "news")
    page.add("derby", "sport")
    page.learn(["vote"], [0.5])
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
        (ArmError, lambda: page.learn(["vote", "never"], [0.5, 0.5])),
        (ArmError, lambda: page.learn("vote", [0.5])),
        (ArmError, lambda: page.learn([["vote"]], [0.5])),
        (ArmError, lambda: page.learn(3, [0.5])),
        (RewardError, lambda: page.learn(["vote", "derby"], [0.5])),
        (RewardError, lambda: page.learn(["vote", "derby"], [0.5, 1.5])),
        (RewardError, lambda: page.learn(["old"], [math.nan])),
        (RewardError, lambda: page.learn(["vote"], ["much"])),
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
    page.learn(["old", "vote", "old"], [1.0, 1.0, 0.0])
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
        one.learn(["b", "c"], [1.0, 1.0])
        assert one.describe()["dropped"] == 2 and one.describe()["expired"] == 3
        with pytest.raises(ArmError, match=r"labels\[0\] = 'a' is not known"):
            one.learn(["a"], [1.0])


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
            page.learn(page.decide(), [worth[j] for j in page.decide()])
        for _ in range(200):
            shown = page.decide()
            page.learn(shown, [worth[i] for i in shown])
        page.expire(9)
        page.add(10)
        worth[10] = 0.0
        assert 10 in page.decide() and 9 not in page.decide()
        page._check()


def test_names_of_a_policy_serve_too():
    page = sb.Catalog.uniform(1)
    page.add("a")
    page.update(page.select(), [1.0])
    assert page.rows()[0]["count"] == 1


def test_a_table_to_print():
    staff = sb.Catalog.transversal(TASKS)
    staff.add("ann", ["paint", "weld"])
    staff.add("bob", "paint")
    staff.learn(["ann", "ann", "bob"], [1.0, 0.5, 0.25])
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


# -- from a matroid ----------------------------------------------------------------------------------------------


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
    assert sb.Catalog.load(tmp_path / "nested").decide() == nested.decide()

    staff = sb.Catalog.from_matroid(
        sb.Transversal.from_frame({"worker": list("aab"), "task": ["p", "q", "p"]})
    )
    assert staff.matching(["a", "b"]) == {"a": "q", "b": "p"}
    plain = sb.Catalog.from_matroid(sb.Uniform(5, 2))
    assert plain.decide() == [0, 1]
    for matroid in (
        sb.Partition([0, 1, 1], [1, 1]),
        sb.Graphic([(0, 1), (1, 1)]),
        sb.Transversal([[0], [], [1]]),
    ):
        started = sb.Catalog.from_matroid(matroid)
        assert len(started) == matroid.n_arms and len(started.decide()) == matroid.rank
        started._check()


# -- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [frozenset([1]), b"x", (1, b"x"), Fraction(1, 2), math.inf, object()])
def test_labels_that_no_file_can_hold(label, tmp_path):
    page = sb.Catalog.uniform(1)
    page.add(label)
    assert page.decide() == [label]
    with pytest.raises(ParameterError, match="has no place in a file"):
        page.save(tmp_path / "page")
    assert not list(tmp_path.iterdir())


def test_numpy_labels_come_back_as_equal_ones(tmp_path):
    page = sb.Catalog.uniform(2)
    for label in (np.int64(7), np.str_("x"), (np.float64(0.5), True)):
        page.add(label)
    page.save(tmp_path / "page")
    assert set(sb.Catalog.load(tmp_path / "page")) == {7, "x", (0.5, True)}


@pytest.mark.parametrize("metadata", [{1, 2}, {"a": math.nan}, object()])
def test_metadata_that_json_cannot_hold(metadata, tmp_path):
    with pytest.raises(ParameterError, match="metadata"):
        sb.Catalog.uniform(1, metadata=metadata).save(tmp_path / "page")
    assert not list(tmp_path.iterdir())


def test_damaged_and_foreign_files_are_refused(tmp_path):
    page = sb.Catalog.partition({"news": 1, "sport": 1})
    page.add("vote", "news")
    path = tmp_path / "page"
    page.save(path)
    raw = path.read_bytes()
    for at in range(0, len(raw), max(1, len(raw) // 60)):
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        with pytest.raises(FileError):
            sb.Catalog.load(path)
    path.write_bytes(MAGIC)
    with pytest.raises(FileError):
        sb.Catalog.load(path)
    with pytest.raises(FileError, match="cannot be read"):
        sb.Catalog.load(tmp_path / "nowhere")
    sb.CUCB(sb.Uniform(2, 1)).save(path)
    with pytest.raises(FileError, match=r"semibandit\.load reads it"):
        sb.Catalog.load(path)
    page.save(path)
    with pytest.raises(FileError, match=r"semibandit\.Catalog\.load"):
        sb.load(path)


def test_files_that_contradict_themselves_are_refused(tmp_path):
    from semibandit.policies.files import _parse, _write

    page = sb.Catalog.partition({"news": 1, "sport": 1})
    page.add("vote", "news")
    page.add("derby", "sport")
    path = tmp_path / "page"

    def lie(change):
        page.save(path)
        about, arrays = _parse(path.read_bytes(), path)
        change(about["catalog"], arrays)
        _write(path, about, arrays)
        with pytest.raises(FileError):
            sb.Catalog.load(path)

    def put(part, name, value):
        part[name] = value

    def write(array, value):
        array[...] = value

    lie(lambda told, arrays: put(told, "labels", ["vote", "vote"]))
    lie(lambda told, arrays: put(told, "labels", ["vote"]))
    lie(lambda told, arrays: put(told, "labels", ["vote", ["x"]]))
    lie(lambda told, arrays: put(told, "kind", "linear"))
    lie(lambda told, arrays: put(told, "types", ["sport", "news"]))
    lie(lambda told, arrays: put(told, "dropped", -1))
    lie(lambda told, arrays: told.pop("forgotten"))
    lie(lambda told, arrays: put(told["about"], "quotas", [["news", 1], ["sport", 2]]))
    lie(lambda told, arrays: write(arrays["arms"], 0))
    lie(lambda told, arrays: write(arrays["arms"], [0, 10**6]))
    lie(lambda told, arrays: write(arrays["arms"], arrays["arms"] + 1))
    lie(lambda told, arrays: write(arrays["types"], 0))
    lie(lambda told, arrays: write(arrays["types"], 7))
    lie(lambda told, arrays: write(arrays["policy"][:100], 0))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
def test_after_kill_9_the_last_file_is_whole(tmp_path):
    path = tmp_path / "page"
    program = """
    import sys, semibandit as sb
    page = sb.Catalog.partition({"news": 2, "sport": 1}, metadata={"round": 0})
    for i in range(300):
        page.add(f"item {i}", ("news", "sport")[i % 2])
    for t in range(10**6):
        shown = page.decide()
        page.learn(shown, [0.5] * len(shown))
        page.expire(shown[0])
        page.add(f"new {t}", "news" if t % 2 else "sport")
        page.metadata["round"] = t
        page.save(sys.argv[1])
        if t == 20:
            print("go", flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(path)], stdout=subprocess.PIPE, env=os.environ
    )
    assert process.stdout is not None and process.stdout.readline() == b"go\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    page = sb.Catalog.load(path)
    assert page.metadata["round"] >= 20 and len(page) == 300
    page._check()
    assert len(page.decide()) == 3


# -- threads -----------------------------------------------------------------------------------------------------


def test_threads_share_a_catalog(tmp_path):
    page = sb.Catalog.partition({"even": 2, "odd": 1}, capacity=1)
    errors, counted = [], []

    def work(mine):
        try:
            n = 0
            for i in range(60):
                page.add((mine, i), "even" if i % 2 else "odd")
                shown = page.decide()
                assert len(shown) <= 3
                page.learn(shown, [0.5] * len(shown))  # another thread may have expired some of them
                n += len(shown)
                if i >= 5:
                    page.expire((mine, i - 5))
                if i % 20 == 0:
                    page.save(tmp_path / f"page{mine}")
            counted.append(n)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(page) == 20
    page._check()
    about = page.describe()
    assert about["expired"] == 4 * 55
    assert sum(row["count"] for row in page.rows()) + about["dropped"] <= sum(counted)
    for i in range(4):
        sb.Catalog.load(tmp_path / f"page{i}")._check()


# -- engines -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["uniform", "partition", "total", "graphic", "transversal"])
def test_fast_engines_decide_as_re_solving_does(kind):
    """Some hundred labels, so that `engine="auto"` takes a fast engine, with much coming and going in between."""
    rng = np.random.default_rng(8)
    makers = {
        "uniform": (lambda **o: sb.Catalog.uniform(7, **o), lambda: None),
        "partition": (
            lambda **o: sb.Catalog.partition(dict.fromkeys(range(9), 2), **o),
            lambda: int(rng.integers(9)),
        ),
        "total": (
            lambda **o: sb.Catalog.partition(dict.fromkeys(range(9), 2), total=8, **o),
            lambda: int(rng.integers(9)),
        ),
        "graphic": (
            lambda **o: sb.Catalog.graphic(**o),
            lambda: tuple(rng.permutation(20)[:2].tolist()),
        ),
        "transversal": (
            lambda **o: sb.Catalog.transversal(range(12), **o),
            lambda: rng.permutation(12)[: rng.integers(1, 4)].tolist(),
        ),
    }
    make, attribute = makers[kind]
    fast = make(clock="staircase", capacity=600)
    slow = make(clock="staircase", capacity=600, engine="resolve")
    assert fast.describe()["engine"] not in ("resolve", slow.describe()["engine"])
    worth, there = {}, []
    for i in range(500):
        told = attribute()
        for page in (fast, slow):
            page.add(i, told)
        worth[i] = rng.random()
        there.append(i)
        if len(there) > 250:
            old = there.pop(int(rng.integers(len(there))))
            for page in (fast, slow):
                page.expire(old)
        if i % 3 == 0:
            chosen = fast.decide()
            assert chosen == slow.decide()
            rewards = [float(rng.random() < worth[label]) for label in chosen]
            for page in (fast, slow):
                page.learn(chosen, rewards)
    fast._check()
    fast.policy._engine._check()
