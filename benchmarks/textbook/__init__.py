"""Policies as a textbook has them, in plain numpy, for any D of K arms: the strongest simple form of each.

Everything is kept in arrays that are changed for the played arms alone where the algorithm allows it; what must be
computed for all K arms is a few array calls; the best D are found by ``np.argpartition``. Nothing is validated, the
arms come in no order, and ties go wherever the partition puts them. Rewards lie in [0, 1].
"""

from __future__ import annotations

from benchmarks.textbook.adversaries import Fpl, Hybrid, Lbinfv
from benchmarks.textbook.counts import EpsilonGreedy, Greedy, Random, Textbook, seen_once
from benchmarks.textbook.features import Linear, LinTs, LinUcb, features_of
from benchmarks.textbook.indices import (
    Discounted,
    Escb,
    KlOsm,
    Ossb,
    Scaled,
    SlidingWindow,
    Ucb,
    UcbOfCosts,
    UcbV,
)
from benchmarks.textbook.samples import BoostedCts, Cts, GaussianCts, OneSeed, SharedGaussian

__all__ = [
    "BoostedCts",
    "Cts",
    "Discounted",
    "EpsilonGreedy",
    "Escb",
    "Fpl",
    "GaussianCts",
    "Greedy",
    "Hybrid",
    "KlOsm",
    "Lbinfv",
    "LinTs",
    "LinUcb",
    "Linear",
    "OneSeed",
    "Ossb",
    "Random",
    "Scaled",
    "SharedGaussian",
    "SlidingWindow",
    "Textbook",
    "Ucb",
    "UcbOfCosts",
    "UcbV",
    "features_of",
    "seen_once",
]
