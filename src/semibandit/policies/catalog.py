"""Policies by name, with what they cost and promise: what the command line offers and the docs list.

A new policy plugs in with one entry in `POLICIES`. Its factory is called as
``factory(matroid, reward_range=..., **options)``, and with ``seed=...`` if it takes one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from semibandit.errors import ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.base import Policy
from semibandit.policies.cucb import CUCB


@dataclass(frozen=True)
class PolicyEntry:
    """One policy of the catalogue."""

    name: str
    factory: Callable[..., Policy]
    cost: str
    guarantee: str
    reference: str

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options that may follow the policy's name."""
        names = inspect.signature(self.factory).parameters
        return tuple(name for name in names if name not in ("matroid", "reward_range", "seed", "schedule"))


POLICIES: dict[str, PolicyEntry] = {
    entry.name: entry
    for entry in (
        PolicyEntry(
            "cucb",
            CUCB,
            "O(D log D + s log K) a round for s exchanges (uniform, partition); see `semibandit info`",
            "regret O(sum of log T / gap), for every matroid",
            "Gai et al. 2012; Chen et al. 2013; Kveton et al. 2014",
        ),
    )
}


def _value(text: str) -> Any:
    """An option's value as the type it looks like."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def parse_policy(spec: str) -> tuple[PolicyEntry, dict[str, Any]]:
    """``name`` or ``name:option=value,option=value`` as an entry and its options.

    >>> entry, options = parse_policy("cucb:clock=staircase,step=0.02")
    >>> entry.name, options
    ('cucb', {'clock': 'staircase', 'step': 0.02})
    """
    name, _, rest = spec.partition(":")
    entry = POLICIES.get(name.strip())
    if entry is None:
        raise ParameterError(f"policy = {name!r} is not known: one of {', '.join(POLICIES)}")
    options: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in rest.split(","))):
        key, equals, text = part.partition("=")
        key = key.strip()
        if not equals or key not in entry.options:
            raise ParameterError(
                f"policy {spec!r}: {part!r} is not an option of {entry.name}; write option=value with one of "
                f"{', '.join(entry.options)}"
            )
        if key in options:
            raise ParameterError(f"policy {spec!r}: {key} is given twice")
        options[key] = _value(text.strip())
    return entry, options


def make_policy(
    spec: str, matroid: Matroid, reward_range: tuple[float, float] = (0.0, 1.0), seed: int = 0
) -> Policy:
    """The policy that `spec` describes, on `matroid`.

    >>> from semibandit import Uniform
    >>> make_policy("cucb:engine=resolve", Uniform(n_arms=5, rank=2))
    CUCB(Uniform(n_arms=5, rank=2), engine='resolve', clock='exact', t=0)
    """
    entry, options = parse_policy(spec)
    if "seed" in inspect.signature(entry.factory).parameters:
        options["seed"] = seed
    try:
        return entry.factory(matroid, reward_range=reward_range, **options)
    except TypeError as error:
        # An option of the wrong kind, such as a word where a number belongs.
        raise ParameterError(f"policy {spec!r}: {error}") from None
