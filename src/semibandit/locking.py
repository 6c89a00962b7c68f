"""Objects that threads may share: public calls are serialised, one lock an object.

Kernels run without Python's own lock, and two of them that change one state at once would destroy it. So every public
method and property of a `Guarded` class holds the object's lock while it runs, subclasses of users included; nothing
has to be written for that. Calls that are made very often lock by themselves, which saves a call, and say so with
`unguarded`. An object may call its own methods: the lock is one that its holder may take again.

A process that forks first waits for calls that are under way, so that the child finds every object whole and unlocked.
"""

from __future__ import annotations

import functools
import os
import threading
import time
import weakref
from types import FunctionType
from typing import Any, Self, TypeVar

F = TypeVar("F")

# How long a fork waits for calls that are under way, in seconds.
_PATIENCE = 5.0
# And for each lock, before it lets go of all others and begins again.
_SOON = 0.02

_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_locks_change = threading.Lock()
_held: list[tuple[Any, bool]] = []


def new_lock() -> Any:
    """A lock that its holder may take again, and that a fork leaves free."""
    lock = threading.RLock()
    with _locks_change:
        _locks.add(lock)
    return lock


def _before_fork() -> None:
    until = time.monotonic() + _PATIENCE
    _locks_change.acquire()
    while not _take_all() and time.monotonic() < until:
        # Whoever holds one of them may be waiting for another, or making a new one: let them come to an end.
        _give_back()
        time.sleep(0.001)
        _locks_change.acquire()


def _take_all() -> bool:
    """Take every lock that can be had soon; whether that were all of them."""
    _held[:] = [(lock, lock.acquire(timeout=_SOON)) for lock in _locks]
    return all(taken for _, taken in _held)


def _give_back() -> None:
    for lock, taken in _held:
        if taken:
            lock.release()
    _held.clear()
    _locks_change.release()


def _after_fork_in_parent() -> None:
    _give_back()


def _after_fork_in_child() -> None:
    for lock, taken in _held:
        if not taken:  # its holder does not exist here, and would never give it back
            lock._at_fork_reinit()
    _give_back()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
    )


def unguarded(function: F) -> F:
    """Mark a public method that needs no lock, or takes it by itself."""
    function._unguarded = True  # type: ignore[attr-defined]
    return function


def _guard(function: Any) -> Any:
    if not isinstance(function, FunctionType) or hasattr(function, "_unguarded"):
        return function

    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        # By hand: `with` looks both methods up each time and takes three times as long.
        lock = self._lock
        lock.acquire()
        try:
            return function(self, *args, **kwargs)
        finally:
            lock.release()

    return unguarded(call)


def bare(method: F) -> F:
    """A method of a guarded object without its lock: for the one owner of the object, who holds a lock of its own."""
    inside = getattr(method, "__wrapped__", None)
    return method if inside is None else inside.__get__(method.__self__)  # type: ignore[attr-defined]


class NotCopied:
    """For objects that hold addresses of their own arrays: a copy of them would write into the original."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled: make another one")


class Guarded:
    """Base of classes whose public methods and properties hold the object's lock while they run."""

    _lock: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        made = super().__new__(cls)
        made._lock = new_lock()
        return made

    def __getstate__(self) -> Any:
        """All but the lock: a copy has its own."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, value in list(vars(cls).items()):
            if name.startswith("_"):
                continue
            if isinstance(value, property):
                get, put, drop = (_guard(part) for part in (value.fget, value.fset, value.fdel))
                setattr(cls, name, property(get, put, drop, value.__doc__))
            elif isinstance(value, FunctionType):
                setattr(cls, name, _guard(value))
