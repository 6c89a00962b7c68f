"""The sorted answer with what came and went, against a plain set of arms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from semibandit.compiled.jit import kernel
from semibandit.engines.answer import (
    all_went,
    answer_came,
    answer_went,
    arms_in,
    is_answer,
    new_answer,
    outside_went,
    went_at,
    write_answer,
)

pytestmark = pytest.mark.bounds


@kernel
def change(answer: Any, went: Any, came: Any, by_place: bool) -> Any:
    for i in range(went.shape[0]):
        if by_place:
            for j in range(answer.listed.shape[0]):
                if answer.listed[j] == went[i]:
                    went_at(answer, j)
                    break
        else:
            answer_went(answer, went[i])
    in_order = True
    for i in range(came.shape[0]):
        in_order &= answer_came(answer, came[i]) == i
    return in_order


@kernel
def replace_all(answer: Any, came: Any) -> None:
    all_went(answer)
    for i in range(came.shape[0]):
        answer_came(answer, came[i])


@kernel
def write(answer: Any, out: Any) -> Any:
    return write_answer(answer, out)


@kernel
def same(answer: Any, arms: Any) -> Any:
    return is_answer(answer, arms)


@kernel
def leave(answer: Any, node: Any) -> None:
    outside_went(answer, node)


def ids(arms: Any) -> Any:
    return np.array(sorted(arms), dtype=np.int64)


@pytest.mark.thin
@pytest.mark.parametrize("rank", [1, 2, 7, 60, 300])
def test_the_answer_follows_a_set(rank: int) -> None:
    rng = np.random.default_rng(rank)
    answer, arms = new_answer(rank), set()
    for step in range(120):
        went = set(rng.permutation(ids(arms))[: rng.integers(0, len(arms) + 1)].tolist())
        if step % 9 == 8:
            went = set(arms)
        room = rank - len(arms) + len(went)
        outside = list(set(range(4 * rank)) - (arms - went))  # an arm that went may come back
        came = (
            rng.permutation(outside)[: rng.integers(0, room + 1)] if step % 5 else np.zeros(0, dtype=np.int64)
        )
        if step % 18 == 17:
            replace_all(answer, came)
        else:
            assert change(answer, rng.permutation(ids(went)), came, step % 2 == 0)
        arms = (arms - went) | set(came.tolist())
        assert np.array_equal(arms_in(answer), ids(arms))
        assert not (went or len(came)) or len(arms) == 0 or not same(answer, ids(arms))
        out = np.full(rank, -1)
        assert write(answer, out) == len(arms)
        assert np.array_equal(out[: len(arms)], ids(arms))
        assert np.array_equal(arms_in(answer), ids(arms))
        assert same(answer, ids(arms))
        assert write(answer, out) == len(arms) and np.array_equal(out[: len(arms)], ids(arms))
        if len(arms) > 1:
            assert not same(answer, ids(arms)[::-1].copy()) and not same(answer, ids(arms)[1:])


def test_arms_that_are_outside_go() -> None:
    """Those that went before are not counted again."""
    answer, out = new_answer(5), np.zeros(5, dtype=np.int64)
    change(answer, ids([]), ids([0, 2, 3, 7, 9]), False)
    assert write(answer, out) == 5
    change(answer, ids([2]), ids([]), False)
    node = np.zeros(10, dtype=np.int32)
    node[[2, 0, 9, 4]] = -1
    leave(answer, node)
    assert arms_in(answer).tolist() == [3, 7]
    leave(answer, node)
    assert arms_in(answer).tolist() == [3, 7] and write(answer, out) == 2 and out[:2].tolist() == [3, 7]
