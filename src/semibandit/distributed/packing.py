"""Messages as bytes, for whatever carries them: msgpack, with arrays. Nothing that is executed.

msgpack comes with Ray. Bytes are what Ray carries fastest: it has nothing to look into.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_ARRAY = 1
# Room for the name of a type such as ``<f8``; 15 and the number of axes keep what follows aligned to 8 bytes.
_KIND = 15


def pack(value: Any) -> bytes:
    """Numbers, texts, bytes, None, dictionaries, arrays, and tuples or lists of such. O(size)."""
    import msgpack

    return msgpack.packb(value, default=_told)  # type: ignore[no-any-return]


def unpack(raw: bytes) -> Any:
    """The inverse; lists are tuples now, and arrays cannot be written to. O(size)."""
    import msgpack

    return msgpack.unpackb(raw, ext_hook=_heard, use_list=False, strict_map_key=False)


def _told(value: Any) -> Any:
    import msgpack

    if isinstance(value, np.ndarray):
        # Kind and number of axes, then their lengths: of fixed size, so that there is nothing to search for.
        head = value.dtype.str.encode().ljust(_KIND) + bytes([value.ndim])
        lengths = np.array(value.shape, dtype="<i8").tobytes()
        return msgpack.ExtType(_ARRAY, head + lengths + value.tobytes())
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} has no place in a message")


def _heard(code: int, data: bytes) -> Any:
    if code != _ARRAY:
        raise TypeError(f"a message holds something of the unknown kind {code}")
    kind, axes = data[:_KIND].decode().strip(), data[_KIND]
    flat = np.frombuffer(data, dtype=kind, offset=_KIND + 1 + 8 * axes)
    if axes == 1:
        return flat
    return flat.reshape(np.frombuffer(data, dtype="<i8", count=axes, offset=_KIND + 1))
