"""Arms in order of weight, kept from one round to the next: the family of structures that greedy walks along.

All keep the same promise: arms are told of as they change, and the order is made right for a new lam.

kept      one order, all of it repaired at every update: O(K) per round, for engines that look at everything anyway
two_runs  a long run that rests and a short one with the arms that moved: O(sqrt(D K)) per round while lam stands still
lazy      arms outside a base, sorted only as far as someone looks: O(log K) for an arm that comes or goes
chunks    the front of a lazy order in chunks with tags: what comes moves few entries, what leaves is a hole
"""
