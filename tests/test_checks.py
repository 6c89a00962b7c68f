"""Numbers, flags and names at the door."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from semibandit.checks import as_flag, as_number, one_of
from semibandit.errors import ParameterError


@pytest.mark.parametrize("given", [2, 2.0, np.float32(2), np.int64(2), np.array(2.0), Fraction(4, 2)])
def test_numbers_of_every_kind(given: Any) -> None:
    assert as_number(given, "step") == 2.0


@pytest.mark.parametrize(
    "given", ["abc", "2", b"2", None, True, np.True_, [1, 2], np.array([1.0, 2.0]), 1j, {}, 10**400]
)
def test_what_is_no_number_is_named_with_the_option(given: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        as_number(given, "step")
    assert str(caught.value) == f"step must be a number, got {given!r}"


def test_flags() -> None:
    assert [as_flag(one, "clip") for one in (True, np.False_, 1, 0)] == [True, False, True, False]
    for bad in ("yes", 2, None, 1.0):
        with pytest.raises(ParameterError, match="clip must be True or False"):
            as_flag(bad, "clip")


def test_one_of_names_what_is_near() -> None:
    assert one_of("exact", "clock", ("exact", "staircase")) == "exact"
    with pytest.raises(ParameterError, match=r"clock = 'stairs' is not known, did you mean 'staircase'\?"):
        one_of("stairs", "clock", ("exact", "staircase"))
