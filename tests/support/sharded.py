"""Sharded policies beside one process: random instances, random lives, and shards that get lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from semibandit.distributed.here import LATE, LOST, Here, Message
from semibandit.matroids import Matroid
from semibandit.policies.catalogue import POLICIES, build_policy
from support.random_matroids import RANDOM

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "cucb": [
        {},
        {"clock": "staircase"},
        {"index": "ucb-v"},
        {"clip": True},
        {"prior": (0.4, 2.0)},
        {"prior": "each"},
        {"exploration": "practical"},
        {"exploration": "practical", "prior": "each"},
        {"clock": "auto"},
        {"schedule": "log(0.5)"},
    ],
    "kl-osm": [{}, {"clock": "staircase"}, {"clock": "auto"}, {"prior": "each"}],
    "cts": [{}, {"posterior": "gaussian"}, {"prior": "each"}],
}


class Case:
    """A random instance: the matroid, the policy, its options, the number of shards."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 15])
        kinds = list(RANDOM)
        n = int(rng.integers(1, 28))
        self.seed, self.kind = seed, kinds[seed % len(kinds)]
        self.matroid: Matroid = RANDOM[self.kind](rng, n)[0]
        self.policy = list(OPTIONS)[seed // len(kinds) % len(OPTIONS)]
        choices = OPTIONS[self.policy]
        self.options = dict(choices[int(rng.integers(len(choices)))])
        if self.options.get("prior") == "each":
            self.options["prior"] = (rng.uniform(0.1, 0.9, n), rng.uniform(0.5, 4.0, n))
        self.shards = min(n, 1 + seed % 5)
        self._choose(rng, n)

    def _choose(self, rng: Any, n: int) -> None:
        """What else there is to choose."""

    def one(self) -> Any:
        """The policy in one process."""
        keyed = {"sampler": "keyed"} if self.policy == "cts" else {}
        return build_policy(self.policy, {**self.options, **keyed}, self.matroid, seed=self.seed)

    def arguments(self) -> dict[str, Any]:
        """Of `Sharded`, besides the matroid."""
        return {"policy": self.policy, "shards": self.shards, "seed": self.seed, **self.options}

    def __repr__(self) -> str:
        return f"{self.seed}: {self.matroid!r}, {self.policy}, {self.options}, {self.shards} shards"


class FeaturedCase(Case):
    """A random instance of a policy with features: fixed, one per arm, or with each call; in half of them with ties."""

    def _choose(self, rng: Any, n: int) -> None:
        self.policy = ("comb-lin-ts", "comb-lin-ucb")[self.seed // 7 % 2]
        self.size = int(rng.integers(1, 6))
        self.whole = bool(rng.random() < 0.5)
        self.options = {"prior_scale": float(rng.choice([0.5, 1.0, 3.0]))}
        if self.policy == "comb-lin-ucb":
            self.options["width"] = float(rng.choice([0.2, 1.0, 4.0]))
        self.kind_of_features = str(rng.choice(["fixed", "fixed", "one", "call"]))
        if self.kind_of_features == "fixed":
            self.options["features"] = self.rows(rng, n)
        elif self.kind_of_features == "call":
            self.options["dimension"] = self.size

    def one(self) -> Any:
        return POLICIES[self.policy].factory(self.matroid, seed=self.seed, **self.options)

    def rows(self, rng: Any, n: int) -> Any:
        """Features of n arms."""
        shape = (n, self.size)
        return rng.integers(-1, 2, shape).astype(float) if self.whole else rng.normal(size=shape)


class Life:
    """What happens to two policies that must decide alike: rounds of all kinds, late feedback, arms that go."""

    def __init__(self, case: Case, one: Any, many: Any) -> None:
        self.case, self.one, self.many = case, one, many
        self.rng = np.random.default_rng([case.seed, 16])
        self.n = case.matroid.n_arms
        self.late: list[Any] = []
        self.waiting: list[Any] = []
        self.gone: set[int] = set()

    def live(self, rounds: int, between: Callable[[int], None] | None = None) -> None:
        """So many rounds; `between` is called before each."""
        for t in range(rounds):
            if between is not None:
                between(t)
            self._round(t)
            self._feedback()
            self._churn()
        assert np.array_equal(self.one.counts, self.many.counts)
        assert np.array_equal(self.one.means, self.many.means, equal_nan=True)
        assert self.one.t == self.many.t and self.one.waiting == self.many.waiting

    def _both(self, method: str, *args: Any, **kwargs: Any) -> list[Any]:
        return [getattr(policy, method)(*args, **kwargs) for policy in (self.one, self.many)]

    def _round(self, t: int) -> None:
        rng, n, way = self.rng, self.n, self.rng.random()
        wish: dict[str, Any] = {}
        if way < 0.25:
            wish["exclude"] = rng.integers(0, n, 3)
        if 0.2 < way < 0.35:
            wish["among"] = rng.permutation(n)[: max(1, n // 2)]
        if 0.3 < way < 0.4:
            wish["weights"] = rng.integers(0, 4, len(wish.get("among", range(n)))) / 4.0
        self._show(wish)
        if rng.random() < 0.3:
            decisions = self._both("decide", **wish)
            a, b = decisions
            assert np.array_equal(a.scores, b.scores, equal_nan=True), (self.case, t)
            for x, y in zip(a.account, b.account, strict=True):
                assert np.array_equal(x, y, equal_nan=True), (self.case, t)
            self.waiting.append((a.id, b.id, len(a.arms)))
            arms = (a.arms, b.arms)
        else:
            arms = self._both("select", **wish)
            self.late.append((arms[0], rng.integers(0, 3, len(arms[0])) / 2.0, self._rows(wish, arms[0])))
        assert np.array_equal(*arms), (self.case, t, wish, arms)

    def _show(self, wish: dict[str, Any]) -> None:
        """Let a round have features, if they come with each call."""
        if getattr(self.case, "kind_of_features", "") == "call":
            case: Any = self.case
            wish["features"] = case.rows(self.rng, len(wish.get("among", range(self.n))))

    def _rows(self, wish: dict[str, Any], arms: Any) -> dict[str, Any]:
        """And what is learnt of it."""
        if "features" not in wish:
            return {}
        known = np.asarray(wish.get("among", np.arange(self.n)))
        order = np.argsort(known)
        return {"features": wish["features"][order[np.searchsorted(known, arms, sorter=order)]]}

    def _feedback(self) -> None:
        rng = self.rng
        while self.late and rng.random() < 0.6:
            arms, rewards, rows = self.late.pop(int(rng.integers(len(self.late))))
            self._both("update", arms, rewards, **rows)
        if self.waiting and rng.random() < 0.4:
            *ids, n = self.waiting.pop(int(rng.integers(len(self.waiting))))
            rewards, dropped = rng.integers(0, 3, n) / 2.0, rng.random() < 0.3
            for policy, number in zip((self.one, self.many), ids, strict=True):
                policy.drop(number) if dropped else policy.learn(number, rewards)

    def _churn(self) -> None:
        rng = self.rng
        arm = int(rng.integers(self.n))
        if rng.random() < 0.2:
            self._both("insert" if arm in self.gone else "delete", [arm])
            self.gone ^= {arm}
        if rng.random() < 0.05:
            self._both("reset", [arm])
        if rng.random() < 0.05:
            arms = rng.integers(0, self.n, 4)
            assert np.array_equal(*self._both("scores", arms), equal_nan=True)


class Careless(Here):
    """Shards in this process that get lost: before a message, or after it was taken and before the answer.

    `chance`: of each message. `late`: how often in a row nothing is to be heard in time, though messages arrive.
    """

    name = "nowhere safe"
    can_lose = True

    def __init__(self, chance: float = 0.0, seed: int = 0) -> None:
        super().__init__()
        self.chance, self.rng = chance, np.random.default_rng(seed)
        self.late = 0
        self.lost = 0

    def another(self) -> Careless:
        return Careless(self.chance, int(self.rng.integers(1 << 30)))

    def ask(self, messages: Mapping[int, Message]) -> dict[int, Any]:
        replies = {}
        for i, message in messages.items():
            fate = self.rng.random()
            if i in self.shards and fate >= 0.5 * self.chance:
                replies[i] = self.shards[i].handle(*message)
            if fate < self.chance or i not in replies:
                self.shards.pop(i, None)
                replies[i] = LOST
                self.lost += 1
            elif self.late:
                replies[i] = LATE
        self.late = max(0, self.late - 1)
        return replies
