"""A logarithm that is compiled into the loop that asks for it, so that a loop of nothing else runs in vector registers.

As libraries do it: x = 2^e m with m between sqrt(1/2) and sqrt(2), and log m = 2 artanh(s) for s = (m - 1) / (m + 1),
by a polynomial in s^2, added up so that the largest parts come last. Its coefficients are those of least error
(2.5e-18, by Remez' exchange on 0 <= s^2 <= 0.0295 in 50 digits). A last digit may differ from that of `math.log`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from semibandit.compiled.jit import inline_kernel, intrinsic, ir, types


def _cast(source: str, target: str) -> Any:
    """An intrinsic: the 64 bits of a number of one type, as one of another type."""

    def cast(typingctx, number):
        if number != getattr(types, source):
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], ir.DoubleType() if target == "float64" else ir.IntType(64))

        return getattr(types, target)(number), codegen

    return intrinsic(cast)


_bits_of = _cast("float64", "uint64")
_of_bits = _cast("uint64", "float64")

_52 = np.uint64(52)
# From the bits of sqrt(1/2) to those of 1; the bits of 2^52, whose last ones count in steps of 1.
_TO_ONE = np.uint64(0x3FF0000000000000 - 0x3FE6A09E00000000)
_ONE = np.uint64(0x3FF0000000000000)
_COUNTER, _COUNTED = np.uint64(0x4330000000000000), 2.0**52 + 1023.0
# The first bits of log 2, so few that their product with e is exact, and the rest.
_LOG_2_HIGH, _LOG_2_LOW = float.fromhex("0x1.62e42feep-1"), 1.9082149292705877e-10


@inline_kernel
def log_of(x: Any) -> Any:
    """The natural logarithm of a positive, normal x. O(1), without branches."""
    bits = _bits_of(x) + _TO_ONE
    e = _of_bits((bits >> _52) | _COUNTER) - _COUNTED
    m = _of_bits(_bits_of(x) + _ONE - ((bits >> _52) << _52))
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    odd = w * (0.39999999999414676 + w * (0.22222198573157717 + w * 0.15314050539471846))
    even = z * (
        0.6666666666666734 + w * (0.2857142874238801 + w * (0.18183564327007024 + w * 0.14795949746504108))
    )
    half = 0.5 * f * f
    return e * _LOG_2_HIGH - ((half - (s * (half + (odd + even)) + e * _LOG_2_LOW)) - f)
