"""Checks at the door: what a caller hands over is checked once, before anything is changed.

An error names the argument, the value and what would be right. Rooms check here all that is not their own: arms,
rewards, ranges, seeds, numbers. The structure of a matroid is checked in `semibandit.matroids.validate`.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit.arms import FloatArray, IntArray
from semibandit.errors import ArmError, ParameterError, RewardError
from semibandit.text import unknown

# Kernels tell bad feedback as ``kind + 4 * position``, this kind for an arm (`engines.kernels.check_feedback`).
BAD_ARM = 1

# No reward may be larger in size where a range has no end.
LARGEST = 1e150

# -- arms --------------------------------------------------------------------------------------------------------


def as_arms(arms: Any, n_arms: int, name: str = "arms") -> IntArray:
    """`arms` as an int64 vector of valid ids for kernels, or an `ArmError` that names the first bad one. O(len)."""
    try:
        given = np.asarray(arms)
    except ValueError:
        raise ArmError(f"{name} must be a vector of integer arm ids, got {arms!r}") from None
    if given.ndim == 0:
        given = given[None]
    if given.ndim != 1:
        raise ArmError(f"{name} must be one-dimensional, got shape {given.shape}")
    if given.size == 0:
        return np.empty(0, dtype=np.int64)
    if given.dtype.kind not in "iu":
        raise ArmError(f"{name} must be integers, got dtype {given.dtype} (first value {given.flat[0]!r})")
    bad = (given < 0) | (given >= n_arms)
    if bad.any():
        i = int(np.argmax(bad))
        raise ArmError(f"{name}[{i}] = {given[i]} is not an arm: ids are 0 .. {n_arms - 1}")
    # Kernels are compiled for writeable arrays; a copy is cheaper than another compilation.
    return np.require(given, dtype=np.int64, requirements=["C", "W", "A"])


def as_distinct_arms(arms: Any, n_arms: int, name: str = "arms") -> IntArray:
    """As `as_arms`, for a set of arms: an id named twice is an error. Given order. O(len log len)."""
    ids = as_arms(arms, n_arms, name)
    if ids.size > 1:
        values, times = np.unique(ids, return_counts=True)
        if (times > 1).any():
            raise ArmError(f"arm {values[np.argmax(times > 1)]} is named twice in {name}")
    return ids


# -- rewards -----------------------------------------------------------------------------------------------------


def as_rewards(rewards: Any, n: int) -> FloatArray:
    """`rewards` as a float64 vector of length n, or a `RewardError`. Values are checked by kernels."""
    try:
        given = np.asarray(rewards, dtype=np.float64)
    except (TypeError, ValueError):
        raise RewardError(f"rewards must be numbers, got {rewards!r}") from None
    if given.ndim == 0:
        given = given[None]
    if given.shape != (n,):
        raise RewardError(f"rewards has shape {given.shape} but arms has {n} entries: one reward per arm")
    return np.require(given, requirements=["C", "W", "A"])


def as_drawn(given: Any, size: int, reward_range: tuple[float, float]) -> FloatArray:
    """What a user's `_draw` returned, as a float64 vector inside the range, or a `RewardError`. O(size)."""
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


def explain(
    code: int, arms: IntArray, rewards: FloatArray, n_arms: int, reward_range: tuple[float, float]
) -> Exception:
    """The error for a code of `engines.kernels.check_feedback`."""
    kind, i = code & 3, code >> 2
    if kind == BAD_ARM:
        return ArmError(f"arms[{i}] = {arms[i]} is not an arm: ids are 0 .. {n_arms - 1}")
    value = rewards[i]
    if not np.isfinite(value):
        return RewardError(f"rewards[{i}] = {value} for arm {arms[i]}: rewards must be finite")
    low, high = reward_range
    return RewardError(f"rewards[{i}] = {value} for arm {arms[i]} is outside reward_range = ({low}, {high})")


# -- numbers -----------------------------------------------------------------------------------------------------


def as_range(given: Any, *, unbounded: bool = False) -> tuple[float, float]:
    """`reward_range` as two finite floats (low, high) with low < high, or a `ParameterError`. O(1).

    If `unbounded`, an end may be infinite, for which None stands too.
    """
    if unbounded and given is None:
        return -math.inf, math.inf
    try:
        low, high = given
    except (TypeError, ValueError):
        raise ParameterError(f"reward_range must be a pair (low, high), got {given!r}") from None
    if unbounded:
        low = -math.inf if low is None or _is(low, -math.inf) else as_number(low, "reward_range[0]")
        high = math.inf if high is None or _is(high, math.inf) else as_number(high, "reward_range[1]")
        if low < high and not math.isfinite(high - low):
            return low, high
    low, high = as_number(low, "reward_range[0]"), as_number(high, "reward_range[1]")
    if not low < high or not math.isfinite(high - low):
        raise ParameterError(f"reward_range must be (low, high) with low < high, got ({low}, {high})")
    return low, high


def _is(value: Any, infinite: float) -> bool:
    return isinstance(value, (float, np.floating)) and value == infinite


def finite_ends(reward_range: tuple[float, float]) -> tuple[float, float]:
    """The range with ends of at most 1e150 in size, so that squares of what lies inside are finite too. O(1)."""
    return max(reward_range[0], -LARGEST), min(reward_range[1], LARGEST)


def as_seed(seed: Any, none_is_zero: bool = False) -> int:
    """A seed in 0 .. 2^64 - 1, or a `ParameterError`. O(1)."""
    if seed is None and none_is_zero:
        return 0
    number = _index(seed)
    if number is None or not 0 <= number < 2**64:
        raise ParameterError(f"seed must be an integer in 0 .. 2^64 - 1, got {seed!r}")
    return number


def as_whole(value: Any, name: str, least: int, why: str) -> int:
    """`value` as an integer of at least `least`, or a `ParameterError`; 3.0 is one, True is not. O(1)."""
    number = int(value) if isinstance(value, float) and value.is_integer() else _index(value)
    if number is None or not least <= number < 2**63:
        raise ParameterError(f"{name} must be an integer of at least {least} ({why}), got {value!r}")
    return number


def as_number(
    value: Any, name: str, low: float = -math.inf, high: float = math.inf, *, closed: bool = True
) -> float:
    """`value` as a finite float in [low, high], or strictly inside, or a `ParameterError`; text is none. O(1)."""
    try:
        if isinstance(value, (bool, np.bool_, str, bytes, bytearray)):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"{name} must be a number, got {value!r}") from None
    if not math.isfinite(number):
        raise ParameterError(f"{name} must be a finite number, got {value!r}")
    if not (low <= number <= high) or (not closed and number in (low, high)):
        if math.isinf(high):
            where = f"of at least {low:g}" if closed else f"above {low:g}"
        else:
            where = f"in [{low:g}, {high:g}]" if closed else f"strictly between {low:g} and {high:g}"
        raise ParameterError(f"{name} must be a number {where}, got {value!r}")
    return number


def as_flag(value: Any, name: str) -> bool:
    """`value` as True or False (0 and 1 are taken for them), or a `ParameterError`. O(1)."""
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, (int, np.integer)) and value in (0, 1)):
        return bool(value)
    raise ParameterError(f"{name} must be True or False, got {value!r}")


def one_of(value: Any, name: str, known: tuple[str, ...]) -> str:
    """`value`, or a `ParameterError` that says what is near and what is known. O(1)."""
    if value not in known:
        raise ParameterError(unknown(f"{name} = {value!r} is not known", value, known))
    return str(value)


def _index(value: Any) -> int | None:
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


# -- vectors -----------------------------------------------------------------------------------------------------


def as_vector(given: Any, name: str) -> FloatArray:
    """A float64 copy of a vector of finite numbers, or a `ParameterError`. O(length)."""
    try:
        vector = np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{name} must be a vector of numbers, got {given!r}") from error
    if vector.ndim != 1:
        raise ParameterError(f"{name} must be a vector, got an array of shape {vector.shape}")
    require_all(vector, name, np.isfinite(vector), "finite")
    return vector


def as_per_arm(given: Any, name: str, n_arms: int) -> FloatArray:
    """One finite number per arm, or a `ParameterError`; a single number serves every arm. O(K)."""
    if np.ndim(given) == 0:
        given = np.broadcast_to(as_number(given, name), n_arms)
    vector = as_vector(given, name)
    if vector.size != n_arms:
        raise ParameterError(
            f"{name} must have one value per arm (n_arms = {n_arms}), got {vector.size} values"
        )
    return vector


def as_means(given: Any, n_arms: int, reward_range: tuple[float, float]) -> FloatArray:
    """One mean per arm, all inside the reward range, or a `ParameterError`. O(K)."""
    means = as_vector(given, "means")
    if means.size != n_arms:
        raise ParameterError(
            f"means must have one value per arm (n_arms = {n_arms}), got {means.size} values"
        )
    low, high = reward_range
    require_all(means, "means", (means >= low) & (means <= high), f"inside reward_range ({low}, {high})")
    return means


def require_all(values: FloatArray, name: str, good: npt.NDArray[np.bool_], what: str) -> None:
    """Raise for the first value that is not good, naming its place and what would be right. O(length)."""
    bad = np.flatnonzero(~good)
    if bad.size:
        raise ParameterError(f"{name} must be {what}, got {name}[{bad[0]}] = {float(values[bad[0]])}")


def frozen(array: Any) -> Any:
    """The same array, made read-only. O(1)."""
    array.setflags(write=False)
    return array
