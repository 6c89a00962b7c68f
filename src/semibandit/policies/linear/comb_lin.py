"""CombLinTS and CombLinUCB: linear rewards over features (Wen, Kveton and Ashkan 2015)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_number, as_whole
from semibandit.matroids import Matroid
from semibandit.policies.catalogue import register
from semibandit.policies.linear.policy import LinearPolicy
from semibandit.policies.linear.posterior import WAITED, hold_row, let_go


@register(
    cost="O(K d) a round: one product of features and theta",
    guarantee="Bayes regret O(D lambda sqrt(d T min(log K, d))) up to logarithms, if theta ~ N(0, lambda^2 I)",
    reference="Wen, Kveton and Ashkan 2015",
    take="where arms have features, or contexts come with each request: what is learnt of one arm serves the others",
)
class CombLinTS(LinearPolicy):
    """Thompson sampling where mean rewards are linear in features: contextual semi-bandits.

    Every arm has a row phi of d numbers and the mean reward phi' theta, with theta unknown. A round draws one theta
    from its normal posterior and plays the best base of phi' theta. What is learnt of one arm tells of all others with
    similar features, so that regret does not grow with the number of arms, and arms never seen have a mean.

    Parameters
    ----------
    matroid
        What may be played together.
    reward_range
        Bounds (a, b) of every reward, or None. They serve to check rewards and to choose `noise`.
    features
        One row per arm, K x d: fixed. There is no constant in the model: add a column of ones if means have an offset.
    dimension
        d, for features that come with each call: ``select(features=...)``, ``update(arms, rewards, features=rows)``.
        Without either, every arm is a feature of its own (at most 512 arms), which is Thompson sampling with normal
        posteriors.
    prior_scale
        lambda: theta ~ N(0, lambda^2 I) before anything was seen.
    noise
        sigma, the standard deviation of a reward; (b - a) / 2 unless given.
    seed
        Of the draws.

    Notes ----- Regret: O(D lambda sqrt(d T min(log K, d))) in expectation over theta, up to logarithmic factors, for
    lambda >= sigma (Wen, Kveton and Ashkan 2015, Theorem 1), whatever K.

    Cost: O(K d) per round, the product of features and theta, and one pass for uniform and partition matroids; a sort
    and the matroid's greedy for others. O(d^2) per reward. Decisions that wait change nothing: the draws spread by
    themselves. Rounds compare sums that are added in one order, whichever way arms were found, so equal rows are ties.

    The square root of the precision is updated by rotations and made anew from compensated sums every 4,096 rewards, so
    that the covariance stays symmetric and positive definite (`policies.linear.posterior`).

    Deleted arms keep their features. `reset` counts nothing for an arm any more, and may give its id other features;
    what was learnt of theta stays. `grow` needs the rows of the new arms. With `minimize`, costs are linear in the
    features.

    Example
    -------
    >>> import numpy as np, semibandit as sb
    >>> phi = np.random.default_rng(0).random((1000, 3))
    >>> policy = sb.CombLinTS(sb.Uniform(n_arms=1000, rank=2), features=phi, seed=1)
    >>> decision = policy.decide()
    >>> policy.learn(decision, [1.0, 0.0])
    >>> int(policy.counts.sum()), policy.theta.shape
    (2, (3,))

    Features of each request:

    >>> policy = sb.CombLinTS(sb.Uniform(n_arms=4, rank=2), dimension=3, seed=1)
    >>> now = phi[:4]
    >>> arms = policy.select(features=now)
    >>> policy.update(arms, [1.0, 0.0], features=now[arms])
    """

    name = "comb-lin-ts"
    draws = True

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: Any = (0.0, 1.0),
        features: Any = None,
        dimension: int | None = None,
        prior_scale: float = 1.0,
        noise: float | None = None,
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(
            matroid,
            reward_range=reward_range,
            features=features,
            dimension=dimension,
            prior_scale=prior_scale,
            noise=noise,
            width=0.0,
            outside=outside,
            seed=seed,
        )


@register(
    cost="O(K d) a round, and O(d^2) for each of the few arms whose bound reaches the base",
    guarantee="regret O(D d sqrt(T)) up to logarithms, with the width of the theorem",
    reference="Wen, Kveton and Ashkan 2015",
    take="as comb-lin-ts, for decisions without randomness or with a bound for each instance",
)
class CombLinUCB(LinearPolicy):
    """Optimism where mean rewards are linear in features: contextual semi-bandits without draws.

    Plays the best base under ``phi' theta + width sqrt(phi' Sigma phi)``, ties by smaller arm id, with theta and Sigma
    the mean and covariance of the normal posterior. See `CombLinTS`, which shares all else.

    Parameters
    ----------
    matroid, reward_range, features, dimension, prior_scale, noise
        As in `CombLinTS`.
    width
        c, in standard deviations of the posterior. The theorem's is `theorem_width`; it is far wider than what does
        best.
    seed
        Ignored: nothing is drawn.

    Notes ----- Regret: O(D d sqrt(T)) up to logarithmic factors for ``width=theorem_width(...)`` (Wen, Kveton and
    Ashkan 2015, Theorem 2), whatever K; none is known for a smaller width.

    Cost: O(K d) per round and O(d^2) for each width that is computed. Widths only shrink, so old ones bound new ones,
    and only arms whose bound reaches the base are looked at (``describe()["widths"]``). With features of each call the
    bound is by their norms and their part along the direction that is known best (`linear.weighing`). Matroids other
    than uniform and partition: the best base under the bounds, again until its own are exact; with many arms, the best
    base of those in reach of another one (`linear.reaching`).

    Plays that wait (`decide`) narrow the widths: Sigma does not depend on rewards, so it is that of all plays, while
    theta is that of the feedback (as in GP-BUCB, Desautels, Krause and Burdick 2014). Decisions made at once thus
    spread over directions. What `drop` or a partial `learn` leaves out is taken back, O(d^3), and bounds are widened by
    a factor that follows from the determinants.

    Example
    -------
    >>> import numpy as np, semibandit as sb
    >>> phi = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 0.9]])
    >>> policy = sb.CombLinUCB(sb.Uniform(n_arms=3, rank=1), features=phi)
    >>> first, second = policy.decide(count=2)
    >>> first.arms.tolist(), second.arms.tolist()
    ([1], [2])
    """

    name = "comb-lin-ucb"

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: Any = (0.0, 1.0),
        features: Any = None,
        dimension: int | None = None,
        prior_scale: float = 1.0,
        noise: float | None = None,
        width: float = 1.0,
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(
            matroid,
            reward_range=reward_range,
            features=features,
            dimension=dimension,
            prior_scale=prior_scale,
            noise=noise,
            width=as_number(width, "width", 0.0, closed=False),
            outside=outside,
            seed=seed,
        )

    @property
    def width(self) -> float:
        """How many standard deviations the index is above the posterior mean."""
        return self._width

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "width": self._width}

    # -- plays that wait ---------------------------------------------------------------------------------

    def _wait(self, arms: IntArray, change: int) -> None:
        """One more play of each arm; what ends is known to `_ending`."""
        if change > 0:
            rows = self._rows_now(arms)
            for row in () if rows is None else rows:
                self._of_posterior(hold_row, row, self.noise)

    @contextmanager
    def _ending(self, rows: FloatArray | None, missing: Any) -> Iterator[None]:
        p = self._posterior
        p.meta[WAITED] = missing is not None
        try:
            yield
        finally:
            p.meta[WAITED] = 0
        if rows is None:
            return
        learnt = rows[:0] if missing is None else rows[~missing]
        lost = rows if missing is None else rows[missing]
        for part, known in ((learnt, True), (lost, False)):
            if len(part):
                factor = float(self._of_posterior(let_go, part, self.noise, known))
                self._stretch_bounds(factor)


def theorem_width(
    dimension: int,
    rank: int,
    horizon: int,
    *,
    prior_scale: float = 1.0,
    noise: float = 1.0,
    norm: float = 1.0,
    delta: float = 0.05,
) -> float:
    """The width of Theorem 2 of Wen, Kveton and Ashkan (2015), Eq. (8), for rewards whose noise is 1-sub-Gaussian.

    ``sqrt(d log(1 + n D lambda^2 / (d sigma^2)) + 2 log(1 / delta)) / sigma + norm / lambda`` for rows of norm at most
    1 and coefficients of norm at most `norm`: with probability 1 - delta, no index in n rounds is below its mean.

    >>> round(theorem_width(10, 5, 1000), 2)
    9.26
    """
    d = as_whole(dimension, "dimension", 1, "numbers in a row of features")
    most = as_whole(rank, "rank", 1, "arms in a base") * as_whole(horizon, "horizon", 1, "rounds")
    lam, sigma = (
        as_number(prior_scale, "prior_scale", 0.0, closed=False),
        as_number(noise, "noise", 0.0, closed=False),
    )
    chance = as_number(delta, "delta", 0.0, 1.0, closed=False)
    inside = d * math.log1p(most * lam**2 / (d * sigma**2)) + 2.0 * math.log(1.0 / chance)
    return math.sqrt(inside) / sigma + as_number(norm, "norm", 0.0) / lam
