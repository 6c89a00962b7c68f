"""What is compiled ahead of time: a little of everything that a first decision, a simulation or a demo calls.

Each lesson is a function that plays something small; `ahead` writes down which kernels it called with what types.
Whatever no lesson calls is compiled when somebody needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Lesson = Callable[[], None]


def _matroids() -> dict[str, Any]:
    import semibandit as sb

    rng = np.random.default_rng(0)
    edges = [(i, i + 1) for i in range(19)] + [tuple(rng.choice(20, 2, replace=False)) for _ in range(300)]
    return {
        "uniform": sb.Uniform(n_arms=400, rank=5),
        "partition": sb.Partition(np.arange(400) % 10, 1),
        "laminar": sb.Laminar(400, [(list(range(200)), 5), (list(range(200, 400)), 5), (list(range(50)), 2)]),
        "graphic": sb.Graphic(np.array(edges), 20),
        "transversal": sb.Transversal(
            [rng.choice(20, size=3, replace=False) for _ in range(400)], n_right=20
        ),
        "linear": sb.Linear(rng.integers(0, 4, size=(30, 4))),
    }


def _small_graph() -> Any:
    """For lessons that would take minutes by kernels which are not optimised yet."""
    import semibandit as sb

    return sb.Graphic([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3), (3, 4), (4, 0)], 5)


def _small_space() -> Any:
    import semibandit as sb

    return sb.Linear(np.array([[1, 0], [0, 1], [1, 1], [1, 2], [2, 1], [1, 3], [3, 1], [2, 3]]))


def _play(policy: Any, rounds: int = 4) -> None:
    """Decisions and feedback as users ask for and give it."""
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        arms = policy.select()
        policy.update(arms, rng.random(len(arms)))
    first, second = policy.decide(count=2)
    policy.learn(first, np.full(len(first.arms), 0.5))
    policy.drop(second)
    _play_many(policy)
    few = np.array([0, 3, 3])
    policy.update(few, np.array([0.5, 1.0, 0.25]))
    policy.select(exclude=[int(few[0])])
    policy.select(among=[4, 5, 6])
    if hasattr(policy, "delete"):
        policy.delete([1, 2])
        policy.select()
        policy.insert([1])
        policy.select()
    policy.clone().select()


def _play_many(policy: Any) -> None:
    """Several decisions at once, and decisions with feedback in turns, as a service makes and replays them."""
    from semibandit.policies.many import Kept

    if policy._at_once() is None:
        return  # it plays them one by one
    arms, sizes = policy._select_many(3)
    policy._wait(arms, -1)
    if policy._can_replay():
        none = np.zeros(1, dtype=np.int64)
        asked, counts = np.array([-1, 0]), np.array([0, int(sizes[0])])
        kept = Kept(0, 0, none, none, none)
        policy._replay_many(asked, counts, np.full(counts[1], 0.5), kept)


def _answers() -> None:
    """What a service writes for several decisions."""
    from semibandit.serve.several import Several

    Several("a-0-", 0, 1, np.arange(4), np.array([2, 2])).json()


def _simulate(policy: Any, rounds: int) -> None:
    import semibandit as sb

    matroid = policy.matroid
    env: Any = sb.Bernoulli(matroid, np.linspace(0.1, 0.9, matroid.n_arms), seed=1)
    if policy.objective == "min":
        env = sb.minimize(env)
    sb.simulate(policy, env, rounds=rounds, progress=False)


def _policy_lesson(name: str, matroid: Any, options: dict[str, Any], simulated: bool = True) -> Lesson:
    def lesson() -> None:
        from semibandit.policies.catalogue import build_policy

        context = {"horizon": 1000, "means": np.linspace(0.1, 0.9, matroid.n_arms)}
        policy = build_policy(name, options, matroid, context=context)
        _play(policy)
        if simulated:
            # Kernels that are not optimised yet are slow, and these have much to do in a round.
            _simulate(policy.clone(), 8 if name.startswith("comb-lin") or "clock" in options else 40)

    return lesson


def _environments() -> None:
    import semibandit as sb

    matroid = sb.Uniform(n_arms=6, rank=2)
    means = np.linspace(0.2, 0.8, 6)
    for env in (
        sb.Bernoulli(matroid, means),
        sb.Beta(matroid, means),
        sb.Gaussian(matroid, means, 0.1),
        sb.UniformNoise(matroid, means, 0.1),
        sb.Table(matroid, [[0.1, 0.5]] * 6),
        sb.Correlated(matroid, means),
        sb.HeavyTailed(matroid, means),
    ):
        env.draw(np.array([0, 1]))


def _fleets() -> None:
    import semibandit as sb

    fleet = sb.Fleet(sb.Uniform(n_arms=9, rank=2), 3)
    fleet.update([0, 2], fleet.select([0, 2]), [[0.5, 1.0], [0.0, 0.25]])


def _shards(*names: str) -> Lesson:
    """What a shard does in a process of its own, where every first decision would wait for the compiler."""

    def lesson() -> None:
        from semibandit.distributed import Sharded

        for matroid in (_matroids()["uniform"], _matroids()["partition"]):
            for name in names:
                _play_shards(Sharded(matroid, policy=name, shards=2))

    return lesson


def _shards_with_features() -> None:
    import semibandit as sb
    from semibandit.distributed import Sharded

    rows = np.random.default_rng(4).random((40, 3))
    for name in ("comb-lin-ts", "comb-lin-ucb"):
        _play_shards(Sharded(sb.Uniform(n_arms=40, rank=3), policy=name, shards=2, features=rows))


def _play_shards(policy: Any) -> None:
    for _ in range(3):
        arms = policy.select()
        policy.update(arms, np.full(len(arms), 0.5))
    policy.select(exclude=[0])
    policy.select(among=[3, 4, 5])


def _bases() -> None:
    for matroid in _matroids().values():
        weights = np.random.default_rng(2).random(matroid.n_arms)
        base = matroid.max_weight_base(weights)
        matroid.is_independent(base)


def _features() -> None:
    """Policies over features of many arms, and of each call."""
    import semibandit as sb

    rng = np.random.default_rng(3)
    many, few = sb.Uniform(n_arms=4000, rank=5), sb.Partition(np.arange(40) % 4, 1)
    rows = rng.random((4000, 5))
    for cls in (sb.CombLinTS, sb.CombLinUCB):
        _play(cls(many, features=rows))
        policy = cls(few, dimension=5)
        for _ in range(2):
            arms = policy.select(features=rows[:40])
            policy.update(arms, rng.random(len(arms)), features=rows[arms])
        policy.select(among=[1, 2, 3], features=rows[:3])
        policy.learn(policy.decide(features=rows[:40]), rng.random(4))
        policy = cls(sb.Laminar(4000, [(np.arange(2000), 2), (np.arange(4000), 4)]), dimension=5)
        arms = policy.select(features=rows)
        policy.update(arms, rng.random(4), features=rows[arms])


def _inner_products() -> None:
    import semibandit as sb

    for matroid in _matroids().values():
        if matroid.n_arms < 100:
            continue
        features = np.column_stack([np.linspace(0.2, 0.9, matroid.n_arms), np.full(matroid.n_arms, 0.5)])
        base = sb.InnerProductBase(matroid, features, ((0.1, 1.0), (0.1, 1.0)), epsilon=0.5)
        base.find_base((1.0, 0.5))
        base.update_feature(0, (0.3, 0.4))
        base.find_base((1.0, 0.7))


def _identification_lesson(matroid: Any) -> Lesson:
    def lesson() -> None:
        import semibandit as sb

        env = sb.Bernoulli(matroid, np.linspace(0.1, 0.9, matroid.n_arms), seed=1)
        sb.identify(matroid, env, max_samples=matroid.n_arms + 20)

    return lesson


#: Policies by which the engines of every class of matroids are met. The kernels of others are the same for all classes,
#: but for those that draw random bases by pools, by an engine, or in Python.
_BY_CLASS = ("cucb", "faster-cucb", "cts")
_ONCE_MORE = (
    ("laminar", "random"),
    ("laminar", "epsilon-greedy"),
    ("laminar", "comb-lin-ts"),
    ("linear", "random"),
    ("linear", "fpl"),
    ("linear", "comb-lin-ts"),
    ("linear", "comb-lin-ucb"),
    ("linear", "one-seed"),
)


def lessons() -> Iterator[tuple[str, Lesson]]:
    """All lessons, with names."""
    import semibandit as sb
    from semibandit.policies.catalogue import POLICIES

    yield "environments", _environments
    yield "bases", _bases
    for kind, matroid in _matroids().items():
        for name, entry in POLICIES.items():
            if kind != "uniform" and name not in _BY_CLASS and (kind, name) not in _ONCE_MORE:
                continue
            stairs = "clock" in entry.options and kind in ("graphic", "transversal", "linear")
            # Where a clock with stairs is much faster, simulations are about that one.
            yield f"{name} {{}} on {kind}", _policy_lesson(name, matroid, {}, not stairs or name == "cucb")
            if stairs:
                yield f"{name} with stairs on {kind}", _policy_lesson(name, matroid, {"clock": "auto"})
            if name == "faster-cucb" and kind == "laminar":
                yield (
                    f"{name} by buckets on {kind}",
                    _policy_lesson(name, matroid, {"engine": "buckets"}, False),
                )
            if name == "cucb" and kind in ("uniform", "partition"):
                yield f"cucb by resolving on {kind}", _policy_lesson(name, matroid, {"engine": "resolve"})
        if kind in ("uniform", "partition"):
            yield f"one-seed by groups on {kind}", _policy_lesson("one-seed", matroid, {"engine": "grouped"})
    few, many = sb.Uniform(n_arms=12, rank=3), sb.Uniform(n_arms=600, rank=3)
    yield "cts by drawing all on uniform", _policy_lesson("cts", few, {"sampler": "plain"})
    yield "fpl by bands on uniform", _policy_lesson("fpl", many, {})
    yield "ftrl by mixtures on graphic", _policy_lesson("ftrl", _small_graph(), {})
    yield "ftrl by atoms on linear", _policy_lesson("ftrl", _small_space(), {}, False)
    yield "inner products", _inner_products
    yield "features", _features
    yield "fleets", _fleets
    yield "kl-osm and cucb in shards", _shards("kl-osm", "cucb")
    yield "cts in shards", _shards("cts")
    yield "comb-lin in shards", _shards_with_features
    yield "answers", _answers
    for kind, matroid in _matroids().items():
        yield f"identification on {kind}", _identification_lesson(matroid)


#: Lessons that are learnt before the others, in one process: what they compile is needed on both sides.
SHARED = ("environments", "bases", "cucb {} on uniform", "cucb by resolving on uniform")

#: Policies whose lessons share most go together, and so do all that are about these classes otherwise; as long here as
#: there.
_TOGETHER = ("cts", "comb-lin")
_APART = ("ftrl", "escb", "ossb", "kl-osm", "maub", "robust-cucb", "identification")
_APART_ON = ("graphic", "transversal", "laminar")


def _part(name: str) -> int:
    if name.startswith(_TOGETHER):
        return 0
    return int(name.startswith(_APART) or name.rpartition(" on ")[2] in _APART_ON)


def train(part: int = 0, of: int = 1, only: str = "") -> None:
    """The lessons of one of `of` parts whose name has `only` in it: part 0 is what most others share."""
    import sys

    for name, lesson in lessons():
        mine = 0 if name in SHARED else 1 + _part(name) % max(of - 1, 1)
        if only not in name or (of > 1 and mine != part):
            continue
        try:
            lesson()
        except Exception as error:
            print(f"training: {name}: {type(error).__name__}: {error}", file=sys.stderr)
            raise
