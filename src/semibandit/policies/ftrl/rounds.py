"""A round of FTRL on uniform, partition and laminar matroids: project, sample, and later learn."""

from __future__ import annotations

from typing import NamedTuple

from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.policies.ftrl.estimates import Estimates, begin_round, learn_all, note_play
from semibandit.policies.ftrl.families import Families
from semibandit.policies.ftrl.projection import project
from semibandit.policies.ftrl.sampling import sample_base
from semibandit.policies.rounds import implement_rounds


class FamilyRounds(NamedTuple):
    """Estimates and families."""

    est: Estimates
    families: Families


@kernel
def draw_from_families(own, out):
    """Play a round that has begun, among the arms that are present; how many arms. O(K)."""
    project(own.est, own.families)
    n = sample_base(own.est, own.families, out)
    note_play(own.est, out, n)
    return n


@inline_kernel
def _family_select(own, engine, t, out):
    begin_round(own.est, t)
    return draw_from_families(own, out)


implement_rounds(FamilyRounds, select=_family_select, learn=learn_all, touches="nothing")
