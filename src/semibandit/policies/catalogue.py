"""Policies by name, with what they cost and promise: what the command line offers and the docs list.

A new policy plugs in with one entry in `POLICIES`. Its factory is called as
``factory(matroid, reward_range=..., **options)``, with ``seed=...`` if it takes one, and with whatever of the
context (`horizon`: the rounds planned; `means`: the true ones, for the oracle) it has a parameter for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from semibandit.errors import ParameterError
from semibandit.matroids import Matroid
from semibandit.policies.base import Policy
from semibandit.policies.baselines import EpsilonGreedy, Greedy, Oracle, Random
from semibandit.policies.fpl import FPL
from semibandit.policies.index.cucb import CUCB
from semibandit.policies.index.discounted import DiscountedCUCB
from semibandit.policies.index.faster_cucb import FasterCUCB
from semibandit.policies.index.kl_osm import KLOSM
from semibandit.policies.index.maub import MAUB
from semibandit.policies.index.sliding_window import SlidingWindowCUCB
from semibandit.policies.thompson.cts import CTS

# Parameters that are not options: the caller fills them in.
GIVEN = ("matroid", "reward_range", "seed", "schedule", "means")


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
        return tuple(name for name in names if name not in GIVEN)


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
        PolicyEntry(
            "faster-cucb",
            FasterCUCB,
            "D polylog(T): that of a round over rounded features; needs the horizon",
            "regret O(sum of log T / gap) up to lower order terms, for every matroid (Theorem 5.1)",
            "Tzeng et al. 2024, Matroid Semi-Bandits in Sublinear Time",
        ),
        PolicyEntry(
            "kl-osm",
            KLOSM,
            "O(K) a round; with clock=staircase that of cucb, and O(K) at a step of the clock",
            "asymptotically optimal for Bernoulli rewards, for every matroid",
            "Talebi and Proutiere 2016",
        ),
        PolicyEntry(
            "sliding-window-cucb",
            SlidingWindowCUCB,
            "that of cucb, and O(log K) for each reward that leaves the window",
            "for rewards that change abruptly: only the last rounds count",
            "Garivier and Moulines 2011",
        ),
        PolicyEntry(
            "discounted-cucb",
            DiscountedCUCB,
            "that of cucb; O(K) every 139 / (1 - discount) rounds",
            "for rewards that change: old feedback counts less",
            "Kocsis and Szepesvari 2006; Garivier and Moulines 2011",
        ),
        PolicyEntry(
            "cts",
            CTS,
            "looks at O(D) posteriors a round, expected (uniform), at all different ones (partition); else O(K)",
            "regret O(sum of log T / gap) for every matroid, if arms are independent",
            "Wang and Chen 2018; Agrawal and Goyal 2012 for rewards that are not 0 or 1",
        ),
        PolicyEntry(
            "maub",
            MAUB,
            "O(K) to O(K D) a round; independence tests only when the leader changes",
            "none claimed: our reading of the paper's abstract",
            "after Delage and Gaudel 2025; Combes and Proutiere 2014",
        ),
        PolicyEntry(
            "fpl",
            FPL,
            "O(K) a draw, up to 1 + cap draws a round",
            "regret O(D sqrt(K T log K)), rewards chosen by an adversary",
            "Neu and Bartok 2013",
        ),
        PolicyEntry(
            "epsilon-greedy",
            EpsilonGreedy,
            "as greedy, or as random",
            "fixed epsilon: linear regret; decaying: O(log T) if decay is large enough",
            "Auer, Cesa-Bianchi and Fischer 2002",
        ),
        PolicyEntry(
            "greedy",
            Greedy,
            "an update of the engine for each arm played; no pass over all arms",
            "none: it can be stuck for ever",
            "folklore",
        ),
        PolicyEntry(
            "random",
            Random,
            "O(D) a round (uniform, partition); O(K) for other classes",
            "none: linear regret, the yardstick from above",
            "folklore",
        ),
        PolicyEntry(
            "oracle",
            Oracle,
            "O(D) a round",
            "no regret: it is told the means",
            "folklore",
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
    spec: str,
    matroid: Matroid,
    reward_range: tuple[float, float] = (0.0, 1.0),
    seed: int = 0,
    context: Mapping[str, Any] | None = None,
) -> Policy:
    """The policy that `spec` describes, on `matroid`; `context` fills in what the spec leaves open.

    >>> from semibandit import Uniform
    >>> make_policy("cucb:engine=resolve", Uniform(n_arms=5, rank=2))
    CUCB(Uniform(n_arms=5, rank=2), engine='resolve', clock='exact', t=0)
    >>> make_policy("faster-cucb", Uniform(n_arms=5, rank=2), context={"horizon": 1000}).horizon
    1000
    """
    entry, options = parse_policy(spec)
    return build_policy(entry.name, options, matroid, reward_range, seed, context, label=spec)


def build_policy(
    name: str,
    options: Mapping[str, Any],
    matroid: Matroid,
    reward_range: tuple[float, float] = (0.0, 1.0),
    seed: int = 0,
    context: Mapping[str, Any] | None = None,
    label: str | None = None,
) -> Policy:
    """The policy `name` of the catalogue with `options`; see `make_policy`. Errors call it `label`."""
    entry = POLICIES.get(name)
    if entry is None:
        raise ParameterError(f"policy = {name!r} is not known: one of {', '.join(POLICIES)}")
    unknown = [key for key in options if key not in entry.options]
    if unknown:
        raise ParameterError(
            f"policy {name!r} has no option {unknown[0]!r}: one of {', '.join(entry.options)}"
        )
    parameters = inspect.signature(entry.factory).parameters
    given = dict(options)
    for key, value in {**(context or {}), "seed": seed}.items():
        if key in parameters:
            given.setdefault(key, value)
    missing = [
        key
        for key, parameter in parameters.items()
        if parameter.default is inspect.Parameter.empty and key not in given and key != "matroid"
    ]
    if missing:
        raise ParameterError(f"policy {name!r} needs {missing[0]}: write {name}:{missing[0]}=...")
    try:
        return entry.factory(matroid, reward_range=reward_range, **given)
    except TypeError as error:
        # An option of the wrong kind, such as a word where a number belongs.
        raise ParameterError(f"policy {(label or name)!r}: {error}") from None
