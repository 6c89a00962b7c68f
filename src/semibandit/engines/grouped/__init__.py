"""Arms grouped by equal beta: exact answers to queries in any order, of either sign (uniform and partition).

state   the arrays
treap   the arms of one group in order
groups  groups that open and close while arms move between them
rounds  the kernels of a round
engine  the class
"""
