"""Decisions by label: feedback late, in part, by label or in order, for labels that expired, and after a restart."""

from __future__ import annotations

import math

import numpy as np
import pytest

import semibandit as sb
from oracles.catalog import KINDS
from semibandit.errors import ArmError, FileError, RewardError
from semibandit.policies.files import _parse, _write

GROWING = {
    "cucb": sb.CUCB,
    "practical": lambda m: sb.CUCB(m, prior=sb.beta_prior(1, 9), exploration="practical"),
    "clipped": lambda m: sb.CUCB(m, clip=True),
    "kl-osm": sb.KLOSM,
    "faster": lambda m: sb.FasterCUCB(m, horizon=500),
    "window": sb.SlidingWindowCUCB,
    "discount": sb.DiscountedCUCB,
    "costs": lambda m: sb.minimize(sb.CUCB(m)),
}


def shelf(n=6, rank=2, policy=sb.CUCB, **options):
    page = sb.Catalog.uniform(rank, policy, **options)
    for i in range(n):
        page.add(f"item {i}")
    return page


def counts(page):
    return {row["label"]: row["count"] for row in page.rows()}


def test_a_decision_is_a_sequence_of_labels():
    page = shelf()
    decision = page.decide()
    assert isinstance(decision, sb.LabelledDecision)
    assert list(decision) == decision.labels == ["item 0", "item 1"]
    assert len(decision) == 2 and decision[1] == "item 1" and "item 1" in decision
    assert [(row.arm, row.index, row.plays) for row in decision.ranked()] == [
        ("item 0", math.inf, 0),
        ("item 1", math.inf, 0),
    ]
    page.learn(decision, [0.0, 1.0])
    page.update([f"item {i}" for i in range(2, 6)], [0.5, 0.0, 0.0, 0.0])
    decision = page.decide()
    best, second = decision.ranked()
    assert (best.arm, second.arm) == ("item 1", "item 2")
    assert best.index - second.index == pytest.approx(0.5) and (best.mean, best.plays) == (1.0, 1)
    assert decision.to_frame("pandas")["arm"].tolist() == ["item 1", "item 2"]
    assert page.table(decision) == page.table(["item 1", "item 2"])


@pytest.mark.parametrize("name", GROWING)
def test_every_policy_that_grows_learns_late(name):
    """Labels come and go while decisions wait: counts are those of the rewards that were told in time."""
    rng, page = np.random.default_rng(3), shelf(4, 2, GROWING[name], capacity=1)
    late, told, born = [], {}, dict.fromkeys(page, 0)
    for i in range(120):
        late.append((page.decide(), i))
        if i % 4 == 3:
            old = list(page)[int(rng.integers(len(page)))]
            page.expire(old)
            born.pop(old)
            told.pop(old, None)
            again = f"item {int(rng.integers(40))}"
            if again not in page:  # often a label that expired with decisions of its own still waiting
                page.add(again)
                born[again] = i + 1
        if i % 3 == 2 and len(page) < 30:
            page.add(("new", i))
            born[("new", i)] = i + 1
        while len(late) > 6:
            decision, made = late.pop(int(rng.integers(len(late))))
            page.learn(decision if i % 2 else decision.id, {label: 0.5 for label in decision})
            for label in decision:
                if label in born and born[label] <= made:
                    told[label] = told.get(label, 0) + 1
    assert page.waiting == len(late) == 6
    page._check()
    if name not in ("window", "discount"):
        assert counts(page) == {label: told.get(label, 0) for label in page}
    assert page.describe()["dropped"] > 0


def test_requests_before_any_feedback_spread():
    page = shelf(60, 3)
    shown = [label for decision in page.decide(count=20) for label in decision]
    assert len(set(shown)) == 60 and page.waiting == 20
    with pytest.raises(sb.SemibanditError, match="count"):
        page.decide(count=0)
    assert page.waiting == 20


def test_late_feedback_ends_where_prompt_feedback_does():
    late, prompt = shelf(30, 4), shelf(30, 4)
    rng = np.random.default_rng(1)
    for _ in range(30):
        for decision in late.decide(count=3):
            rewards = rng.random(4)
            late.learn(decision, rewards)
            prompt.select()
            prompt.update(decision, rewards)
    assert late.rows() == prompt.rows() and late.select() == prompt.select()


def test_a_recycled_arm_gets_no_reward_of_the_label_before():
    """One arm, three labels in turn, the first of which comes back: each is told what came in its own time."""
    page = sb.Catalog.uniform(1, capacity=1)
    page.add("old")
    first = page.decide()
    page.expire("old")
    page.add("new")
    second = page.decide()
    assert page.policy.n_arms == 2 and second.labels == ["new"]
    page.expire("new")
    page.add("old")
    assert page.waiting == 2
    page.learn(first, [1.0])
    page.learn(second, {"new": 1.0})
    assert counts(page) == {"old": 0} and page.describe()["dropped"] == 2 and page.waiting == 0
    page.learn(page.decide(), [1.0])
    assert counts(page) == {"old": 1}
    page._check()


def test_an_expired_label_no_longer_narrows_the_width():
    """Plays that wait are those of the label that has the arm, not of one that had it."""
    page = sb.Catalog.uniform(1, capacity=1)
    page.add("old")
    waiting = page.decide(count=5)
    page.expire("old")
    page.add("new")
    assert page.decide().scores.tolist() == [math.inf], "nothing waits for the new label"
    for decision in waiting:
        page.drop(decision)
    page._check()
    assert page.policy.waiting == 1


def test_refused_feedback_changes_nothing():
    page = shelf()
    first, second = page.decide(count=2)
    page.expire(first[0])
    before = page.table(), page.describe()
    for wrong in (99, -1, "0", True, None, ["item 1"], first.labels):
        for call in (lambda wrong=wrong: page.learn(wrong, [1.0, 1.0]), lambda wrong=wrong: page.drop(wrong)):
            with pytest.raises(ArmError, match="waits for no feedback"):
                call()
    with pytest.raises(ArmError, match=r"decision 0 did not play 'item 5', but \['item 0', 'item 1'\]"):
        page.learn(first, {"item 1": 1.0, "item 5": 1.0})
    for wrong in ([1.0], [1.0, 1.0, 1.0], [1.0, 2.0], [math.nan, 1.0], {"item 0": 7.0}, {"item 1": "much"}):
        with pytest.raises(RewardError):
            page.learn(first, wrong)
    assert (page.table(), page.describe()) == before and page.waiting == 2
    page.learn(first, [0.5, 1.0])
    assert page.describe()["dropped"] == 1 and counts(page)["item 1"] == 1
    with pytest.raises(ArmError, match="settled already"):
        page.learn(first, [1.0, 1.0])
    page.drop(second.id)
    assert page.waiting == page.policy.waiting == 0 and sum(counts(page).values()) == 1


def test_some_labels_answer_and_the_others_never():
    page = shelf()
    decision = page.decide()
    page.learn(decision.id, {decision[1]: 1.0})
    assert counts(page) == {"item 1": 1} | {f"item {i}": 0 for i in (0, 2, 3, 4, 5)}
    other = page.decide()
    page.learn(other, {})
    assert page.waiting == 0 and sum(counts(page).values()) == 1
    page.learn(page.decide(exclude=["item 0"]), np.array([1, 0], dtype=np.int64))
    assert sum(counts(page).values()) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_what_waits_is_saved(kind, tmp_path):
    make, attributes, _ = KINDS[kind]
    page = make()
    for i in range(12):
        page.add(i, attributes[i % len(attributes)])
    waiting = page.decide(count=4)
    page.expire(waiting[0][0])
    page.save(tmp_path / "page")
    again = sb.Catalog.load(tmp_path / "page")
    assert again.waiting == again.policy.waiting == 4
    for one in (page, again):
        for decision in waiting:
            one.learn(decision.id, {label: 1.0 for label in decision})
        one._check()
    assert again.table() == page.table() and again.describe()["dropped"] == page.describe()["dropped"] >= 1
    for _ in range(5):
        assert again.decide().labels == page.decide().labels


def test_what_was_decided_after_the_last_save_is_refused_after_a_restart(tmp_path):
    """Killed and restarted from a minute ago: clicks of the pages in between are nobody else's."""
    page = shelf()
    known = page.decide()
    page.save(tmp_path / "page")
    lost = page.decide()
    again = sb.Catalog.load(tmp_path / "page")
    new = again.decide(count=3)
    for decision in new:
        with pytest.raises(ArmError, match="waits for no feedback"):
            again.learn(lost, [1.0, 1.0])
        again.learn(decision, {})
    again.learn(known, [1.0, 0.0])
    assert again.waiting == 0 and sum(counts(again).values()) == 2
    again.decide()
    again.save(tmp_path / "page")
    assert sb.Catalog.load(tmp_path / "page").waiting == 1


def test_files_whose_decisions_contradict_the_policy_are_refused(tmp_path):
    page, path = shelf(), tmp_path / "page"
    page.decide(count=2)

    def lie(change):
        page.save(path)
        about, arrays = _parse(path.read_bytes(), path)
        change(about["catalog"], arrays)
        _write(path, about, arrays)
        with pytest.raises(FileError):
            sb.Catalog.load(path)

    lie(lambda told, arrays: told["decisions"].pop())
    lie(lambda told, arrays: told["decisions"].append([7, ["item 0"]]))
    lie(lambda told, arrays: told["decisions"][0].__setitem__(0, 9))
    lie(lambda told, arrays: told["decisions"][0].__setitem__(1, ["item 1", "item 0"]))
    lie(lambda told, arrays: arrays["plays"].__setitem__(0, 5))
    lie(lambda told, arrays: arrays["plays"].__setitem__(0, -1))
