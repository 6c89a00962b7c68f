"""The evidence: our engines beside every rival we know of, policies beside their textbook versions, published curves.

Not part of the package: run it from a clone, ``python -m benchmarks --help``.
"""

from __future__ import annotations
