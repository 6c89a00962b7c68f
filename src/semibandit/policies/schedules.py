"""Confidence widths by name: schedules for `CUCB` that can be written down, in files, in TOML, on the command line.

A schedule says how wide confidence intervals are in round t: the index is ``mean + width(t) / sqrt(N)``. Any function
of the round will do, but only those of this module, and classes of your own with the decorator `schedule`, can be saved
with a policy. They are told by name, with their numbers in brackets: ``"log"``, ``"log(0.5)"``, ``"power(0.1, 0.25)"``.

>>> import semibandit as sb
>>> policy = sb.CUCB(sb.Uniform(n_arms=4, rank=2), schedule="log(0.5)")
>>> policy.schedule
Log(c=0.5, past=0.0)
>>> str(policy.schedule)
'log(0.5, 0.0)'
>>> round(policy.schedule(100), 3)
1.517
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from typing import Any, ClassVar, TypeVar

from semibandit.checks import as_number
from semibandit.errors import ParameterError
from semibandit.text import unknown

S = TypeVar("S", bound="type[Schedule]")

_TOLD = re.compile(r"\s*([a-z][a-z0-9-]*)\s*(?:\((.*)\))?\s*", re.DOTALL)


@dataclass(frozen=True)
class Schedule:
    """A confidence width with a name: a frozen dataclass of finite numbers, at least 0, called with the round."""

    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(
                self, field.name, as_number(getattr(self, field.name), f"{self.name}: {field.name}", 0.0)
            )

    def __call__(self, t: int) -> float:
        """The width of round t, from 1 on. O(1)."""
        raise NotImplementedError(f"{type(self).__name__} says no width")

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(repr, astuple(self)))})"


SCHEDULES: dict[str, type[Schedule]] = {}


def schedule(name: str) -> Callable[[S], S]:
    """Give a subclass of `Schedule`, a frozen dataclass of numbers, the name it is told by.

    >>> from dataclasses import dataclass
    >>> @schedule("steady")
    ... @dataclass(frozen=True)
    ... class Steady(Schedule):
    ...     rate: float = 0.01
    ...     def __call__(self, t):
    ...         return self.rate * t
    >>> as_schedule("steady(0.5)")(10)
    5.0
    >>> del SCHEDULES["steady"]
    """

    def decorate(cls: S) -> S:
        known = SCHEDULES.get(name)
        if known is not None and known.__qualname__ != cls.__qualname__:
            raise ParameterError(f"schedule {name!r} is {known.__qualname__} already")
        if _TOLD.fullmatch(name) is None or "(" in name:
            raise ParameterError(f"name = {name!r}: a schedule's name is small letters, digits and hyphens")
        cls.name = name
        SCHEDULES[name] = cls
        return cls

    return decorate


@schedule("constant")
@dataclass(frozen=True)
class Constant(Schedule):
    """The same width in all rounds.

    >>> Constant(0.3)(1), Constant(0.3)(1000)
    (0.3, 0.3)
    """

    width: float = 1.0

    def __call__(self, t: int) -> float:
        return self.width


@schedule("log")
@dataclass(frozen=True)
class Log(Schedule):
    """``sqrt(c log(past + t))``: what CUCB does, in units of rewards. With c = 1.5 (b-a)^2 that of Theorem 5.1.

    `past`: rounds that were played before the first one, for policies that learnt from a log.

    >>> Log(2.0)(1), round(Log(2.0)(8), 3), Log(2.0, past=7)(1) == Log(2.0)(8)
    (0.0, 2.039, True)
    """

    c: float = 1.5
    past: float = 0.0

    def __call__(self, t: int) -> float:
        return math.sqrt(self.c * math.log(self.past + t))


@schedule("loglog")
@dataclass(frozen=True)
class LogLog(Schedule):
    """``sqrt(c (log t + extra log log t))`` (log log from round 3 on): the level of KL-UCB (Cappe et al. 2013).

    >>> LogLog(0.5, 0.0)(100) == Log(0.5)(100), LogLog(0.5)(100) > Log(0.5)(100)
    (True, True)
    """

    c: float = 0.5
    extra: float = 3.0

    def __call__(self, t: int) -> float:
        log = math.log(t)
        return math.sqrt(self.c * (log + self.extra * math.log(max(1.0, log))))


@schedule("power")
@dataclass(frozen=True)
class Power(Schedule):
    """``c t^exponent``: explores more and more, for rewards that may change slowly.

    >>> Power(0.5, 0.25)(16)
    1.0
    """

    c: float = 0.1
    exponent: float = 0.25

    def __call__(self, t: int) -> float:
        return self.c * float(t) ** self.exponent


def as_schedule(given: Any) -> Callable[[int], float] | None:
    """A schedule told by name, or itself, or any function of the round; None stays None. O(1)."""
    if isinstance(given, type) and issubclass(given, Schedule):
        return given()
    if given is None or callable(given):
        return given  # type: ignore[no-any-return]
    if not isinstance(given, str):
        raise ParameterError(
            f"schedule must be a function of the round or a name such as 'log(0.5)', got {given!r}"
        )
    told = _TOLD.fullmatch(given)
    if told is None:
        raise ParameterError(f"schedule = {given!r} cannot be read: write it as 'log' or 'log(0.5)'")
    name, numbers = told.groups()
    cls = SCHEDULES.get(name)
    if cls is None:
        raise ParameterError(unknown(f"schedule = {given!r} is not known", name, SCHEDULES))
    parts = [part.strip() for part in (numbers or "").split(",")] if (numbers or "").strip() else []
    wanted = [field.name for field in fields(cls)]
    if len(parts) > len(wanted):
        raise ParameterError(f"schedule = {given!r}: {name} takes at most {', '.join(wanted)}")
    try:
        values = [float(part) for part in parts]
    except ValueError:
        raise ParameterError(f"schedule = {given!r}: what stands in brackets must be numbers") from None
    return cls(*values)


def as_text(known: Callable[[int], float] | None) -> Any:
    """A schedule as it goes into a file: its text, or itself where it has none. O(1)."""
    if isinstance(known, Schedule) and SCHEDULES.get(known.name) is type(known):
        return str(known)
    return known
