"""Everything that knows a class of matroids goes by what is independent in it, not by its name or its ancestors."""

from __future__ import annotations

import numpy as np
import pytest

import semibandit as sb
from benchmarks.rivals.registry import rivals_for
from semibandit.compiled.random import new_state
from semibandit.data.replay import read_log, replay
from semibandit.errors import ParameterError
from semibandit.matroids import Graphic, Partition, Uniform
from semibandit.matroids.base import is_kind, kind_of
from semibandit.paper.bucket_engine import serves
from semibandit.paper.dynamic import dynamic_base
from semibandit.paper.dynamic.graphic import DynamicGraphic
from semibandit.paper.dynamic.oracle import DynamicOracle
from semibandit.paper.theory import exchange_partners
from semibandit.policies.identification.circuits import exchange_table
from semibandit.policies.random_base import RandomBase
from semibandit.testing import check_matroid

RING = [(k, (k + 1) % 6) for k in range(6)] + [(0, 3), (1, 4)]


class Roads(Graphic):
    """Adds nothing to independence."""


class ShortRoads(Graphic):
    """At most two roads, whatever the graph."""

    def _is_independent(self, arms):
        return len(arms) <= 2 and super()._is_independent(arms)


class Genres(Partition):
    """Adds nothing to independence."""


class FewGenres(Partition):
    """One arm of each group, and at most `most` in all; the test needs what its constructor sets last."""

    def __init__(self, groups, most):
        super().__init__(groups)
        self.most = most

    def _is_independent(self, arms):
        return len(arms) <= self.most and super()._is_independent(arms)


class FewBest(Partition):
    """The same by another rank alone."""

    def _find_rank(self):
        return 2


class WithoutFirst(Partition):
    """Arm 0 is a loop: by another greedy alone."""

    def _compiled_greedy(self, order, limit):
        return super()._compiled_greedy(np.ascontiguousarray(order[order != 0]), limit)


class AnyPair(Uniform):
    """Any two, but not of the same parity: by another test alone."""

    def _is_independent(self, arms):
        return super()._is_independent(arms) and len(set((arms % 2).tolist())) == len(arms)


GROUPS = [0, 0, 1, 1, 2, 2, 2]
OVERRIDING = {
    "short roads": lambda: ShortRoads(RING),
    "few genres": lambda: FewGenres(GROUPS, most=2),
    "few best": lambda: FewBest(GROUPS),
    "without first": lambda: WithoutFirst(GROUPS),
    "any pair": lambda: AnyPair(6, 3),
}


def test_kinds():
    assert kind_of(Roads(RING)) is Graphic and kind_of(ShortRoads(RING)) is ShortRoads
    assert is_kind(Genres([0, 1]), Partition) and not is_kind(FewGenres([0, 1], 1), Partition)
    assert not is_kind(Genres([0, 1]), Uniform) and not is_kind(Uniform(3, 1), Partition)


def test_a_subclass_that_adds_nothing_is_served_like_its_class():
    roads, genres = Roads(RING), Genres([0, 0, 1, 1, 2])
    assert serves(roads) and isinstance(dynamic_base(roads, np.arange(8.0)), DynamicGraphic)
    assert [one.name for one in rivals_for(roads)] == [one.name for one in rivals_for(Graphic(RING))]
    assert sb.CTS(genres, sampler="grouped").sampler == "grouped" and RandomBase(genres).pooled
    assert sb.CUCB(genres, engine="kinetic").engine == "kinetic" and sb.CUCB(roads).matroid is roads


@pytest.mark.parametrize("name", OVERRIDING)
def test_what_a_subclass_overrides_decides_all_the_rest(name):
    matroid = OVERRIDING[name]()
    assert (
        matroid.rank
        == {"short roads": 2, "few genres": 2, "few best": 2, "without first": 3, "any pair": 2}[name]
    )
    assert matroid.loops.tolist() == ([0] if name == "without first" else [])
    check_matroid(matroid)


@pytest.mark.parametrize("name", OVERRIDING)
def test_a_subclass_that_overrides_is_served_like_a_stranger(name):
    matroid = OVERRIDING[name]()
    weights = np.linspace(1.0, 0.2, matroid.n_arms)
    assert not serves(matroid) and isinstance(dynamic_base(matroid, weights), DynamicOracle)
    assert rivals_for(matroid) == []
    assert sb.CTS(matroid).sampler == "plain" and not RandomBase(matroid).pooled
    best = matroid.max_weight_base(weights)
    assert np.array_equal(dynamic_base(matroid, weights).base(), best)
    outside, partner = exchange_partners(matroid, weights)
    for arm, other in zip(outside.tolist(), partner.tolist(), strict=True):
        assert matroid.is_independent([*(k for k in best.tolist() if k != other), arm])
    table, tests = exchange_table(matroid, best, np.arange(matroid.n_arms))
    assert tests > 0
    for arm, place in np.ndindex(table.shape):
        swapped = [*np.delete(best, place).tolist(), arm]
        assert table[arm, place] == (arm not in best and matroid.is_independent(swapped))
    drawn = RandomBase(matroid).draw(new_state(1))
    assert matroid.is_independent(drawn) and len(drawn) == matroid.rank
    for policy in (sb.CUCB(matroid), sb.FasterCUCB(matroid, horizon=200), sb.CTS(matroid)):
        for _ in range(30):
            arms = policy.select()
            assert matroid.is_independent(arms)
            policy.update(arms, weights[arms])


def test_a_replay_knows_uniform_chances_of_the_kind_only():
    """The closed form, capacity / size, holds for partition matroids, not for a class that overrides."""
    table = {"round": [0, 0, 1, 1, 2, 2, 3, 3], "arm": [0, 2, 1, 3, 0, 2, 1, 2], "reward": [1] * 8}
    found = replay([0, 2], read_log(table, Genres([0, 0, 1, 1])), resamples=1)
    assert found.matched_arms == 5 and found["ips"].value == pytest.approx(5 * 2.0 / 4)
    few = FewGenres([0, 0, 1, 1], 2)
    with pytest.raises(ParameterError, match="not known for"):
        replay([0, 2], read_log(table, few))
    logged = read_log({**table, "propensity": [0.8, 0.5] * 4}, few)
    assert replay([0, 2], logged, resamples=1)["ips"].value == pytest.approx((2 / 0.8 + 3 / 0.5) / 4)
