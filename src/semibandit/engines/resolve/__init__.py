"""`engine="resolve"`: a family of engines that find the base from all weights at every round.

They keep nothing from round to round but scratch space and, at most, an order of the arms. For every matroid and any
course of lam; the honest rivals of the other engines and their oracles in tests.

scan    uniform and partition: the heaviest of each group in one pass, O(K) per round
greedy  laminar, graphic and transversal: greedy along a kept order, O(K) per round and the membership tests
oracle  any matroid: sort all weights, then the matroid's own greedy; `resolve_engine` chooses among the three
"""
