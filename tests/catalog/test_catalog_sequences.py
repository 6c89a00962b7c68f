"""Any sequence of calls leaves a catalog as a dictionary says that forgets nothing it should know."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import semibandit as sb
from oracles.catalog import KINDS, POLICIES, Model
from semibandit.errors import ArmError

LABELS = [*"abcdefgh", 1, 2.5, ("x", 1), ("x", ("y", None)), None, False]
DEEDS = ["add", "expire", "decide", "learn", "drop", "select", "exclude", "update", "save"]
OFTEN = ["add", "add", "expire", "decide", "decide", "learn"]
STEPS = st.lists(st.tuples(st.sampled_from(DEEDS + OFTEN), st.integers(0, 10**6)), min_size=12, max_size=60)


def run(kind, policy, steps, tmp_path):
    """Play `steps` on a catalog and on its model."""
    make, attributes, oracle = KINDS[kind]
    catalog = make(policy=POLICIES[policy], capacity=1, metadata={"n": 1})
    model = Model(oracle, clip=policy == "clipped")
    path = tmp_path / "catalog"
    for what, number in steps:
        rng = np.random.default_rng(number)
        label = LABELS[number % len(LABELS)]
        some = [one for one in LABELS if rng.random() < 0.3 and (one in model.known or one in model.gone)]
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
            decision = catalog.decide()
            judge(model, catalog, decision)
            model.decide(decision)
        elif what in ("learn", "drop") and model.waiting:
            one = list(model.waiting)[int(rng.integers(len(model.waiting)))]
            played = list(model.waiting[one])
            told = {label: int(rng.integers(3)) / 2 for label in played if rng.random() < 0.7}  # ties
            if what == "drop":
                catalog.drop(one)
                model.learn(one, {})
            elif len(told) == len(played):
                catalog.learn(one, list(told.values()))
                model.learn(one, told)
            else:
                catalog.learn(one, told)
                model.learn(one, told)
        elif what == "select":
            model.judge(catalog.select(), catalog.policy.confidence_width)
        elif what == "exclude":
            model.judge(catalog.select(exclude=some), catalog.policy.confidence_width, some)
        elif what == "update":
            rewards = (rng.integers(0, 3, len(some)) / 2).tolist()
            catalog.update(some, rewards)
            model.update(some, rewards)
        elif what == "save":
            catalog.save(path)
            twin = catalog
            catalog = sb.Catalog.load(path)
            assert catalog.metadata == {"n": 1} and catalog.waiting == twin.waiting == len(model.waiting)
            assert catalog.select() == twin.select()
        assert (label in catalog) == (label in model.known)
    model.compare(catalog)


def judge(model, catalog, decision):
    """The labels are a best base, and their scores the indices they had."""
    lam = catalog.policy.confidence_width
    model.judge(decision.labels, lam)
    for label, score in zip(decision, decision.scores.tolist(), strict=True):
        assert score == pytest.approx(model.index(label, lam), abs=1e-9)


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
            decision = catalog.decide()
            judge(model, catalog, decision)
            model.decide(decision)
        if len(model.waiting) > 7:  # feedback comes 35 labels late
            late = next(iter(model.waiting))
            told = {label: float(rng.integers(0, 2)) for label in model.waiting[late]}
            catalog.learn(late, list(told.values()))
            model.learn(late, told)
        largest = max(largest, len(model.known))
    model.compare(catalog)
    assert model.dropped > 0, "some labels expired before their feedback came"
    about = catalog.describe()
    assert about["capacity"] <= max(64, 2 * largest + 2 * len(attributes)), "ids are used again"
