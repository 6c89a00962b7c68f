"""Messages as bytes, for whatever carries them: msgpack, with arrays. Nothing that is executed.

msgpack comes with Ray. Bytes are what Ray carries fastest: it has nothing to look into.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

import numpy as np

# Kinds of what msgpack does not know: a vector, and an array of any other shape.
_VECTOR, _ARRAY = 1, 2
# Room for the name of a type such as ``<f8``; what follows is aligned to 8 bytes.
_KIND = 8

# A packer keeps its buffer, which would otherwise be asked for with every message, and serves one thread.
_own = threading.local()


def pack(value: Any) -> bytes:
    """Numbers, texts, bytes, None, dictionaries, arrays, and tuples or lists of such. O(size)."""
    packer = getattr(_own, "packer", None)
    if packer is None:
        import msgpack

        _own.extension = msgpack.ExtType
        packer = _own.packer = msgpack.Packer(default=_told)
    return packer.pack(value)  # type: ignore[no-any-return]


def unpack(raw: bytes) -> Any:
    """The inverse; lists are tuples now, and arrays cannot be written to. O(size)."""
    return _unpacker()(raw, ext_hook=_heard, use_list=False, strict_map_key=False)


@cache
def _unpacker() -> Any:
    import msgpack

    return msgpack.unpackb


@cache
def _name(kind: Any) -> bytes:
    return str(kind.str).encode().ljust(_KIND)


@cache
def _kind(name: bytes) -> Any:
    return np.dtype(name.decode().strip())


def _told(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.ndim == 1:
            return _own.extension(_VECTOR, _name(value.dtype) + value.tobytes())
        axes = np.array([value.ndim, *value.shape], dtype="<i8").tobytes()
        return _own.extension(_ARRAY, _name(value.dtype) + axes + value.tobytes())
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} has no place in a message")


def _heard(code: int, data: bytes) -> Any:
    kind = _kind(data[:_KIND])
    if code == _VECTOR:
        return np.frombuffer(data, kind, -1, _KIND)
    if code != _ARRAY:
        raise TypeError(f"a message holds something of the unknown kind {code}")
    axes = int(np.frombuffer(data, "<i8", 1, _KIND)[0])
    shape = np.frombuffer(data, "<i8", axes, _KIND + 8)
    return np.frombuffer(data, kind, -1, _KIND + 8 + 8 * axes).reshape(shape)
