"""Kinetic tournaments: uniform and partition matroids (docs/theory.md, E). Laminar ones are in `engines.laminar`.

tournament  one tree: the heaviest of many arms while lam only grows, with certificates exact to the bit
state       the arrays of an engine: one tree a group, and the base beside them
rounds      the kernels of a round, and arms that change, go and come back
engine      the class
"""
