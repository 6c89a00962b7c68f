"""Policies that can be sharded, and what the coordinator must know of each.

A policy can be sharded if its base is the best one by weights, each of which follows from what was seen of its own arm,
from the round, and from a clock that is the same for all arms: then the weights of a shard are those of the whole.
A row here says which options that takes and who moves the clock. The coordinator keeps a policy of the same class
over a single arm, its `guide`: options are checked there, and its clock is the clock of all shards.

A policy with features has one posterior for all arms, which the guide keeps: `featured_guide`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from semibandit.distributed.shard import Clock
from semibandit.distributed.split import Ids
from semibandit.engines import choose_clock
from semibandit.engines.clock import AHEAD, SCALE
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid, Uniform
from semibandit.policies.base import Policy
from semibandit.policies.catalogue import POLICIES, PolicyEntry
from semibandit.policies.index.cucb import FEW_ARMS, practical_exploration
from semibandit.policies.prior import Prior, as_prior
from semibandit.policies.state import array_of
from semibandit.text import unknown


@dataclass(frozen=True)
class Kind:
    """A class of policies that can be sharded.

    `settle`: the options of shards for a policy and those asked for, and the matroid (None: nobody holds all of it).
    `start`: brings the clock of the guide to what it would be over (arms, rank, prior).
    """

    settle: Callable[[str, dict[str, Any], Matroid | None], dict[str, Any]]
    start: Callable[[Any, int, int, Prior | None], None]


def _index_options(policy: str, options: dict[str, Any], matroid: Matroid | None) -> dict[str, Any]:
    if options.get("ties", "id") != "id":
        raise ParameterError(
            "ties = 'random' cannot be sharded: its weights are drawn arm after arm; use ties = 'id'"
        )
    if callable(options.get("schedule")):
        raise ParameterError(
            "a schedule of your own cannot be sharded: a function has no place in a message; one with a name has "
            "(semibandit.schedules)"
        )
    if options.get("clock") != "auto":
        return options
    if matroid is None:
        raise ParameterError("clock = 'auto' needs the whole matroid: say 'exact' or 'staircase'")
    linear = options.get("index", "ucb") == "ucb" and not options.get("clip", False)
    engine = options.get("engine", "auto")
    if linear and policy == "cucb":
        return {**options, "clock": choose_clock(matroid, engine)}
    many = engine != "resolve" and matroid.n_arms > FEW_ARMS
    return {**options, "clock": "staircase" if many else "exact"}


def _start_cucb(guide: Any, n_arms: int, rank: int, prior: Prior | None) -> None:
    if guide._asked_exploration == "practical":
        low, high = guide.reward_range
        factor, ahead = practical_exploration(guide.reward_range, n_arms, rank, prior)
        guide._clock[SCALE], guide._clock[AHEAD] = factor * (high - low) ** 2, ahead


def _keyed(policy: str, options: dict[str, Any], matroid: Matroid | None) -> dict[str, Any]:
    sampler = options.get("sampler", "auto")
    if sampler not in ("auto", "keyed"):
        raise ParameterError(
            f"sampler = {sampler!r} cannot be sharded: its draws depend on the order of the arms; "
            "here: 'auto' or 'keyed'"
        )
    return {**options, "sampler": "keyed"}


def _as_it_is(guide: Any, n_arms: int, rank: int, prior: Prior | None) -> None:
    """Nothing there depends on the arms."""


def _unchanged(policy: str, options: dict[str, Any], matroid: Matroid | None) -> dict[str, Any]:
    return options


#: Policies with features, by their names in the catalogue.
FEATURED = ("comb-lin-ts", "comb-lin-ucb")

#: What can be sharded, by its name in the catalogue.
KINDS: dict[str, Kind] = {
    "cucb": Kind(_index_options, _start_cucb),
    "kl-osm": Kind(_index_options, _as_it_is),
    "cts": Kind(_keyed, _as_it_is),
    **{name: Kind(_unchanged, _as_it_is) for name in FEATURED},
}


def entry_of(policy: Any) -> PolicyEntry:
    """The row of the catalogue for a name or a class that can be sharded, or a `ParameterError`."""
    name = policy.name if isinstance(policy, type) and issubclass(policy, Policy) else policy
    if not isinstance(name, str):
        raise ParameterError(f"policy must be a name or a class of the catalogue, got {policy!r}")
    if name not in POLICIES:
        raise ParameterError(unknown(f"policy = {name!r} is not known", name, POLICIES))
    if name not in KINDS:
        raise ParameterError(
            f"policy = {name!r} cannot be sharded: {', '.join(map(repr, KINDS))} can; the weight of an arm must follow "
            "from what was seen of it, the round and a clock (or features and a posterior) alone"
        )
    return POLICIES[name]


class Guide:
    """What the coordinator keeps of the policy: its options, its clock, and no arms.

    >>> guide = Guide("cucb", {"exploration": "practical"}, Uniform(n_arms=100, rank=10))
    >>> guide.start(100, 10)
    >>> [len(clock) for clock in guide.clocks(1, 2)]
    [5, 5]
    """

    def __init__(self, policy: Any, options: Mapping[str, Any], matroid: Matroid | None) -> None:
        self.entry = entry_of(policy)
        self._kind = KINDS[self.entry.name]
        known = ("reward_range", "seed", *self.entry.options)
        for key in options:
            if key not in known:
                raise ParameterError(unknown(f"policy {self.entry.name!r} has no option {key!r}", key, known))
        self.asked = dict(options)
        settled = self._kind.settle(self.entry.name, dict(options), matroid)
        self.options = {key: value for key, value in settled.items() if key not in ("prior", "outside")}
        self._told_prior = options.get("prior")
        self.policy: Any = self.entry.factory(Uniform(1, 1), **self._alone())
        self.prior: Prior | None = None

    def start(self, n_arms: int, rank: int) -> None:
        """So many arms it is going to be, and this rank. O(1), or O(K) if each arm has a prior of its own."""
        self.prior = as_prior(self._told_prior, n_arms, self.policy.reward_range)
        if self._told_prior is not None:
            # What a policy makes of a prior that does not fit it, it says here.
            self.entry.factory(Uniform(1, 1), **{**self._alone(), "prior": self._first_prior()})
        self._kind.start(self.policy, n_arms, rank, self.prior)

    def _alone(self) -> dict[str, Any]:
        """Options for a single arm: which engine finds bases is for shards to say."""
        return {key: value for key, value in self.options.items() if key != "engine"}

    def _first_prior(self) -> Any:
        assert self.prior is not None
        return tuple(float(part if part.ndim == 0 else part[0]) for part in self.prior)

    def options_for(self, ids: Ids | None) -> dict[str, Any]:
        """The options of the shard with these arms, its part of the prior among them. O(n) if it has one."""
        if self._told_prior is None:
            return self.options
        mean, strength = (np.asarray(part, dtype=np.float64) for part in self._told_prior)
        if mean.ndim == 0 and strength.ndim == 0:
            return {**self.options, "prior": (float(mean), float(strength))}
        if ids is None:
            raise ParameterError("a prior for each arm needs the whole matroid: give one number each")
        arms = ids.all()
        own = tuple(part if part.ndim == 0 else part[arms] for part in (mean, strength))
        return {**self.options, "prior": own}

    @property
    def own_priors(self) -> bool:
        """Whether there is a prior for each arm."""
        return self.prior is not None and any(part.ndim for part in self.prior)

    @property
    def clock(self) -> Clock:
        """The clock as it stands, empty if the policy has none."""
        clock = getattr(self.policy, "_clock", None)
        return () if clock is None else tuple(clock.tolist())

    def clocks(self, t: int, count: int, weighed: bool = False) -> tuple[Clock, ...]:
        """The clock in each of `count` rounds from t on; it stands in the last one afterwards.

        `weighed`: arms are weighed by the caller, not by the policy.
        """
        rows = []
        for i in range(count):
            self.policy._begin_round(t + i)
            rows.append(self.clock)
        return tuple(rows)

    def set_clock(self, clock: Any) -> None:
        """Go back, or on, to a clock."""
        if len(clock):
            self.policy._clock[:] = clock

    def mark(self) -> Any:
        """Where `go_back` leads."""
        return self.clock

    def go_back(self, mark: Any) -> None:
        """As if no round had begun since `mark`."""
        self.set_clock(mark)

    def state(self) -> dict[str, Any]:
        """What goes into a file."""
        return {"clock": np.array(self.clock, dtype=np.float64)}

    def set_state(self, state: dict[str, Any]) -> None:
        """The inverse; anything malformed is a `FileError`."""
        self.set_clock(array_of(state, "clock", np.float64, len(self.clock)))

    def clone(self) -> Self:
        """One that goes on from here by itself."""
        other = type(self).__new__(type(self))
        vars(other).update(vars(self))
        other.policy = self.policy.clone()
        return other
