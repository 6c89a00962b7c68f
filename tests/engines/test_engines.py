"""Every engine against greedy over all weights, operation by operation; the vector kernels against scalar twins."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from semibandit.compiled.jit import kernel
from semibandit.compiled.lanes import (
    ABSENT,
    EARLY,
    MARGIN,
    best_lane,
    best_lane_with,
    certify_lanes,
    smallest_lane,
)
from semibandit.engines import ENGINES, choose_clock, make_engine, register_engine, resolve_engine
from semibandit.engines.graphic.engine import GraphicAdaptiveEngine as AdaptiveEngine
from semibandit.engines.kinetic.engine import KineticEngine
from semibandit.engines.layers.hot_cold import HotColdEngine
from semibandit.engines.registry import BOTH, STAIRS, choose
from semibandit.engines.resolve.oracle import OracleEngine
from semibandit.errors import ArmError, ClockError, ParameterError
from semibandit.matroids import Graphic, Laminar, Linear, Matroid, Partition, Transversal, Uniform
from semibandit.matroids.base import is_kind, kind_of
from semibandit.testing import check_engine
from support.random_matroids import RANDOM
from support.seeds import seeds

pytestmark = pytest.mark.bounds

VALUES = [(0.0, 1.0), (0.5,), (float("nan"),), (0.1, 0.2, 0.3)]


@pytest.mark.thin
@pytest.mark.parametrize("kind", sorted(RANDOM))
@pytest.mark.parametrize("seed", seeds(4, 8))
def test_every_registered_engine_agrees_with_greedy(kind, seed):
    rng = np.random.default_rng(1000 * seed + 7)
    for size in (1, 2, 5, 9, 14):
        matroid, _ = RANDOM[kind](rng, size)
        for spec in ENGINES.values():
            if spec.way(matroid) is None:
                continue
            for moving in (True, False):
                check_engine(
                    spec.make,
                    matroid,
                    operations=30,
                    seed=seed,
                    moving_clock=moving,
                    values=VALUES[seed % len(VALUES)],
                )


@pytest.mark.thin
@pytest.mark.parametrize("fanout", [2, 4, 8, 16])
@pytest.mark.parametrize("seed", seeds(3, 6))
def test_kinetic_at_every_fanout(fanout, seed):
    rng = np.random.default_rng(seed)
    for size in (1, 3, 17, 40, 70):
        rank = int(rng.integers(1, size + 1))
        groups = rng.integers(0, 4, size)
        for matroid in (Uniform(size, rank), Partition(groups, rng.integers(1, 4, 4))):
            check_engine(
                lambda m, records: KineticEngine(m, records, fanout=fanout),
                matroid,
                operations=40,
                seed=seed,
                values=VALUES[seed % len(VALUES)],
            )


def test_large_batches_rebuild_and_agree():
    rng = np.random.default_rng(3)
    matroid = Partition(rng.integers(0, 20, 3000), 2)
    fast, slow = KineticEngine(matroid), resolve_engine(matroid)
    for step in range(6):
        arms = rng.integers(0, 3000, 2500) if step % 2 == 0 else fast.base()
        rewards = rng.integers(0, 2, len(arms)).astype(float)
        for engine in (fast, slow):
            assert engine.observe(arms, rewards, 0.0, 1.0) == 0
            engine.advance(0.5 * (step + 1))
        fast._check()
        assert np.array_equal(fast.base(), slow.base())


def test_deleting_everything_gives_an_empty_base_and_insertion_restores():
    for make in (KineticEngine, resolve_engine):
        engine = make(Uniform(5, 3))
        engine.delete(np.arange(5))
        assert engine.base().tolist() == []
        engine.insert([4, 1])
        assert engine.base().tolist() == [1, 4]
        engine.insert([0, 2, 3])
        assert engine.base().tolist() == [0, 1, 2]


@pytest.mark.parametrize("make", [KineticEngine, resolve_engine, OracleEngine])
def test_bad_deletions_change_nothing(make):
    engine = make(Uniform(5, 3))
    engine.delete([2])
    with pytest.raises(ArmError, match="arm 2 is deleted already"):
        engine.delete([1, 2])
    with pytest.raises(ArmError, match="named twice"):
        engine.delete([1, 1])
    with pytest.raises(ArmError, match="arm 0 is present already"):
        engine.insert([2, 0])
    with pytest.raises(ArmError, match="exclude"):
        engine.base_excluding([5])
    assert engine.deleted.tolist() == [2]
    assert engine.base().tolist() == [0, 1, 3]


def test_weights_are_validated():
    engine = resolve_engine(Uniform(3, 1))
    with pytest.raises(ParameterError, match="alpha"):
        engine.set_weight(0, float("nan"))
    with pytest.raises(ParameterError, match="alpha"):
        engine.set_weight(0, float("-inf"))
    with pytest.raises(ParameterError, match="beta"):
        KineticEngine(Uniform(3, 1)).set_weight(0, 1.0, -1.0)
    with pytest.raises(ClockError, match="finite"):
        engine.advance(float("inf"))


def test_unknown_or_unfit_engines_are_named():
    with pytest.raises(ParameterError, match="engine = 'quantum'"):
        make_engine(Uniform(3, 1), engine="quantum")
    with pytest.raises(ParameterError, match="graphic"):
        make_engine(Graphic([(0, 1)]), engine="kinetic")
    with pytest.raises(ParameterError, match="fanout"):
        KineticEngine(Uniform(3, 1), fanout=3)


# Which engine serves what


class Roads(Graphic):
    """A graph with something more; what is independent is left as it is."""

    def __init__(self, edges, lengths):
        super().__init__(edges)
        self.lengths = tuple(lengths)


class OneTree(Graphic):
    """Forests of at most two edges: says anew what is independent."""

    def _find_rank(self):
        return 2


class Even(Graphic):
    """Edges of even number only: another greedy, and another test that follows from it."""

    def _compiled_greedy(self, order, limit):
        return super()._compiled_greedy(order[order % 2 == 0], limit)


class Stranger(Matroid):
    """A class of a user, with the name of a built-in one."""

    name = "partition"

    def _is_independent(self, arms):
        return len(arms) <= 2 and not {0, 1} <= set(arms.tolist())


RING = [(k, (k + 1) % 12) for k in range(12)] + [(k, (k + 2) % 12) for k in range(12)]


def test_a_subclass_that_adds_nothing_to_independence_keeps_its_fast_engines():
    roads = Roads(RING, range(24))
    assert kind_of(roads) is Graphic and is_kind(roads, Graphic)
    assert choose(roads, "staircase")[0] == "adaptive" and choose_clock(roads, "auto") == "staircase"
    assert isinstance(make_engine(roads, clock="staircase")[0], AdaptiveEngine)
    check_engine(ENGINES["adaptive"].make, roads, operations=40, moving_clock=False)


@pytest.mark.parametrize("make", [lambda: OneTree(RING), lambda: Even(RING), lambda: Stranger(5)])
def test_a_class_that_says_itself_what_is_independent_gets_engines_for_all(make):
    matroid = make()
    assert kind_of(matroid) is type(matroid) and not is_kind(matroid, Graphic)
    fitting = [name for name, spec in ENGINES.items() if spec.fits(matroid, "staircase")]
    assert fitting == ["hot-cold", "resolve"]
    assert isinstance(make_engine(matroid, engine="resolve")[0], OracleEngine)
    assert isinstance(make_engine(matroid, engine="hot-cold", clock="staircase")[0], HotColdEngine)
    for name in fitting:
        check_engine(ENGINES[name].make, matroid, operations=40, moving_clock=False)
    with pytest.raises(
        ParameterError, match=r"not (onetree|even|the class Stranger).*here: 'auto', 'resolve'"
    ):
        make_engine(matroid, engine="adaptive" if isinstance(matroid, Graphic) else "kinetic")


def test_kinds_of_built_in_classes_are_themselves():
    for cls, instance in {
        Uniform: Uniform(3, 1),
        Partition: Partition([0, 1]),
        Laminar: Laminar(2, [([0, 1], 1)]),
        Graphic: Graphic([(0, 1)]),
        Transversal: Transversal([[0]]),
        Linear: Linear([[1]]),
    }.items():
        assert kind_of(instance) is cls


@pytest.fixture
def same_engines():
    before = dict(ENGINES)
    yield
    ENGINES.clear()
    ENGINES.update(before)


def test_an_engine_from_outside_is_used_by_name_and_by_auto(same_engines):
    @register_engine(
        "careful", serves=(Stranger,), clocks=STAIRS, cost="O(K)", why="it takes care", fast_from=3
    )
    class Careful(OracleEngine):
        name = "careful"

    class Heir(Stranger):
        """Of the kind that the engine is made for."""

    for matroid in (Stranger(5), Heir(5)):
        assert choose(matroid, "staircase") == ("careful", "K = 5, D = 2: it takes care")
        assert choose(matroid, "exact")[0] == "resolve"
        assert choose_clock(matroid, "auto") == choose_clock(matroid, "careful") == "staircase"
        assert isinstance(make_engine(matroid, engine="careful", clock="staircase")[0], Careful)
    check_engine(ENGINES["careful"].make, Stranger(5), operations=40)
    spec = ENGINES["careful"]
    assert (spec.name, spec.serves, spec.clocks, spec.cost) == ("careful", ("partition",), STAIRS, "O(K)")
    # Named like a class that it serves, but not of its kind.
    with pytest.raises(ParameterError, match=r"careful.*not the class Partition"):
        make_engine(Partition([0, 1, 1]), engine="careful", clock="staircase")
    with pytest.raises(ClockError, match="'staircase'"):
        make_engine(Stranger(5), engine="careful")


def test_several_classes_share_a_name_and_the_later_one_is_taken_by_auto(same_engines):
    before = ENGINES["kinetic"]

    @register_engine("kinetic", serves=(Linear,), cost="O(1)", why="made up", fast_from=1)
    def made_up(matroid, records=None):
        return OracleEngine(matroid, records)

    register_engine("kinetic", serves=(Linear,), cost="O(2)", why="once more", fast_from=1)(made_up)
    assert ENGINES["kinetic"].serves == (*before.serves, "linear")
    assert choose(Linear([[1], [2]]), "exact") == ("kinetic", "K = 2, D = 1: once more")
    assert isinstance(make_engine(Uniform(30, 2), engine="kinetic")[0], KineticEngine)

    with pytest.raises(ParameterError, match="made_up serves the same matroids already"):

        @register_engine("kinetic", serves=(Linear,), cost="O(1)")
        class Other(OracleEngine):
            pass

    @register_engine("slow", serves=(Uniform,), cost="O(K)", why="slow and sure", fast_from=20)
    class Slow(OracleEngine):
        pass

    assert choose(Uniform(30, 2), "exact")[0] == "slow" and choose(Uniform(10, 2), "exact")[0] == "resolve"
    with pytest.raises(ParameterError, match="clocks"):
        register_engine("quick", cost="O(1)", clocks=("sundial",))


def test_the_built_in_engines_are_there_whatever_was_imported_first():
    script = (
        "import sys\n"
        "import semibandit.engines.kinetic.engine\n"
        "from semibandit.engines import ENGINES\n"
        "assert list(ENGINES) == ['adaptive', 'grouped', 'hot-cold', 'kinetic', 'resolve'], list(ENGINES)\n"
        "assert ENGINES['kinetic'].serves == ('uniform', 'partition', 'laminar')\n"
        "assert ENGINES['adaptive'].serves == ('graphic', 'transversal')\n"
        "assert 'numba' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ENGINES["resolve"].serves == () and ENGINES["resolve"].clocks == BOTH


@kernel
def _best(blocks, b, lam):
    return best_lane(blocks, b, lam)


@kernel
def _certify(blocks, b, best, lam):
    return certify_lanes(blocks, b, best, lam)


@kernel
def _smallest(blocks, b):
    return smallest_lane(blocks, b, 2)


@kernel
def _best_with(blocks, b, lam, lane, alpha, beta):
    return best_lane_with(blocks, b, lam, lane, alpha, beta)


def _scalar_certificate(alpha, beta, best, lam):
    """The rule of `tournament.shorten`, lane by lane, in plain Python floats."""
    ends = []
    for i in range(len(alpha)):
        gap, slope = alpha[best] - alpha[i], beta[i] - beta[best]
        if alpha[i] == ABSENT or (slope == 0.0 and i >= best and gap >= 0.0):
            continue
        size_alpha = MARGIN * (abs(alpha[best]) + abs(alpha[i]))
        size_beta = MARGIN * (beta[best] + beta[i])
        if gap - lam * slope <= size_alpha + lam * size_beta:
            ends.append(lam)
        elif slope + size_beta > 0.0:
            ends.append(max((gap - size_alpha) / (slope + size_beta) * EARLY, lam))
    return min(ends, default=np.inf)


@pytest.mark.parametrize("seed", range(5))
def test_vector_kernels_equal_their_scalar_twins(seed):
    rng = np.random.default_rng(seed)
    n = 400
    blocks = np.zeros((n, 4, 16))
    blocks[:, 0] = rng.choice([0.0, 0.25, 0.5, ABSENT, 1.0], (n, 16)) if seed % 2 else rng.random((n, 16))
    blocks[:, 1] = 1.0 / np.sqrt(rng.integers(1, 6, (n, 16)))
    blocks[:, 1][blocks[:, 0] == ABSENT] = 0.0
    blocks[:, 2] = rng.random((n, 16))
    for b in range(n):
        lam = float(rng.choice([0.0, 0.3, 2.5]))
        weight = blocks[b, 0] + lam * blocks[b, 1]
        best = _best(blocks, b, lam)
        assert best == int(np.argmax(weight))
        assert _smallest(blocks, b) == blocks[b, 2].min()
        if blocks[b, 0, best] != ABSENT:
            end = _certify(blocks, b, best, lam)
            assert end == _scalar_certificate(blocks[b, 0].tolist(), blocks[b, 1].tolist(), best, lam)


@pytest.mark.parametrize("seed", range(4))
def test_the_best_lane_with_one_replaced_is_that_of_the_block_as_it_will_be(seed):
    rng = np.random.default_rng(seed)
    values = [0.0, 0.25, 0.5, ABSENT, 1.0, np.inf]
    for _ in range(400):
        blocks = np.zeros((2, 4, 16))
        blocks[:, 0] = rng.choice(values, (2, 16)) if seed % 2 else rng.random((2, 16))
        blocks[:, 1] = 1.0 / np.sqrt(rng.integers(1, 6, (2, 16)))
        blocks[:, 1][np.isin(blocks[:, 0], [ABSENT, np.inf])] = 0.0
        lam, lane = float(rng.choice([0.0, 0.3, 2.5])), int(rng.integers(16))
        alpha = float(rng.choice([*values, rng.random()]))
        beta = 0.0 if alpha in (ABSENT, np.inf) else float(rng.random())
        before = blocks.copy()
        found = _best_with(blocks, 1, lam, lane, alpha, beta)
        assert np.array_equal(blocks, before)
        blocks[1, :2, lane] = alpha, beta
        best = int(np.argmax(blocks[1, 0] + lam * blocks[1, 1]))
        assert found == (best, blocks[1, 0, best], blocks[1, 1, best])


def test_certificates_are_kept_by_the_rounded_weights():
    """Up to its end a certificate's winner wins, by the floats themselves, also within a hair of the crossing."""
    rng = np.random.default_rng(11)
    blocks = np.zeros((1, 4, 16))
    for _ in range(3000):
        blocks[0, 0] = rng.integers(0, 40, 16) / rng.integers(1, 40)
        blocks[0, 1] = 1.0 / np.sqrt(rng.integers(1, 40, 16))
        lam = float(rng.random() * 3)
        best = _best(blocks, 0, lam)
        end = _certify(blocks, 0, best, lam)
        for x in (lam, 0.5 * (lam + min(end, 50.0)), min(end, 50.0)):
            assert _best(blocks, 0, float(x)) == best
