"""Several decisions that were made at once, on their way to a client: numbers in arrays, written as JSON by a kernel.

An object per arm and per decision would cost more than the decisions themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from semibandit.arms import IntArray
from semibandit.compiled.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from semibandit.serve.wire import Made

Text = npt.NDArray[np.uint8]

_COMMA, _CLOSE, _ZERO = 44, 125, 48
# Digits of a number of 64 bits at most.
_DIGITS = 20


def _text(text: str) -> Text:
    return np.array(bytearray(text.encode()), dtype=np.uint8)


_ARMS, _ROUND = _text('","arms":['), _text('],"round":')


@inline_kernel
def _put_text(out, at, text):
    for i in range(text.shape[0]):
        out[at + i] = text[i]
    return at + text.shape[0]


@inline_kernel
def _put_number(out, at, value):
    """The decimal digits of a number that is at least 0."""
    ten = np.uint64(10)  # division without a sign takes half of the time
    rest, limit, end = np.uint64(value), ten, at + 1
    while rest >= limit:
        end += 1
        limit *= ten
    for i in range(end - 1, at - 1, -1):
        out[i] = _ZERO + np.int64(rest % ten)
        rest //= ten
    return end


@kernel
def write_decisions(arms, sizes, first, t, before, between, after, out):
    """Decisions `first`, `first` + 1, ... of rounds t, t + 1, ... with commas between them; how many bytes.

    `before`, `between`, `after`: what stands before the number of a decision, its arms, and its round.
    """
    at = place = 0
    for i in range(sizes.shape[0]):
        if i > 0:
            out[at] = _COMMA
            at += 1
        at = _put_number(out, _put_text(out, at, before), first + i)
        at = _put_text(out, at, between)
        for j in range(sizes[i]):
            if j > 0:
                out[at] = _COMMA
                at += 1
            at = _put_number(out, at, arms[place])
            place += 1
        at = _put_number(out, _put_text(out, at, after), t + i)
        out[at] = _CLOSE
        at += 1
    return at


class Several:
    """Decisions with ids `start` and a number, from `first` on, of rounds from `t` on; `sizes` of `arms` each."""

    __slots__ = ("arms", "first", "sizes", "start", "t")

    def __init__(self, start: str, first: int, t: int, arms: IntArray, sizes: IntArray) -> None:
        self.start, self.first, self.t, self.arms, self.sizes = start, first, t, arms, sizes

    def __len__(self) -> int:
        return len(self.sizes)

    def json(self) -> bytes:
        """As `Made` objects in JSON, with commas between them. O(arms)."""
        before = _text(f'{{"decision":"{self.start}')
        longest = len(before) + len(_ARMS) + len(_ROUND) + 2 * _DIGITS + 2
        out = np.empty(len(self) * longest + (_DIGITS + 1) * len(self.arms), dtype=np.uint8)
        end = write_decisions.entry(self.arms, self.sizes, self.first, self.t, before, _ARMS, _ROUND, out)
        return out[:end].tobytes()

    def made(self) -> list[Made]:
        """As objects. O(arms)."""
        from semibandit.serve.wire import Made

        plain, end, made = self.arms.tolist(), 0, []
        for i, size in enumerate(self.sizes.tolist()):
            made.append(Made(f"{self.start}{self.first + i}", plain[end : end + size], self.t + i))
            end += size
        return made
