"""Arm records: all that a policy knows of an arm, in one aligned 32-byte record.

One record a cache line's half: a random update of an arm touches one line instead of four. Kernels see the
same memory as a (K, 4) float64 matrix with the columns below. Counts are floats so that one matrix holds
everything; they are exact up to 2^53 pulls.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: The type of arm ids, as arrays are made fastest with.
INT64 = np.dtype(np.int64)

ARM = np.dtype([("count", "f8"), ("total", "f8"), ("alpha", "f8"), ("beta", "f8")], align=True)

COUNT, TOTAL, ALPHA, BETA = 0, 1, 2, 3

_LINE = 64


def new_records(n_arms: int) -> npt.NDArray[np.void]:
    """Records of `n_arms` arms that were never pulled: infinite index (alpha = +inf, beta = 0). O(K)."""
    raw = np.zeros(n_arms * ARM.itemsize + _LINE, dtype=np.uint8)
    start = -raw.ctypes.data % _LINE
    records = raw[start : start + n_arms * ARM.itemsize].view(ARM)
    records["alpha"] = np.inf
    return records


def flat(records: npt.NDArray[np.void]) -> FloatArray:
    """The same memory as one float64 vector: the cheapest thing to hand to a kernel. O(1)."""
    return records.view(np.float64)
