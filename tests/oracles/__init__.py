"""Slow oracles that import nothing of the package: the truth that fast code is compared with."""
