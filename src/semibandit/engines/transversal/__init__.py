"""Transversal matroids: ``engine="adaptive"``.

An *adaptive* engine answers by one of two solvers and changes between them by counted cost (`engines.switch`):

- *Challengers*, for quiet states. The base is kept with a bound for each of its arms; nothing is done until an arm
  falls below its bound, then its best challenger is searched along alternating paths, or, when many fell, the base
  is re-solved over itself and the best outsider of every right node. Why this is right: docs/theory.md, F.
- *Greedy* from the last base on, for busy states: arms heavier than every outsider stay, the others and the outsiders
  are looked at in order until the base is full (docs/theory.md, H).

Both are exact and break ties alike, so the choice decides what a round costs, never what it answers. The engine for
graphic matroids is of the same family.

==============  ====================================================================================================
bits            sets of right nodes
state           what the challengers keep, declared by name
best_outsiders  the heaviest outsider of every right node
top_tournament  the right node with the heaviest of these
matching        the base matched to right nodes: searches and moves along alternating paths
re_solve        greedy over the base and the best outsiders, with exact bounds
answer          the base in order of ids
challengers     bounds: a round, and arms that change, go and come back
greedy          a round of greedy from the last base on, and arms that change, go and come back
greedy_state    what it keeps
greedy_paths    its matching: alternating paths to free right nodes
two_words       its searches where there are at most 128 right nodes
adaptive        which solver when
engine          the two engines
check           invariants, for tests
==============  ====================================================================================================
"""
