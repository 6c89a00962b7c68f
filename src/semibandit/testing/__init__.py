"""Conformance checks: run them over your own matroid to know that the rest of the library may trust it."""

from __future__ import annotations

from semibandit.testing.matroids import check_matroid

__all__ = ["check_matroid"]
