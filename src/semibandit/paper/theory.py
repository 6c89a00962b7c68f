"""What the paper proves, as numbers: gaps, the regret bound of its main theorem, lower bounds, W and cells.

All functions take a matroid and the true means, so they belong to experiments, not to policies. Arms that
are in no base (loops) are left out everywhere: no policy can play them. Notation (Section 5.2 of the
paper): the optimal base is sorted by mean, largest first, as bar 1, ..., bar D; Delta_{j,k} = mean_j -
mean_k; for an arm k outside it, d_k is the last j with Delta_{bar j,k} > 0. An arm that ties with or beats
all of bar 1 ... bar D has no such j (d_k = 0 here, undefined in the paper) and contributes nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid, Partition, Uniform
from semibandit.matroids.base import heaviest_first, is_kind
from semibandit.paper.hitting_set import count_cells
from semibandit.paper.rounding import count_bins


@dataclass(frozen=True)
class Gaps:
    """Gaps of an instance; arrays with one entry per arm of ``outside``.

    ``base``: the optimal base, largest mean first (equal means: smaller id first). ``outside``: all other
    arms that are in some base, increasing. ``depth``: d_k. ``gap``: Delta_{bar d_k,k}, the smallest
    positive gap of k (inf where d_k = 0). ``total``: sum of Delta_{bar j,k} over j = 1 .. d_k. ``minimum``:
    Delta_min (inf if no arm has a positive gap).
    """

    base: IntArray
    outside: IntArray
    depth: IntArray
    gap: FloatArray
    total: FloatArray
    minimum: float


def gaps(matroid: Matroid, means: npt.ArrayLike) -> Gaps:
    """The gaps of Section 5.2 of the paper. O(K log K), and one maximum-weight base.

    >>> from semibandit.matroids import Uniform
    >>> g = gaps(Uniform(4, rank=2), [0.9, 0.5, 0.7, 0.7])
    >>> g.base.tolist(), g.outside.tolist(), g.depth.tolist(), round(g.minimum, 3)
    ([0, 2], [1, 3], [2, 1], 0.2)
    """
    mu = _check_means(matroid, means)
    base = _sorted_base(matroid, mu)
    outside = _outside(matroid, base)
    descending = mu[base]
    # d_k = number of base arms strictly better than k: the descending means form a prefix.
    depth = np.searchsorted(-descending, -mu[outside], side="left").astype(np.int64)
    positive = depth > 0
    gap = np.full(outside.size, np.inf)
    gap[positive] = descending[depth[positive] - 1] - mu[outside[positive]]
    prefix = np.concatenate([[0.0], np.cumsum(descending)])
    total = prefix[depth] - depth * mu[outside]
    return Gaps(base, outside, depth, gap, total, float(gap.min(initial=np.inf)))


def gap_matrix(matroid: Matroid, means: npt.ArrayLike) -> FloatArray:
    """Delta_{bar j,k}: row j for the j-th best arm of the optimal base, a column per arm outside. O(D K)."""
    mu = _check_means(matroid, means)
    base = _sorted_base(matroid, mu)
    return np.subtract.outer(mu[base], mu[_outside(matroid, base)])


def minimum_gap(matroid: Matroid, means: npt.ArrayLike) -> float:
    """Delta_min: the smallest positive difference between an optimal arm and another arm. O(K log K)."""
    return gaps(matroid, means).minimum


def burn_in(matroid: Matroid, means: npt.ArrayLike, m: int = 1, upper: float = 1.0) -> float:
    """T_0 = max(K, exp((b / Delta_min)^(1/m))), b = ``upper`` the largest possible reward; inf on overflow.

    Beyond T_0 the precision 1 / log^m T is below Delta_min / b (Lemma regret-T0), so that rounding cannot
    turn a gap around.

    >>> from semibandit.matroids import Uniform
    >>> round(burn_in(Uniform(3, rank=1), [0.9, 0.4, 0.4]), 3), burn_in(Uniform(9, rank=1), [1.0] + [0.2] * 8)
    (7.389, 9.0)
    """
    return _burn_in(matroid.n_arms, gaps(matroid, means).minimum, _check_m(m), upper)


def regret_bound(
    matroid: Matroid,
    means: npt.ArrayLike,
    horizon: npt.ArrayLike,
    *,
    m: int = 1,
    reward_range: tuple[float, float],
) -> Any:
    """Right-hand side of Theorem regret-noanytime, for FasterCUCB with precision 1 / log^m T.

    ``horizon`` may be a number (a float is returned) or an array (an array). For T <= T_0 the theorem's
    formula is not what its proof uses (a denominator may vanish); the proof's own first line then gives T
    times the value of the optimal base, which is returned instead. O(K log K), and O(K) per horizon.

    >>> from semibandit.matroids import Uniform
    >>> round(regret_bound(Uniform(2, rank=1), [0.9, 0.4], 10**6, reward_range=(0.1, 0.9)))
    284
    """
    mu = _check_means(matroid, means)
    a, b = _check_range(reward_range, mu)
    g = gaps(matroid, mu)
    t_zero = _burn_in(matroid.n_arms, g.minimum, _check_m(m), b)
    times = _check_horizon(horizon)
    best = float(mu[g.base].sum())
    bound = [t * best if t <= t_zero else _theorem(g, mu, t, m, a, b, t_zero) for t in times.ravel().tolist()]
    return bound[0] if times.ndim == 0 else np.array(bound).reshape(times.shape)


def _theorem(g: Gaps, mu: FloatArray, t: float, m: int, a: float, b: float, t_zero: float) -> float:
    some = g.depth > 0
    better, arm = mu[g.base[g.depth[some] - 1]], mu[g.outside[some]]
    shrunk = better / (1.0 + math.log(t) ** -m) - arm  # positive because t > T_0 (Lemma regret-T0)
    logarithmic = (12.0 * (better - arm) * (b - a) ** 2 * math.log(t) / shrunk**2).sum()
    constant = g.total.sum() * (t_zero + 1.0 / t + math.pi**2 / 6.0)
    return float(logarithmic + constant + g.base.size * b * t_zero)


def asymptotic_constant(
    matroid: Matroid, means: npt.ArrayLike, *, reward_range: tuple[float, float]
) -> float:
    """Limit of the bound over log T: the sum of 12 (b - a)^2 / Delta_{bar d_k,k} over arms k. O(K log K).

    >>> from semibandit.matroids import Uniform
    >>> round(asymptotic_constant(Uniform(3, rank=1), [0.9, 0.4, 0.4], reward_range=(0.0, 1.0)), 9)
    48.0
    """
    mu = _check_means(matroid, means)
    a, b = _check_range(reward_range, mu)
    return float((12.0 * (b - a) ** 2 / gaps(matroid, mu).gap).sum())


def gap_lower_bound(matroid: Matroid, means: npt.ArrayLike, horizon: npt.ArrayLike) -> Any:
    """(K - D) log T / Delta_min: the order, without constant, of the gap-dependent lower bound. O(K log K).

    K counts the arms that are in some base. The bound is for the worst instance of given K, D and Delta_min
    (a partition matroid with Bernoulli arms of means 1/2 and 1/2 - Delta, where `lower_bound_constant` is
    at least (K - D) / (4 Delta)), not for every instance: use `lower_bound_constant` for a given one.
    """
    g = gaps(matroid, means)
    times = _check_horizon(horizon)
    bound = g.outside.size * np.log(times) / g.minimum
    return float(bound) if times.ndim == 0 else bound


def exchange_partners(matroid: Matroid, means: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    """(outside, partner): for each arm k outside the optimal base, the lightest base arm that k can replace.

    Let circuit(k) be the arms j of the base such that base - j + k is a base. Greedy over k first, then the
    base from its heaviest arm, leaves out exactly the lightest arm of circuit(k). O(K) for uniform and
    partition matroids, else K - D greedy runs over D + 1 arms.

    >>> from semibandit.matroids import Partition
    >>> outside, partner = exchange_partners(Partition([0, 0, 1, 1]), [0.9, 0.5, 0.2, 0.4])
    >>> outside.tolist(), partner.tolist()
    ([1, 2], [0, 3])
    """
    return _partners(matroid, _sorted_base(matroid, _check_means(matroid, means)))


def _partners(matroid: Matroid, base: IntArray) -> tuple[IntArray, IntArray]:
    outside = _outside(matroid, base)
    if is_kind(matroid, Uniform):
        return outside, np.full(outside.size, base[-1])
    if is_kind(matroid, Partition):
        # Every group fills its capacity in a base. Of repeated targets the last, so lightest, arm stays.
        lightest = np.full(matroid.n_groups, -1, dtype=np.int64)
        lightest[matroid._group[base]] = base
        return outside, lightest[matroid._group[outside]]
    partner = np.empty(outside.size, dtype=np.int64)
    order = np.concatenate([[-1], base]).astype(np.int64)
    kept = np.zeros(matroid.n_arms, dtype=bool)
    for i, k in enumerate(outside.tolist()):
        order[0] = k
        picked = matroid._greedy(order)
        kept[picked] = True
        partner[i] = base[~kept[base]][0]
        kept[picked] = False
    return outside, partner


def kl_bernoulli(p: npt.ArrayLike, q: npt.ArrayLike) -> FloatArray:
    """Relative entropy of Bernoulli(p) to Bernoulli(q), elementwise; inf where q, not p, is 0 or 1. O(n)."""
    p, q = np.broadcast_arrays(np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64))
    result = np.zeros(p.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        # log1p of the difference: for close means the logarithms themselves would cancel.
        for x, y, difference in ((p, q, p - q), (1.0 - p, 1.0 - q, q - p)):
            result += np.where(x > 0.0, x * np.log1p(difference / y), 0.0)
    return np.maximum(result, 0.0)


def kl_gaussian(p: npt.ArrayLike, q: npt.ArrayLike, variance: float = 1.0) -> FloatArray:
    """Relative entropy of two Gaussians of one variance: (p - q)^2 / (2 variance), elementwise. O(n)."""
    difference = np.asarray(p, dtype=np.float64) - np.asarray(q, dtype=np.float64)
    return np.asarray(difference**2 / (2.0 * variance))


def lower_bound_constant(
    matroid: Matroid,
    means: npt.ArrayLike,
    *,
    rewards: Literal["bernoulli", "gaussian"] = "bernoulli",
    variance: float = 1.0,
) -> float:
    """c(means): no uniformly good policy has regret below c log T asymptotically (Graves and Lai).

    For a matroid the linear program of Graves and Lai has a closed form (Talebi and Proutiere): the sum, over
    arms k outside the optimal base, of (mean_s - mean_k) / KL(mean_k, mean_s), where s is the lightest base
    arm that k can replace (`exchange_partners`; derivation in docs/theory.md). Arms with mean_k = mean_s
    are in some optimal base and cost nothing. Cost as for `exchange_partners`.

    >>> from semibandit.matroids import Uniform
    >>> lower_bound_constant(Uniform(3, rank=1), [1.0, 0.5, 0.0], rewards="gaussian", variance=0.25)
    1.5
    """
    mu = _check_means(matroid, means)
    if rewards == "bernoulli":
        if mu.min() < 0.0 or mu.max() > 1.0:
            raise ParameterError(f"means of Bernoulli arms must lie in [0, 1], got {mu.min()} to {mu.max()}")
    elif rewards != "gaussian":
        raise ParameterError(f"rewards must be 'bernoulli' or 'gaussian', got {rewards!r}")
    elif not 0.0 < variance < math.inf:
        raise ParameterError(f"variance must be positive and finite, got {variance}")
    outside, partner = _partners(matroid, _sorted_base(matroid, mu))
    low, high = mu[outside], mu[partner]
    low, high = low[high > low], high[high > low]
    divergence = kl_bernoulli(low, high) if rewards == "bernoulli" else kl_gaussian(low, high, variance)
    return float(((high - low) / divergence).sum())


@dataclass(frozen=True)
class Settings:
    """What FasterCUCB's own settings come to. ``W`` = max(n_alpha, n_beta) is Eq. (dynamic:R)."""

    epsilon: float
    eta: float
    n_alpha: int
    n_beta: int
    W: int
    cells: int
    square_cells: int


def settings(horizon: float, m: int = 1, *, reward_range: tuple[float, float]) -> Settings:
    """Precision, bins, W and number of cells of FasterCUCB for a horizon; needs 0 < a. O(1).

    ``cells`` counts the cells of the positive quadrant that reachable dominating points and their copies
    make; ``square_cells`` = W^3 + 3 W + 2 is the same with W bins for both coordinates, as in the paper,
    which bounds it by O(W^4).

    >>> s = settings(10**6, reward_range=(0.1, 1.0))
    >>> s.n_alpha, s.n_beta, s.W, s.cells, s.square_cells
    (97, 290, 290, 5462170, 24389872)
    """
    time = float(_check_horizon(horizon))
    a, b = _check_range(reward_range, None)
    if a <= 0.0:
        raise ParameterError(
            f"reward_range = ({a}, {b}): W is finite only for a positive lower end; give the smallest "
            "positive mean as the lower end (zero means have a bin of their own)"
        )
    epsilon = 1.0 / math.log(time) ** _check_m(m)
    growth = 1.0 + epsilon / 3.0
    n_alpha, n_beta = count_bins(a, b, growth), count_bins(1.0 / math.sqrt(time), 1.0, growth)
    w = max(n_alpha, n_beta)
    return Settings(epsilon, epsilon / 3.0, n_alpha, n_beta, w, count_cells(n_alpha, n_beta), count_cells(w))


def _burn_in(n_arms: int, minimum: float, m: int, upper: float) -> float:
    if not 0.0 < upper < math.inf:
        raise ParameterError(f"upper must be positive and finite, got {upper}")
    exponent = (upper / minimum) ** (1.0 / m)
    return max(float(n_arms), math.exp(exponent) if exponent < 709.0 else math.inf)


def _sorted_base(matroid: Matroid, mu: FloatArray) -> IntArray:
    base = matroid._max_weight_base(mu)  # increasing ids, so the stable order below breaks ties by id
    return base[heaviest_first(mu[base])]


def _outside(matroid: Matroid, base: IntArray) -> IntArray:
    rest = np.ones(matroid.n_arms, dtype=bool)
    rest[base] = False
    rest[matroid.loops] = False
    return np.flatnonzero(rest).astype(np.int64)


def _check_means(matroid: Matroid, means: npt.ArrayLike) -> FloatArray:
    mu = np.array(means, dtype=np.float64)
    if mu.shape != (matroid.n_arms,) or not np.isfinite(mu).all():
        raise ParameterError(f"means must be {matroid.n_arms} finite numbers, got shape {mu.shape}")
    return mu


def _check_range(reward_range: Any, mu: FloatArray | None) -> tuple[float, float]:
    a, b = (float(x) for x in reward_range)
    if not 0.0 <= a < b < math.inf:
        raise ParameterError(f"reward_range must be (a, b) with 0 <= a < b < inf, got ({a}, {b})")
    if mu is not None and (mu.min() < a or mu.max() > b):
        raise ParameterError(
            f"means must lie in reward_range = [{a}, {b}], got values from {mu.min()} to {mu.max()}"
        )
    return a, b


def _check_m(m: int) -> int:
    if m != int(m) or m < 1:
        raise ParameterError(f"m must be a positive integer, got {m!r}")
    return int(m)


def _check_horizon(horizon: npt.ArrayLike) -> FloatArray:
    times = np.asarray(horizon, dtype=np.float64)
    if not (times >= 3).all() or np.isinf(times).any():
        raise ParameterError(
            f"horizon must be at least 3 (so that log T > 1, that is epsilon < 1), got {horizon!r}"
        )
    return times
