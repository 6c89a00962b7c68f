"""A recording replayed: rows in time order, arms together, exact means, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import semibandit as sb
from semibandit.testing import check_environment

M = sb.Uniform(4, 2)
ROWS = np.random.default_rng(5).normal(size=(7, 4))


def played(env: sb.Trace, rounds: int) -> Any:
    return np.array([env.draw([0, 1, 2, 3]) for _ in range(rounds)])


def test_time_order_and_from_the_start_again() -> None:
    env = sb.Trace(M, ROWS, seed=3)
    assert np.array_equal(played(env, 17), np.vstack([ROWS, ROWS, ROWS[:3]]))
    assert env.length == 7 and env.round == 17 and env.pulls.tolist() == [17] * 4
    env.reset(seed=9)
    assert np.array_equal(played(env, 7), ROWS), "the seed has no say"
    assert env.draw([2], t=4)[0] == ROWS[3, 2]


def test_a_reward_does_not_depend_on_earlier_pulls() -> None:
    one, other = sb.Trace(M, ROWS), sb.Trace(M, ROWS)
    for t in range(1, 15):
        other.draw([0], t)
        assert (
            one.draw([0, 3], t).tolist()
            == other.draw([0, 3], t).tolist()
            == ROWS[(t - 1) % 7, [0, 3]].tolist()
        )
    assert other.draw([1, 1]).tolist() == [ROWS[0, 1]] * 2 and other.pulls[1] == 2


def test_shifted_is_a_rotation_by_the_seed() -> None:
    starts = set()
    for seed in range(12):
        found = played(sb.Trace(M, ROWS, order="shifted", seed=seed), 7)
        start = int(np.flatnonzero((found[0] == ROWS).all(axis=1))[0])
        assert np.array_equal(found, np.roll(ROWS, -start, axis=0))
        starts.add(start)
    assert len(starts) > 3


def test_random_takes_whole_rows_about_equally_often() -> None:
    env = sb.Trace(M, ROWS, order="random", seed=1)
    found = played(env, 1400)
    which = (found[:, None, :] == ROWS[None]).all(axis=2)
    assert (which.sum(axis=1) == 1).all(), "every round is one row"
    counts = which.sum(axis=0)
    assert abs(counts - 200).max() < 5 * np.sqrt(200)
    assert np.array_equal(played(env.clone(), 50), found[:50])
    assert not np.array_equal(played(env.clone(seed=2), 50), found[:50])


def test_means_and_regret_are_those_of_the_columns() -> None:
    env = sb.Trace(M, ROWS)
    assert np.allclose(env.means, ROWS.mean(axis=0)) and env.reward_range == (ROWS.min(), ROWS.max())
    best = np.sort(np.argsort(-ROWS.mean(axis=0))[:2])
    assert env.optimal_base.tolist() == best.tolist() and env.regret(best) == 0.0


def test_arms_stay_together_where_table_lets_them_go() -> None:
    day = np.random.default_rng(0).random(400)
    rows = np.column_stack([day, day, 1.0 - day])
    matroid = sb.Uniform(3, 2)
    together = sb.Trace(matroid, rows, order="random", seed=1)
    apart = sb.Table(matroid, list(rows.T), seed=1)
    drawn = {
        name: np.array([env.draw([0, 1, 2]) for _ in range(600)])
        for name, env in (("t", together), ("a", apart))
    }
    assert np.array_equal(drawn["t"][:, 0], drawn["t"][:, 1])
    assert np.corrcoef(drawn["t"].T)[0, 2] == pytest.approx(-1.0)
    assert abs(np.corrcoef(drawn["a"].T)[0, 1]) < 0.2


def test_conformance() -> None:
    check_environment(sb.Trace(M, ROWS, order="random", seed=4))


def test_policies_play_it_stepwise() -> None:
    env = sb.Trace(M, ROWS, order="shifted")
    low, high = env.reward_range
    runs = sb.compare({"cucb": sb.CUCB(M, reward_range=(low, high))}, env, rounds=60, repeats=3)
    assert runs.runs["cucb"][0].path == "stepwise"
    costs = sb.minimize(sb.Trace(M, ROWS))
    assert costs.optimal_base.tolist() == np.sort(np.argsort(ROWS.mean(axis=0))[:2]).tolist()


def test_data_frames_are_matrices() -> None:
    for name in ("pandas", "polars"):
        frame = pytest.importorskip(name).DataFrame({f"arm {k}": ROWS[:, k] for k in range(4)})
        assert np.array_equal(played(sb.Trace(M, frame), 7), ROWS)


BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: sb.Trace(M, ROWS.T), r"one column per arm \(n_arms = 4\).*shape \(4, 7\)"),
    (lambda: sb.Trace(M, ROWS[0]), "rounds x arms"),
    (lambda: sb.Trace(M, np.empty((0, 4))), "at least one row"),
    (lambda: sb.Trace(M, [["a"] * 4]), "matrix of numbers"),
    (lambda: sb.Trace(M, np.where(ROWS[2, 1] == ROWS, np.nan, ROWS)), r"rewards\[2, 1\] = nan: fill gaps"),
    (lambda: sb.Trace(M, np.ones((3, 4))), "reward_range must be given"),
    (lambda: sb.Trace(M, np.ones((3, 4)) * 2, reward_range=(0, 1)), r"rewards\[0, 0\] = 2.0"),
    (lambda: sb.Trace(M, ROWS, order="shifed"), r"did you mean 'shifted'\?"),
    (lambda: sb.Trace(3, ROWS), "matroid"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "says"), BAD)
def test_refused(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(sb.ParameterError, match=says):
        make()


def test_the_callers_matrix_is_copied() -> None:
    own = ROWS.copy()
    env = sb.Trace(M, own)
    own[:] = 0.0
    assert np.array_equal(played(env, 7), ROWS)
