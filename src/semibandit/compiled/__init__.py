"""Kernels: compiled ahead of time where a build made them, by numba where it did not.

==========  =====================================================================================================
jit         `kernel`, `inline_kernel`: what makes a function a kernel; when and how it is compiled
generic     functions that stand for another kernel for each class of states
handle      many arrays handed to a kernel at the price of one
lanes       vector instructions on 16 lanes, and asking for memory ahead
sorting     sorting ids and (weight, arm) pairs
random      SplitMix64: one generator with a state, one that is a pure function of its counters
sources     what a kernel's code depends on, as a hash
split       numba's dispatcher, changed to compile a tree of kernels once
native      loading kernels compiled ahead of time
ahead       compiling them (when the package is built); `training` says which
==========  =====================================================================================================
"""
