"""Growing: every policy goes on with what it knows, and new arms are like arms that were deleted all the time."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import semibandit as sb
from semibandit.policies.catalogue import POLICIES

EDGES = [
    (0, 1),
    (1, 2),
    (2, 0),
    (2, 3),
    (3, 0),
    (1, 3),
    (3, 4),
    (4, 0),
    (4, 5),
    (5, 1),
    (5, 2),
    (6, 0),
    (6, 1),
]
PAIRS = {
    "uniform": (sb.Uniform(8, 2), sb.Uniform(13, 2)),
    "partition": (sb.Partition(np.arange(8) % 2, 1), sb.Partition(np.arange(13) % 2, 1)),
    "graphic": (sb.Graphic(EDGES[:8], n_vertices=7), sb.Graphic(EDGES, n_vertices=7)),
    "laminar": (
        sb.Laminar(8, [(range(8), 3), (range(4), 1)]),
        sb.Laminar(13, [(range(13), 3), (range(4), 1), (range(8, 13), 2)]),
    ),
    "linear": (sb.Linear(np.eye(4)[np.arange(8) % 4]), sb.Linear(np.eye(4)[np.arange(13) % 4])),
    "transversal": (
        sb.Transversal([[k % 3, k % 2] for k in range(8)], n_right=3),
        sb.Transversal([[k % 3, k % 2] for k in range(13)], n_right=3),
    ),
}
VARIANTS = {
    "cucb": [{}, {"clip": True}, {"prior": (0.4, 2.0)}, {"prior": ([0.1] * 8, [2.0] * 8)}],
    "kl-osm": [{}, {"prior": (0.4, 2.0)}],
    "cts": [{}, {"sampler": "plain"}, {"posterior": "gaussian"}, {"prior": ([0.2] * 8, [5.0] * 8)}],
    "faster-cucb": [{"horizon": 200}],
    "maub": [{"leader_every": 4}],
    "oracle": [{"means": np.linspace(0.1, 0.9, 8)}],
}
CASES = [(name, options) for name in POLICIES for options in VARIANTS.get(name, [{}])]


def grow(policy, matroid):
    inner = getattr(policy, "inner", policy)
    if inner.name == "oracle":
        inner.grow(matroid, means=np.linspace(0.1, 0.9, matroid.n_arms))
    else:
        policy.grow(matroid)


@pytest.mark.thin
@pytest.mark.parametrize(("name", "options"), CASES, ids=lambda x: x if isinstance(x, str) else ",".join(x))
@pytest.mark.parametrize("kind", PAIRS)
def test_every_policy_grows(kind, name, options, tmp_path):
    small, large = PAIRS[kind]
    policy = POLICIES[name].factory(small, **options)
    rng = np.random.default_rng(1)

    def play(rounds):
        for _ in range(rounds):
            arms = policy.select()
            assert policy.matroid.is_independent(arms)
            policy.update(arms, rng.integers(0, 2, len(arms)).astype(float))

    play(12)
    policy.delete([3])
    waits = policy.decide()
    counts, means, t, lock = policy.counts, policy.means, policy.t, policy._lock
    policy.note = "mine"
    grow(policy, large)
    assert policy.n_arms == 13 and policy.matroid is large and policy.t == t and policy._lock is lock
    assert policy.counts.tolist() == [*counts.tolist(), 0, 0, 0, 0, 0]
    np.testing.assert_array_equal(policy.means[:8], means)
    assert policy.waiting == 1 and policy.note == "mine"
    policy.learn(waits, np.full(len(waits.arms), 0.5))
    assert not policy._is_gone(np.arange(8, 13)).any() and policy._is_gone(np.array([3])).all()
    policy.insert([3])
    play(30)
    if name in ("random", "fpl", "oracle") or "prior" not in options:
        touched = large.loops
        assert policy.counts[np.setdiff1d(np.arange(8, 13), touched)].sum() > 0
    other = policy.clone()
    assert other.counts.tolist() == policy.counts.tolist()
    policy.save(tmp_path / "grown")
    again = sb.load(tmp_path / "grown")
    for _ in range(5):
        arms = policy.select()
        assert arms.tolist() == other.select().tolist() == again.select().tolist()
        for one in (policy, other, again):
            one.update(arms, np.full(len(arms), 1.0))
    if hasattr(policy, "_check"):
        policy._check()
    if hasattr(policy, "_engine"):
        policy._engine._check()


STILL = [
    case
    for case in CASES
    if case[0] not in ("random", "epsilon-greedy", "cts", "comb-lin-ts", "fpl", "ftrl", "oracle")
]


@pytest.mark.thin(1)
@pytest.mark.parametrize(("name", "options"), STILL, ids=lambda x: x if isinstance(x, str) else ",".join(x))
@pytest.mark.parametrize("kind", ["uniform", "partition", "graphic", "linear"])
def test_as_if_new_arms_had_been_deleted(kind, name, options):
    """Where nothing is drawn the decisions are those of a policy that had room for all arms from the start."""
    small, large = PAIRS[kind]
    if kind == "linear":
        large = sb.Linear(np.vstack([np.eye(4)[np.arange(8) % 4], np.eye(4)[:3], np.ones((2, 4))]))
    if isinstance(options.get("prior", (0, 0))[0], list):
        wide = {"prior": ([0.1] * 13, [2.0] * 13)}
    else:
        wide = options
    if name == "robust-cucb":
        # Its practical width looks at the number of arms at the start.
        options = wide = {"exploration": 0.5, **options}
    growing, roomy = POLICIES[name].factory(small, **options), POLICIES[name].factory(large, **wide)
    roomy.delete(np.arange(8, 13))
    rng = np.random.default_rng(2)
    waiting = []
    for t in range(60):
        if t == 25:
            growing.grow(large)
            roomy.insert(np.arange(8, 13))
        if t == 40:
            for policy in (growing, roomy):
                policy.delete([1, 9])
        decisions = [policy.decide() for policy in (growing, roomy)]
        assert decisions[0].arms.tolist() == decisions[1].arms.tolist(), t
        waiting.append(decisions)
        if t % 3:
            one, two = waiting.pop(int(rng.integers(len(waiting))))
            rewards = rng.integers(0, 2, len(one.arms)).astype(float)
            growing.learn(one, rewards)
            roomy.learn(two, rewards)
    assert growing.counts.tolist() == roomy.counts.tolist()


@pytest.mark.parametrize("name", list(POLICIES))
def test_policies_of_costs_grow(name):
    small, large = PAIRS["uniform"]
    options = {"faster-cucb": {"horizon": 100}, "oracle": {"means": np.linspace(0, 1, 8)}}.get(name, {})
    policy = sb.minimize(POLICIES[name].factory(small, **options))
    first, second = policy.decide(count=2)
    if name == "oracle":
        with pytest.raises(sb.ParameterError, match="means"):
            policy.grow(large)
        return
    policy.grow(large)
    assert (policy.n_arms, policy.waiting, policy.t) == (13, 2, 2) and policy.inner._lock is policy._lock
    policy.learn(first, [0.5, 0.25])
    policy.drop(second)
    for _ in range(30):
        policy.update(policy.select(), [0.0, 1.0])
    assert policy.counts.sum() == 62
    plays = getattr(policy.inner, "_plays_waiting", None)
    assert plays is None or not plays.any()


@pytest.mark.parametrize("name", list(POLICIES))
def test_what_is_refused_changes_nothing(name):
    options = {"faster-cucb": {"horizon": 100}, "oracle": {"means": np.linspace(0, 1, 8)}}.get(name, {})
    policy = POLICIES[name].factory(sb.Uniform(8, 2), **options)
    more = {"means": np.linspace(0, 1, 7)} if name == "oracle" else {}
    for wrong in (sb.Uniform(7, 2), sb.Partition([0] * 7, 1)):
        with pytest.raises(sb.ParameterError):
            policy.grow(wrong, **more)
    assert policy.n_arms == 8 and len(policy.select()) == 2


def test_growing_while_others_play():
    """Threads that select and learn while the ground set grows meet a whole policy."""
    for make in (sb.Greedy, sb.CTS, sb.EpsilonGreedy, sb.Random):
        policy, wrong, stop = make(sb.Uniform(40, 3)), [], threading.Event()

        def play(policy=policy, wrong=wrong, stop=stop):
            try:
                while not stop.is_set():
                    policy.update(policy.select(), [0.0, 1.0, 0.5])
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=play) for _ in range(3)]
        for thread in threads:
            thread.start()
        for n in range(41, 61):
            policy.grow(sb.Uniform(n, 3))
        stop.set()
        for thread in threads:
            thread.join()
        assert not wrong and policy.counts.sum() == 3 * policy.t
