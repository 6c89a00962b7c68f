"""What a catalog should know, in dictionaries that forget nothing: shares no code with the catalog."""

from __future__ import annotations

import math

import oracles.matroids as naive
import semibandit as sb

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
        self.known, self.gone, self.waiting = {}, set(), {}
        self.dropped = self.expired = self.born = 0

    def add(self, label, attribute):
        self.born += 1
        self.known[label] = (attribute, [], self.born)
        self.gone.discard(label)

    def expire(self, label):
        del self.known[label]
        self.gone.add(label)
        self.expired += 1

    def decide(self, decision):
        """A decision waits; each of its labels is told by when it was added."""
        self.waiting[decision.id] = {label: self.known[label][2] for label in decision}

    def learn(self, number, rewards):
        for label, reward in rewards.items():
            if label in self.known and self.known[label][2] == self.waiting[number][label]:
                self.known[label][1].append(reward)
            else:
                self.dropped += 1
        del self.waiting[number]

    def plays(self, label):
        born = self.known[label][2]
        return sum(one.get(label) == born for one in self.waiting.values())

    def update(self, labels, rewards):
        for label, reward in zip(labels, rewards, strict=True):
            if label in self.known:
                self.known[label][1].append(reward)
            else:
                self.dropped += 1

    def index(self, label, lam):
        rewards, n = self.known[label][1], len(self.known[label][1]) + self.plays(label)
        if not n:
            return math.inf
        index = (sum(rewards) / len(rewards) if rewards else 1.0) + lam * (1.0 / math.sqrt(n))
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
        assert (about["labels"], about["dropped"], about["expired"], about["waiting"]) == (
            len(self.known),
            self.dropped,
            self.expired,
            len(self.waiting),
        )
        for row in catalog.rows():
            attribute, rewards, _ = self.known[row["label"]]
            assert row["count"] == len(rewards)
            if rewards:
                assert row["mean"] == sum(rewards) / len(rewards)
            if isinstance(attribute, tuple) and catalog.describe()["kind"] == "transversal":
                assert set(row["attribute"]) == set(attribute)
            else:
                assert row["attribute"] == attribute
        catalog._check()
