"""Matroids: which arms may be played together. Immutable, without weights; the greedy lives here."""

from __future__ import annotations

from semibandit.matroids.base import Matroid
from semibandit.matroids.graphic import Graphic
from semibandit.matroids.laminar import Laminar
from semibandit.matroids.linear import Linear
from semibandit.matroids.partition import Partition
from semibandit.matroids.transversal import Transversal
from semibandit.matroids.uniform import Uniform

__all__ = ["Graphic", "Laminar", "Linear", "Matroid", "Partition", "Transversal", "Uniform"]
