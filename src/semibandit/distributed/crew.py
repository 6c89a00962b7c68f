"""The shards of one policy, from the side of the coordinator: what each was told, and what happens when one is lost.

Deeds wait in ledgers until the next question takes them along. A shard that is lost is made anew from its last snapshot
and told all deeds since, then asked again; whoever asked notices nothing but the time. A shard of which nothing is
heard in time is an error, which leaves the ledgers as they were: the next call tells the same again, and the shard
passes over what it had done already.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from semibandit.distributed.featured_shard import make_shard
from semibandit.distributed.here import LATE, LOST, Transport
from semibandit.distributed.ledger import Ledger
from semibandit.distributed.shard import Deed, Question, Shard, Snapshot, Spec, placed
from semibandit.distributed.split import Ids
from semibandit.errors import ShardError

# How many arms may be named by deeds that a shard was not told yet, before the caller has to wait for it.
BEHIND = 1 << 14
# And by those kept since its last snapshot; a sixteenth of its arms if that is more, so that snapshots stay cheap.
KEPT = 1 << 16
# How often a shard is made anew for one question.
_TRIES = 5
_PAUSE = 0.002


class Crew:
    """Shards behind a transport. `spec` says what a shard is made of, `folder` where snapshots go (None: here)."""

    def __init__(self, transport: Transport, spec: Callable[[int], Spec], folder: str | Path | None) -> None:
        self._transport, self._spec = transport, spec
        self._folder = None if folder is None else Path(folder)
        self._ledgers: dict[int, Ledger] = {}
        self._ids: dict[int, Ids] = {}
        self._sizes: dict[int, int] = {}
        self._revived = 0
        # Snapshots of several policies may share a folder.
        self._sign = uuid.uuid4().hex
        self._written: dict[int, str] = {}
        self.kept = KEPT
        self._process = os.getpid()

    @property
    def name(self) -> str:
        """Where the shards are."""
        return self._transport.name

    # -- beginning ---------------------------------------------------------------------------------------

    def start(self, shards: Iterable[int]) -> list[int]:
        """Make these shards, all at once; how many arms each has."""
        for i in shards:
            self._ledgers[i] = Ledger(keeps=self._transport.can_lose)
            self._transport.start(i, self._made_of(i), None)
        return self._measure()

    def _measure(self) -> list[int]:
        sizes = self.ask_all(("size",))
        self._sizes = dict(enumerate(sizes))
        return sizes

    def place(self, ids: list[Ids]) -> None:
        """Tell the shards which arms they have."""
        self._ids = dict(enumerate(ids))
        self.ask({i: ("place", one) for i, one in self._ids.items()})

    def _made_of(self, shard: int) -> Spec:
        spec = self._spec(shard)
        return placed(spec, self._ids[shard]) if shard in self._ids else spec

    def restore(self, snapshots: Mapping[int, tuple[int, Snapshot]]) -> None:
        """Make shards from snapshots: (number of the last deed in it, snapshot) of each."""
        for i, (number, snapshot) in snapshots.items():
            self._ledgers[i] = Ledger(keeps=self._transport.can_lose)
            self._ledgers[i].take_over(number, snapshot)
            self._transport.start(i, self._made_of(i), snapshot)
        self._measure()

    def copied(self, spec: Callable[[int], Spec]) -> Crew:
        """Shards like these, in places of their own. O(K)."""
        other = Crew(self._transport.another(), spec, self._folder)
        other._ids, other.kept = dict(self._ids), self.kept
        taken = self.ask_all(("snapshot",))
        other.restore({i: (self._ledgers[i].told, raw) for i, raw in enumerate(taken)})
        return other

    # -- talking -----------------------------------------------------------------------------------------

    def tell(self, shard: int, deed: Deed, rows: int) -> None:
        """Something for a shard to do, that names so many arms; it hears of it with the next question. O(1)."""
        self._ledgers[shard].add(deed, rows)

    def catch_up(self, coming: int) -> None:
        """Wait for shards that would be too far behind with deeds that name so many arms more.

        Before these are told, so that a call that fails changes nothing.
        """
        late = {i: ("nothing",) for i, one in self._ledgers.items() if 0 < one.behind > BEHIND - coming}
        if late:
            self.ask(late)

    def ask_all(self, question: Question) -> list[Any]:
        """What each shard answers, in their order."""
        replies = self.ask({i: question for i in self._ledgers})
        return [replies[i] for i in sorted(replies)]

    def ask(self, questions: Mapping[int, Question]) -> dict[int, Any]:
        """One message to each of these shards, and its answer."""
        answers = self._ask(questions)
        due = [i for i in questions if self._ledgers[i].rows > max(self.kept, self._sizes.get(i, 0) // 16)]
        if due and self._transport.can_lose:
            self.take_snapshots(due)
        return answers

    def _ask(self, questions: Mapping[int, Question]) -> dict[int, Any]:
        if self._transport.can_lose and os.getpid() != self._process:
            raise ShardError("shards of a cluster cannot be asked in a fork of the process that made them")
        left, answers = dict(questions), {}
        for attempt in range(_TRIES):
            if attempt > 1:
                time.sleep(_PAUSE * 4.0**attempt)  # a cluster needs a moment to see that a machine is gone
            told = {i: self._ledgers[i].told for i in left}
            replies = self._transport.ask({i: (*self._ledgers[i].waiting(), left[i]) for i in left})
            late = [i for i, reply in replies.items() if reply is LATE]
            for i, reply in replies.items():
                if reply is LOST:
                    self._revive(i)
                elif reply is not LATE:
                    done, answers[i] = reply
                    assert done == told[i], f"shard {i} has done {done} deeds of {told[i]}"
                    self._ledgers[i].done(done)
                    del left[i]
            if late:
                raise ShardError(
                    f"shard {late[0]} of {len(self._ledgers)} did not answer in time ({self.name}): it is busy, out of "
                    "reach, or the cluster has no room for it. The same call may be made again, "
                    "or with a longer timeout"
                )
            if not left:
                return answers
        raise ShardError(
            f"shard {min(left)} of {len(self._ledgers)} was lost {_TRIES} times in a row ({self.name}). "
            "What it knew is kept: the same call may be made again"
        )

    def _revive(self, shard: int) -> None:
        """Make a lost shard anew; what came after its snapshot is told with the next message."""
        ledger = self._ledgers[shard]
        self._transport.start(shard, self._made_of(shard), ledger.snapshot)
        ledger.begin_anew()
        self._revived += 1

    # -- snapshots ---------------------------------------------------------------------------------------

    def take_snapshots(self, shards: Iterable[int]) -> None:
        """Let the ledgers of these shards begin anew at what they are now. O(n) each."""
        for i in shards:
            number = self._ledgers[i].told
            if self._folder is None:
                self._ledgers[i].cover(number, self._ask({i: ("snapshot",)})[i])
                continue
            self._folder.mkdir(parents=True, exist_ok=True)
            path = str(self._folder.resolve() / f"{self._sign}-{i}-{number}.semibandit")
            self._ledgers[i].cover(number, self._ask({i: ("save", path)})[i])
            old, self._written[i] = self._written.get(i), path
            if old is not None and old != path:
                Path(old).unlink(missing_ok=True)

    def leave_files(self) -> None:
        """Take snapshots where ledgers begin with files of the user, which may go at any time."""
        if self._transport.can_lose:
            self.take_snapshots([i for i, one in self._ledgers.items() if isinstance(one.snapshot, tuple)])

    def save(self, name: Callable[[int], str]) -> list[tuple[str, bytes]]:
        """Every shard into the file that `name` says; what `Shard.save` tells of each. O(K).

        A fork of the process that made them has no way to the shards of a cluster. There each is made anew from
        what is kept here for the case that it is lost, one after the other: O(K), and the memory of one of them.
        """
        if self._transport.can_lose and os.getpid() != self._process:
            return [self._made_again(i).save(name(i)) for i in sorted(self._ledgers)]
        return [self._ask({i: ("save", name(i))})[i] for i in sorted(self._ledgers)]

    def _made_again(self, shard: int) -> Shard:
        """In this process: what a shard is once it has done all it was told."""
        ledger = self._ledgers[shard]
        made = make_shard(self._made_of(shard), ledger.snapshot)
        made.handle(*ledger.since(), ("nothing",))
        return made

    @property
    def told(self) -> list[int]:
        """How many deeds each shard was told."""
        return [self._ledgers[i].told for i in sorted(self._ledgers)]

    def state(self) -> dict[str, Any]:
        """For `describe`."""
        return {"revived": self._revived} if self._transport.can_lose else {}

    def close(self) -> None:
        """End the shards, and take their snapshots away."""
        self._transport.close()
        for path in self._written.values():
            Path(path).unlink(missing_ok=True)
        self._written.clear()
