"""Checks at the door of every environment: bad input is named, nothing is changed."""

from __future__ import annotations

import math
import operator
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import ArmError, ParameterError, RewardError


def as_arms(arms: npt.ArrayLike, n_arms: int) -> IntArray:
    """`arms` as an int64 vector of ids in 0..n_arms-1; repeats are kept. O(len(arms))."""
    try:
        given = np.asarray(arms)
    except ValueError as error:
        raise ArmError(f"arms must be a vector of integer arm ids, got {arms!r}") from error
    if given.ndim != 1:
        raise ArmError(f"arms must be a vector of integer arm ids, got an array of shape {given.shape}")
    if given.size == 0:
        return np.empty(0, dtype=np.int64)
    if given.dtype.kind not in "iu":
        raise ArmError(f"arms must be integers, got {given[0]!r} of type {given.dtype}")
    smallest, largest = given.min(), given.max()
    if smallest < 0 or largest >= n_arms:
        bad = smallest if smallest < 0 else largest
        raise ArmError(f"arms must be ids in 0..{n_arms - 1}, got {int(bad)}")
    checked = np.ascontiguousarray(given, dtype=np.int64)
    # numba compiles a kernel anew for read-only arguments; copying is cheaper.
    return checked if checked.flags.writeable else checked.copy()


def as_distinct_arms(arms: npt.ArrayLike, n_arms: int) -> IntArray:
    """As `as_arms`, for a set of arms: a repeated id is an error. O(len(arms))."""
    checked = as_arms(arms, n_arms)
    listed = checked.tolist()
    if len(set(listed)) < len(listed):
        twice = next(arm for i, arm in enumerate(listed) if arm in listed[:i])
        raise ArmError(f"arms must be distinct, got arm {twice} more than once")
    return checked


def as_vector(name: str, given: Any) -> FloatArray:
    """A float64 copy of a vector of real, finite numbers. O(length)."""
    try:
        vector = np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{name} must be a vector of numbers, got {given!r}") from error
    if vector.ndim != 1:
        raise ParameterError(f"{name} must be a vector, got an array of shape {vector.shape}")
    bad = np.flatnonzero(~np.isfinite(vector))
    if bad.size:
        raise ParameterError(f"{name} must be finite, got {name}[{bad[0]}] = {float(vector[bad[0]])}")
    return vector


def as_per_arm(name: str, given: Any, n_arms: int) -> FloatArray:
    """One finite number per arm; a single number serves every arm. O(K)."""
    if np.ndim(given) == 0:
        given = np.broadcast_to(as_number(name, given), n_arms)
    vector = as_vector(name, given)
    if vector.size != n_arms:
        raise ParameterError(
            f"{name} must have one value per arm (n_arms = {n_arms}), got {vector.size} values"
        )
    return vector


def as_means(given: Any, n_arms: int, reward_range: tuple[float, float]) -> FloatArray:
    """One mean per arm, all inside the reward range. O(K)."""
    means = as_vector("means", given)
    if means.size != n_arms:
        raise ParameterError(
            f"means must have one value per arm (n_arms = {n_arms}), got {means.size} values"
        )
    low, high = reward_range
    require_all("means", means, (means >= low) & (means <= high), f"inside reward_range ({low}, {high})")
    return means


def require_all(name: str, values: FloatArray, good: npt.NDArray[np.bool_], what: str) -> None:
    """Raise for the first value that is not good, naming its place and what would be right. O(length)."""
    bad = np.flatnonzero(~good)
    if bad.size:
        raise ParameterError(f"{name} must be {what}, got {name}[{bad[0]}] = {float(values[bad[0]])}")


def as_number(name: str, given: Any) -> float:
    """One finite number. O(1)."""
    try:
        number = float(given)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{name} must be a number, got {given!r}") from error
    if not math.isfinite(number):
        raise ParameterError(f"{name} must be finite, got {number}")
    return number


def as_range(given: Any) -> tuple[float, float]:
    """(low, high) with low < high, both finite. O(1)."""
    try:
        low, high = given
    except (TypeError, ValueError) as error:
        raise ParameterError(f"reward_range must be a pair (low, high), got {given!r}") from error
    low, high = as_number("reward_range[0]", low), as_number("reward_range[1]", high)
    if not low < high or not math.isfinite(high - low):
        raise ParameterError(f"reward_range must be (low, high) with low < high, got ({low}, {high})")
    return low, high


def as_seed(given: SupportsIndex) -> np.uint64:
    """A seed in 0 .. 2^64 - 1. O(1)."""
    seed = _as_int("seed", given, "an integer in 0..2^64 - 1")
    if not 0 <= seed < 2**64:
        raise ParameterError(f"seed must be an integer in 0..2^64 - 1, got {seed}")
    return np.uint64(seed)


def as_round(given: SupportsIndex) -> int:
    """A round number, from 1. O(1)."""
    t = _as_int("t", given, "a round number, an integer from 1")
    if not 1 <= t < 2**63:
        raise ParameterError(f"t must be a round number, an integer from 1, got {t}")
    return t


def _as_int(name: str, given: SupportsIndex, what: str) -> int:
    if isinstance(given, (bool, np.bool_)):
        raise ParameterError(f"{name} must be {what}, got {given!r}")
    try:
        return operator.index(given)
    except TypeError as error:
        raise ParameterError(f"{name} must be {what}, got {given!r}") from error


def as_rewards(given: Any, size: int, reward_range: tuple[float, float]) -> FloatArray:
    """What a user's `_draw` returned, as a float64 vector inside the range. O(size)."""
    try:
        rewards = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RewardError(f"_draw must return one number per arm, got {given!r}") from error
    if rewards.shape != (size,):
        raise RewardError(
            f"_draw must return one reward per arm ({size}), got an array of shape {rewards.shape}"
        )
    low, high = reward_range
    # written so that NaN counts as bad
    bad = np.flatnonzero(~((rewards >= low) & (rewards <= high)))
    if bad.size:
        raise RewardError(f"_draw must return rewards in reward_range ({low}, {high}), got {rewards[bad[0]]}")
    return rewards


def frozen(array: Any) -> Any:
    """The same array, made read-only. O(1)."""
    array.setflags(write=False)
    return array
