"""The engine inside a catalog makes no difference to what is decided."""

from __future__ import annotations

import numpy as np
import pytest

import semibandit as sb


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
            assert chosen.labels == slow.decide().labels
            rewards = [float(rng.random() < worth[label]) for label in chosen]
            for page in (fast, slow):
                page.learn(chosen.id, rewards)
    fast._check()
    fast.policy._engine._check()
