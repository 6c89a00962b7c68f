"""Two sorted runs against sorting everything, operation by operation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from semibandit.arms import ALPHA, BETA
from semibandit.compiled.jit import kernel
from semibandit.engines.order.two_runs import (
    check_two_runs,
    new_two_runs,
    runs_next,
    runs_touch,
    runs_update,
)

pytestmark = pytest.mark.bounds


@kernel
def touch(runs: Any, arms: Any) -> None:
    for i in range(arms.shape[0]):
        runs_touch(runs, arms[i])


@kernel
def listed(runs: Any, out: Any) -> Any:
    i, j, n = runs.start[0], 0, 0
    while True:
        arm, i, j = runs_next(runs, i, j)
        if arm < 0:
            return n
        out[n] = arm
        n += 1


def fresh_weights(rng: np.random.Generator, style: int, n: int) -> Any:
    if style == 0:
        return rng.integers(0, 3, n) / 2.0
    if style == 1:
        return np.where(rng.random(n) < 0.3, np.inf, rng.random(n))
    return rng.random(n)


@pytest.mark.thin
@pytest.mark.parametrize("seed", range(12))
def test_the_runs_list_all_present_arms_in_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for n in (1, 2, 9, 60, 200):
        runs, recs = new_two_runs(n, 1 + n // 10), np.zeros((n, 4))
        runs.limit[0] = int(rng.integers(1, n + 1))
        recs[:, ALPHA] = fresh_weights(rng, seed % 3, n)
        recs[:, BETA] = rng.integers(0, 3, n) / 4.0
        present = np.ones(n, dtype=bool)
        lam, out, folds = 0.0, np.zeros(n, dtype=np.int64), 0
        for _ in range(40):
            act = rng.integers(10)
            arms = rng.integers(0, n, rng.integers(0, min(n, 8) + 1))
            if act == 0:
                lam += float(rng.choice([1e-9, 0.01, 0.5]))
            elif act == 1:
                present[arms] = ~present[arms]
                runs.present[:] = present
            recs[arms, ALPHA] = fresh_weights(rng, seed % 3, len(arms))
            touch(runs, arms)
            check_two_runs(runs, recs)
            before = runs.n_short[0]
            runs_update(runs, recs, lam)
            folds += runs.n_short[0] < before
            check_two_runs(runs, recs)
            weight = recs[:, ALPHA] + lam * recs[:, BETA]
            expected = [arm for arm in np.lexsort((np.arange(n), -weight)) if present[arm]]
            assert out[: listed(runs, out)].tolist() == expected
        assert folds > 0 or n < 9
