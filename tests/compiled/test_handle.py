"""States by handle: what is declared is what a kernel sees, and nothing else gets in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from semibandit.compiled.handle import (
    Bytes1,
    Flags1,
    Floats1,
    Floats3,
    Ints2,
    Number,
    Shorts1,
    Whole,
    Word,
    by_handle,
    layout,
    make_handle,
)
from semibandit.compiled.jit import kernel


class Inside(NamedTuple):
    small: Shorts1
    cube: Floats3


class Outside(NamedTuple):
    flags: Flags1
    inside: Inside
    table: Ints2
    scale: Number
    count: Whole
    word: Word
    bytes_: Bytes1


class Undeclared(NamedTuple):
    values: list


def example() -> Outside:
    inside = Inside(np.arange(3, dtype=np.int32), np.arange(24.0).reshape(2, 3, 4))
    table = np.arange(6).reshape(3, 2)
    word = np.uint64(2**63 + 5)
    return Outside(np.array([True, False]), inside, table, -0.5, 7, word, np.array([200], dtype=np.uint8))


@kernel
def add_up(state, factor):
    total = 0.0
    for i in range(state.flags.shape[0]):
        total += 1.0 if state.flags[i] else 0.0
    for i in range(state.inside.small.shape[0]):
        total += state.inside.small[i]
    cube = state.inside.cube
    for i in range(cube.shape[0]):
        for j in range(cube.shape[1]):
            for k in range(cube.shape[2]):
                total += cube[i, j, k] * (i + 1)
    for i in range(state.table.shape[0]):
        total += 10 * state.table[i, 1]
        state.table[i, 0] = -1
    total += state.scale * state.count + state.bytes_[0]
    return factor * total, state.word


def test_a_kernel_sees_every_field_and_writes_in_place():
    state = example()
    cube = state.inside.cube
    expected = 1 + 3 + cube[0].sum() + 2 * cube[1].sum() + 10 * (1 + 3 + 5) - 3.5 + 200
    total, word = by_handle(add_up, Outside)(make_handle(state), 2.0)
    assert total == 2.0 * expected
    assert word == 2**63 + 5
    assert state.table[:, 0].tolist() == [-1, -1, -1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"flags": np.zeros(2)},
            "Outside.flags must be a C-contiguous bool array of 1 dimensions, got float64 of 1",
        ),
        ({"table": np.zeros((2, 3), dtype=np.int32)}, "int64 array of 2 dimensions, got int32 of 2"),
        ({"table": np.zeros((4, 4), dtype=np.int64)[::2]}, "C-contiguous int64"),
        ({"inside": (np.zeros(1),)}, "Outside.inside must be a Inside, got tuple"),
        ({"inside": Inside(np.zeros(1, dtype=np.int32), np.zeros((1, 1)))}, "Inside.cube"),
    ],
)
def test_other_arrays_are_refused(change, message):
    with pytest.raises(TypeError, match=message):
        make_handle(example()._replace(**change))


def test_a_field_must_be_declared():
    with pytest.raises(TypeError, match=r"Undeclared\.values: declare it"):
        layout(Undeclared)


def test_kernels_by_handle_are_made_once():
    assert by_handle(add_up, Outside) is by_handle(add_up, Outside)


def test_a_state_without_elements_is_fine():
    class Empty(NamedTuple):
        none: Floats1

    assert make_handle(Empty(np.zeros(0)))[1] == 0


@kernel
def _slice_sum(inside, row):
    return inside.cube[1, row, :].sum() + inside.cube[:, 0, 0].sum() + inside.cube.size


@kernel
def look_inside(state, row):
    return _slice_sum(state.inside, row)


def test_inner_states_are_handed_on_and_their_arrays_can_be_cut():
    state = example()
    cube = state.inside.cube
    want = cube[1, 2, :].sum() + cube[:, 0, 0].sum() + cube.size
    assert by_handle(look_inside, Outside)(make_handle(state), 2) == want
    assert by_handle(_slice_sum, Inside)(make_handle(state.inside), 2) == want
    # the same kernel takes the tuple itself
    assert look_inside(state, 2) == want


@kernel
def ask_for_nothing(state):
    return state.nobody


def test_a_field_that_is_not_there_is_named():
    with pytest.raises(Exception, match="nobody"):
        by_handle(ask_for_nothing, Outside)(make_handle(example()))


@kernel
def raise_count(state, n):
    for _ in range(n):
        state.table[0, 0] += state.table[2, 1]
    return state.table[0, 0]


def test_what_is_written_is_read_again_and_where_arrays_are_may_change_between_calls():
    raise_by_handle = by_handle(raise_count, Outside)
    state = example()
    handle = make_handle(state)
    assert raise_by_handle(handle, 3) == 15
    # The handle's own words are taken for fixed only while a kernel runs.
    other = state._replace(table=np.array([[100, 0], [0, 0], [0, 1]]))
    handle[:] = make_handle(other)
    assert raise_by_handle(handle, 3) == 103
    assert state.table[0, 0] == 15
