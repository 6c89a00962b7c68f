"""One exception class per kind of mistake.

All derive from `ValueError` where the caller is at fault, so `except ValueError` keeps working, and every
message names the argument, the offending value and what would be right. A call that raises one of these
has changed nothing.
"""

from __future__ import annotations


class SemibanditError(Exception):
    """Base of every error this package raises on purpose."""


class MatroidError(SemibanditError, ValueError):
    """A matroid is described inconsistently: rank 0, families that cross, unknown vertices, ..."""


class ArmError(SemibanditError, ValueError):
    """An arm id is out of range, negative, repeated where that is not allowed, or not an integer."""


class RewardError(SemibanditError, ValueError):
    """A reward is NaN, infinite, outside the declared range, or the number of rewards is wrong."""


class ParameterError(SemibanditError, ValueError):
    """A parameter of a policy, environment, engine or simulation has an impossible value."""


class ClockError(SemibanditError, ValueError):
    """A confidence schedule went down, or is not supported by the chosen engine."""


class ExperimentError(SemibanditError, ValueError):
    """An experiment file or a folder of results is malformed; the message names the file, the line and the key."""


class FileError(SemibanditError, ValueError):
    """A file is damaged, of another kind, of an unknown version, or has a malformed row; nothing of it was used."""


class MissingExtraError(SemibanditError, ImportError):
    """An optional dependency is needed for this call; the message says what to install."""


class ShardError(SemibanditError, RuntimeError):
    """A shard of a policy does not answer, or cannot be started anew; what was decided and learnt before is kept."""
