"""Sublinear engines for graphic matroids, where an arm is an edge and a base a spanning forest.

`engine="adaptive"` is a family: for a graphic matroid it is the class here, for a transversal one that of the room next
door. Each keeps several solvers on one state, uses one at a time, and changes over by counted cost
(`semibandit.engines.switch`). All solvers give the same base in every round, so the choice decides the cost only.

The solvers here, each a file:

========================  ===============================  ===================================  =======================
solver                    when                             a round                              why it is right
========================  ===============================  ===================================  =======================
`challengers`             quiet: few base edges fall       O(D + vertices below these edges),   docs/theory.md, F
                          below their bounds               all exchanged at once
`hot_cold`                busy: much of the base changes   O(V + changes log degree)            docs/theory.md, A and B
`ordered`                 busy, the base near the top of   O(edges before the lightest one of   textbook; the order is
                          the order of all edges           the base + D log K)                  docs/theory.md, H's
`prim`                    busy, few vertices, many edges   O(V^2)                               textbook
========================  ===============================  ===================================  =======================

While CUCB explores, nearly the whole base changes in a round. Where weights lie evenly over the graph, Kruskal along
one order of all edges is best, which looks at about V log V of them; where they do not, Kruskal over the hot edges.
Later hardly any base edge falls below its bound. A step of the clock changes all weights: O(K), and a busy round
follows.

The files, from the ground up: `edges` (all edges, the cold ones by vertex under tournaments), `answer` (the sorted
base), `state` (what the solvers share and keep), `hot_list` (the order of the hot edges), `tree` (the linked tree with
bounds), `leaving` and `parts` (exchanging loose edges of it), the four solvers, `changeover` (from one solver to
another), `busy` (busy rounds, and which solver goes on), `rounds` (what an engine does), `engine` (the classes),
`check` (all invariants, for tests).
"""
