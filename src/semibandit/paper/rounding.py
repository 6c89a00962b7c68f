"""Rounding features up to the corner of a geometric bin (Section 4.1 of the paper).

Positive values of each coordinate are cut at ``lb * (1 + eta)**q``. Bin ``q`` is the half-open interval
``(edges[q-1], edges[q]]``, except that bin 1 also holds its lower end ``lb``, which the paper leaves in no
bin. Bin 0 holds the single value zero (the paper's index ``-inf``). A feature is replaced by the upper right
corner of its bin, so its weight grows by a factor of at most ``1 + eta`` for every nonnegative query.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from semibandit.compiled.handle import Floats1, Number, by_handle, make_handle
from semibandit.compiled.jit import kernel
from semibandit.errors import ParameterError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Bounds = tuple[tuple[float, float], tuple[float, float]]

# A mean is a sum of floats divided by a count: rewards that all equal the lower bound may average to slightly
# less than it. Values this little outside the bounds (relatively) count as the bound itself.
SLACK = 1e-9

_MAX_BINS = 10_000_000


class Bins(NamedTuple):
    """The bins of one coordinate: bin q ends at ``edges[q]``, bin 0 at zero.

    `lower` is the paper's lb, `steps_per_log` is 1 / log(1 + eta).
    """

    lower: Number
    steps_per_log: Number
    edges: Floats1


@kernel
def bin_index(bins, x):
    """Bin of one value: 0 for zero, else the smallest q >= 1 with x <= edges[q], clamped to the last bin.

    The one rule by which features are rounded up. The logarithm is only a first guess; the table of edges
    decides, so that ``edges[q-1] < x <= edges[q]`` holds in floats, not merely up to rounding. O(1).
    """
    edges = bins.edges
    if x <= 0.0:
        return 0
    top = edges.size - 1
    if not (x > edges[1]):
        return 1
    if x >= edges[top]:
        return top
    q = int(math.log(x / bins.lower) * bins.steps_per_log) + 1
    if q > top:
        q = top
    while q > 1 and x <= edges[q - 1]:
        q -= 1
    while x > edges[q]:
        q += 1
    return q


@kernel
def bin_indices(bins, x, out):
    """`bin_index` of every value of `x`, written to `out`. O(len(x))."""
    for k in range(x.size):
        out[k] = bin_index(bins, x[k])


def count_bins(lower: float, upper: float, growth: float) -> int:
    """Number of positive bins from ``lower`` to ``upper``: max(1, ceil(log_growth(upper / lower))). O(1).

    One bin at least, where the paper's W would be 0 if both bounds agree. A ratio that is a power of
    ``growth`` up to a few units in the last place is taken as that power and gets no bin of its own.

    >>> count_bins(1.0, 1.25**3, 1.25), count_bins(1.0, 2.0, 1.25), count_bins(1.0, 1.0, 1.25)
    (3, 4, 1)
    """
    bins = max(1, math.ceil((math.log(upper) - math.log(lower)) / math.log1p(growth - 1.0)))
    near = upper * (1.0 - 8 * np.finfo(float).eps)
    while bins > 1 and lower * growth ** (bins - 1) >= near:
        bins -= 1
    while lower * growth**bins < near:
        bins += 1
    return bins


class Rounding:
    """Bins and dominating points, Eqs. (dynamic:R), (dynamic:bin), (dynamic:dom).

    ``bounds`` is ``((alpha_lb, alpha_ub), (beta_lb, beta_ub))``, bounds on the positive values of the two
    coordinates; zero is always allowed besides. ``epsilon`` in (0, 1) is the precision; ``eta`` = epsilon/3.

    Attributes: ``epsilon``, ``eta``, ``growth`` = 1 + eta, ``n_alpha`` and ``n_beta`` (positive bins of each
    coordinate), ``W`` = max of the two, and the tables ``alpha_edges`` (length n_alpha + 1), ``beta_edges``:
    entry 0 is 0, entry q is lb * growth**q, and the last one covers the upper bound; `alpha_bins` and `beta_bins`
    are the same for kernels. Building costs O(W).

    >>> r = Rounding(((0.1, 1.0), (0.001, 1.0)), epsilon=0.3)
    >>> r.n_alpha, r.n_beta, r.W
    (25, 73, 73)
    >>> r.bin_of([0.0, 1.0]).tolist()
    [0, 73]
    """

    def __init__(self, bounds: Bounds, epsilon: float) -> None:
        self.bounds = _check_bounds(bounds)
        self.epsilon = _check_epsilon(epsilon)
        self.eta = self.epsilon / 3.0
        self.growth = 1.0 + self.eta
        (alpha_lb, alpha_ub), (beta_lb, beta_ub) = self.bounds
        self.alpha_edges = _edges(alpha_lb, alpha_ub, self.growth, "alpha")
        self.beta_edges = _edges(beta_lb, beta_ub, self.growth, "beta")
        self.n_alpha = self.alpha_edges.size - 1
        self.n_beta = self.beta_edges.size - 1
        self.W = max(self.n_alpha, self.n_beta)
        steps_per_log = 1.0 / math.log1p(self.growth - 1.0)
        self.alpha_bins = Bins(alpha_lb, steps_per_log, self.alpha_edges)
        self.beta_bins = Bins(beta_lb, steps_per_log, self.beta_edges)
        self._handles = make_handle(self.alpha_bins), make_handle(self.beta_bins)

    def __repr__(self) -> str:
        return f"Rounding(bounds={self.bounds}, epsilon={self.epsilon})"

    def bin_of(self, features: ArrayLike) -> IntArray:
        """Bins (q, r) of one feature (shape (2,)) or of many (shape (n, 2)). O(n).

        Raises ParameterError when a coordinate is neither zero nor within its bounds.
        """
        return self._bin_of(self.check(features))

    def dom(self, features: ArrayLike) -> FloatArray:
        """Dominating point of one feature or of many, in the shape given. O(n).

        >>> Rounding(((1.0, 2.0), (1.0, 2.0)), epsilon=0.75).dom([1.0, 1.3]).tolist()
        [1.25, 1.5625]
        """
        return self._dom(self.check(features))

    def point(self, q: int, r: int) -> FloatArray:
        """The dominating point dom_{q,r}; index 0 stands for the paper's -inf. O(1)."""
        if not (0 <= q <= self.n_alpha and 0 <= r <= self.n_beta):
            raise ParameterError(
                f"(q, r) = ({q}, {r}) is no bin: q must lie in 0..{self.n_alpha} and r in 0..{self.n_beta}"
            )
        return np.array([self.alpha_edges[q], self.beta_edges[r]])

    def points(self) -> FloatArray:
        """All dominating points, shape ((n_alpha + 1) * (n_beta + 1), 2), by q, then r. O(W^2)."""
        alpha, beta = np.meshgrid(self.alpha_edges, self.beta_edges, indexing="ij")
        return np.column_stack([alpha.ravel(), beta.ravel()])

    def check(self, features: ArrayLike) -> FloatArray:
        """The features as a float64 array, or a ParameterError that names the first bad one. O(n)."""
        values = np.asarray(features, dtype=np.float64)
        if values.ndim not in (1, 2) or values.shape[-1] != 2:
            raise ParameterError(f"features must have shape (2,) or (n, 2), got {values.shape}")
        for column, name in enumerate(("alpha", "beta")):
            x = np.atleast_1d(values[..., column])
            lower, upper = self.bounds[column]
            good = (x == 0.0) | ((x >= lower * (1.0 - SLACK)) & (x <= upper * (1.0 + SLACK)))
            if not good.all():
                row = int(np.argmin(good))
                raise ParameterError(
                    f"{name} of feature {row} is {x[row]}; it must be 0 or lie in [{lower}, {upper}] "
                    "as declared by bounds"
                )
        return values

    def _bin_of(self, values: FloatArray) -> IntArray:
        bins = np.empty(values.shape, dtype=np.int64)
        for column, handle in enumerate(self._handles):
            x = np.array(values[..., column], order="C").reshape(-1)
            found = np.empty(x.size, dtype=np.int64)
            by_handle(bin_indices, Bins)(handle, x, found)
            bins[..., column] = found.reshape(values.shape[:-1])
        return bins

    def _dom(self, values: FloatArray) -> FloatArray:
        bins = self._bin_of(values)
        return np.stack([self.alpha_edges[bins[..., 0]], self.beta_edges[bins[..., 1]]], axis=-1)


def _edges(lower: float, upper: float, growth: float, name: str) -> FloatArray:
    bins = math.log(upper / lower) / math.log1p(growth - 1.0) if growth > 1.0 else math.inf
    if not bins < _MAX_BINS:
        raise ParameterError(
            f"epsilon is too small for the {name} bounds [{lower}, {upper}]: more than {_MAX_BINS:,} bins"
        )
    edges = lower * growth ** np.arange(count_bins(lower, upper, growth) + 1, dtype=np.float64)
    edges[0] = 0.0
    edges[-1] = max(edges[-1], upper)  # rounding of the power must not leave the bound itself uncovered
    edges.flags.writeable = False
    return edges


def _check_epsilon(epsilon: float) -> float:
    value = float(epsilon)
    if not 0.0 < value < 1.0:
        raise ParameterError(f"epsilon must lie strictly between 0 and 1, got {epsilon!r}")
    return value


def _check_bounds(bounds: Any) -> Bounds:
    try:
        (alpha_lb, alpha_ub), (beta_lb, beta_ub) = bounds
        pairs = ((float(alpha_lb), float(alpha_ub)), (float(beta_lb), float(beta_ub)))
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"bounds must be ((alpha_lb, alpha_ub), (beta_lb, beta_ub)), got {bounds!r}"
        ) from error
    for name, (lower, upper) in zip(("alpha", "beta"), pairs):
        if not (0.0 < lower <= upper < math.inf and upper / lower < math.inf):
            raise ParameterError(
                f"{name} bounds must satisfy 0 < lower <= upper < inf, got ({lower}, {upper}); they bound "
                "the positive values only, zero is always allowed"
            )
    return pairs
