"""`Sharded`: a policy whose arms are spread over shards, with the decisions of one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from semibandit.arms import IntArray
from semibandit.checks import as_number, as_seed, as_whole
from semibandit.distributed import files
from semibandit.distributed.coordinator import Coordinator
from semibandit.distributed.crew import Crew
from semibandit.distributed.kinds import FEATURED, Guide
from semibandit.distributed.merge import Parts, Whole, ground_of_parts, merge, row_for
from semibandit.distributed.places import transport_for
from semibandit.distributed.shard import Spec
from semibandit.distributed.split import NONE, Ids, Split, by_sizes, split
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid, codec
from semibandit.policies.base import Policy
from semibandit.policies.decisions import Waiting

#: Patience for one message, in seconds.
TIMEOUT = 120.0


class Sharded(Coordinator):
    """A policy whose arms are spread over shards: in this process, or on a cluster by Ray (extra ``ray``).

    Each shard keeps an ordinary policy over its own arms and answers a round with its own base; the best base of these
    bases is the best base of all (docs/theory.md, A). CUCB, KL-OSM, CombLinTS and CombLinUCB (`ShardedFeatures`)
    decide what they decide in one process, bit for bit; CTS what ``CTS(sampler="keyed")`` does. docs/scaling.md says
    what a round costs and when this pays.

    Parameters
    ----------
    matroid
        What may be played together: a class that can be cut (all built-in ones). See `from_parts` for ground sets that
        no process should hold.
    policy
        ``"cucb"``, ``"kl-osm"``, ``"cts"``, ``"comb-lin-ts"`` or ``"comb-lin-ucb"``, or the class.
    shards
        How many. Arms are spread evenly, along the groups of a partition and the outermost families of a laminar
        matroid where that spares the merge.
    on
        None: in this process. ``"ray"``: actors of the cluster that this process is connected to, else of the one that
        ``RAY_ADDRESS`` names, else of a new one on this machine. ``"ray://host:port"``, ``"host:port"``: that cluster.
    timeout
        Seconds to wait for a shard before a `ShardError`.
    snapshots
        A folder that all machines see, for the snapshots from which lost shards are made anew; None: in the memory
        of this process.
    reward_range, outside, seed, options
        Of the policy. Not ``ties="random"``, nor a schedule that is a function.

    Notes
    -----
    Cost: a message to and from each shard a round; feedback and whatever else is told goes along with the next
    message. A shard does the work of the policy over its own arms. The coordinator: O(n D log(n D)) for n shards.
    `counts`, `means`, `clone` and `save` move O(K). `decide` and `learn` are those of one process too; the plays that
    wait are told with the next round, so ``decide(count=n)`` takes n rounds of messages, ``select(count=n)`` one.

    A shard that dies is made anew from its last snapshot and what it was told since. Decisions are those of an
    undisturbed run.

    Example
    -------
    >>> import semibandit as sb
    >>> from semibandit.distributed import Sharded
    >>> policy = Sharded(sb.Uniform(n_arms=1000, rank=3), policy="cucb", shards=4)
    >>> one = sb.CUCB(sb.Uniform(n_arms=1000, rank=3))
    >>> for _ in range(400):
    ...     arms = policy.select()
    ...     assert (arms == one.select()).all()
    ...     for each in (policy, one):
    ...         each.update(arms, (arms % 10) / 10)
    >>> policy.select(count=2)
    [array([ 7, 17, 27]), array([ 7, 17, 27])]
    """

    #: The class of `_guide`.
    _guides: ClassVar[type[Guide]] = Guide

    def __new__(cls, *args: Any, policy: Any = "cucb", **kwargs: Any) -> Self:
        """One of `ShardedFeatures` where the policy has features."""
        from semibandit.distributed.featured import ShardedFeatures  # which is one of these

        featured = cls is Sharded and getattr(policy, "name", policy) in FEATURED
        return super().__new__(ShardedFeatures if featured else cls)  # type: ignore[return-value]

    def __init__(
        self,
        matroid: Matroid,
        *,
        policy: Any = "cucb",
        shards: int = 2,
        on: Any = None,
        timeout: float = TIMEOUT,
        snapshots: str | Path | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        outside: str = "error",
        seed: int | None = 0,
        **options: Any,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        self._row = row_for(matroid)
        self._given = {"policy": policy, "shards": as_whole(shards, "shards", 1, "a number of shards")}
        self._setting = {"on": on, "timeout": timeout, "snapshots": snapshots}
        self._guide = self._new_guide(policy, options, matroid)
        self._guide.start(matroid.n_arms, matroid.rank)
        self._split = split(matroid, self._given["shards"])
        self._ground = Whole(matroid, self._split)
        self._crew = self._new_crew(self._whole_spec)
        self._crew.start(range(self._split.shards))

    @classmethod
    def from_parts(
        cls,
        matroid: str,
        parts: Sequence[Mapping[str, Any] | Callable[[], Mapping[str, Any]]],
        *,
        policy: Any = "cucb",
        on: Any = None,
        timeout: float = TIMEOUT,
        snapshots: str | Path | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        outside: str = "error",
        seed: int | None = 0,
        **options: Any,
    ) -> Self:
        """A policy over a ground set of which each shard is told its own part only, and nobody holds all.

        Parameters
        ----------
        matroid
            ``"uniform"``, ``"partition"``, ``"laminar"``, ``"graphic"``, ``"transversal"``, ``"linear"``.
        parts
            For each shard what its arms are, as saved files hold it: ``n_arms`` and ``rank``; ``groups`` and
            ``capacities``; ``leaf``, ``parent`` and ``capacities``; ``edges`` and ``n_vertices``; ``indptr``,
            ``indices`` and ``n_right``; ``limbs``, ``dimension`` and ``field``. Rank, capacities, families and
            numbers of vertices are those of the whole and the same in all parts. Or a function that gives such a
            dictionary: it is called where the shard lives. Arms are numbered through, part after part.

        The prior, if there is one, is the same for all arms, and ``clock="auto"`` and `grow` are not to be had.

        >>> from semibandit.distributed import Sharded
        >>> parts = [{"groups": groups, "capacities": [1, 2]} for groups in ([0, 0, 1], [1, 1, 0, 0])]
        >>> policy = Sharded.from_parts("partition", parts, policy="kl-osm")
        >>> policy.n_arms, policy.select().tolist()
        (7, [0, 2, 3])
        """
        self = cls.__new__(cls, policy=policy)
        self._row = codec.row(matroid)
        if self._row.parting is None:
            raise ParameterError(f"matroid = {matroid!r} cannot be sharded: it does not say how it is cut")
        if not parts:
            raise ParameterError("parts is empty: need one for each shard")
        self._given = {"policy": policy, "shards": len(parts)}
        self._setting = {"on": on, "timeout": timeout, "snapshots": snapshots}
        self.reward_range, self.seed = reward_range, as_seed(seed, none_is_zero=True)
        self._guide = self._new_guide(policy, options, None)
        told: Any = list(parts)
        self._guide.options_for(None)
        crew = self._new_crew(lambda i: Spec(matroid, told[i], None, *self._of_shard(None), loops=False))
        self._start_parts(crew, outside)
        return self

    def _start_parts(self, crew: Crew, outside: str) -> None:
        """Hear from the shards how large they are and what all arms share, and be a policy over all of them."""
        shards = range(self._given["shards"])
        self._crew = crew
        sizes = crew.start(shards)
        self._split = by_sizes(sizes)
        crew.place([self._split.ids(i) for i in shards])
        common = self._same_for_all([answer for answer in crew.ask_all(("common",))])
        ground = Parts(self._row, common)
        self._ground = ground
        bases = [answer for answer in crew.ask_all(("some_base",))]
        rank = len(merge(bases, ground).arms)
        self._learn_of_parts()
        shown = ground_of_parts(self._row, common, int(self._split.bounds[-1]), rank, self._picked)
        super().__init__(shown, reward_range=self.reward_range, outside=outside, seed=self.seed)
        self._guide.start(self.n_arms, rank)

    def _learn_of_parts(self) -> None:
        """Ask shards that were made from parts for what else must be known."""

    def _own_state(self) -> dict[str, Any]:
        """What goes into files besides; see `files`."""
        return {}

    def _set_own_state(self, state: dict[str, Any]) -> None:
        """The inverse."""

    def _same_for_all(self, told: list[dict[str, Any]]) -> dict[str, Any]:
        """What the parts share; parts that do not agree are refused."""
        for i, one in enumerate(told[1:], start=1):
            for name, value in one.items():
                if not np.array_equal(value, told[0][name]):
                    raise ParameterError(
                        f"parts[{i}] has another {name} than parts[0]: it is that of all arms"
                    )
        return told[0]

    def _picked(self, order: IntArray) -> IntArray:
        """Greedy over these arms, whose parts are fetched from the shards."""
        parted = self._split.parted(order)
        facts = self._crew.ask({i: ("facts", order[at]) for i, at in parted})
        places = np.concatenate([at for _, at in parted]) if parted else NONE
        ground: Any = self._ground
        # What is picked are places in the order in which the facts came.
        return order[places[ground.picked(np.argsort(places), [facts[i] for i, _ in parted])]]

    def _new_guide(self, policy: Any, options: dict[str, Any], matroid: Matroid | None) -> Guide:
        given = {"reward_range": self.reward_range, "seed": self.seed, **options}
        return self._guides(policy, given, matroid)

    def _new_crew(self, spec: Callable[[int], Spec]) -> Crew:
        limit = as_number(self._setting["timeout"], "timeout", 0.0, closed=False)
        return Crew(transport_for(self._setting["on"], limit), spec, self._setting["snapshots"])

    def _of_shard(self, ids: Ids | None) -> tuple[str, dict[str, Any]]:
        return self._guide.entry.factory.__name__, self._guide.options_for(ids)

    def _whole_spec(self, shard: int) -> Spec:
        """What a shard of a matroid that is held here is made of. O(n)."""
        ids = self._split.ids(shard)
        return Spec(self._row.name, self._parts_of(self.matroid, ids), ids, *self._of_shard(ids))

    def _parts_of(self, matroid: Matroid, ids: Ids) -> Any:
        if ids.size == matroid.n_arms:
            return self._row.to_parts(matroid)
        return self._row.parting.take(self._row.to_parts(matroid), ids.all())

    # -- growing, copying, files -------------------------------------------------------------------------

    def grow(self, matroid: Matroid) -> None:
        """Go on with a larger ground set, as `CUCB.grow`; new arms are spread over the shards. O(K)."""
        if self._ground.facts or self._guide.own_priors:
            raise ParameterError("a policy made from parts, or with a prior for each arm, cannot grow")
        self._check_growth(matroid)
        self._grow(matroid)

    def _grow(self, matroid: Matroid, besides: Callable[[Ids], tuple[Any, ...]] = lambda ids: ()) -> None:
        """`grow` to a matroid that fits; shards are told of their arms what `besides` says too."""
        grown = self._split.grown(matroid)
        for i in range(grown.shards):
            ids = grown.ids(i)
            self._crew.tell(i, ("grow", self._parts_of(matroid, ids), ids, *besides(ids)), ids.size)
        self.matroid, self.n_arms, self._split = matroid, matroid.n_arms, grown
        self._ground = Whole(matroid, grown)

    def clone(self) -> Self:
        """An independent copy, in shards of its own, that goes on exactly as this one would. O(K)."""
        other = self._like_this()
        other._crew = self._crew.copied(other._restored_spec)
        other._take_decisions(Waiting.from_state(self._decisions.state(), self.n_arms))
        return other

    def __reduce_ex__(self, protocol: Any) -> Any:
        with self._lock:
            on = self._setting["on"]
            setting = {**self._setting, "on": on if isinstance(on, str) else None}
            return files.from_pieces, (type(self), *files.to_pieces(self), setting)

    def save(self, path: str | Path) -> None:
        """Write the policy: a file a shard, and at `path` a manifest, which `Sharded.load` reads. O(K).

        A crash leaves the old set of files or the new one (`semibandit.distributed.files`). On a cluster the folder
        must be one that all machines see.
        """
        files.save(self, path)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        on: Any = None,
        timeout: float = TIMEOUT,
        snapshots: str | Path | None = None,
    ) -> Self:
        """The policy that was saved at `path`, which goes on exactly as that one would, wherever its shards are now.

        Raises
        ------
        FileError
            When a file is damaged or missing, or of another set.
        """
        setting = {"on": on, "timeout": timeout, "snapshots": snapshots}
        return files.load(cls, path, setting)  # type: ignore[return-value]

    @classmethod
    def _bare(
        cls,
        about: Mapping[str, Any],
        options: dict[str, Any],
        parted: Split,
        matroid: Matroid | None,
        common: dict[str, Any] | None,
        setting: dict[str, Any],
    ) -> Self:
        """A policy without shards, for those of a manifest."""
        self = cls.__new__(cls, policy=about["kind"])
        self._row, self._split, self._setting = codec.row(about["row"]), parted, setting
        self._given = {"policy": about["kind"], "shards": parted.shards}
        reward_range, seed = tuple(options["reward_range"]), options["seed"]
        if matroid is None:
            assert common is not None
            n_arms, rank = int(parted.bounds[-1]), int(about["rank"])
            self._ground = Parts(self._row, common)
            shown = ground_of_parts(self._row, common, n_arms, rank, self._picked)
        else:
            self._ground, shown = Whole(matroid, parted), matroid
        Policy.__init__(self, shown, reward_range=reward_range, outside=about["outside"], seed=seed)
        self._guide = self._guides(about["kind"], {**options, "reward_range": reward_range}, matroid)
        self._guide.start(self.n_arms, shown.rank)
        self._crew = self._new_crew(self._restored_spec)
        return self

    def _like_this(self) -> Self:
        """A policy with all of this one but its shards and what waits."""
        other = type(self).__new__(type(self), policy=self._guide.entry.name)
        shared = {
            key: value for key, value in vars(self).items() if key not in ("_lock", "_crew", "_decisions")
        }
        vars(other).update(shared)
        other._clipped = self._clipped.copy()
        other._guide = self._guide.clone()
        if self._ground.facts:
            other.matroid = ground_of_parts(
                self._row,
                self._ground.common,
                self.n_arms,
                self.matroid.rank,
                other._picked,
            )
        return other

    def _restored_spec(self, shard: int) -> Spec:
        """For a shard that is made from a snapshot, which holds its part of the matroid."""
        ids = self._split.ids(shard)
        return Spec(self._row.name, None, ids, *self._of_shard(ids))
