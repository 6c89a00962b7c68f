"""Random instances: the arms and rank asked for, functions of the seed, and a clear word where there are none."""

from __future__ import annotations

import pytest

from semibandit.data.instances import (
    random_environment,
    random_matroid,
)
from semibandit.environments.codec import DRAWN, make_environment
from semibandit.errors import MatroidError, ParameterError
from semibandit.matroids.codec import BUILT_IN


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.parametrize(("arms", "rank"), [(1, 1), (6, 6), (30, 9), (45, 9), (600, 40)])
def test_instances_have_the_arms_and_the_rank_asked_for(name: str, arms: int, rank: int) -> None:
    built = random_matroid(name, arms, rank, seed=3)
    assert (built.n_arms, built.rank, built.name) == (arms, rank, name)


@pytest.mark.parametrize("name", BUILT_IN)
def test_instances_are_functions_of_the_seed(name: str) -> None:
    assert random_matroid(name, 40, 9, seed=5) == random_matroid(name, 40, 9, seed=5)
    if name in ("graphic", "transversal", "linear"):
        assert random_matroid(name, 40, 9, seed=5) != random_matroid(name, 40, 9, seed=6)


def test_random_graphs_are_simple_and_connected() -> None:
    networkx = pytest.importorskip("networkx")
    for arms in (19, 30, 100, 189, 190):
        built = random_matroid("graphic", arms, 19, seed=arms)
        graph = networkx.Graph(zip(built._tail.tolist(), built._head.tolist(), strict=True))
        assert graph.number_of_edges() == arms
        assert networkx.is_connected(graph)
        assert not list(networkx.selfloop_edges(graph))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: random_matroid("matching", 5, 2), "matroid = 'matching' is not known: one of uniform"),
        (lambda: random_matroid("uniform", 0, 1), "arms must be a positive integer, got 0"),
        (lambda: random_matroid("uniform", 3, 4), "rank = 4 is larger than arms = 3"),
        (lambda: random_matroid("graphic", 100, 9), "9 to 45 edges"),
        (lambda: random_environment("dice", "uniform", 3, 2), "env = 'dice' is not known"),
    ],
)
def test_impossible_instances_are_refused(call: object, says: str) -> None:
    with pytest.raises((ParameterError, MatroidError), match=says):
        call()  # type: ignore[operator]


@pytest.mark.parametrize("name", DRAWN)
def test_every_environment_by_name(name: str) -> None:
    env = make_environment(name, random_matroid("uniform", 4, 2), [0.2, 0.4, 0.6, 0.8], seed=1)
    rewards = env.draw([0, 3])
    assert ((rewards >= 0) & (rewards <= 1)).all()
