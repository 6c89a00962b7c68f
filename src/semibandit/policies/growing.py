"""A policy that goes on with a larger ground set."""

from __future__ import annotations

from typing import Any, Self

from semibandit.errors import ParameterError
from semibandit.locking import Guarded
from semibandit.matroids import Matroid
from semibandit.policies.state import grown


class Growing(Guarded):
    """What `Policy.grow` does: a fresh policy of the larger matroid takes over what is known, and its place."""

    matroid: Matroid
    n_arms: int
    _arguments: Any
    _state: Any
    _set_state: Any
    _end_straight: Any

    def grow(self, matroid: Matroid) -> None:
        """Go on with a larger ground set: arms 0 .. n_arms - 1 stay what they are, the others are new.

        `matroid` must be of the same class with at least as many arms; that it agrees with the old one on the old arms
        is the caller's affair. Decisions that wait go on waiting, deleted arms stay deleted. O(K) for the new K: let
        the ground set double and `delete` the arms that are not there yet, and each arm costs O(1) amortised; bringing
        one in is then an `insert`.

        Raises
        ------
        ParameterError
            When the matroid is of another class or smaller, or the policy cannot do without being told more.

        Example
        -------
        >>> import semibandit as sb
        >>> policy = sb.Greedy(sb.Uniform(n_arms=2, rank=1))
        >>> policy.update([0, 1], [0.3, 0.4])
        >>> policy.grow(sb.Uniform(n_arms=3, rank=1))
        >>> policy.counts.tolist(), policy.select().tolist()
        ([1, 1, 0], [2])
        """
        self._check_growth(matroid)
        try:
            other = type(self)(matroid, **self._grown_arguments(matroid.n_arms))
            other._grow_from(self)
        except NotImplementedError as error:
            raise ParameterError(f"{type(self).__name__} cannot grow: {error}") from None
        for policy in (self, other):
            policy._end_straight()
        mine, theirs = self.__dict__, dict(other.__dict__)
        for name in ("_lock", "_decisions"):
            theirs.pop(name, None)
        stale = [
            name for name in mine if name.startswith("_") and name not in (*theirs, "_lock", "_decisions")
        ]
        mine.update(theirs)  # never without a lock, which other threads may be waiting for
        for name in stale:
            del mine[name]

    def _check_growth(self, matroid: Matroid) -> None:
        if type(matroid) is not type(self.matroid) or matroid.n_arms < self.n_arms:
            raise ParameterError(
                f"matroid must be a {type(self.matroid).__name__} with at least {self.n_arms} arms, got {matroid!r}"
            )

    def _grown_arguments(self, n_arms: int) -> dict[str, Any]:
        """`_arguments` for a policy like this one with `n_arms` arms."""
        arguments: dict[str, Any] = self._arguments()
        return arguments

    def _grow_from(self, old: Self) -> None:
        """Take over, fresh, what `old` knows of its arms, which are the first ones here. O(K)."""
        self._set_state(self._grown_state(old))

    def _grown_state(self, old: Self) -> dict[str, Any]:
        """The state of `old` for the arms that are here; new ones have what a fresh policy has. O(K)."""
        return grown(old._state(), self._state())
