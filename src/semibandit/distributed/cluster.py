"""Ray: connecting to a cluster, and shards as its actors. The only module that knows Ray.

Ray (https://ray.io) is an optional dependency, the extra ``ray``. It is not imported before it is needed.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Mapping
from typing import Any

from semibandit.distributed.featured_shard import make_shard
from semibandit.distributed.here import LATE, LOST, Message
from semibandit.distributed.packing import pack, unpack
from semibandit.distributed.shard import Shard, Snapshot, Spec
from semibandit.errors import MissingExtraError, ParameterError, ShardError
from semibandit.text import needs

#: What stands for Ray where something is asked to run on it.
RAY = "ray"


def is_cluster(on: Any) -> bool:
    """Whether this names a cluster of Ray: ``"ray"``, ``"ray://host:port"``, ``"host:port"``.

    >>> [is_cluster(on) for on in ("ray", "ray://10.0.0.1:10001", "head:6379", "somewhere", None)]
    [True, True, True, False, False]
    """
    if not isinstance(on, str):
        return False
    host, colon, port = on.removeprefix("ray://").rpartition(":")
    return on == RAY or bool(host and colon and port.isdigit())


def connect(on: str) -> Any:
    """The module `ray`, connected: to what this process is connected to already, else to the cluster that `on` names.

    ``"ray"`` stands for the cluster in ``RAY_ADDRESS``, or for a new one on this machine.
    """
    if not is_cluster(on):
        raise ParameterError(f"on = {on!r} is not known: 'ray', 'ray://host:port' or 'host:port'")
    try:
        import ray
    except ImportError:
        raise MissingExtraError(needs("a cluster", "ray")) from None
    if not ray.is_initialized():
        address = (os.environ.get("RAY_ADDRESS") or None) if on == RAY else on
        before = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except Exception as error:  # whatever Ray raises: it names no class for this
            raise ShardError(f"no cluster of Ray answers at {address or 'this machine'}: {error}") from None
        finally:
            # Ray ends the process at once; whoever stops in order, as the service does, must go on doing so.
            if before not in (None, signal.SIG_DFL) and threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, before)
    return ray


class _Actor:
    """A shard in a process of its own."""

    def __init__(self) -> None:
        self._shard: Shard | Exception = ShardError("asked before it was made")

    def begin(self, spec: Spec, snapshot: Snapshot | None, version: str) -> None:
        """Be this shard. What goes wrong is told with the first answer."""
        from semibandit import __version__

        try:
            if version != __version__:
                raise ShardError(
                    f"the cluster has semibandit {__version__}, this process {version}: install one version everywhere"
                )
            self._shard = make_shard(spec, snapshot)
        except Exception as error:
            self._shard = error

    def handle(self, message: bytes) -> bytes:
        """`Shard.handle`, packed."""
        if isinstance(self._shard, Exception):
            raise self._shard
        return pack(self._shard.handle(*unpack(message)))


class OnRay:
    """Shards as actors of Ray, spread over the nodes. One call of a method a message.

    Ray does not start them anew: the coordinator does, because it knows what they were told.
    """

    can_lose = True

    def __init__(self, on: str, timeout: float) -> None:
        self._ray = connect(on)
        self._on, self._timeout = on, timeout
        self._make = self._ray.remote(_Actor).options(
            max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )
        self.actors: dict[int, Any] = {}
        # By shard, for the actor that it is of: to find a method costs more than to look here.
        self._calls: dict[int, tuple[Any, Any]] = {}

    @property
    def name(self) -> str:
        """As it was asked for."""
        return self._on

    def start(self, shard: int, spec: Spec, snapshot: Snapshot | None) -> None:
        """Make an actor. Does not wait for it."""
        from semibandit import __version__

        self._end(shard)
        self.actors[shard] = self._make.remote()
        self.actors[shard].begin.remote(spec, snapshot, __version__)

    def ask(self, messages: Mapping[int, Message]) -> dict[int, Any]:
        """All at once; waits for the last one."""
        ray = self._ray
        until = time.monotonic() + self._timeout
        calls = {i: self._call(i)(pack(message)) for i, message in messages.items()}
        try:
            replies = ray.get(list(calls.values()), timeout=self._timeout)
            return {i: unpack(reply) for i, reply in zip(calls, replies, strict=True)}
        except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
            return {i: self._one(call, until) for i, call in calls.items()}
        except ray.exceptions.RayTaskError as error:
            raise self._cause(error) from None

    def _call(self, shard: int) -> Any:
        """What sends a message to this shard."""
        actor = self.actors[shard]
        known = self._calls.get(shard)
        if known is None or known[0] is not actor:
            known = self._calls[shard] = actor, actor.handle.remote
        return known[1]

    def _one(self, call: Any, until: float) -> Any:
        """What one call gave, once some went wrong."""
        errors = self._ray.exceptions
        try:
            return unpack(self._ray.get(call, timeout=max(0.05, until - time.monotonic())))
        except errors.RayActorError:
            return LOST
        except errors.GetTimeoutError:
            return LATE
        except errors.RayTaskError as error:
            raise self._cause(error) from None

    @staticmethod
    def _cause(error: Any) -> Exception:
        """What went wrong inside an actor, as it was raised there."""
        return error.cause if isinstance(error.cause, Exception) else error  # type: ignore[no-any-return]

    def _end(self, shard: int) -> None:
        actor = self.actors.pop(shard, None)
        self._calls.pop(shard, None)
        if actor is not None and self._ray.is_initialized():
            self._ray.kill(actor)

    def another(self) -> OnRay:
        """Another one, empty."""
        return OnRay(self._on, self._timeout)

    def close(self) -> None:
        """End all actors."""
        for shard in list(self.actors):
            self._end(shard)
