"""One direction per cell: the minimum hitting set of Section 4.2 (Algorithm GENERATE-HITTING-SET).

Two points tie under the query ``(1, lam)`` at one critical slope ``lam``; between neighbouring critical
slopes the order of all points is fixed, so one direction serves every query of the cell (Lemma covering).

`generate_hitting_set` is the paper's algorithm for arbitrary points of the plane, all angles, O(K^2 log K).
`HittingSet` is the one FIND-BASE uses. It knows that its points are dominating points and their 1/(1+eta)
copies, that is (alpha_lb g^i, beta_lb g^j) with g = 1 + eta, where a coordinate may also be zero. A copy
lowers both exponents by one. Every critical slope is then, with s = alpha_lb / beta_lb,

    s g^c (g^a - 1) / (g^b - 1)      two points with positive coordinates (their differences: a and b steps)
    s g^c / (g^b - 1)                the point of smaller alpha has alpha = 0       (written a = 0)
    s g^c (g^a - 1)                  the point of smaller beta has beta = 0         (written b = 0)
    s g^c                            both of the above, and all cases a = b > 0     (written a = b = 0)

so it has a key (c, a, b), and the c of given (a, b) form an interval. There are W^3 + 3 W + 1 keys when
both coordinates have W bins, against the O(W^4) of the paper. Different keys are different numbers
(docs/theory.md proves it for every rational g in (1, 2), and a float is rational), so merging equal slopes
needs no tolerance. Each slope is computed from its key by multiplication and division of table entries, none
by a difference of nearly equal numbers, so it is right to a few units in the last place.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from semibandit.compiled.handle import Floats1, Number, Whole, by_handle, make_handle
from semibandit.compiled.jit import kernel
from semibandit.errors import ParameterError
from semibandit.paper.rounding import Rounding

FloatArray = NDArray[np.float64]

# Enumerating more cells than this takes more than a gigabyte.
MAX_CELLS = 50_000_000

# A cell, as kernels write it: where it begins, the slope of its direction, where it ends.
LOW, SLOPE, HIGH = range(3)


class SlopeTable(NamedTuple):
    """What the kernels need to compute the slope of a key (c, a, b).

    ``power[c + n_beta]`` is s g^c; ``factor[a]`` is g^a - 1, and 1 for a = 0; ``place[a]`` is its logarithm
    to base g (`steps_per_log` is 1 / log g); ``copies`` is 1 when the 1/(1+eta) copies take part, else 0.
    """

    power: Floats1
    factor: Floats1
    place: Floats1
    log_scale: Number
    steps_per_log: Number
    n_alpha: Whole
    n_beta: Whole
    copies: Whole


@kernel
def exponents(table, a, b):
    """First and last c that occur with (a, b); empty when first > last."""
    n_alpha, n_beta, copies = table.n_alpha, table.n_beta, table.copies
    if a == 0 and b == 0:
        return 1 - n_beta - copies, n_alpha - 1 + copies
    if a == b:  # the same slopes as a = b = 0
        return 1, 0
    if a == 0:
        return 1 - (n_beta - b) - copies, n_alpha - 1
    if b == 0:
        return 1 - n_beta, n_alpha - a - 1 + copies
    return 1 - (n_beta - b), n_alpha - a - 1


@kernel
def _last_at_most(table, lam, x, a, b, first, last):
    """Largest c in first..last whose slope is at most lam, or first - 1; x is the real c that hits lam."""
    power, factor, n_beta = table.power, table.factor, table.n_beta
    c = int(min(max(np.floor(x), first - 1.0), last * 1.0))
    while c < last and power[c + 1 + n_beta] * factor[a] / factor[b] <= lam:
        c += 1
    while c >= first and power[c + n_beta] * factor[a] / factor[b] > lam:
        c -= 1
    return c


@kernel
def neighbour_slopes(table, lam):
    """Largest critical slope <= lam (else 0) and smallest > lam (else inf), enumerating nothing. O(W^2).

    A pair (a, b) is skipped unless its slopes can be nearer to lam than the nearest so far.
    """
    power, factor, place, n_beta = table.power, table.factor, table.place, table.n_beta
    below, above = 0.0, np.inf
    gap_below, gap_above = np.inf, np.inf  # in units of log g
    target = (np.log(lam) - table.log_scale) * table.steps_per_log
    for a in range(table.n_alpha + table.copies):
        for b in range(n_beta + table.copies):
            x = target - place[a] + place[b]
            rest = x - np.floor(x)
            # The margin keeps rounding of x from hiding a candidate.
            if 1e-9 < rest < 1.0 - 1e-9 and rest > gap_below + 1e-9 and 1.0 - rest > gap_above + 1e-9:
                continue
            first, last = exponents(table, a, b)
            if first > last:
                continue
            c = _last_at_most(table, lam, x, a, b, first, last)
            if c >= first:
                below = max(below, power[c + n_beta] * factor[a] / factor[b])
                gap_below = min(gap_below, max(x - c, 0.0))
            if c < last:
                above = min(above, power[c + 1 + n_beta] * factor[a] / factor[b])
                gap_above = min(gap_above, max(c + 1 - x, 0.0))
    return below, above


@kernel
def middle_slope(low, high):
    """A slope inside (low, high): the geometric mean, or high / 2 if low is 0, or 2 low if high is inf."""
    if low == 0.0:
        return 0.5 * high
    if high == np.inf:
        return 2.0 * low
    # Two neighbouring floats have no float between them; an end is then as good as any (docs/theory.md).
    return min(max(math.sqrt(low) * math.sqrt(high), low), high)


@kernel
def search_cell(table, lam, cell):
    """Write the lower end, the direction's slope and the upper end of lam's cell to `cell`. O(W^2)."""
    low, high = neighbour_slopes(table, lam)
    cell[LOW] = low
    cell[SLOPE] = middle_slope(low, high)
    cell[HIGH] = high


@kernel
def slopes_between(table, low, high, out):
    """Write the critical slopes in (low, high] to ``out``, unsorted, while it has room; return their number.

    O(W^2 + answers): call with an empty ``out`` to count.
    """
    power, factor, place, n_beta = table.power, table.factor, table.place, table.n_beta
    start = (np.log(low) - table.log_scale) * table.steps_per_log
    stop = (np.log(high) - table.log_scale) * table.steps_per_log
    count = 0
    for a in range(table.n_alpha + table.copies):
        for b in range(n_beta + table.copies):
            first, last = exponents(table, a, b)
            if first > last:
                continue
            shift = place[b] - place[a]
            c_low = _last_at_most(table, low, start + shift, a, b, first, last)
            c_high = _last_at_most(table, high, stop + shift, a, b, first, last)
            for c in range(c_low + 1, c_high + 1):
                if count < out.size:
                    out[count] = power[c + n_beta] * factor[a] / factor[b]
                count += 1
    return count


def count_slopes(n_alpha: int, n_beta: int | None = None, *, copies: bool = True) -> int:
    """Number of different critical slopes strictly inside the positive quadrant. O(1).

    ``n_alpha`` and ``n_beta`` (default: the same) are the numbers of positive bins. With copies and W bins
    each it is W^3 + 3 W + 1; the cells are one more.

    >>> count_slopes(24), count_slopes(24, copies=False), count_slopes(290)
    (13897, 13295, 24389871)
    """
    na, nb = n_alpha, n_alpha if n_beta is None else n_beta
    if na < 1 or nb < 1:
        raise ParameterError(f"the numbers of bins must be at least 1, got {na} and {nb}")
    s = int(copies)
    ta, tb = na - 1 + s, nb - 1 + s  # largest a and b
    sum_a, sum_b = ta * (ta + 1) // 2, tb * (tb + 1) // 2
    both = ta * tb * (na + nb - 1) - tb * sum_a - ta * sum_b + s  # + s: the key (., na, nb) has no c, not -1
    m = min(ta, tb)
    equal = m * (na + nb - 1) - m * (m + 1) + (s if na == nb else 0)
    zero_alpha = tb * (na + nb - 1 + s) - sum_b
    zero_beta = ta * (na + nb - 1 + s) - sum_a
    return both - equal + zero_alpha + zero_beta + na + nb - 1 + 2 * s


def count_cells(n_alpha: int, n_beta: int | None = None, *, copies: bool = True) -> int:
    """Cells of the positive quadrant, hence instances of the dynamic algorithm: `count_slopes` + 1. O(1).

    >>> count_cells(24), 24**3 + 3 * 24 + 2, 24**4
    (13898, 13898, 331776)
    """
    return count_slopes(n_alpha, n_beta, copies=copies) + 1


class HittingSet:
    """Cells of the closed positive quadrant for the dominating points of a `Rounding` and their copies.

    ``copies=False`` leaves out the 1/(1+eta) copies (Corollary covering-new), which matter only if the
    dynamic algorithm is approximate (docs/theory.md). ``square=True`` uses W bins for both coordinates, as
    the paper does, instead of the bins that features within the bounds can reach; the cells are then finer
    than needed but equally right.

    Cell i holds the queries (q1, q2) whose slope q2 / q1 lies in [breakpoints[i-1], breakpoints[i]), and its
    direction is (1, slopes[i]), the (geometric) middle. A query on a boundary belongs to the closure of two
    cells, either of which is right; it goes to the upper one. Nothing is enumerated before `breakpoints`,
    `slopes`, `directions` or `locate` is used: `cell_slopes` finds the cell of one query directly.

    >>> h = HittingSet(Rounding(((1.0, 1.5), (1.0, 1.5)), epsilon=0.75))
    >>> h.n_cells, h.locate((1.0, 0.0)), h.locate((0.0, 1.0))
    (16, 0, 15)
    """

    def __init__(
        self, rounding: Rounding, *, copies: bool = True, square: bool = False, max_cells: int = MAX_CELLS
    ) -> None:
        self.rounding = rounding
        self.copies = bool(copies)
        self.max_cells = int(max_cells)
        self.n_alpha = rounding.W if square else rounding.n_alpha
        self.n_beta = rounding.W if square else rounding.n_beta
        self.n_cells = count_cells(self.n_alpha, self.n_beta, copies=self.copies)
        self.table = _slope_table(rounding, self.n_alpha, self.n_beta, self.copies)
        self._handle = make_handle(self.table)
        self._breakpoints: FloatArray | None = None
        self._slopes: FloatArray | None = None

    def __repr__(self) -> str:
        return f"HittingSet({self.rounding!r}, copies={self.copies}, n_cells={self.n_cells})"

    @property
    def breakpoints(self) -> FloatArray:
        """All critical slopes q2 / q1, increasing, read-only. First use: O(W^3 log W) time, O(W^3) memory."""
        if self._breakpoints is None:
            if self.n_cells > self.max_cells:
                raise ParameterError(
                    f"epsilon = {self.rounding.epsilon} gives {self.n_cells:,} cells, more than "
                    f"max_cells = {self.max_cells:,}; take a larger epsilon, or use "
                    "cell_slopes(query), which enumerates none of them"
                )
            points = np.empty(self.n_cells - 1)
            by_handle(slopes_between, SlopeTable)(self._handle, 0.0, np.inf, points)
            # Slopes that differ by less than a float merge here: their cell has no float inside it.
            self._breakpoints = _frozen(np.unique(points))
        return self._breakpoints

    @property
    def slopes(self) -> FloatArray:
        """One slope inside each cell, increasing, read-only; cost as for `breakpoints`."""
        if self._slopes is None:
            ends = np.concatenate([[0.0], self.breakpoints, [np.inf]])
            low, high = ends[1:-2], ends[2:-1]
            inside = np.clip(np.sqrt(low) * np.sqrt(high), low, high)
            self._slopes = _frozen(
                np.concatenate([[middle_slope(0.0, ends[1])], inside, [middle_slope(ends[-2], np.inf)]])
            )
        return self._slopes

    @property
    def directions(self) -> FloatArray:
        """The hitting set itself: (1, slope) for each cell, shape (cells, 2)."""
        return np.column_stack([np.ones_like(self.slopes), self.slopes])

    def locate(self, query: ArrayLike) -> int:
        """Index of the cell whose closure holds the query. O(log W).

        (0, 0) lies in the closure of all cells and goes to cell 0.
        """
        return self._locate(query_slope(query))

    def _locate(self, lam: float) -> int:
        return int(np.searchsorted(self.breakpoints, lam, side="right"))

    def cell_slopes(self, query: ArrayLike) -> tuple[float, float, float]:
        """(lower end, direction's slope, upper end) of the query's cell without enumerating cells. O(W^2).

        The same floats, bit for bit, as `breakpoints` and `slopes` hold at index `locate(query)`.
        """
        return self._cell_slopes(query_slope(query))

    def _cell_slopes(self, lam: float) -> tuple[float, float, float]:
        cell = np.empty(3)
        by_handle(search_cell, SlopeTable)(self._handle, lam, cell)
        low, slope, high = cell.tolist()
        return low, slope, high

    def breakpoints_between(self, low: float, high: float) -> FloatArray:
        """Critical slopes in (low, high], increasing. O(W^2 + n log n) for n answers."""
        if not 0.0 <= low <= high:
            raise ParameterError(f"need 0 <= low <= high, got low = {low} and high = {high}")
        enter = by_handle(slopes_between, SlopeTable)
        count = int(enter(self._handle, low, high, np.empty(0)))
        if count > self.max_cells:
            raise ParameterError(
                f"({low}, {high}] holds {count:,} slopes, more than max_cells = {self.max_cells:,}"
            )
        points = np.empty(count)
        enter(self._handle, low, high, points)
        return np.unique(points)

    def points(self) -> FloatArray:
        """The points whose arrangement this is: dominating points, and copies if asked for. O(W^2)."""
        g, ((alpha_lb, _), (beta_lb, _)) = self.rounding.growth, self.rounding.bounds
        na, nb = self.n_alpha, self.n_beta
        pairs = {(q, r) for q in (None, *range(1, na + 1)) for r in (None, *range(1, nb + 1))}
        if self.copies:
            pairs |= {(None if q is None else q - 1, None if r is None else r - 1) for q, r in pairs}
        found = [
            (0.0 if q is None else alpha_lb * g**q, 0.0 if r is None else beta_lb * g**r) for q, r in pairs
        ]
        return np.array(sorted(found))


def query_slope(query: ArrayLike) -> float:
    """q2 / q1 of a nonnegative finite query, inf for (0, x > 0), 0 for (0, 0); ParameterError otherwise."""
    q = np.asarray(query, dtype=np.float64)
    if q.shape != (2,) or not np.isfinite(q).all() or (q < 0.0).any():
        raise ParameterError(f"a query must be two finite nonnegative numbers, got {query!r}")
    first, second = float(q[0]), float(q[1])
    if second == 0.0:
        return 0.0
    return second / first if first > 0.0 else math.inf


def _slope_table(rounding: Rounding, n_alpha: int, n_beta: int, copies: bool) -> SlopeTable:
    growth = rounding.growth
    log_growth = math.log1p(growth - 1.0)
    scale = rounding.bounds[0][0] / rounding.bounds[1][0]
    top = max(n_alpha, n_beta)
    with np.errstate(over="ignore", under="ignore"):
        power = scale * growth ** np.arange(-n_beta, n_alpha + 1, dtype=np.float64)
        steps = np.arange(top + 1, dtype=np.float64)
        grown = growth**steps
        factor = np.where(grown >= 2.0, grown - 1.0, np.expm1(steps * log_growth))
        factor[0] = 1.0
        extremes = np.array([power[0] / factor.max(), power[0] * factor.min(), power[-1] * factor.max()])
        extremes = np.concatenate([extremes, extremes / factor.min()])
    tiny = np.finfo(float).tiny
    if not (np.isfinite(extremes).all() and (extremes > tiny).all()):
        raise ParameterError(f"bounds {rounding.bounds} span too many orders of magnitude for float64 slopes")
    place = np.log(factor) / log_growth
    return SlopeTable(
        power, factor, place, math.log(scale), 1.0 / log_growth, int(n_alpha), int(n_beta), int(copies)
    )


def _frozen(array: FloatArray) -> FloatArray:
    array.flags.writeable = False
    return array


class Arrangement(NamedTuple):
    """Half-lines (angles in [0, 2 pi), increasing) and a unit vector inside each cell that starts there."""

    angles: FloatArray
    directions: FloatArray


def generate_hitting_set(features: ArrayLike, tolerance: float = 1e-12) -> Arrangement:
    """Algorithm GENERATE-HITTING-SET for any distinct points of the plane. O(K^2 log K) time, O(K^2) memory.

    The line through 0 orthogonal to f_k - f_k' meets the circle at theta and theta + pi (the paper's "-theta"
    is a slip), and the cell between the last angle and the first counts as well. Angles closer than
    ``tolerance`` are one. A single point has no line and one cell, the plane.

    >>> len(generate_hitting_set([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]).directions)
    6
    """
    points = np.asarray(features, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or points.shape[0] == 0 or not np.isfinite(points).all():
        raise ParameterError(
            f"features must be finite, of shape (K, 2) with K >= 1, got shape {points.shape}"
        )
    if len(np.unique(points, axis=0)) < len(points):
        raise ParameterError(
            "features must be distinct (the paper's Algorithm GENERATE-HITTING-SET assumes it)"
        )
    if len(points) == 1:
        return Arrangement(np.empty(0), np.array([[1.0, 0.0]]))
    k, other = np.triu_indices(len(points), k=1)
    dx, dy = (points[k] - points[other]).T
    theta = np.arctan2(dx, -dy) % np.pi
    theta[np.pi - theta <= tolerance] = 0.0
    half = np.unique(theta)
    half = half[np.concatenate([[True], np.diff(half) > tolerance])]
    angles = np.concatenate([half, half + np.pi])
    centre = (angles + np.concatenate([angles[1:], [angles[0] + 2.0 * np.pi]])) / 2.0
    return Arrangement(angles, np.column_stack([np.cos(centre), np.sin(centre)]))
