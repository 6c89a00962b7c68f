"""Decisions among some labels, or by weights of labels, and catalogs of every policy that can grow and forget."""

from __future__ import annotations

import numpy as np
import pytest

import semibandit as sb
from semibandit.policies.catalogue import POLICIES


def news():
    page = sb.Catalog.partition({"news": 1, "sport": 2})
    for label, category in (
        ("vote", "news"),
        ("law", "news"),
        ("derby", "sport"),
        ("final", "sport"),
        ("cup", "sport"),
    ):
        page.add(label, category)
    return page


def test_among_some_labels():
    page = news()
    page.update(["vote", "law", "derby", "final", "cup"], [0.9, 0.1, 0.2, 0.3, 0.4])
    assert set(page.decide(among=["law", "derby"])) == {"law", "derby"}
    assert set(page.decide(among=["law", "vote", "cup"])) == {"vote", "cup"}
    assert set(page.decide(exclude=["vote"], among=["law", "vote", "cup"])) == {"law", "cup"}
    assert page.select(among=[]) == []
    page.expire("vote")
    assert set(page.decide(among=["vote", "law", "cup"])) == {"law", "cup"}
    assert set(page.decide(among=["vote", "law", "derby", "cup", "final"], weights=[9, 1, 3, 2, 1])) == {
        "law",
        "derby",
        "cup",
    }


def test_weights_of_labels():
    page = news()
    worth = {"vote": 0.1, "law": 0.2, "derby": 5, "final": 4, "cup": 3}
    shown = page.decide(weights=worth)
    assert set(shown) == {"law", "derby", "final"} and page.policy.t == 1
    page.learn(shown, [1.0, 0.0, 1.0])
    cheap = sb.Catalog.uniform(1, lambda m: sb.minimize(sb.CUCB(m)))
    for label in "ab":
        cheap.add(label)
    assert cheap.select(weights={"a": 2.0, "b": 1.0}) == ["b"]


def test_what_is_refused():
    page = news()
    for wrong in (
        {"among": ["vote", "vote"]},
        {"among": ["nobody"]},
        {"among": "vote"},
        {"weights": [1, 2, 3, 4, 5]},
        {"among": ["vote"], "weights": {"vote": 1}},
        {"among": ["vote"], "weights": [1, 2]},
        {"weights": {"vote": float("nan")}},
        {"weights": {"nobody": 1}},
    ):
        with pytest.raises(sb.SemibanditError):
            page.decide(**wrong)
    assert page.policy.t == 0


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in ("fpl", "oracle")])
def test_every_policy_that_forgets_serves_a_catalog(name, tmp_path):
    options = {"horizon": 500} if name == "faster-cucb" else {}
    page = sb.Catalog.uniform(2, POLICIES[name].factory, capacity=2, **options)
    rng = np.random.default_rng(1)
    for n in range(40):
        page.add(n)
        if n % 5 == 4:
            page.expire(n - 3)
        shown = page.decide()
        page.learn(shown, rng.integers(0, 2, len(shown)).astype(float))
        if n % 13 == 12:
            page.save(tmp_path / "page")
            page = sb.Catalog.load(tmp_path / "page")
    page._check()
    assert len(page) == 32 and len(page.decide()) == 2
