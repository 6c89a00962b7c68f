"""What an engine is: a maximum-weight base kept up to date while weights change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from semibandit.arms import INT64, FloatArray, IntArray, flat, new_records
from semibandit.checks import as_arms
from semibandit.compiled.handle import by_handle, make_handle
from semibandit.engines.kernels import (
    AnyEngine,
    any_engine,
    observe_entry,
    remove_entry,
    restore_entry,
    select_entry,
    touch_all_entry,
    touch_entry,
)
from semibandit.errors import ClockError, ParameterError
from semibandit.locking import Guarded, NotCopied
from semibandit.matroids import Matroid
from semibandit.presence import Presence


class Engine(NotCopied, Guarded, ABC):
    """A maximum-weight base of `matroid` under weights ``alpha + lam * beta``, kept while they change.

    Weights live in the arm records (`semibandit.arms`), which a policy shares with its engine: whoever
    changes a record calls `touch`; `set_weights` does both. The base is unique: heavier first, then smaller
    arm id. An arm of weight +inf is legal (never pulled); deleted arms are in no base, and if the arms that
    are left have a smaller rank then so has the base.

    `exact_clock` says whether `advance` may move lam a little at every round at no great cost; an engine with
    ``exact_clock = False`` wants a staircase. `monotone_clock` says that lam may never go down.
    """

    name: ClassVar[str] = "engine"
    exact_clock: ClassVar[bool] = True
    monotone_clock: ClassVar[bool] = False

    def __init__(self, matroid: Matroid, records: npt.NDArray[np.void] | None = None) -> None:
        self.matroid = matroid
        self.n_arms = matroid.n_arms
        self.records = new_records(matroid.n_arms) if records is None else records
        if self.records.shape != (self.n_arms,):
            raise ParameterError(
                f"records must have one entry per arm ({self.n_arms}), got {self.records.shape}"
            )
        self._recs: FloatArray = flat(self.records).reshape(-1, 4)
        self._lam = 0.0
        self._presence = Presence(self.n_arms)

    # -- weights -----------------------------------------------------------------------------------------

    def set_weight(self, arm: int, alpha: float, beta: float = 0.0) -> None:
        """Change the weight of one arm to ``alpha + lam * beta``."""
        self.set_weights(np.array([arm]), np.array([alpha]), np.array([beta]))

    def set_weights(self, arms: Any, alpha: Any, beta: Any = 0.0) -> None:
        """Change many weights at once; validates first, then applies. Cost of one `touch`."""
        ids = as_arms(arms, self.n_arms)
        a = np.broadcast_to(np.asarray(alpha, dtype=np.float64), ids.shape)
        b = np.broadcast_to(np.asarray(beta, dtype=np.float64), ids.shape)
        if np.isnan(a).any() or np.isneginf(a).any() or not np.isfinite(b).all():
            raise ParameterError(
                "alpha must not be NaN or -inf and beta must be finite (delete arms with delete)"
            )
        if (b < 0).any() and self.monotone_clock:
            raise ParameterError("beta must be nonnegative for this engine")
        self.records["alpha"][ids] = a
        self.records["beta"][ids] = b
        self.touch(ids)

    def advance(self, lam: float) -> None:
        """Set the query to (1, lam)."""
        lam = float(lam)
        if not (0.0 <= lam < np.inf):
            raise ClockError(f"lam must be finite and nonnegative, got {lam}")
        if self.monotone_clock and lam < self._lam:
            raise ClockError(
                f"lam went down from {self._lam} to {lam}: the {self.name} engine needs a nondecreasing schedule; "
                "use engine='resolve' for any other"
            )
        self._lam = lam

    @property
    def lam(self) -> float:
        """The current query's second coordinate."""
        return self._lam

    # -- answers -----------------------------------------------------------------------------------------

    def base(self) -> IntArray:
        """The maximum-weight base at the current query, ascending arm ids."""
        return self._select(self._lam)

    def base_excluding(self, arms: Any) -> IntArray:
        """The maximum-weight base that avoids `arms`, leaving the engine as it was."""
        alive = self._presence.among(arms)
        self._remove(alive)
        try:
            return self._select(self._lam).copy()
        finally:
            self._restore(alive)

    # -- arms that come and go ---------------------------------------------------------------------------

    def delete(self, arms: Any) -> None:
        """Take arms out of the ground set; their records stay. Deleting one twice is an error."""
        self._remove(self._presence.delete(arms))

    def insert(self, arms: Any) -> None:
        """Bring deleted arms back with the weights in their records."""
        self._restore(self._presence.insert(arms))

    @property
    def deleted(self) -> IntArray:
        """The deleted arms, ascending."""
        return self._presence.deleted

    def _is_deleted(self, ids: IntArray) -> npt.NDArray[np.bool_]:
        return self._presence.is_deleted(ids)

    # -- what an engine implements -----------------------------------------------------------------------

    @abstractmethod
    def touch(self, arms: IntArray) -> None:
        """The records of `arms` (valid ids, possibly repeated or deleted) were changed."""

    def touch_all(self) -> None:
        """All records were changed."""
        self.touch(np.arange(self.n_arms, dtype=np.int64))

    @abstractmethod
    def _select(self, lam: float) -> IntArray:
        """The base at query (1, lam), ascending, as a fresh array."""

    @abstractmethod
    def _remove(self, ids: IntArray) -> None:
        """Take these present, distinct arms out."""

    @abstractmethod
    def _restore(self, ids: IntArray) -> None:
        """Put these absent, distinct arms back with the weights in their records."""

    @abstractmethod
    def observe(self, arms: IntArray, rewards: FloatArray, low: float, high: float) -> int:
        """Validate a batch of feedback, then count it in the records and touch its arms.

        Returns 0, or ``kind + 4 * position`` of the first bad entry with nothing changed.
        """

    @abstractmethod
    def memory(self) -> int:
        """Bytes this engine holds, records included."""

    @abstractmethod
    def _check(self) -> None:
        """Assert every invariant, O(K) or more. For tests."""


#: One kernel counts and tells the engine, whichever it is.
_observe = by_handle(observe_entry, AnyEngine)


class CompiledEngine(Engine):
    """An engine whose state is a NamedTuple of arrays with kernels told to `engines.kernels.implement_engine`.

    A subclass makes the state and hands it to `_run_on`; the rest is here.
    """

    _state: Any

    def _run_on(self, state: Any) -> None:
        """Make `state` the state of this engine. Its arrays are changed in place, never replaced."""
        self._state, self._handle = state, make_handle(state)
        for name in ("_enter_select", "_enter_touch", "_enter_observe", "any", "_any_handle"):
            self.__dict__.pop(name, None)

    @cached_property
    def any(self) -> AnyEngine:
        """The state for loops that serve every engine; one object as long as the state lives."""
        return any_engine(self._state)

    @cached_property
    def _any_handle(self) -> IntArray:
        return make_handle(self.any)

    @cached_property
    def _enter_select(self) -> Any:
        return by_handle(select_entry, type(self._state)).entry

    @cached_property
    def _enter_touch(self) -> Any:
        return by_handle(touch_entry, type(self._state)).entry

    def touch(self, arms: IntArray) -> None:
        self._enter_touch(self._handle, arms)

    def touch_all(self) -> None:
        by_handle(touch_all_entry, type(self._state))(self._handle)

    def _select(self, lam: float) -> IntArray:
        rank = self.matroid.rank
        out: IntArray = np.empty(rank, INT64)
        n = self._enter_select(self._handle, lam, out)
        return out if n == rank else out[:n].copy()

    @cached_property
    def _enter_observe(self) -> Any:
        """`observe` without a frame of Python's in between, for whoever holds the engine's state."""
        kernel, before = self.observes()
        return partial(kernel, *before)

    def observes(self) -> tuple[Any, tuple[Any, ...]]:
        """The kernel of `observe` as Python calls it, and what it takes before the arms."""
        return _observe.entry, (self._any_handle,)

    def observe(self, arms: IntArray, rewards: FloatArray, low: float, high: float) -> int:
        return int(self._enter_observe(arms, rewards, low, high))

    def _remove(self, ids: IntArray) -> None:
        by_handle(remove_entry, type(self._state))(self._handle, ids)

    def _restore(self, ids: IntArray) -> None:
        by_handle(restore_entry, type(self._state))(self._handle, ids)

    def memory(self) -> int:
        return int(bytes_of(self._state))


def bytes_of(value: Any) -> int:
    """Bytes of the arrays of a state, or of one array."""
    if isinstance(value, tuple):
        return sum(bytes_of(part) for part in value)
    return int(getattr(value, "nbytes", 8))
