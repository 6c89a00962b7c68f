"""A catalog in a file: labels, types, metadata and the policy, in the format of `semibandit.policies.files`.

The JSON text holds the kind of arms, the labels, those of decisions that wait, and the metadata; the arrays are the
type of each arm, the arms of labels and of decisions, those that no label has in the order in which new labels get
them, and the file of the policy itself, byte by byte.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from semibandit import __version__
from semibandit.catalog.arms import Arms
from semibandit.catalog.decisions import GONE
from semibandit.catalog.ids import Ids
from semibandit.catalog.kinds import NOBODY, kind_from_json
from semibandit.catalog.labels import pack, unpack
from semibandit.errors import FileError, ParameterError
from semibandit.policies.files import _MAKES_NO_SENSE, Arrays, _read, _write, from_bytes, to_bytes
from semibandit.policies.state import array_of, whole_of

if TYPE_CHECKING:
    from semibandit.catalog.catalog import Catalog

#: Stands where files of policies have the name of a class, so that `semibandit.load` says what to do.
_TITLE = "Catalog (to be read by semibandit.Catalog.load)"
#: Decisions are numbered in ranges of 2^24, a new one for each time that a catalog is loaded.
_RANGE = 24


def snapshot(catalog: Catalog) -> tuple[dict[str, Any], Arrays]:
    """All there is to write of a catalog that is settled. O(K)."""
    ids = catalog._arms.ids
    try:
        metadata = json.loads(json.dumps(catalog.metadata, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ParameterError(f"metadata has no place in a file: JSON cannot hold it ({error})") from None
    about: dict[str, Any] = {
        "library": __version__,
        "policy": _TITLE,
        "catalog": {
            "kind": ids.kind.name,
            "about": ids.kind.to_json(),
            "capacity": ids.capacity,
            "remember": catalog._remember,
            "types": [ids.kind.pack_type(key) for key in ids.types],
            "labels": [pack(label) for label in ids.id_of],
            "forgotten": [pack(label) for label in catalog._expired],
            "expired": catalog._n_expired,
            "dropped": catalog._n_dropped,
            "grown": catalog._arms.grown,
            "decisions": [
                [number, [pack(label) for label in play.labels]] for number, play in catalog._arms.plays
            ],
            "metadata": metadata,
        },
    }
    arrays: Arrays = {
        "types": ids.type_of.copy(),
        "plays": np.array([arm for _, play in catalog._arms.plays for arm in play.arms], dtype=np.int64),
        "arms": np.fromiter(ids.id_of.values(), dtype=np.int64, count=len(ids.id_of)),
        "free": np.array([arm for arms in ids.free for arm in arms], dtype=np.int64),
        "policy": np.frombuffer(to_bytes(catalog._arms.policy), dtype=np.uint8),
    }
    return about, arrays


def save(catalog: Catalog, path: Any) -> None:
    """Write a catalog to `path`; see `Catalog.save`. O(K)."""
    with catalog._lock:
        catalog._arms.settle()
        about, arrays = snapshot(catalog)
    _write(Path(path), about, arrays)


def restore(cls: type[Catalog], path: Any) -> Catalog:
    """The catalog in the file `path`; everything is checked. O(K)."""
    about, arrays = _read(path)
    if "catalog" not in about:
        raise FileError(f"{path} holds no catalog but a policy: semibandit.load reads it")
    try:
        return _catalog_of(cls, about["catalog"], arrays)
    except _MAKES_NO_SENSE as error:
        raise FileError(f"{path}: the content makes no sense ({type(error).__name__}: {error})") from None


def _catalog_of(cls: type[Catalog], told: Any, arrays: Arrays) -> Catalog:
    kind = kind_from_json(told["kind"], told["about"])
    policy = from_bytes(arrays["policy"].tobytes())
    types = [kind.unpack_type(key) for key in told["types"]]
    type_of = array_of(arrays, "types", np.int64, policy.n_arms)
    labels = [unpack(label) for label in told["labels"]]
    arms = array_of(arrays, "arms", np.int64, len(labels))
    if not ((type_of >= NOBODY) & (type_of < len(types))).all() or len(set(types)) < len(types):
        raise FileError("the types of the arms make no sense")
    if kind.types is not None and (types != kind.types or (type_of == NOBODY).any()):
        raise FileError("the types of the arms are not those of the catalog")
    id_of = dict(zip(labels, arms.tolist(), strict=True))
    if len(id_of) < len(labels) or not ((arms >= 0) & (arms < policy.n_arms)).all():
        raise FileError("the labels make no sense")
    present = np.setdiff1d(np.arange(policy.n_arms), getattr(policy, "inner", policy)._state()["deleted"])
    if not np.array_equal(np.sort(arms), present) or (type_of[arms] == NOBODY).any():
        raise FileError("the labels do not fit the arms of the policy")
    if kind.matroid(types, type_of) != policy.matroid:
        raise FileError("the types of the arms do not fit the matroid of the policy")
    ids = Ids(kind, whole_of(told, "capacity", 1))
    ids.restore(types, type_of, id_of)
    if "free" in arrays:  # files of 0.2.0 before it was kept have none: any order is as good
        try:
            ids.order_free(array_of(arrays, "free", np.int64).tolist())
        except ValueError as error:
            raise FileError(str(error)) from None
    catalog = cls.__new__(cls)
    catalog._begin(Arms(ids, policy), whole_of(told, "remember"), told["metadata"])
    catalog._arms.grown = whole_of(told, "grown")
    _restore_plays(catalog._arms, told["decisions"], array_of(arrays, "plays", np.int64).tolist())
    catalog._expired = dict.fromkeys(unpack(label) for label in told["forgotten"])
    catalog._n_expired, catalog._n_dropped = whole_of(told, "expired"), whole_of(told, "dropped")
    return catalog


def _restore_plays(arms: Arms, decisions: Any, played: list[int]) -> None:
    """Let the decisions that a file tells of wait, as those of the policy do."""
    at = 0
    for number, packed in decisions:
        labels = [unpack(label) for label in packed]
        mine = played[at : at + len(labels)]
        at += len(labels)
        _, waits = arms.policy._decisions.arms_of(number)
        alive = [(arm, label) for arm, label in zip(mine, labels, strict=True) if arm != GONE]
        if waits.tolist() != [arm for arm, _ in alive]:
            raise FileError("the decisions that wait are not those of the policy")
        if any(arms.ids.id_of.get(label) != arm for arm, label in alive):
            raise FileError("the decisions that wait play what is not there")
        arms.plays.add(number, labels, mine)
    if at != len(played):
        raise FileError("the decisions that wait make no sense")
    # Decisions made after the file was written have numbers that it does not know of.
    book = arms.policy._decisions
    book._next = ((book._next >> _RANGE) + 1 + secrets.randbelow(1 << 20)) << _RANGE
