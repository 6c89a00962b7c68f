"""CTS: combinatorial Thompson sampling (Wang and Chen 2018), plain and in sublinear time."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from semibandit.arms import FloatArray, IntArray
from semibandit.checks import as_flag, as_number, one_of
from semibandit.compiled.handle import by_handle
from semibandit.engines.resolve.oracle import resolve_engine
from semibandit.errors import FileError, ParameterError
from semibandit.matroids import Matroid, Partition, Uniform
from semibandit.matroids.base import kind_of
from semibandit.policies.catalogue import register
from semibandit.policies.decisions import Ends
from semibandit.policies.many import ALL_PLACED, HEEDLESS
from semibandit.policies.prior import as_prior
from semibandit.policies.records import CountingPolicy
from semibandit.policies.rounds import NoEngine, hand_on
from semibandit.policies.state import array_of
from semibandit.policies.thompson.boosted import BoostedRounds, boosted_sigma
from semibandit.policies.thompson.grouped import SAMPLERS, GroupedArms, choose_sampler
from semibandit.policies.thompson.keyed import KeyedRounds, draw_keyed
from semibandit.policies.thompson.posterior_groups import leave_all
from semibandit.policies.thompson.posterior_layout import GROUP, LIVE, LOSSES, WINS
from semibandit.policies.thompson.posterior_room import check_groups, restored, rows_of, told
from semibandit.policies.thompson.quantiles import posterior_ends
from semibandit.policies.thompson.rounds import PlainRounds, draw_samples
from semibandit.policies.thompson.staged_round import APART, MEETING, SINGLE, StagedRounds

POSTERIORS = ("beta", "gaussian")


@register(
    cost="draws O(D) posteriors a round (O(D log D) in graphs and transversal matroids), expected; else O(K)",
    guarantee="regret O(sum of log T / gap) for every matroid, if arms are independent",
    reference="Wang and Chen 2018; Agrawal and Goyal 2012 for rewards that are not 0 or 1; Zhang and Combes 2024",
    take="for small regret with rewards in a known range, when no worst case must be promised: the first to try",
)
class CTS(GroupedArms):
    """Thompson sampling over the bases of a matroid: draw a mean for each arm, play the best base of the draws.

    Parameters
    ----------
    matroid
        What may be played together.
    reward_range
        Bounds (a, b) of every reward.
    posterior
        ``"beta"``: Beta(1 + successes, 1 + failures). A reward strictly between a and b counts as a success with
        probability (reward - a) / (b - a) (Agrawal and Goyal 2012). ``"gaussian"``: mean of the rewards, variance
        sigma^2 / N; an arm never seen comes first.
    sigma
        Standard deviation of a reward for the Gaussian posterior; (b - a) / 2 unless given.
    boosted
        BG-CTS (Zhang and Combes 2024), for the Gaussian posterior: the variance is ``g(t) sigma^2 / N`` with
        g(t) = 2 (log t + (D + 2) log log t) / log t, and the regret polynomial in D (`thompson.boosted`).
    sampler
        ``"plain"``: all K samples each round, for any matroid and posterior. ``"grouped"``: the Beta posterior on
        uniform, partition, laminar, graphic and transversal matroids, in sublinear time and with the same law (see
        the notes). ``"auto"`` takes the second where it can and there are enough arms for it to be faster.
        ``"keyed"``: as plain, but the sample of an arm is a function of (seed, arm, round), so that
        `semibandit.distributed.Sharded` plays the same whatever the number of shards.
    prior
        ``(mean, strength)`` of the Beta prior in place of Beta(1, 1), one number each or one per arm (`beta_prior`,
        `fit_prior`). Rounded to whole successes and failures, at least one each, so that arms with the same posterior
        can be drawn together: Beta(1, 30) stays what it is, Beta(0.4, 12.3) becomes Beta(1, 12).
    seed
        Of all draws. The samplers draw different numbers from one seed.

    Notes
    -----
    *Grouped.* Arms with the same successes and failures are exchangeable and kept in groups. A round draws only the
    samples that lie beyond a level: a Poisson process jumps to the few arms that may, and a draw from a bound on the
    tail of the posterior keeps or thins each. Greedy goes through them from the largest down. Where it reaches the
    level of a class of arms that is still open (a partition's group, a family of a laminar matroid), that class goes
    on to a lower level; in graphs and transversal matroids the arms are listed that the picked ones do not span yet.
    The law of the played base is that of the plain sampler, up to the rounding of floats (docs/theory.md, "Thompson
    sampling by groups").

    Cost. Plain: O(K) a round, plus the greedy of the matroid. Grouped: expected O(1) for each sample beyond its
    level, of which there are a small multiple of D (of D log D in graphs and transversal matroids), for each class,
    and for 4,096 groups; a class that goes on costs its groups, and finding a level anew costs them a handful of
    times, both rare. O(1) amortised an arm updated.

    Regret: O(sum of log T / gap) for matroids (Wang and Chen 2018), for rewards that are independent between arms.

    Example
    -------
    >>> import semibandit as sb
    >>> policy = sb.CTS(sb.Uniform(n_arms=100_000, rank=3), seed=1)
    >>> arms = policy.select()
    >>> policy.update(arms, [1.0, 0.0, 0.5])
    >>> policy.describe()["groups"]
    3
    """

    name = "cts"
    _called: tuple[int, IntArray] = (0, np.zeros(0, dtype=np.int64))

    def __init__(
        self,
        matroid: Matroid,
        *,
        reward_range: Any = (0.0, 1.0),
        posterior: str = "beta",
        sigma: float | None = None,
        boosted: bool = False,
        sampler: str = "auto",
        prior: Any = None,
        outside: str = "error",
        seed: int | None = 0,
    ) -> None:
        super().__init__(matroid, reward_range=reward_range, outside=outside, seed=seed)
        self.posterior = one_of(posterior, "posterior", POSTERIORS)
        if sigma is not None and posterior == "beta":
            raise ParameterError("sigma is for posterior = 'gaussian'; the Beta posterior has none")
        self.boosted = as_flag(boosted, "boosted")
        if self.boosted and posterior == "beta":
            raise ParameterError(
                "boosted = True is for posterior = 'gaussian'; the Beta posterior stays as it is"
            )
        low, high = self.reward_range
        self.sigma = 0.5 * (high - low) if sigma is None else as_number(sigma, "sigma", 0.0, closed=False)
        self._asked = (posterior, sigma, one_of(sampler, "sampler", SAMPLERS))
        self.sampler, self._why = choose_sampler(matroid, posterior, self.boosted, sampler)
        self._arm: IntArray = rows_of(self.n_arms, 4, np.int64)
        self._groups = None
        if self.sampler == "grouped":
            self._groups = self._open_groups()
        else:
            # Its records hold the samples.
            self._engine = resolve_engine(matroid)
        self._open()
        believed = as_prior(prior, self.n_arms, self.reward_range)
        self._asked_prior = None if believed is None else believed.as_argument()
        if believed is not None and posterior != "beta":
            raise ParameterError("prior is for posterior = 'beta'; the Gaussian posterior takes none")
        # Successes and failures that the prior stands for, beyond those of Beta(1, 1): one row, or one per arm.
        self._pseudo: IntArray = np.zeros((1, 2), dtype=np.int64)
        if believed is not None:
            self._pseudo = believed.pseudo_counts(*self.reward_range)
            self._count_anew(np.arange(self.n_arms, dtype=np.int64))

    def _pseudo_of(self, ids: IntArray) -> IntArray:
        return self._pseudo[ids] if len(self._pseudo) > 1 else np.broadcast_to(self._pseudo, (len(ids), 2))

    def _count_anew(self, ids: IntArray) -> None:
        """Let these arms have no successes and failures but those of the prior."""
        here = ids[~self._presence.is_deleted(ids)]
        if self._groups is not None:
            leave_all(self._groups, here)
        pseudo = self._pseudo_of(ids)
        self._arm[ids, WINS], self._arm[ids, LOSSES] = pseudo[:, 0], pseudo[:, 1]
        if self._groups is not None:
            self._join(here)

    def _make_own(self) -> Any:
        low, high = self.reward_range
        if self.boosted:
            return BoostedRounds(self.sigma, float(self.matroid.rank), self._recs, self._arm, self._rng)
        if self._groups is None:
            posterior = POSTERIORS.index(self.posterior)
            if self.sampler == "keyed":
                first, ids = self._called
                word = np.zeros(1, dtype=np.uint64)
                known: Any = (self._recs, self._arm, ids, self._rng, word)
                return KeyedRounds(low, high - low, self.sigma, posterior, first, *known)
            return PlainRounds(low, high - low, self.sigma, posterior, self._recs, self._arm, self._rng)
        apart = MEETING
        if kind_of(self.matroid) in (Uniform, Partition):
            apart = SINGLE if self._capacity.max() <= 1 else APART
        parts: Any = (
            self._groups,
            self._points,
            self._rule,
            self._capacity,
            apart,
            self._rng,
            *self._waiting,
            self._meta,
        )
        return StagedRounds(low, high - low, *parts)

    def _call_arms(self, first: int, ids: IntArray) -> None:
        """Let the sampler ``"keyed"`` draw for arms with these names: `ids`, or from `first` on if that is empty."""
        self._called = (first, ids)
        self._open()

    def _engine_state(self) -> Any:
        return NoEngine(self._recs) if self._groups is not None else getattr(self._engine, "any", None)

    # -- rounds ------------------------------------------------------------------------------------------

    def select(self, exclude: Any = None, *, among: Any = None, weights: Any = None) -> IntArray:
        """The best base of one posterior sample, ascending ids; avoids the arms in `exclude`."""
        if among is not None or weights is not None:
            return self._select_some(exclude, among, weights)
        ids = None if exclude is None else self._presence.among(exclude)
        if ids is not None:
            self._take_out(ids)
        try:
            arms = self._play(self._t + 1) if self._whole is not None else self._plain(self._t + 1)
        finally:
            if ids is not None:
                self._put_back(ids)
        self._t += 1
        return arms

    def _at_once(self) -> IntArray | None:
        return None if self._whole is None else HEEDLESS

    def _learns_at_once(self) -> IntArray | None:
        return ALL_PLACED if self._groups is None else self._meta

    def _plain(self, t: int) -> IntArray:
        """A round of the plain sampler where the engine runs in Python."""
        self._aside.prepare(t)
        hand_on(self._aside.touches, self._engine)
        return self._engine._select(0.0)

    def sample(self) -> FloatArray:
        """One draw of all K means from the posterior. O(K). Uses up randomness of the policy."""
        return self._indices_of(np.arange(self.n_arms), self._t)

    def _indices_of(self, arms: IntArray, t: int) -> FloatArray:
        if self.sampler == "keyed":
            drawn = np.empty(len(arms))
            by_handle(draw_keyed, KeyedRounds).entry(self._aside.own_handle, arms, t, drawn)
            return drawn
        out = np.empty((len(arms), 1))
        posterior = POSTERIORS.index(self.posterior)
        draw_samples(posterior, self._sigma_at(t), self._recs[arms], self._arm[arms], self._rng, out, 0)
        return out[:, 0]

    def _sigma_at(self, t: int) -> float:
        """What a draw of round t has in place of the standard deviation of a reward."""
        return float(boosted_sigma(self.sigma, float(self.matroid.rank), t)) if self.boosted else self.sigma

    def _likely(self, arms: IntArray, scores: FloatArray) -> Ends:
        return posterior_ends(self, arms)

    def _reset(self, ids: IntArray) -> None:
        super()._reset(ids)
        self._count_anew(ids)

    # -- the rest ----------------------------------------------------------------------------------------

    @property
    def prior(self) -> tuple[Any, Any] | None:
        """Mean and strength of the prior that was given, None for Beta(1, 1)."""
        return self._asked_prior

    @property
    def successes(self) -> IntArray:
        """Successes of each arm under the Beta posterior, without those of the prior. O(K) copy."""
        return self._arm[:, WINS] - self._pseudo[:, 0]

    @property
    def failures(self) -> IntArray:
        """Failures of each arm under the Beta posterior, without those of the prior. O(K) copy."""
        return self._arm[:, LOSSES] - self._pseudo[:, 1]

    def _arguments(self) -> dict[str, Any]:
        posterior, sigma, sampler = self._asked
        return {
            **super()._arguments(),
            "posterior": posterior,
            "sigma": sigma,
            "boosted": self.boosted,
            "sampler": sampler,
            "prior": self._asked_prior,
        }

    def _grow_from(self, old: Self) -> None:
        if self._groups is None:
            super()._grow_from(old)
            return
        # Groups are made anew; their order is other randomness, not another law.
        state = self._grown_state(old)
        CountingPolicy._set_state(self, state)
        ids = np.arange(old.n_arms, dtype=np.int64)
        here = ids[~self._presence.is_deleted(ids)]
        leave_all(self._groups, here)
        self._arm[ids, WINS], self._arm[ids, LOSSES] = old._arm[:, WINS], old._arm[:, LOSSES]
        self._join(here)
        self._set_rng(state)

    def _state(self) -> dict[str, Any]:
        groups = {} if self._groups is None else told(self._groups)
        return {**super()._state(), **groups, "arm": self._arm.reshape(-1), "rng": self._rng}

    def _set_state(self, state: dict[str, Any]) -> None:
        arm = array_of(state, "arm", np.int64, 4 * self.n_arms).reshape(-1, 4)
        super()._set_state(state)
        seen = arm[:, [WINS, LOSSES]] - self._pseudo
        if (
            not (seen.sum(axis=1) == (self.counts if self.posterior == "beta" else 0)).all()
            or (seen < 0).any()
        ):
            raise FileError("the successes and failures do not add up to the counts")
        self._arm = rows_of(self.n_arms, 4, np.int64)
        self._arm[:] = arm
        if self._groups is not None:
            if not np.array_equal(arm[:, GROUP] >= 0, self._presence.mask):
                raise FileError("the groups of posteriors do not fit the arms")
            self._groups = restored(self._arm, self._groups.classes, len(self._capacity), state)
        self._set_rng(state)
        self._open()

    def describe(self) -> dict[str, Any]:
        """What runs inside; ``groups`` counts the different posteriors."""
        arrays: list[Any] = [self.records, self._arm]
        about: dict[str, Any] = {
            "policy": self.name,
            **self._about_outside(),
            "matroid": repr(self.matroid),
            "engine": self.sampler,
            "why": self._why,
            "posterior": f"{self.posterior}, boosted" if self.boosted else self.posterior,
        }
        if self._groups is not None:
            arrays += [
                value for name, value in self._groups._asdict().items() if name not in ("arm", "chunk")
            ]
            arrays += [*self._points, *self._rule.tree, *self._rule.graph, *self._rule.match]
            about["groups"] = int(self._groups.meta[LIVE])
        about["bytes"] = sum(array.nbytes for array in arrays)
        if self._groups is None:
            about["bytes"] += self._engine.memory()
        about["bytes_per_arm"] = about["bytes"] / self.n_arms
        return about

    def _check(self) -> None:
        """Assert all invariants. O(K)."""
        if self.posterior == "beta":
            assert np.array_equal(self.successes + self.failures, self.counts)
        if self._groups is not None:
            check_groups(self._groups, self._presence.mask)

    def __repr__(self) -> str:
        return f"CTS({self.matroid!r}, posterior={self.posterior!r}, sampler={self.sampler!r}, t={self._t})"
