"""Kernels in slots: called by address from another kernel, with every kind of argument, and errors come through."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from semibandit.compiled.handle import Floats2, Ints1, make_handle
from semibandit.compiled.jit import inline_kernel, kernel
from semibandit.compiled.slots import call_in_slots, caller, compiled_address, kinds_of, spec_of
from semibandit.engines.kernels import (
    any_engine,
    engine_select,
    engine_touch,
    engine_touch_all,
    implement_engine,
)


@kernel
def scaled_sum(numbers, factor, words, flag):
    """Of `numbers` by `factor`, plus the words; changes the first number."""
    total = 0.0
    for i in range(numbers.shape[0]):
        for j in range(numbers.shape[1]):
            total += numbers[i, j]
    numbers[0, 0] = -1.0
    return factor * total + words[0] + (0.5 if flag else 0.0)


_call = caller("ad2sdaq1s?:sd")


@kernel
def twice_by_address(address, numbers, factor, words, flag):
    return _call(address, numbers, factor, words, flag) + _call(address, numbers, factor, words, not flag)


def test_signatures_are_read_as_they_are_written():
    spec = "ad2sdAq1s?:sQ"
    kinds, answer = kinds_of(spec)
    assert "".join(spec_of(kind) for kind in kinds) + ":" + spec_of(answer) == spec
    assert kinds_of("sq:n")[1].name == "none"


def test_a_kernel_calls_another_one_by_its_address():
    numbers, words = np.arange(6.0).reshape(2, 3), np.array([7])
    address = scaled_sum.address("ad2sdaq1s?:sd")
    first = 2.0 * 15 + 7 + 0.5
    second = 2.0 * 14 + 7  # the first call changed a number
    assert twice_by_address(address, numbers, 2.0, words, True) == first + second
    assert numbers[0, 0] == -1.0
    # An integer is handed over as the float that the signature wants.
    assert twice_by_address(address, numbers, 2, words, False) == pytest.approx(2 * (2 * 14 + 7) + 0.5)


def test_a_kernel_in_slots_answers_python_too():
    numbers, words = np.ones((2, 2)), np.array([1])
    kinds = kinds_of("ad2sdaq1s?:sd")[0]
    assert call_in_slots(scaled_sum, kinds, (numbers, 0.5, words, True)) == 2.0 + 1 + 0.5


def test_another_answer_than_promised_is_refused():
    with pytest.raises(TypeError, match="must answer int64"):
        compiled_address(scaled_sum, "ad2sdaq1s?:sq")


class Counting(NamedTuple):
    recs: Floats2
    counts: Ints1


@inline_kernel
def _count_select(state, lam, out):
    out[0] = state.counts[0]
    return 1


@inline_kernel
def _count_touch(state, arm):
    if arm < 0:
        raise ValueError("no such arm")
    state.counts[0] += arm


implement_engine(Counting, _count_select, _count_touch)


@kernel
def touch_and_select(engine, arm, out):
    engine_touch(engine, arm)
    engine_touch_all(engine)
    return engine_select(engine, 0.0, out)


def test_a_loop_over_any_engine_calls_the_engine_it_is_given():
    from semibandit.compiled.handle import by_handle
    from semibandit.engines.kernels import AnyEngine

    state = Counting(np.zeros((4, 4)), np.zeros(1, dtype=np.int64))
    engine, out = any_engine(state), np.zeros(1, dtype=np.int64)
    enter = by_handle(touch_and_select, AnyEngine)
    assert enter(make_handle(engine), 5, out) == 1
    assert out[0] == 5 + (0 + 1 + 2 + 3)
    with pytest.raises(ValueError, match="no such arm"):
        enter(make_handle(engine), -1, out)
    assert state.counts[0] == 11
