"""`Fleet`: a CUCB for each of many users, sessions or sites, over the same matroid, in one kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semibandit import __version__
from semibandit.arms import IntArray
from semibandit.checks import as_arms, as_whole
from semibandit.compiled.handle import make_handle
from semibandit.engines.base import bytes_of
from semibandit.errors import ArmError, FileError, ParameterError, RewardError
from semibandit.fleet.members import (
    BAD_ARM,
    BAD_MEMBER,
    new_members,
    reweigh_all,
    select_members,
    update_members,
)
from semibandit.locking import Guarded, NotCopied
from semibandit.matroids import Matroid, Partition, Uniform
from semibandit.matroids.base import kind_of
from semibandit.policies.files import (
    _MAKES_NO_SENSE,
    Arrays,
    _matroid_from,
    _matroid_to,
    _plain,
    _read,
    _rich,
    _write,
)
from semibandit.policies.index.cucb import CUCB
from semibandit.policies.state import array_of

#: Stands where files of policies have the name of a class, so that `semibandit.load` says what to do.
_TITLE = "Fleet (to be read by semibandit.Fleet.load)"


class Fleet(NotCopied, Guarded):
    """`size` learners over one matroid, each with rounds and statistics of its own: personal slates.

    Member u decides as ``CUCB(matroid, clock="staircase", ...)`` does that is told the feedback of member u alone, bit
    for bit. What is shared is the kernel: one call plays the next round of any number of members.

    Parameters
    ----------
    matroid
        `Uniform` or `Partition`: what a member may play together.
    size
        Number of members; they are 0 .. size - 1.
    reward_range, exploration, step, prior
        As in `CUCB`. With few rounds per member a prior is what makes it learn: ``exploration="practical"`` and
        ``prior=fit_prior(...)`` from everybody's data.

    Cost: O(D (sqrt K + log D)) per round of a member, O(sqrt K) per reward, O(K) at each stair of a member's clock (150
    in a million rounds with the default `step`). At most 40 bytes per member and arm.

    Example
    -------
    >>> import numpy as np, semibandit as sb
    >>> fleet = sb.Fleet(sb.Uniform(n_arms=6, rank=2), size=3)
    >>> fleet.select([0, 2]).tolist()
    [[0, 1], [0, 1]]
    >>> fleet.update([0, 2], [[0, 1], [0, 1]], [[1.0, 0.0], [0.0, 0.5]])
    >>> fleet.select([0, 1, 2], exclude=[[2], [0], [-1]]).tolist()
    [[3, 4], [1, 2], [2, 3]]
    >>> fleet.member(0).means[:2].tolist(), fleet.t.tolist()
    ([1.0, 0.0], [2, 1, 2])
    """

    def __init__(
        self,
        matroid: Matroid,
        size: int,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        exploration: float | str = 1.5,
        step: float = 0.01,
        prior: Any = None,
    ) -> None:
        if not isinstance(matroid, Matroid) or kind_of(matroid) not in (Uniform, Partition):
            raise ParameterError(f"matroid must be a Uniform or a Partition, got {matroid!r}")
        self.matroid, self.n_arms = matroid, matroid.n_arms
        self.size = as_whole(size, "size", 1, "a number of members")
        # A member at its start: what it was told is checked there, and its clock and records are those of all.
        self._first = CUCB(
            matroid,
            reward_range=reward_range,
            exploration=exploration,
            clock="staircase",
            engine="resolve",
            step=step,
            prior=prior,
        )
        self.reward_range = self._first.reward_range
        records = self._first.records
        with np.errstate(invalid="ignore"):
            known = np.stack(
                [records["count"], np.where(records["count"] > 0.0, records["alpha"], 0.0)], axis=1
            )
        self._members = new_members(matroid, self.size, self._first._clock, known)
        self._handle = make_handle(self._members)

    @property
    def t(self) -> IntArray:
        """Number of rounds of each member so far. O(size) copy."""
        return self._members.t.copy()

    def _ids(self, members: Any) -> IntArray:
        try:
            return as_arms(members, self.size, "members")
        except ArmError as error:
            raise ArmError(str(error).replace("is not an arm", "is not a member")) from None

    def select(self, members: npt.ArrayLike, exclude: npt.ArrayLike | None = None) -> IntArray:
        """The next bases of these members, a row of ascending arm ids each; one round of each of them.

        `exclude`: a row of arms for each member, which its base avoids; -1 for none. A row ends in -1 where arms are
        missing. A member that is named twice plays two rounds.
        """
        ids = self._ids(members)
        without = self._left_out(exclude, len(ids))
        out = np.empty((len(ids), self.matroid.rank), dtype=np.int64)
        select_members(self._handle, ids, without, out)
        return out

    def _left_out(self, exclude: Any, n: int) -> IntArray:
        if exclude is None:
            return np.empty((n, 0), dtype=np.int64)
        given = np.asarray(exclude)
        if given.ndim != 2 or len(given) != n or (given.size and given.dtype.kind not in "iu"):
            raise ArmError(
                f"exclude must have a row of arm ids for each of {n} members, got shape {given.shape}"
            )
        bad = (given < -1) | (given >= self.n_arms)
        if bad.any():
            i, j = np.argwhere(bad)[0]
            raise ArmError(
                f"exclude[{i}][{j}] = {given[i, j]} is neither an arm nor -1: ids are 0 .. {self.n_arms - 1}"
            )
        return np.require(given, dtype=np.int64, requirements=["C", "W", "A"])

    def update(self, members: npt.ArrayLike, arms: npt.ArrayLike, rewards: npt.ArrayLike) -> None:
        """Count rewards: late, in part, in any order, for any arms of any members. A rejected call changes nothing.

        Members and arms side by side, or a row of arms for each member, in which -1 stands for none.
        """
        who, what = np.asarray(members), np.asarray(arms)
        gained = np.asarray(rewards, dtype=np.float64)
        if what.shape != gained.shape or what.ndim not in (1, 2) or who.shape != what.shape[:1]:
            raise RewardError(
                f"arms and rewards must have one row for each of {who.size} members, got shapes {what.shape} and "
                f"{gained.shape}"
            )
        if what.dtype.kind not in "iu" and what.size:
            raise ArmError(f"arms must be integers, got dtype {what.dtype}")
        ids = self._ids(who)
        gaps = what.ndim == 2
        rows = what.shape if gaps else (len(what), 1)
        what = np.require(what, dtype=np.int64, requirements=["C", "W", "A"]).reshape(rows)
        gained = np.require(gained, requirements=["C", "W", "A"]).reshape(rows)
        low, high = self.reward_range
        code = int(update_members(self._handle, ids, what, gained, low, high, gaps))
        if code:
            kind, (i, j) = code & 3, divmod(code >> 2, rows[-1])
            if kind in (BAD_MEMBER, BAD_ARM):
                raise ArmError(
                    f"arm {what[i, j]} of member {ids[i]} is not an arm: ids are 0 .. {self.n_arms - 1}"
                )
            raise RewardError(
                f"reward {gained[i, j]} for arm {what[i, j]} of member {ids[i]} is outside reward_range = "
                f"({low}, {high})"
            )

    def member(self, member: int) -> CUCB:
        """A `CUCB` that goes on as this member would; the fleet keeps its own. O(K log K)."""
        u = int(self._ids([member])[0])
        state, mine = self._members, self._first.clone()
        place = state.place_of
        count, total = state.count[u, place], state.total[u, place]
        seen = count != state.known[0, place]
        mine.records["count"], mine.records["total"] = count, total
        mine.records["alpha"][seen] = total[seen] / count[seen]
        mine.records["beta"][seen] = 1.0 / np.sqrt(count[seen])
        mine._clock[:] = state.clock[u]
        mine._played_until(int(state.t[u]))
        mine._engine.touch_all()
        return mine

    def counts(self, member: int) -> IntArray:
        """How often each arm's reward was seen by a member. O(K)."""
        u, state = int(self._ids([member])[0]), self._members
        place = state.place_of
        return np.rint(state.count[u, place] - state.known[0, place]).astype(np.int64)

    def describe(self) -> dict[str, Any]:
        """What is inside, and how much of it."""
        held = bytes_of(self._members)
        return {
            "matroid": repr(self.matroid),
            "members": self.size,
            "exploration": self._first._asked_exploration,
            "bytes": held,
            "bytes_per_member_and_arm": held / (self.size * self.n_arms),
        }

    def clone(self) -> Fleet:
        """An independent copy that goes on exactly as this one would. O(size K)."""
        other = Fleet(self.matroid, self.size, **self._arguments())
        other._take(self._state())
        return other

    def __copy__(self) -> Fleet:
        return self.clone()

    def __deepcopy__(self, memo: Any) -> Fleet:
        return self.clone()

    # -- files -------------------------------------------------------------------------------------------

    def _arguments(self) -> dict[str, Any]:
        given = self._first._arguments()
        return {name: given[name] for name in ("reward_range", "exploration", "step", "prior")}

    def _state(self) -> Arrays:
        """What was learnt, one vector each, which are the members' own."""
        return {name: getattr(self._members, name).ravel() for name in ("count", "total", "clock", "t")}

    def _take(self, state: Any) -> None:
        """Go on from the result of `_state`, or from what a file tells."""
        mine = self._state()
        given = {name: array_of(state, name, array.dtype, array.size) for name, array in mine.items()}
        least = np.tile(self._members.known[0], self.size)
        if not (np.isfinite(given["total"]).all() and (given["count"] >= least).all()):
            raise FileError("the records hold what no arm can have")
        if (given["t"] < 0).any() or not np.isfinite(given["clock"]).all():
            raise FileError("the clocks make no sense")
        for name, array in mine.items():
            array[:] = given[name]
        reweigh_all(self._members)

    def save(self, path: str | Path) -> None:
        """Write the fleet to a file that `Fleet.load` reads, in the format of `Policy.save`. Atomic. O(size K)."""
        arrays: Arrays = {}
        about: dict[str, Any] = {
            "library": __version__,
            "policy": _TITLE,
            "size": self.size,
            "matroid": _matroid_to(self.matroid, arrays),
            "arguments": _plain(self._arguments(), "arguments", arrays),
        }
        _write(Path(path), about, {**arrays, **self._state()})

    @classmethod
    def load(cls, path: str | Path) -> Fleet:
        """The fleet in a file, which goes on exactly as the one that was saved. O(size K).

        Raises
        ------
        FileError
            When the file is damaged or holds something else.
        """
        about, arrays = _read(path)
        if about.get("policy") != _TITLE:
            raise FileError(f"{path} holds no fleet but a policy: semibandit.load reads it")
        try:
            arguments = _rich(about["arguments"], arrays)
            fleet = cls(_matroid_from(about["matroid"], arrays), about["size"], **arguments)
            fleet._take(arrays)
        except _MAKES_NO_SENSE as error:
            raise FileError(f"{path}: the content makes no sense ({type(error).__name__}: {error})") from None
        return fleet

    def _check(self) -> None:
        """Assert that weights and blocks are those of the counts. O(size K)."""
        members = self._members
        own = {name: getattr(members, name).copy() for name in ("weight", "top", "at")}
        fresh = members._replace(**own)
        reweigh_all(fresh)
        for name, array in own.items():
            assert np.array_equal(getattr(members, name), array), name

    def __repr__(self) -> str:
        return f"Fleet({self.matroid!r}, size={self.size})"
