"""With which probability the logging policy played what it played: as logged, else uniform, else as often as seen."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.data.replay.log import Log
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid, Partition, Uniform
from semibandit.matroids.base import is_kind
from semibandit.matroids.partition import blocks

MATCHES = ("arms", "base")
ASSUMPTIONS = ("uniform", "frequencies")

#: A log is refused as not uniform when uniformly random bases would look like it with less than this probability.
LEVEL = 1e-6

# Arms are pooled until so many occurrences are expected: below, the statistic is not near its chi-square law.
_EXPECTED = 10.0
# Sums of inverse propensities of the arms are K on average; so many times that, beyond chance, cannot be right.
_TOO_MANY, _BEYOND_CHANCE = 2.0, 5.0
# The largest weight for which the square of a sum of weights is still finite.
_LARGEST_LOG = 300.0


class Pools(NamedTuple):
    """A matroid whose bases take `capacity[g]` of the `size[g]` arms of each group g."""

    group: IntArray
    size: IntArray
    capacity: IntArray


def choose_match(log: Log, match: str | None) -> str:
    """What is matched: as asked, else whole bases where the log tells the probabilities of nothing else. O(1)."""
    if match is None:
        return "base" if log.propensities is None and log.base_propensities is not None else "arms"
    if match not in MATCHES:
        raise ParameterError(f"match = {match!r} is not known: one of {', '.join(map(repr, MATCHES))}")
    return match


def row_weights(log: Log, match: str, assume: str | None) -> tuple[FloatArray, str]:
    """One over the probability of each row's arm (``match="arms"``) or base, and where that comes from. O(rows).

    Logged propensities of the kind that `match` needs are taken whatever `assume` says.

    Raises
    ------
    ParameterError
        When the log gives no such propensities and does not look uniform, or the matroid has no closed form for that,
        unless `assume` says what to do; and when logged ones cannot be right.
    """
    if assume is not None and assume not in ASSUMPTIONS:
        raise ParameterError(f"assume = {assume!r} is not known: one of {', '.join(map(repr, ASSUMPTIONS))}")
    sizes = np.diff(log.starts)
    if match == "base" and log.base_propensities is not None:
        return np.repeat(1.0 / log.base_propensities, sizes), "logged"
    if match == "arms" and log.propensities is not None:
        _check_sums(log)
        return 1.0 / log.propensities, "logged"
    if assume == "frequencies":
        return _seen(log, match), "frequencies"
    if assume is None and (log.propensities is not None or log.base_propensities is not None):
        kind, column, other = (
            ("bases", "base_propensity", "arms") if match == "base" else ("arms", "propensity", "base")
        )
        raise ParameterError(
            f"match = {match!r} needs the probabilities of {kind}, and the log gives the others only: use "
            f"match={other!r}, add a column {column}, or say assume='frequencies'"
        )
    pools = pools_of(log.matroid)
    if pools is None:
        raise ParameterError(
            f"the log has no propensities, and how often uniformly random bases hold an arm is not known for "
            f"{log.matroid!r}: add a column propensity, or say assume='frequencies' if the logging policy never changed"
        )
    _check_whole(log, sizes)
    if assume is None:
        _check_uniform(log, pools)
    if match == "arms":
        group = pools.group[log.arms]
        return np.asarray(pools.size[group] / pools.capacity[group]), "uniform"
    return np.full(len(log.arms), math.exp(min(_log_bases(pools), _LARGEST_LOG))), "uniform"


def pools_of(matroid: Matroid) -> Pools | None:
    """The groups of a uniform or partition matroid; None for any other. O(K)."""
    if is_kind(matroid, Uniform):
        one = np.zeros(matroid.n_arms, dtype=np.int64)
        return Pools(one, np.array([matroid.n_arms]), np.array([matroid.rank]))
    if is_kind(matroid, Partition):
        size = np.bincount(matroid._group, minlength=matroid.n_groups)
        return Pools(matroid._group, size, matroid._capacity)
    return None


def uniformity(log: Log) -> float:
    """The probability with which uniformly random bases would be as uneven as those of the log, or more. O(K + rows).

    A chi-square test of how often each arm occurs, for uniform and partition matroids; 1 where there is too little to
    test. Arms of one round exclude each other, so their counts vary less than independent ones by the factor
    (K - D) / (K - 1). Rare arms are pooled with their neighbours. It sees preferred arms, not arms that are preferred
    at some times only, or together.

    >>> import semibandit as sb
    >>> from semibandit.data.replay import read_log
    >>> same = {"round": range(100), "arm": [0] * 100, "reward": [1] * 100}
    >>> uniformity(read_log(same, sb.Uniform(n_arms=2, rank=1))) < 1e-6
    True
    """
    pools = pools_of(log.matroid)
    if pools is None:
        raise ParameterError(
            f"uniformity is known for uniform and partition matroids only, not for {log.matroid!r}"
        )
    _check_whole(log, np.diff(log.starts))
    return _uniformity(log, pools)


def _uniformity(log: Log, pools: Pools) -> float:
    counts = np.bincount(log.arms, minlength=log.matroid.n_arms)
    order = np.argsort(pools.group, kind="stable")
    last = np.cumsum(pools.size)
    total, freedom = 0.0, 0
    for g in np.flatnonzero((pools.capacity > 0) & (pools.capacity < pools.size)).tolist():
        size, capacity = int(pools.size[g]), int(pools.capacity[g])
        rate = len(log) * capacity / size
        parts = size // math.ceil(_EXPECTED / rate)
        if parts < 2:
            continue
        part = blocks(size, parts)
        seen = np.bincount(part, weights=counts[order[last[g] - size : last[g]]])
        expected = rate * np.bincount(part)
        total += float((((seen - expected) ** 2) / expected).sum()) * (size - 1) / (size - capacity)
        freedom += parts - 1
    return chi_square_tail(total, freedom)


def chi_square_tail(value: float, freedom: int) -> float:
    """P(X >= value) for X of the chi-square law with `freedom` degrees of freedom, by its finite sum. O(freedom).

    >>> f"{chi_square_tail(3.841459, 1):.4f} {chi_square_tail(18.307038, 10):.4f}"
    '0.0500 0.0500'
    """
    if value <= 0.0 or freedom < 1:
        return 1.0
    half = 0.5 * value
    start = 0.5 * (freedom % 2)
    power = start + np.arange(freedom // 2)
    log_gamma = math.lgamma(start + 1.0) + np.append(0.0, np.cumsum(np.log(power[1:])))
    terms = np.exp(power * math.log(half) - half - log_gamma)
    return min(1.0, float(terms.sum()) + (math.erfc(math.sqrt(half)) if start else 0.0))


def _check_sums(log: Log) -> None:
    """Refuse propensities per arm that are those of something else: of bases, of places in a list."""
    assert log.propensities is not None
    sums = np.add.reduceat(1.0 / log.propensities, log.starts[:-1])
    mean = float(sums.mean())
    error = float(sums.std()) / math.sqrt(len(sums))
    if mean - _BEYOND_CHANCE * error > _TOO_MANY * log.matroid.n_arms:
        raise ParameterError(
            f"propensity cannot be the probability that an arm is in the logged base: 1 / propensity, summed over a "
            f"round, is the number of arms on average, here {log.matroid.n_arms:,}, but it is {mean:,.4g}. If these "
            "are probabilities of whole bases, name the column as such: columns={'base_propensity': ...}"
        )


def _check_whole(log: Log, sizes: IntArray) -> None:
    short = np.flatnonzero(sizes != log.matroid.rank)
    if short.size:
        i = int(short[0])
        raise ParameterError(
            f"row {log.rows[log.starts[i] : log.starts[i + 1]].min()}: round {log.rounds[i]} has {sizes[i]} arms, a "
            f"base of {log.matroid!r} has {log.matroid.rank}. Without propensities, bases must be whole: add a column "
            "propensity, or say assume='frequencies'"
        )


def _check_uniform(log: Log, pools: Pools) -> None:
    chance = _uniformity(log, pools)
    if chance < LEVEL:
        seen = np.bincount(log.arms, minlength=log.matroid.n_arms)
        top = int(np.argmax(seen * pools.size[pools.group] / np.maximum(pools.capacity[pools.group], 1)))
        usual = len(log) * pools.capacity[pools.group[top]] / pools.size[pools.group[top]]
        raise ParameterError(
            f"the log has no propensities and its bases are not uniformly random (p {_small(chance)}; arm {top} occurs "
            f"{seen[top]:,} times, {usual:,.0f} would be usual): what it tells is skewed. Add a column propensity (of "
            "the arm) or base_propensity (of the whole base); or say assume='frequencies' if the logging policy never "
            "changed and used no context; or assume='uniform' to go on all the same"
        )


def _log_bases(pools: Pools) -> float:
    """The logarithm of the number of bases."""
    return math.fsum(
        math.lgamma(n + 1) - math.lgamma(c + 1) - math.lgamma(n - c + 1)
        for n, c in zip(pools.size.tolist(), pools.capacity.tolist(), strict=True)
    )


def _seen(log: Log, match: str) -> FloatArray:
    """Rounds of the log for each time that the row's arm, or its base, was played."""
    if match == "arms":
        return np.asarray(len(log) / np.bincount(log.arms, minlength=log.matroid.n_arms)[log.arms])
    bases = [
        log.arms[a:b].tobytes()
        for a, b in zip(log.starts[:-1].tolist(), log.starts[1:].tolist(), strict=True)
    ]
    times: dict[bytes, int] = {}
    for base in bases:
        times[base] = times.get(base, 0) + 1
    return np.repeat(len(log) / np.array([times[base] for base in bases]), np.diff(log.starts))


def _small(chance: float) -> str:
    return f"= {chance:.1g}" if chance > 1e-15 else "< 1e-15"
