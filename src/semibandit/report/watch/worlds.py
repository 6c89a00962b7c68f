"""Small worlds worth watching: a network on a map, and a list of items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import ParameterError
from semibandit.matroids import Graphic, Uniform

if TYPE_CHECKING:
    from semibandit.environments import Environment

# Rewards of the network lie within half of this of their mean; CUCB's constant 1.5 shrinks with its square.
NOISE = 0.4
EXPLORATION = 1.5 * NOISE**2
_CANDIDATES = 12
_WIDE = 1.6


def random_network(nodes: int = 30, seed: int = 0) -> tuple[Environment, FloatArray]:
    """A network on a map, and where its nodes are: links do not cross, and short ones tend to be better. O(nodes^3).

    Nodes keep their distance (each is the farthest from the others of a dozen candidates). Two are linked if no
    third lies in the circle between them: a Gabriel graph, which is planar and connected.

    >>> env, positions = random_network(nodes=12, seed=1)
    >>> env.matroid.rank, positions.shape
    (11, (12, 2))
    """
    from semibandit.environments import UniformNoise

    if not 3 <= nodes <= 500:
        raise ParameterError(f"nodes must lie between 3 and 500, got {nodes}")
    rng = np.random.default_rng([seed, 6])
    positions = np.empty((nodes, 2))
    positions[0] = (_WIDE / 2, 0.5)
    for i in range(1, nodes):
        tries = rng.random((_CANDIDATES, 2)) * (_WIDE, 1.0)
        apart = np.linalg.norm(tries[:, None] - positions[None, :i], axis=2).min(axis=1)
        positions[i] = tries[int(apart.argmax())]
    edges = _gabriel(positions)
    length = np.linalg.norm(positions[edges[:, 0]] - positions[edges[:, 1]], axis=1)
    luck = rng.uniform(-0.1, 0.1, len(edges))
    means = np.clip(0.8 - 0.5 * length / length.max() + luck, NOISE / 2, 1.0 - NOISE / 2)
    return UniformNoise(Graphic(edges, n_vertices=nodes), means, width=NOISE, seed=seed), positions


def _gabriel(positions: FloatArray) -> IntArray:
    square = ((positions[:, None] - positions[None]) ** 2).sum(axis=2)
    found = [
        (i, j)
        for i in range(len(positions))
        for j in range(i + 1, len(positions))
        if not np.any(np.delete(square[i] + square[j], [i, j]) < square[i, j])
    ]
    return np.array(found, dtype=np.int64)


def random_list(arms: int = 20, rank: int = 5, seed: int = 0) -> Environment:
    """`rank` of `arms` items with clicks (0 or 1); means spread over [0.1, 0.9] in random order. O(K)."""
    from semibandit.environments import Bernoulli

    rng = np.random.default_rng([seed, 7])
    means = np.linspace(0.1, 0.9, arms) + rng.uniform(-0.3, 0.3, arms) * 0.8 / max(arms - 1, 1)
    return Bernoulli(Uniform(arms, rank), np.clip(rng.permutation(means), 0.05, 0.95), seed=seed)


def layout(matroid: Graphic, seed: int = 0, steps: int = 300) -> FloatArray:
    """Places for the vertices of a graph without a map: linked ones draw near, all push apart. O(steps V^2)."""
    n = matroid.n_vertices
    rng = np.random.default_rng([seed, 8])
    at = rng.random((n, 2)) * (_WIDE, 1.0)
    ideal = np.sqrt(_WIDE / n)
    linked = np.zeros((n, n))
    linked[matroid._tail, matroid._head] = linked[matroid._head, matroid._tail] = 1.0
    np.fill_diagonal(linked, 0.0)
    for step in range(steps):
        gap = at[:, None] - at[None]
        far = np.sqrt((gap**2).sum(axis=2)) + 1e-9
        push = ideal**2 / far - linked * far**2 / ideal
        np.fill_diagonal(push, 0.0)
        move = (gap / far[..., None] * push[..., None]).sum(axis=1)
        size = np.linalg.norm(move, axis=1, keepdims=True) + 1e-9
        at += move / size * np.minimum(size, 0.1 * (1.0 - step / steps))
    return np.asarray(at)
