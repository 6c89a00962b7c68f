"""Whole states of the service in a folder: what a restart begins with, before it replays the rest of the log.

A snapshot is a folder named after the number of events it covers. It holds a file per policy, as `Policy.save` and
`Catalog.save` write them (``semibandit.load`` reads them too; a sharded policy has a file a shard besides, and
`Sharded.load` reads it), ``host.msgpack`` with the rest, and ``MANIFEST.json``
with a digest of each. It is written under another name, synced, and renamed: a snapshot with its name is whole, unless
the disk damaged it, which the digests tell. The newest whole one is taken.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec

from semibandit import __version__
from semibandit.catalog import Catalog
from semibandit.distributed import Sharded
from semibandit.errors import FileError, SemibanditError, ShardError
from semibandit.policies.files import load as load_policy
from semibandit.serve.host import Host
from semibandit.serve.limits import Limits
from semibandit.serve.specs import place_of
from semibandit.serve.store import StoreError, sync_folder
from semibandit.serve.wire import PolicySpec

FORMAT = 1
_MANIFEST = "MANIFEST.json"
_HOST = "host.msgpack"


def write_snapshot(host: Host, folder: Path) -> None:
    """Write `host` into the new folder `folder`, synced. Cost of `save` of each policy. See `Seat.save` for when."""
    folder.mkdir(parents=True)
    for i, seat in enumerate(host.seats.values()):
        seat.save(folder / f"{i}.semibandit")
    names = sorted(path.name for path in folder.iterdir())  # a sharded policy has a file a shard besides
    with (folder / _HOST).open("wb") as file:
        file.write(msgspec.msgpack.encode(host.state(), enc_hook=_plain))
        file.flush()
        os.fsync(file.fileno())
    about = {
        "format": FORMAT,
        "library": __version__,
        "position": host.position,
        "policies": list(host.seats),
        "files": {name: _digest(folder / name) for name in (*names, _HOST)},
    }
    with (folder / _MANIFEST).open("w") as text:
        json.dump(about, text, indent=1)
        text.flush()
        os.fsync(text.fileno())
    sync_folder(folder)


def _plain(value: Any) -> Any:
    """Numbers of numpy in labels."""
    if hasattr(value, "item"):
        return value.item()
    raise NotImplementedError(f"a snapshot cannot hold {value!r}")


class Shelf(Protocol):
    """Where snapshots are kept. All methods may block, and raise `OSError`, `FileError` or `StoreError`.

    They may be called from any thread; one snapshot is written at a time.
    """

    def open(self) -> None:
        """Before anything else."""

    def room(self) -> Path:
        """A folder that is not there yet, to write a new snapshot to."""

    def publish(self, written: Path, position: int) -> None:
        """A snapshot was written to `written`, from `room`: from now on it is one. All or nothing."""

    def positions(self) -> list[int]:
        """How many events each snapshot covers, newest first."""

    def fetch(self, position: int) -> Path:
        """The folder of a snapshot."""

    def release(self) -> None:
        """What was fetched has been read."""

    def retire(self, position: int, keep: int, retention: float) -> int:
        """After the one of `position`: all but the newest `keep` go, and what was never finished.

        Returns the first event that the log must still hold (`first_needed`).
        """


def first_needed(marks: list[tuple[float, int]], now: float, keep: int, retention: float) -> int:
    """The first event that must stay, given when each snapshot was made and what it covers, oldest first.

    The log reaches back to the oldest of the `keep` newest, and to what is younger than `retention` seconds.
    """
    old = [position for at, position in marks if at <= now - retention]
    return min(old[-1] if old else 0, marks[-keep:][0][1]) + 1


class FolderShelf:
    """Snapshots as folders in `root`; beside it ``marks.json`` says when each was made."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def open(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)

    def room(self) -> Path:
        return self.root / f".writing-{secrets.token_hex(4)}"

    def publish(self, written: Path, position: int) -> None:
        place = self.fetch(position)
        if place.exists():
            shutil.rmtree(written)
            return
        os.rename(written, place)
        sync_folder(self.root)

    def positions(self) -> list[int]:
        found = [int(path.name) for path in self.root.glob("[0-9]" * 20) if path.is_dir()]
        return sorted(found, reverse=True)

    def fetch(self, position: int) -> Path:
        return self.root / f"{position:020d}"

    def release(self) -> None:
        pass

    def retire(self, position: int, keep: int, retention: float) -> int:
        for old in self.positions()[keep:]:
            shutil.rmtree(self.fetch(old), ignore_errors=True)
        for path in self.root.glob(".writing-*"):
            shutil.rmtree(path, ignore_errors=True)
        path = self.root.parent / "marks.json"
        marks: list[tuple[float, int]] = []
        with contextlib.suppress(OSError, ValueError):
            marks = [(at, int(place)) for at, place in json.loads(path.read_text())]
        now = time.time()
        marks.append((now, position))
        before = first_needed(marks, now, keep, retention)
        new = path.with_suffix(".new")
        new.write_text(json.dumps([mark for mark in marks if mark[1] + 1 >= before][-10_000:]))
        new.replace(path)
        return before


def read_snapshot(shelf: Shelf, position: int, limits: Limits | None = None) -> Host:
    """The state after `position` events; a `FileError` if anything of it is damaged."""
    folder: Any = f"the snapshot of event {position}"
    try:
        folder = shelf.fetch(position)
        about = json.loads((folder / _MANIFEST).read_text())
        if about["format"] > FORMAT:
            raise FileError(f"{folder}: written by a later semibandit ({about['library']})")
        for name, digest in about["files"].items():
            if _digest(folder / name) != digest:
                raise FileError(f"{folder / name} is damaged: its digest does not fit its content")
        state = msgspec.msgpack.decode((folder / _HOST).read_bytes())
        if state["position"] != position:
            raise FileError(f"{folder} is the snapshot of another position, {state['position']}")
        host = Host(limits)

        def load(i: int, spec: PolicySpec) -> Any:
            path = folder / f"{i}.semibandit"
            if spec.catalog is not None:
                return Catalog.load(path)
            return load_policy(path) if spec.shards is None else Sharded.load(path, on=place_of(spec))

        host.restore(state, load)
    except (FileError, StoreError, ShardError):  # out of reach is not damaged
        raise
    except (OSError, ValueError, KeyError, TypeError, SemibanditError, msgspec.MsgspecError) as error:
        raise FileError(f"{folder} is damaged: {type(error).__name__}: {error}") from None
    finally:
        shelf.release()
    return host


def newest_whole(
    shelf: Shelf, limits: Limits | None, complain: Callable[[str], None]
) -> tuple[int, Host] | None:
    """The newest snapshot that is whole, with its position, None if none is; damaged ones are complained of."""
    for position in shelf.positions():
        try:
            return position, read_snapshot(shelf, position, limits)
        except FileError as error:
            complain(str(error))
    return None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
