"""Catalogs that threads share: labels come and expire, decisions wait and are settled, files are written at once."""

from __future__ import annotations

import contextlib
import os
import sys
import threading

import numpy as np
import pytest

import semibandit as sb
from oracles.catalog import KINDS
from semibandit.errors import ArmError

#: Options of CUCB with which the fast engine of a kind runs at any size.
FAST = {
    "uniform": {"engine": "kinetic"},
    "partition": {"engine": "kinetic"},
    "total": {"engine": "kinetic"},
    "graphic": {"engine": "adaptive", "clock": "staircase"},
    "transversal": {"engine": "adaptive", "clock": "staircase"},
}
POLICIES = {
    "kl-osm": sb.KLOSM,
    "clipped": lambda m: sb.CUCB(m, clip=True),
    "faster": lambda m: sb.FasterCUCB(m, horizon=1000),
    "window": lambda m: sb.SlidingWindowCUCB(m, window=10**6),
    "prior": lambda m: sb.CUCB(m, prior=sb.beta_prior(1, 3), exploration="practical"),
    "costs": lambda m: sb.minimize(sb.CUCB(m)),
}


@pytest.fixture(autouse=True)
def restless():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*tasks):
    """Run all tasks at once; the first error of one of them is raised here."""
    errors, gate = [], threading.Barrier(len(tasks))

    def run(task):
        try:
            gate.wait(60)
            task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(task,), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "some thread hangs"
    if errors:
        raise errors[0]


class Stress:
    """A catalog with some labels that stay, and what was told of them."""

    def __init__(self, catalog, attributes, folder):
        self.page, self.attributes, self.folder = catalog, attributes, folder
        self.told = {("stays", i): 0 for i in range(6)}
        self.lock = threading.Lock()
        for label, i in zip(self.told, range(6), strict=True):
            self.page.add(label, attributes[i % len(attributes)])

    def churn(self, mine, times):
        rng = np.random.default_rng(len(mine))
        for i in range(times):
            self.page.add((mine, i % 7), self.attributes[int(rng.integers(len(self.attributes)))])
            if i % 9 == 8:
                for j in range(12):  # enough to make room for
                    self.page.add((mine, i, j), self.attributes[j % len(self.attributes)])
            self.page.expire((mine, i % 7))

    def play(self, seed, rounds):
        rng, late = np.random.default_rng(seed), []
        for i in range(rounds):
            if i % 10 == 9:
                with contextlib.suppress(ArmError):  # another thread may have forgotten it meanwhile
                    late += self.page.decide(exclude=[("first", 0)], count=2)
            else:
                late.append(self.page.decide())
            while len(late) > 4:
                one = late.pop(int(rng.integers(len(late))))
                if rng.random() < 0.2:
                    self.page.drop(one)
                    continue
                rewards = {label: 0.5 for label in one if rng.random() < 0.8}
                self.page.learn(one.id, rewards)
                with self.lock:
                    for label in rewards:
                        if label in self.told:
                            self.told[label] += 1
        for one in late:
            self.page.drop(one)

    def look(self, times):
        for i in range(times):
            path = self.folder / f"page{i % 2}"
            self.page.save(path)
            again = sb.Catalog.load(path)
            again._check()
            again.decide()
            about = self.page.describe()
            assert about["capacity"] >= about["labels"] >= 6
            assert self.page.table().startswith("label")

    def run(self, rounds):
        self.play(0, 6)  # kernels that are still to be compiled are not waited for by threads
        together(
            lambda: self.play(1, rounds),
            lambda: self.play(2, rounds),
            lambda: self.churn("first", rounds),
            lambda: self.churn("second", rounds),
            lambda: self.look(max(2, rounds // 12)),
        )
        self.page._check()
        rows = {row["label"]: row["count"] for row in self.page.rows(list(self.told))}
        assert rows == self.told, "no feedback is lost, counted twice, or that of another label"
        assert self.page.waiting == self.page.policy.waiting == 0
        assert self.page.describe()["expired"] == 2 * rounds


@pytest.mark.bounds
@pytest.mark.parametrize("kind", KINDS)
def test_threads_churn_play_and_save(kind, tmp_path):
    make, attributes, _ = KINDS[kind]
    stress = Stress(make(capacity=1, **FAST[kind]), attributes, tmp_path)
    stress.run(60)
    stress.page.policy._engine._check()


@pytest.mark.parametrize("name", POLICIES)
def test_threads_churn_with_other_policies(name, tmp_path):
    make, attributes, _ = KINDS["partition"]
    Stress(make(policy=POLICIES[name], capacity=1), attributes, tmp_path).run(40)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_in_the_middle_of_churn_has_a_whole_catalog(tmp_path):
    make, attributes, _ = KINDS["partition"]
    stress = Stress(make(capacity=1), attributes, tmp_path)

    def fork():
        for _ in range(8):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    stress.page._check()
                    stress.page.learn(stress.page.decide(), {})
                    stress.page.add("child", attributes[0])
                    status = 0 if "child" in stress.page else 2
                finally:
                    os._exit(status)
            assert os.waitpid(child, 0)[1] == 0

    together(lambda: stress.play(1, 80), lambda: stress.churn("first", 80), fork)
    stress.page._check()
