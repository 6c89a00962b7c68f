"""`engine="hot-cold"`: exact bases of any matroid with few independence tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semibandit.arms import ALPHA, BETA, FloatArray, IntArray
from semibandit.engines.base import Engine
from semibandit.engines.kernels import add_rewards, check_feedback
from semibandit.engines.layers.cold_order import ColdOrder
from semibandit.engines.layers.counted_greedy import CountedGreedy
from semibandit.engines.layers.layers import BASE_SLOT, Layers
from semibandit.engines.layers.places import Places
from semibandit.engines.layers.worth import LayersWorth
from semibandit.engines.registry import STAIRS, register_engine
from semibandit.errors import ParameterError
from semibandit.matroids import Matroid


@register_engine(
    "hot-cold",
    clocks=STAIRS,
    cost="independence tests a round do not grow with K; O(K) at a step of the clock",
    why="only arms played lately and a few layers of the others are tested",
    fast_from=300,
)
class HotColdEngine(Engine):
    """Greedy over hot arms and layers of cold ones: the number of independence tests a round does not grow with K.

    Parameters
    ----------
    reserve
        How many layers are kept besides the first. More make epochs rarer and each epoch dearer.

    Attributes
    ----------
    oracle_calls : int
        Independence tests so far. Where the class knows an incremental greedy (all built-in ones) an arm that greedy
        looks at counts as one; where it has only an oracle, calls of the oracle count, and facts once learnt are
        not asked for again (`remembered_oracle`). Finding the matroid's rank and loops is not counted.
    last_round_calls : int
        Those of the last round, without the making of an epoch.
    epoch_calls, epochs : int
        Those spent on making epochs and layers, and how many epochs there were.

    Notes
    -----
    Cost of a round: greedy over O((reserve + 1) * rank + hot arms) arms; of an epoch: O(K) to sort, and greedy over
    up to K arms for each layer. A staircase clock is wanted.

    Examples
    --------
    >>> import numpy as np
    >>> from semibandit.matroids import Linear
    >>> engine = HotColdEngine(Linear([[1, 0], [2, 0], [1, 1], [0, 3]]))
    >>> engine.set_weights(np.arange(4), [0.9, 0.8, 0.3, 0.2])
    >>> engine.base()
    array([0, 2])
    >>> engine.set_weight(0, 0.1)
    >>> engine.base(), engine.last_round_calls
    (array([1, 2]), 2)
    """

    name = "hot-cold"
    exact_clock = False

    def __init__(
        self,
        matroid: Matroid,
        records: npt.NDArray[np.void] | None = None,
        *,
        reserve: int = 3,
    ) -> None:
        super().__init__(matroid, records)
        if not isinstance(reserve, (int, np.integer)) or isinstance(reserve, bool) or reserve < 0:
            raise ParameterError(f"reserve must be a nonnegative integer, got {reserve!r}")
        self.epoch_calls = self.last_round_calls = self.epochs = 0
        is_loop = np.zeros(self.n_arms, dtype=np.bool_)
        is_loop[matroid.loops] = True
        self._greedy = CountedGreedy(matroid)
        self._order = ColdOrder(self.n_arms, matroid.rank, is_loop)
        self._places = Places(self._order.runs, is_loop, int(reserve) + 1)
        self._layers = Layers(matroid, self._places, self._order, self._greedy, int(reserve))
        self._worth = LayersWorth(self._greedy.test_cost)
        self._epoch_lam = np.nan
        # The arms among which the base lies, and the base; None when they must be found anew.
        self._candidates: IntArray | None = None
        self._base: IntArray | None = None

    @property
    def reserve(self) -> int:
        return self._layers.reserve

    @property
    def oracle_calls(self) -> int:
        return self._greedy.calls

    # -- changes -----------------------------------------------------------------------------------------

    def touch(self, arms: IntArray) -> None:
        self._base = None
        if self._places.mark_hot(arms):
            self._candidates = None

    def _remove(self, ids: IntArray) -> None:
        self._places.take_away(ids)
        self._base = self._candidates = None

    def _restore(self, ids: IntArray) -> None:
        self._places.bring_back(ids)
        self._base = self._candidates = None

    def observe(self, arms: IntArray, rewards: FloatArray, low: float, high: float) -> int:
        code = int(check_feedback(self.n_arms, arms, rewards, low, high))
        if code == 0:
            add_rewards(self._recs, arms, rewards)
            self.touch(arms)
        return code

    # -- answers -----------------------------------------------------------------------------------------

    def _select(self, lam: float) -> IntArray:
        self.last_round_calls = 0
        if lam != self._epoch_lam:
            self._begin_epoch(lam)
        elif self._base is None:
            if self._candidates is None and self._worth.skip == 0:
                self._find_candidates()
            if self._candidates is None:
                self._begin_epoch(lam)
            else:
                self._select_among(self._candidates, lam)
        assert self._base is not None
        return self._base.copy()

    def _find_candidates(self) -> None:
        """Let the layers say among which arms the base lies; they may have to make one more."""
        before = self._greedy.calls
        self._candidates = self._layers.candidates()
        self.epoch_calls += self._greedy.calls - before

    def _select_among(self, arms: IntArray, lam: float) -> None:
        """The base at lam of `arms`, which are ascending: a round with layers."""
        self._worth.count_round()
        record = self._recs[arms]
        weight = record[:, ALPHA] + lam * record[:, BETA]
        before = self._greedy.calls
        self._base = np.sort(self._greedy.base(arms[np.argsort(-weight, kind="stable")], BASE_SLOT))
        self.last_round_calls = self._greedy.calls - before

    def _begin_epoch(self, lam: float) -> None:
        """Bring the order up to date; the base of all. Greedy over all arms, which stops when the base is full, and the
        cost of sorting: O(K) at a new lam, O(sqrt(D K)) amortised at the old one."""
        before = self._greedy.calls
        self._worth.end_epoch(before, len(self._layers.members), self._order.sorted_a_round)
        self._order.begin_epoch(self._recs, lam)
        self._base = np.sort(self._layers.begin_epoch())
        self._candidates = None
        self._epoch_lam = lam
        self.epochs += 1
        spent = self._greedy.calls - before
        self.epoch_calls += spent
        self._worth.begin_epoch(self._greedy.calls, spent)

    def memory(self) -> int:
        parts = (self._order, self._places, self._layers, self._greedy)
        return int(self.records.nbytes) + sum(part.memory() for part in parts)

    def _check(self) -> None:
        self._order.check(self._recs)
        absent = self._is_deleted(np.arange(self.n_arms))
        self._places.check(absent, self._layers.members)
        if np.isnan(self._epoch_lam):
            return
        if self._base is not None:
            assert not absent[self._base].any() and self.matroid._is_independent(self._base.copy())
        self._layers.check(self._recs[:, ALPHA] + self._epoch_lam * self._recs[:, BETA])
