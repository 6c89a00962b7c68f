"""Policies in files: `policy.save(path)` and `semibandit.load(path)`.

A file is a fixed header, a JSON text, the arrays it lists, and a checksum over all of it:

====================  =================================================================================
bytes                 what
====================  =================================================================================
16                    the magic number ``MAGIC``
4                     version of the format, little-endian unsigned
4                     zero
8                     length of the JSON text, little-endian unsigned
n                     JSON: library version, class and arguments of matroid and policy, state, list of arrays
...                   arrays, C order, little-endian, each at a multiple of 64 bytes
32                    BLAKE2b-256 of everything before
====================  =================================================================================

Nothing in a file is executed: classes are looked up in the catalogue of policies and the table of matroids, their
constructors check what they are given, and arrays are plain numbers. A file whose checksum does not fit is refused
before it is read further. Saving is atomic: the new file is written beside the old one and then takes its place.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from semibandit import __version__
from semibandit.errors import FileError, ParameterError, SemibanditError
from semibandit.matroids import Matroid, codec
from semibandit.policies.base import PICKLERS, SAVERS, Policy
from semibandit.policies.catalogue import policy_class
from semibandit.policies.costs import CostPolicy
from semibandit.policies.decisions import Waiting

MAGIC = b"\x89semibandit\r\n\x1a\n\x00"
VERSION = 2
_HEAD = struct.Struct("<16sIIQ")
_DIGEST = 32
_LINE = 64
_TYPES = ("<f8", "<i8", "<u8", "<i4", "<u4", "|u1", "|i1", "|b1")

_MAKES_NO_SENSE = (
    SemibanditError,
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    IndexError,
    OverflowError,
    MemoryError,
)

Arrays = dict[str, np.ndarray[Any, Any]]


def save(policy: Policy, path: str | Path) -> None:
    """Write `policy` to `path`; see `Policy.save`. O(K), during which others may go on but for one copy of it."""
    _write(Path(path), *_snapshot(policy))


def to_bytes(policy: Policy) -> bytes:
    """What `save` would write. O(K)."""
    return b"".join(_chunks(*_snapshot(policy)))


def from_bytes(raw: bytes) -> Policy:
    """The policy that `to_bytes` was given. O(K)."""
    return _policy_of("these bytes", *_parse(raw, "these bytes"))


def _snapshot(policy: Policy) -> tuple[dict[str, Any], Arrays]:
    """All there is to write, as it is between two calls of other threads."""
    costs, outer = isinstance(policy, CostPolicy), policy
    if isinstance(policy, CostPolicy):
        policy = policy.inner
    name = type(policy).__name__
    if policy_class(name) is not type(policy):
        raise ParameterError(
            f"a {name} cannot be saved: only policies of the catalogue can (semibandit.policies.register)"
        )
    arguments = dict(policy._arguments())
    if callable(arguments.get("schedule")):
        raise ParameterError(
            "a policy with a schedule of your own cannot be saved: a function has no place in a file; one with a "
            "name has (semibandit.schedules)"
        )
    if "clock" in arguments:
        arguments["clock"] = getattr(policy, "clock")  # noqa: B009  what "auto" stood for, for good
    arrays: Arrays = {}
    with policy._lock:
        about = {
            "library": __version__,
            "policy": name,
            "minimize": costs,
            "matroid": _matroid_to(policy.matroid, arrays),
            "arguments": _plain(arguments, "arguments", arrays),
        }
        unchanging = set(arrays)
        about["decisions"] = _plain(outer._decisions.state(), "decisions", arrays)
        about["state"] = _plain(policy._state(), "state", arrays)
        # Policies give the arrays themselves, which the next call changes.
        arrays = {key: array if key in unchanging else array.copy() for key, array in arrays.items()}
    return about, arrays


def load(path: str | Path) -> Policy:
    """The policy in the file `path`, which goes on exactly as the one that was saved. O(K).

    Raises
    ------
    FileError
        When the file is damaged, of another kind or of a version that this library does not know.

    Example
    -------
    >>> import semibandit as sb, tempfile, pathlib
    >>> policy = sb.CUCB(sb.Uniform(n_arms=4, rank=2))
    >>> policy.update(policy.select(), [1.0, 0.0])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "policy.semibandit"
    >>> policy.save(path)
    >>> sb.load(path).select().tolist(), policy.select().tolist()
    ([2, 3], [2, 3])
    """
    return _policy_of(path, *_read(path))


def _read(path: Any) -> tuple[dict[str, Any], Arrays]:
    """`_parse` of a file."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
    return _parse(raw, path)


def _policy_of(path: Any, about: dict[str, Any], arrays: Arrays) -> Policy:
    try:
        name = about["policy"]
        cls: Any = policy_class(name)
        if cls is None:
            raise FileError(f"{path}: holds a policy {name!r}, which this version does not know")
        matroid = _matroid_from(about["matroid"], arrays)
        arguments = _rich(about["arguments"], arrays)
        policy: Policy = cls(matroid, **arguments)
        policy._set_state(_rich(about["state"], arrays))
        if about["minimize"] is True:
            policy = policy._as_costs(inside=True) or CostPolicy(policy.matroid, policy, inside=True)
        policy._take_decisions(Waiting.from_state(_rich(about["decisions"], arrays), policy.n_arms))
    except FileError as error:
        raise FileError(f"{path}: {error}" if str(path) not in str(error) else str(error)) from None
    except _MAKES_NO_SENSE as error:
        raise FileError(f"{path}: the content makes no sense ({type(error).__name__}: {error})") from None
    return policy


SAVERS.append(save)
PICKLERS.append(lambda policy: (from_bytes, (to_bytes(policy),)))


# -- values ----------------------------------------------------------------------------------------------


def _plain(value: Any, name: str, arrays: Arrays) -> Any:
    """`value` as JSON; arrays go to `arrays` and leave their name."""
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if isinstance(value, Mapping):
        return {"map": {str(key): _plain(part, f"{name}.{key}", arrays) for key, part in value.items()}}
    if isinstance(value, (list, tuple)):
        return [_plain(part, f"{name}.{i}", arrays) for i, part in enumerate(value)]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ParameterError(f"{name} = {value!r} has no place in a file")


def _rich(value: Any, arrays: Arrays) -> Any:
    """The inverse of `_plain`; tuples come back as lists."""
    if isinstance(value, dict):
        if set(value) == {"array"}:
            return arrays[value["array"]]
        return {key: _rich(part, arrays) for key, part in value["map"].items()}
    if isinstance(value, list):
        return [_rich(part, arrays) for part in value]
    return value


# -- matroids --------------------------------------------------------------------------------------------


def _matroid_to(matroid: Matroid, arrays: Arrays) -> dict[str, Any]:
    row = codec.row_of(type(matroid))
    if row is None:
        known = ", ".join(codec.row(name).cls.__name__ for name in codec.names())
        raise ParameterError(
            f"a policy over a {type(matroid).__name__} cannot be saved: only {known} have a place in a file"
        )
    return {"class": row.cls.__name__, "parts": _plain(row.to_parts(matroid), "matroid", arrays)}


def _matroid_from(about: Mapping[str, Any], arrays: Arrays) -> Matroid:
    row = codec.row_of_saved(about["class"])
    if row is None:
        raise FileError(f"holds a matroid {about['class']!r}, which this version does not know")
    return row.from_parts(**_rich(about["parts"], arrays))


# -- bytes -----------------------------------------------------------------------------------------------


def _chunks(about: dict[str, Any], arrays: Arrays) -> Iterator[Any]:
    """The bytes of a file, part by part."""
    listed, offset = [], 0
    stored = []
    for name, array in arrays.items():
        kind = array.dtype.newbyteorder("<").str
        if kind not in _TYPES:
            raise ParameterError(f"{name} is an array of {array.dtype}, which has no place in a file")
        data = np.ascontiguousarray(array, dtype=np.dtype(kind))
        listed.append({"name": name, "type": kind, "shape": list(array.shape), "offset": offset})
        stored.append(data)
        offset += -(-data.nbytes // _LINE) * _LINE
    text = json.dumps({**about, "arrays": listed}, allow_nan=False).encode()
    text += b" " * (-(_HEAD.size + len(text)) % _LINE)
    digest = hashlib.blake2b(digest_size=_DIGEST)
    parts: list[Any] = [_HEAD.pack(MAGIC, VERSION, 0, len(text)), text]
    for data in stored:
        parts += [data.data.cast("B") if data.size else b"", b"\0" * (-data.nbytes % _LINE)]
    for part in parts:
        digest.update(part)
        yield part
    yield digest.digest()


def _write(path: Path, about: dict[str, Any], arrays: Arrays) -> None:
    """Everything into a new file beside `path`, which then takes its place."""
    handle, temporary = tempfile.mkstemp(
        prefix=f".{path.name}.", dir=path.parent if str(path.parent) else "."
    )
    try:
        with os.fdopen(handle, "wb") as file:
            for part in _chunks(about, arrays):
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _parse(raw: bytes, path: Any) -> tuple[dict[str, Any], Arrays]:
    """The JSON and the arrays in the bytes of a file whose checksum fits."""
    if len(raw) < _HEAD.size + _DIGEST or not raw.startswith(MAGIC):
        raise FileError(f"{path} is not a saved policy (or was cut short)")
    _, version, zero, length = _HEAD.unpack_from(raw)
    if version != VERSION:
        raise FileError(
            f"{path} has format version {version}, this library reads version {VERSION}: "
            "it is damaged, or was written by another version of semibandit (0.1 wrote version 1)"
        )
    body = memoryview(raw)[:-_DIGEST]
    if hashlib.blake2b(body, digest_size=_DIGEST).digest() != raw[-_DIGEST:]:
        raise FileError(f"{path} is damaged: its checksum does not fit its content")
    start = _HEAD.size + length
    if zero != 0 or start > len(body):
        raise FileError(f"{path} is damaged: its header makes no sense")
    try:
        about = json.loads(bytes(body[_HEAD.size : start]))
        arrays = {item["name"]: _array(item, body[start:]) for item in about.pop("arrays")}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileError(f"{path}: the list of its content makes no sense ({error})") from None
    return about, arrays


def _array(item: Mapping[str, Any], data: memoryview) -> np.ndarray[Any, Any]:
    """One array of the file, a fresh copy."""
    if item["type"] not in _TYPES:
        raise FileError(f"an array has the unknown type {item['type']!r}")
    shape = [int(n) for n in item["shape"]]
    if any(n < 0 for n in shape) or item["offset"] < 0:
        raise FileError("an array has a negative size")
    kind = np.dtype(item["type"])
    size = int(np.prod(shape, dtype=object)) if shape else 1
    end = item["offset"] + size * kind.itemsize
    if end > len(data):
        raise FileError(f"the array {item['name']!r} reaches beyond the end of the file")
    flat = np.frombuffer(data[item["offset"] : end], dtype=kind)
    return flat.reshape(shape).astype(kind.newbyteorder("="), copy=True)
