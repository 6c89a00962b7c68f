"""Bad input to matroids: the class of the error, and a message that names the argument and the value."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from semibandit.errors import ArmError, MatroidError, ParameterError, SemibanditError
from semibandit.matroids import Graphic, Laminar, Linear, Matroid, Partition, Transversal, Uniform
from semibandit.testing import check_matroid

BAD_CONSTRUCTIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "uniform: no arms": (lambda: Uniform(0, 1), r"n_arms = 0"),
    "uniform: negative arms": (lambda: Uniform(-3, 1), r"n_arms = -3"),
    "uniform: rank 0": (lambda: Uniform(5, 0), r"rank = 0"),
    "uniform: rank negative": (lambda: Uniform(5, -2), r"rank = -2"),
    "uniform: rank beyond arms": (lambda: Uniform(5, 6), r"rank = 6.*n_arms = 5"),
    "uniform: rank float": (lambda: Uniform(5, 2.0), r"rank = 2\.0.*integer"),  # type: ignore[arg-type]
    "uniform: arms boolean": (lambda: Uniform(True, 1), r"n_arms = True.*boolean"),
    "uniform: arms text": (lambda: Uniform("5", 1), r"n_arms = '5'"),  # type: ignore[arg-type]
    "partition: empty": (lambda: Partition([]), r"groups is empty"),
    "partition: negative group": (lambda: Partition([0, -1]), r"groups.*-1"),
    "partition: float group": (lambda: Partition([0, 1.5]), r"groups\[1\] = 1\.5"),
    "partition: float array": (lambda: Partition(np.array([0.0, 1.0])), r"groups.*float64"),
    "partition: boolean array": (lambda: Partition(np.array([True, False])), r"groups.*bool"),
    "partition: two dimensions": (lambda: Partition(np.zeros((2, 2), dtype=int)), r"groups.*\(2, 2\)"),
    "partition: not a sequence": (lambda: Partition(7), r"groups = 7"),
    "partition: text": (lambda: Partition("012"), r"groups = '012'"),
    "partition: group without capacity": (lambda: Partition([0, 1, 2], [1, 1]), r"groups\[2\] = 2.*0 to 1"),
    "partition: negative with capacities": (lambda: Partition([0, -1], [1, 1]), r"groups\[1\] = -1"),
    "partition: sparse ids": (lambda: Partition([0, 10**12]), r"groups.*1000000000000.*np\.unique"),
    "partition: id beyond 64 bits": (lambda: Partition([0, 2**70]), r"groups\[1\] = .*64 bits"),
    "partition: uint64 beyond": (lambda: Partition(np.array([2**63], dtype=np.uint64)), r"groups.*64 bits"),
    "partition: negative capacity": (lambda: Partition([0, 1], [1, -4]), r"capacities\[1\] = -4"),
    "partition: negative for all": (lambda: Partition([0, 1], -1), r"capacities = -1"),
    "partition: float capacity": (lambda: Partition([0, 1], 1.5), r"capacities = 1\.5"),
    "partition: float in capacities": (lambda: Partition([0, 1], [1, 0.5]), r"capacities\[1\] = 0\.5"),
    "partition: rank 0": (lambda: Partition([0, 0], 0), r"capacities.*rank 0"),
    "partition: only empty groups have room": (lambda: Partition([0], [0, 3]), r"capacities.*rank 0"),
    "laminar: no arms": (lambda: Laminar(0, []), r"n_arms = 0"),
    "laminar: crossing": (
        lambda: Laminar(4, [([0, 1], 1), ([1, 2], 1)]),
        r"families\[1\] and families\[0\] cross",
    ),
    "laminar: crossing larger": (
        lambda: Laminar(6, [([4, 5], 1), ([0, 1, 2, 3], 2), ([3, 4, 5], 1)]),
        r"families\[2\] and families\[1\] cross",
    ),
    "laminar: unknown arm": (lambda: Laminar(3, [([0], 1), ([0, 3], 1)]), r"families\[1\]\[1\] = 3.*0 to 2"),
    "laminar: negative arm": (lambda: Laminar(3, [([-1], 1)]), r"families\[0\]\[0\] = -1"),
    "laminar: arm twice": (lambda: Laminar(3, [([1, 1], 1)]), r"families\[0\] names arm 1"),
    "laminar: float arm": (lambda: Laminar(3, [([0], 1), ([1.0], 1)]), r"families\[1\]\[0\] = 1\.0"),
    "laminar: float arms array": (lambda: Laminar(3, [(np.array([1.0]), 1)]), r"families\[0\].*float64"),
    "laminar: negative capacity": (lambda: Laminar(3, [([0], -1)]), r"capacity of families\[0\] = -1"),
    "laminar: float capacity": (lambda: Laminar(3, [([0], 0.5)]), r"capacity of families\[0\] = 0\.5"),
    "laminar: not pairs": (lambda: Laminar(3, [[0, 1, 2]]), r"families.*pairs"),
    "laminar: arms not a list": (lambda: Laminar(3, [(0, 1)]), r"families\[0\] = 0"),
    "laminar: not a sequence": (lambda: Laminar(3, 5), r"families.*pairs"),
    "laminar: rank 0": (lambda: Laminar(2, [([0], 0), ([1], 0)]), r"families.*rank 0"),
    "laminar: whole set barred": (lambda: Laminar(2, [([0, 1], 0)]), r"families.*rank 0"),
    "graphic: empty": (lambda: Graphic([]), r"edges is empty"),
    "graphic: empty array": (lambda: Graphic(np.empty((0, 2), dtype=int)), r"edges is empty"),
    "graphic: unknown vertex": (
        lambda: Graphic([(0, 1), (1, 5)], 3),
        r"edges\[1, 1\] = 5.*n_vertices = 3.*0 to 2",
    ),
    "graphic: negative vertex": (lambda: Graphic([(0, -1)]), r"edges.*-1"),
    "graphic: negative with n_vertices": (lambda: Graphic([(0, -1)], 2), r"edges\[0, 1\] = -1"),
    "graphic: three ends": (lambda: Graphic([(0, 1), (0, 1, 2)]), r"edges\[1\].*got 3"),
    "graphic: wrong shape": (lambda: Graphic(np.zeros((4, 3), dtype=int)), r"edges.*\(4, 3\)"),
    "graphic: float vertex": (lambda: Graphic([(0, 1.0)]), r"edges\[0\]\[1\] = 1\.0"),
    "graphic: float array": (lambda: Graphic(np.array([[0.0, 1.0]])), r"edges.*float64"),
    "graphic: not pairs": (lambda: Graphic([1, 2]), r"edges\[0\] = 1"),
    "graphic: n_vertices 0": (lambda: Graphic([(0, 1)], 0), r"n_vertices = 0"),
    "graphic: n_vertices float": (lambda: Graphic([(0, 1)], 2.5), r"n_vertices = 2\.5"),  # type: ignore[arg-type]
    "graphic: sparse ids": (lambda: Graphic([(0, 10**13)]), r"edges.*10000000000000.*n_vertices"),
    "graphic: only self-loops": (lambda: Graphic([(0, 0), (1, 1)]), r"edges.*rank 0"),
    "transversal: empty": (lambda: Transversal([]), r"neighbours is empty"),
    "transversal: unknown node": (
        lambda: Transversal([[0], [1, 7]], 3),
        r"neighbours\[1\]\[1\] = 7.*n_right = 3",
    ),
    "transversal: negative node": (lambda: Transversal([[0], [-2]]), r"neighbours.*-2"),
    "transversal: negative with n_right": (lambda: Transversal([[], [-2]], 3), r"neighbours\[1\]\[0\] = -2"),
    "transversal: float node": (lambda: Transversal([[0], [0.5]]), r"neighbours\[1\]\[0\] = 0\.5"),
    "transversal: flat list": (lambda: Transversal([0, 1]), r"neighbours\[0\] = 0"),
    "transversal: text": (lambda: Transversal("ab"), r"neighbours = 'ab'"),
    "transversal: text inside": (lambda: Transversal([[0], "ab"]), r"neighbours\[1\] = 'ab'"),
    "transversal: no neighbours": (lambda: Transversal([[], []]), r"neighbours.*rank 0"),
    "transversal: no columns": (lambda: Transversal(np.empty((3, 0), dtype=int)), r"neighbours.*rank 0"),
    "transversal: n_right 0": (lambda: Transversal([[0]], 0), r"n_right = 0"),
    "transversal: sparse ids": (lambda: Transversal([[10**13]]), r"neighbours.*10000000000000.*n_right"),
    "linear: empty": (lambda: Linear([]), r"vectors is empty"),
    "linear: no dimension": (lambda: Linear([[], []]), r"vectors is empty"),
    "linear: flat": (lambda: Linear([1, 2]), r"vectors.*rows"),
    "linear: flat array": (lambda: Linear(np.array([1, 2])), r"vectors.*\(2,\)"),
    "linear: not a sequence": (lambda: Linear(5), r"vectors = 5"),
    "linear: ragged": (lambda: Linear([[1, 2], [3]]), r"vectors.*\[1, 2\]"),
    "linear: NaN": (lambda: Linear([[1.0, float("nan")]]), r"vectors\[0, 1\] is not finite"),
    "linear: infinite": (lambda: Linear(np.array([[1.0], [np.inf]])), r"vectors\[1, 0\] is not finite"),
    "linear: infinite among fractions": (
        lambda: Linear([[Fraction(1, 2), float("inf")]]),
        r"vectors\[0\].*inf",
    ),
    "linear: text": (lambda: Linear([["1", "2"]]), r"vectors\[0\] holds '1'"),
    "linear: text array": (lambda: Linear(np.array([["1", "2"]])), r"vectors.*U1"),
    "linear: complex": (lambda: Linear(np.array([[1j]])), r"vectors.*complex"),
    "linear: nested": (lambda: Linear([[[1], [2]]]), r"vectors\[0\] holds \[1\]"),
    "linear: zero": (lambda: Linear([[0, 0], [0, 0]]), r"vectors.*rank 0"),
    "linear: zero modulo p": (lambda: Linear([[3, 6]], field=3), r"vectors.*rank 0"),
    "linear: not a prime": (lambda: Linear([[1]], field=9), r"field = 9.*prime"),
    "linear: field 1": (lambda: Linear([[1]], field=1), r"field = 1:"),
    "linear: field negative": (lambda: Linear([[1]], field=-7), r"field = -7"),
    "linear: field too large": (lambda: Linear([[1]], field=2**61 - 1), r"field = 2305843009213693951"),
    "linear: field float": (lambda: Linear([[1]], field=3.0), r"field = 3\.0"),  # type: ignore[arg-type]
    "linear: halves modulo p": (lambda: Linear([[1, 0], [0.5, 1]], field=5), r"vectors\[1\].*integers"),
}


@pytest.mark.parametrize("case", BAD_CONSTRUCTIONS)
def test_bad_construction(case: str) -> None:
    build, message = BAD_CONSTRUCTIONS[case]
    with pytest.raises(MatroidError, match=message) as caught:
        build()
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, SemibanditError)


class Picky(Matroid):
    def _is_independent(self, arms: np.ndarray[Any, Any]) -> bool:
        return len(arms) <= 2


MATROIDS = [
    Uniform(4, 2),
    Partition([0, 0, 1, 1]),
    Laminar(4, [([0, 1], 1)]),
    Graphic([(0, 1), (1, 2), (2, 0), (2, 3)]),
    Transversal([[0], [0], [1], [1]]),
    Linear([[1, 0], [0, 1], [1, 1], [2, 1]]),
    Picky(4),
]


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ([4], r"arms\[0\] = 4.*0 to 3"),
        ([0, -1], r"arms\[1\] = -1"),
        ([1, 2, 1], r"arms: arm 1 .*more than once"),
        ([0, 1.0], r"arms\[1\] = 1\.0"),
        ([True], r"arms\[0\] = True"),
        (["1"], r"arms\[0\] = '1'"),
        ([None], r"arms\[0\] = None"),
        (np.array([0.0, 1.0]), r"arms.*float64"),
        (np.array([True, False, True, False]), r"arms.*bool"),
        (np.array([[0, 1]]), r"arms.*\(1, 2\)"),
        (np.array(1), r"arms.*\(\)"),
        ([[0], [1]], r"arms\[0\] = \[0\]"),
        (2, r"arms = 2"),
        ("01", r"arms = '01'"),
        ([2**64], r"arms\[0\] = .*64 bits"),
        (np.array([0, None], dtype=object), r"arms\[1\] = None"),
    ],
)
@pytest.mark.parametrize("m", MATROIDS, ids=lambda m: m.name)
def test_bad_arms(m: Matroid, arms: Any, message: str) -> None:
    with pytest.raises(ArmError, match=message):
        m.is_independent(arms)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0, 3.0], r"weights.*\(4,\).*\(3,\)"),
        ([1.0] * 5, r"weights.*\(4,\).*\(5,\)"),
        ([], r"weights.*\(0,\)"),
        (np.ones((4, 1)), r"weights.*\(4, 1\)"),
        (1.0, r"weights.*\(\)"),
        ([0.0, float("nan"), 1.0, float("nan")], r"weights\[1\] is NaN"),
        ([float("inf"), float("-inf"), 0.0, float("nan")], r"weights\[3\] is NaN"),
        (["a", "b", "c", "d"], r"weights.*real numbers"),
        ([1j, 0, 0, 0], r"weights.*complex"),
        ([True, False, True, False], r"weights.*bool"),
        ([None] * 4, r"weights.*object"),
        ([[1.0], [1.0, 2.0], [1.0], [1.0]], r"weights.*unequal"),
    ],
)
@pytest.mark.parametrize("m", MATROIDS, ids=lambda m: m.name)
def test_bad_weights(m: Matroid, weights: Any, message: str) -> None:
    before = m.max_weight_base([1.0, 3.0, 2.0, 0.0]).tolist()
    with pytest.raises(ParameterError, match=message):
        m.max_weight_base(weights)
    assert m.max_weight_base([1.0, 3.0, 2.0, 0.0]).tolist() == before


def test_custom_matroid_mistakes() -> None:
    class Forgetful(Matroid):
        def __init__(self) -> None:
            self.size = 3

        def _is_independent(self, arms: np.ndarray[Any, Any]) -> bool:
            return True

    class Barren(Matroid):
        def _is_independent(self, arms: np.ndarray[Any, Any]) -> bool:
            return len(arms) == 0

    class Writer(Picky):
        def _is_independent(self, arms: np.ndarray[Any, Any]) -> bool:
            self.last = arms
            return True

    with pytest.raises(TypeError, match=r"Forgetful.__init__ must call super\(\).__init__\(n_arms\)"):
        Forgetful()
    with pytest.raises(TypeError, match="abstract"):
        Matroid(3)  # type: ignore[abstract]
    with pytest.raises(MatroidError, match=r"Barren\(n_arms=3\).*rank is 0"):
        _ = Barren(3).rank
    with pytest.raises(MatroidError, match=r"n_arms = 0"):
        Barren(0)
    with pytest.raises(AttributeError, match="Writer is immutable: cannot set 'last'"):
        Writer(3).is_independent([0])


def test_check_matroid_refuses_large_ground_sets() -> None:
    with pytest.raises(ParameterError, match=r"11 arms.*max_arms = 10"):
        check_matroid(Uniform(11, 2))
    check_matroid(Uniform(11, 2), max_arms=11)
