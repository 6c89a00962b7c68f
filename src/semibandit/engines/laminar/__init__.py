"""Kinetic tournaments, nested: laminar matroids (docs/theory.md, A and E).

families  which families bind at all
tree      one tree of tournaments over all families, with gates between them
rounds    the state of the engine and the kernels of a round
engine    the class, and why its rounds are exact
"""
