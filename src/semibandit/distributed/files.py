"""Sharded policies in files: one file a shard, and a manifest that names them.

``policy.save("x.semibandit")`` lets every shard write ``x.semibandit.3-0``, ``x.semibandit.3-1``, ... where 3 is a
number that no earlier set has, and then puts the manifest ``x.semibandit`` in its place in one step. What a manifest
names is written before it is, so after a crash at any moment it names the old set or the new one, and all of that. Then
files of other sets are taken away. Shards write by themselves: on a cluster the folder must be one that all see.

All are in the format of `semibandit.policies.files`. The file of a shard holds an ordinary policy over its own part;
the manifest holds the checksum of each, so that files of two sets are never mixed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from semibandit import __version__
from semibandit.distributed.split import Split
from semibandit.errors import FileError
from semibandit.policies.decisions import Waiting
from semibandit.policies.files import (
    _MAKES_NO_SENSE,
    Arrays,
    _chunks,
    _matroid_from,
    _matroid_to,
    _parse,
    _plain,
    _read,
    _rich,
    _write,
)
from semibandit.policies.state import array_of, whole_of

if TYPE_CHECKING:
    from semibandit.distributed.sharded import Sharded

#: Stands where files of policies have the name of a class, so that `semibandit.load` says what to do.
TITLE = "Sharded (to be read by semibandit.distributed.Sharded.load)"


def manifest(policy: Sharded) -> tuple[dict[str, Any], Arrays]:
    """All of a policy but its shards. O(1), or O(K) if the coordinator holds the matroid."""
    arrays: Arrays = {}
    options = dict(policy._guide.asked)
    if "clock" in options:
        options["clock"] = policy._guide.options["clock"]  # what "auto" stood for, for good
    about: dict[str, Any] = {
        "library": __version__,
        "policy": TITLE,
        "kind": policy._guide.entry.name,
        "row": policy._row.name,
        "outside": policy.outside,
        "options": _plain(options, "options", arrays),
        "decisions": _plain(policy._decisions.state(), "decisions", arrays),
        "apart": policy._split.apart,
    }
    if policy._ground.facts:
        about["common"] = _plain(policy._ground.common, "common", arrays)
        about["rank"] = policy.matroid.rank
    else:
        about["matroid"] = _matroid_to(policy.matroid, arrays)
    state = {
        "t": policy._t,
        "clipped": policy.clipped,
        **policy._guide.state(),
        **policy._own_state(),
        "bounds": policy._split.bounds,
        "owner": policy._split.owner,
        "told": np.array(policy._crew.told, dtype=np.int64),
    }
    about["state"] = _plain(state, "state", arrays)
    return about, {name: np.array(array) for name, array in arrays.items()}


def save(policy: Sharded, path: str | Path) -> None:
    """Write the files of `policy`; see the module. O(K)."""
    where = Path(path).resolve()
    number = 1 + max((one for one, _ in _sets(where)), default=0)
    files = policy._crew.save(lambda i: f"{where}.{number}-{i}")
    about, arrays = manifest(policy)
    about["files"] = [[Path(name).name, checksum.hex()] for name, checksum in files]
    _write(where, about, arrays)
    for one, file in _sets(where):
        if one != number:
            file.unlink(missing_ok=True)


def _sets(where: Path) -> list[tuple[int, Path]]:
    """The files of shards beside a manifest, with the number of their set."""
    named = re.compile(re.escape(where.name) + r"\.(\d+)-\d+$")
    found = ((named.match(one.name), one) for one in where.parent.glob(f"{where.name}.*"))
    return [(int(match.group(1)), one) for match, one in found if match is not None]


def load(cls: type[Sharded], path: str | Path, setting: dict[str, Any]) -> Sharded:
    """The policy whose manifest is at `path`. O(K)."""
    about, arrays = _read(path)
    if about.get("policy") != TITLE:
        raise FileError(f"{path} holds no sharded policy: semibandit.load reads it")
    folder = Path(path).resolve().parent
    try:
        files = [(str(folder / name), bytes.fromhex(checksum)) for name, checksum in about["files"]]
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{path}: the list of its shards makes no sense ({error})") from None
    return restored(cls, path, about, arrays, files, setting)


def restored(
    cls: type[Sharded], path: Any, about: dict[str, Any], arrays: Arrays, files: Any, setting: dict[str, Any]
) -> Sharded:
    """The policy of a manifest whose shards are in `files`: snapshots, or names and checksums of files."""
    try:
        options = _rich(about["options"], arrays)
        state = _rich(about["state"], arrays)
        common = _rich(about["common"], arrays) if "common" in about else None
        matroid = _matroid_from(about["matroid"], arrays) if common is None else None
        bounds, owner = (
            array_of(state, name, kind) for name, kind in (("bounds", np.int64), ("owner", np.int32))
        )
        split, told = Split(bounds, owner, about["apart"] is True), array_of(state, "told", np.int64)
        n_arms = int(bounds[-1])
        if not len(files) == len(told) == split.shards or (matroid is not None and matroid.n_arms != n_arms):
            raise FileError("the shards do not fit the arms")
        policy = cls._bare(about, options, split, matroid, common, setting)
        policy._guide.set_state(state)
        policy._set_own_state(state)
        policy._t, policy._clipped[0] = whole_of(state, "t"), whole_of(state, "clipped")
        decisions = Waiting.from_state(_rich(about["decisions"], arrays), n_arms)
        policy._crew.restore({i: (int(told[i]), one) for i, one in enumerate(files)})
        policy._crew.leave_files()
    except FileError as error:
        raise FileError(f"{path}: {error}" if str(path) not in str(error) else str(error)) from None
    except _MAKES_NO_SENSE as error:
        raise FileError(f"{path}: the content makes no sense ({type(error).__name__}: {error})") from None
    policy._take_decisions(decisions)
    return policy


def to_pieces(policy: Sharded) -> tuple[bytes, list[bytes]]:
    """The manifest and a snapshot of each shard. O(K)."""
    return b"".join(_chunks(*manifest(policy))), policy._crew.ask_all(("snapshot",))


def from_pieces(cls: type[Sharded], told: bytes, snapshots: list[bytes], setting: dict[str, Any]) -> Sharded:
    """The inverse. O(K)."""
    return restored(cls, "these bytes", *_parse(told, "these bytes"), snapshots, setting)
